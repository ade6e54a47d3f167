"""What a run waits for is told and bounded: servers that hang, prompts that come back later; and what it keeps."""

from __future__ import annotations

import json
import signal
import sys

from tests.agent.cli.conftest import Bench
from tests.agent.servers import Call, Received, Reply, ScriptedServer

SO = Reply(Call("structured_output", {"summary": "fine"}, "so"))
HANGING = "import signal, time; signal.signal(signal.SIGTERM, lambda *_: None); print(flush=True); time.sleep(600)"


def test_a_server_that_hangs_is_told_of_and_a_signal_does_not_wait_for_it(bench: Bench) -> None:
    config = json.dumps({"mcpServers": {"slow": {"command": sys.executable, "args": ["-c", HANGING]}}})
    with ScriptedServer([SO]) as server:
        running = bench.start(server, "--mcp-config", config)
        running.wait_for_stderr("Waiting for the MCP server 'slow'")
        running.send(signal.SIGINT)
        finished = running.finish()
    assert (130, "cancelled") == (finished.code, finished.result["termination_reason"])


def test_the_wall_time_counts_while_servers_are_connected(bench: Bench) -> None:
    config = json.dumps({"slow": {"command": sys.executable, "args": ["-c", HANGING]}})
    finished = bench.run([SO], "--mcp-config", config, "--max-wall-time", "2")
    assert (55, "wall_time", []) == (finished.code, finished.result["termination_reason"], bench.received)


def test_a_prompt_that_comes_back_later_is_bounded_and_told(bench: Bench) -> None:
    def script(request: Received) -> Reply:
        last = str(request.body["messages"][-1]["content"])
        if "maximum" in last or "3600" in last:
            return Reply(Call("schedule", {"prompt": "tick", "after_seconds": 1}, "short"))
        if "Scheduled" in last:
            return Reply("waiting")
        return SO if "tick" in last else Reply(Call("schedule", {"prompt": "x", "after_seconds": 1e6}, "long"))

    finished = bench.run(script)
    assert (0, True, False) == (
        finished.code,
        finished.results()["long"]["is_error"],
        finished.results()["short"]["is_error"],
    )
    assert "Waiting for a scheduled prompt in " in finished.stderr


def test_the_payload_of_a_misspelled_call_is_kept_nowhere(bench: Bench) -> None:
    for name in (
        "StructuredOutput",
        "structured-output",
        "structured_outptu",
        "structuredOutput ",
        "STRUCTURED_OUTPUT",
    ):
        finished = bench.run([Reply(Call(name, {"summary": "top-secret"}, "bad")), SO])
        assert 0 == finished.code
        assert 'Did you mean "structured_output"?' in bench.answers()["bad"]
    assert 5 == len(bench.transcripts)
    assert not any("top-secret" in path.read_text() for path in bench.transcripts)


def test_a_session_that_goes_on_knows_its_answer_where_that_was_kept(bench: Bench) -> None:
    answer = Reply(Call("structured_output", {"summary": "the-answer"}, "so"))
    for flags, fork in ((["--keep-answer"], []), ([], []), (["--keep-answer"], ["--fork-session"])):
        assert 0 == bench.run([answer], *flags).code
        assert 0 == bench.run([Reply("again")], "--continue", *fork, schema=None).code
        history = json.dumps(bench.received[0]["messages"])
        assert ("the-answer" in history) == bool(flags)
        assert ("__redacted" in history) == ("what the call was given is not kept" in history) == (not flags)
    assert not any("the-answer" in path.read_text() for path in bench.transcripts)
    kept = list((bench.home / ".dovetail").rglob("*.answers.json"))
    assert 3 == len(kept)
    assert {0o600} == {path.stat().st_mode & 0o777 for path in kept}
    folders = [path for path in (bench.home / ".dovetail").rglob("*") if path.is_dir()]
    assert {0o700} == {path.stat().st_mode & 0o777 for path in folders}
