"""Transcripts, resuming and privacy, by the numbers of the scenarios of headless runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from dovetail.agent.types import REDACTED_ARGUMENTS
from tests.agent.cli.conftest import Bench
from tests.agent.servers import Call, Reply, ScriptedServer

SECRET = "zebra-4711"


def so(summary: Any = SECRET, id: str = "so") -> Call:
    return Call("structured_output", {"summary": summary}, id)


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def calls(path: Path) -> list[dict[str, Any]]:
    parts = [part for record in records(path) for part in record.get("message", {}).get("parts", [])]
    return [part["functionCall"] for part in parts if "functionCall" in part]


def test_the_transcript_has_everything_but_the_payload(bench: Bench) -> None:
    """Scenarios 109, 110 and 111: also of calls that failed, and of what is wrong with them."""
    bench.write("a.txt")
    script = [
        Reply(Call("read_file", {"file_path": "a.txt"}, "r")),
        Reply(Call("structured_output", {"summary": [SECRET], "extra": SECRET}, "1")),
        Reply(Call("structured_output", f'{{"summary": "{SECRET}', "2")),
        Reply(so()),
    ]
    finished = bench.run(script)
    assert (0, {"summary": SECRET}) == (finished.code, finished.result["structured_result"])
    (path,) = bench.transcripts
    assert SECRET not in path.read_text()
    arguments = [call["args"] for call in calls(path)]
    assert [{"file_path": "a.txt"}, *[dict(REDACTED_ARGUMENTS)] * 3] == arguments
    assert ["user", "assistant", "tool_result"] == [record["type"] for record in records(path)][:3]
    assert SECRET in json.dumps(bench.received[2])  # the model itself is told what was wrong


def test_the_record_names_its_session_and_is_private(bench: Bench) -> None:
    finished = bench.run([Reply(so())])
    (path,) = bench.transcripts
    assert path.stem == finished.result["session_id"]
    assert {path.stem} == {record["sessionId"] for record in records(path)}
    assert 0o600 == path.stat().st_mode & 0o777


def test_a_session_goes_on_with_or_without_a_schema(bench: Bench) -> None:
    """Scenarios 113 and 114."""
    first = bench.run([Reply(so())])
    again = bench.run([Reply(so("again"))], "--continue", prompt="once more")
    assert {"summary": "again"} == again.result["structured_result"]
    assert first.result["session_id"] == again.result["session_id"]
    history = bench.received[0]["messages"]
    assert ["system", "user", "assistant", "tool", "user"] == [message["role"] for message in history]
    assert SECRET not in json.dumps(history)
    plain = bench.run([Reply("in words")], "--continue", schema=None, prompt="in words")
    assert (0, "in words") == (plain.code, plain.result["result"])
    other = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    script = [Reply(so("wrong", "x")), Reply(Call("structured_output", {"n": 1}, "y"))]
    finished = bench.run(script, "--resume", first.result["session_id"], schema=other)
    assert {"n": 1} == finished.result["structured_result"]
    fork = bench.run([Reply(so("fork"))], "--continue", "--fork-session")
    assert fork.result["session_id"] != first.result["session_id"]
    assert 2 == len(bench.transcripts)


def test_a_new_session_begins_where_there_is_none_to_continue(bench: Bench) -> None:
    assert 0 == bench.run([Reply(so())], "--continue").code


def test_the_placeholder_is_no_answer_even_where_anything_goes(bench: Bench) -> None:
    """Scenario 115."""
    bench.run([Reply(so())])
    script = [
        Reply(Call("structured_output", REDACTED_ARGUMENTS, "copied")),
        Reply(Call("structured_output", {"a": 1})),
    ]
    finished = bench.run(script, "--continue", schema={})
    assert {"a": 1} == finished.result["structured_result"]
    assert "placeholder" in bench.answers()["copied"]


def test_the_transcript_is_complete_when_the_result_shows(bench: Bench) -> None:
    """Scenario 116."""
    with ScriptedServer([Reply(so())]) as server:
        running = bench.start(server, form="stream-json")
        running.wait_for('"type":"result"')
        (path,) = bench.transcripts
        assert "tool_result" == records(path)[-1]["type"]
        assert 0 == running.finish().code


def test_sessions_that_are_unknown_or_taken_end_with_1(bench: Bench) -> None:
    """Scenario 117."""
    unknown = bench.run([], "--resume", "no such session")
    assert (1, "session_error") == (unknown.code, unknown.result["termination_reason"])
    taken = "0c2a7a8e-5b0c-4c5a-9e0a-0c2a7a8e5b0c"
    assert 0 == bench.run([Reply(so())], "--session-id", taken).code
    again = bench.run([Reply(so())], "--session-id", taken.upper())
    assert (1, "session_error") == (again.code, again.result["termination_reason"])


def test_nothing_is_recorded_on_request(bench: Bench) -> None:
    assert 0 == bench.run([Reply(so())], "--no-chat-recording").code
    bench.settings(general={"chatRecording": False})
    assert 0 == bench.run([Reply(so())]).code
    assert [] == bench.transcripts
    assert 1 == bench.run([Reply(so())], "--resume", "x").code


def test_a_transcript_that_cannot_be_written_does_not_cost_the_answer(bench: Bench) -> None:
    (bench.home / ".dovetail").mkdir()
    (bench.home / ".dovetail" / "projects").write_text("a file in the way")
    finished = bench.run([Reply(so())], form="text")
    assert (0, f'{{"summary":"{SECRET}"}}\n') == (finished.code, finished.stdout)
    assert "the transcript could not be written" in finished.stderr
