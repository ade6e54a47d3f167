"""The two tables of the design document of structured output: what goes together, and how runs fail."""

from __future__ import annotations

import json
import signal

import pytest

from tests.agent.cli.conftest import S1, Bench, until
from tests.agent.servers import Call, Received, Reply, ScriptedServer

SO = Reply(Call("structured_output", {"summary": "fine"}, "so"))
SCHEMA = ("--json-schema", json.dumps(S1))

REJECTED = [
    # combination, words on stderr
    (["-i", "x"], "--prompt-interactive"),
    (["--prompt-interactive", "x"], "--prompt-interactive"),
    (["-p", "x", "--input-format", "stream-json", "-o", "stream-json"], "--input-format stream-json"),
    (["-p", "x", "--acp"], "--acp"),
    (["-p", "x", "--experimental-acp"], "--acp"),
    ([], "No input provided"),
]


def test_a_schema_goes_together_with_every_headless_way_to_ask(bench: Bench) -> None:
    with ScriptedServer(lambda _: SO) as server:
        model = ("--provider", "openai", "--model", "m", "--base-url", server.base_url("openai"))
        for asked, stdin in ((["-p", "x"], None), (["x", "y"], None), ([], "x"), (["-p", "x"], "y")):
            finished = bench.command(*asked, *model, *SCHEMA, stdin=stdin)
            assert (0, '{"summary":"fine"}\n') == (finished.code, finished.stdout)
        prompts = [received.body["messages"][-1]["content"] for received in server.received]
    assert ["x", "x y", "x\n\n", "y\n\nx"] == prompts


@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
def test_a_schema_goes_together_with_every_output_format_and_with_bare(bench: Bench, form: str) -> None:
    finished = bench.run([SO], "--bare", form=form)
    assert 0 == finished.code
    if form == "text":
        assert '{"summary":"fine"}\n' == finished.stdout
    else:
        assert {"summary": "fine"} == finished.result["structured_result"]


def test_a_schema_is_rejected_with_what_never_ends(bench: Bench) -> None:
    for flags, words in REJECTED:
        finished = bench.command(*flags, *SCHEMA)
        assert (1, "") == (finished.code, finished.stdout), flags
        assert words in finished.stderr


def test_plain_text_only_fails_with_1(bench: Bench) -> None:
    finished = bench.run([Reply("one"), Reply("two"), Reply("three")])
    assert 1 == finished.code
    assert 'after 3 turn(s). Output preview (11 chars): "onetwothree".' in finished.result["error"]["message"]


def test_a_model_that_never_delivers_fails_with_53_and_a_hint(bench: Bench) -> None:
    bench.write("a.txt")

    def reads(request: Received) -> Reply:
        return Reply(Call("read_file", {"file_path": "a.txt", "limit": request.serial + 1}))

    finished = bench.run(reads, "--max-session-turns", "3")
    assert (53, 3) == (finished.code, len(bench.received))
    assert "--json-schema is active" in finished.result["error"]["message"]


def test_answers_that_never_fit_fail_with_53_when_turns_run_out_first(bench: Bench) -> None:
    finished = bench.run(
        lambda request: Reply(Call("structured_output", {"n": request.serial})), "--max-session-turns", "3"
    )
    assert (53, 3) == (finished.code, len(bench.received))
    assert '"summary" is missing' in json.dumps(bench.received[1]["messages"][-1]["content"]).replace('\\"', '"')


def test_an_abort_fails_with_130(bench: Bench) -> None:
    with ScriptedServer([Reply("words", stall_after=1)]) as server:
        running = bench.start(server)
        until(lambda: server.received)
        running.send(signal.SIGINT)
        finished = running.finish()
    assert (130, "cancelled") == (finished.code, finished.result["termination_reason"])
