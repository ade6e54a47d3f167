"""What goes into the model's context: bounded tool outputs, and a history that is summed up before it overflows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.agent.cli.conftest import Bench
from tests.agent.servers import Call, Received, Reply, Say

SO = Reply(Call("structured_output", {"summary": "fine"}, "so"))
LONG = "seq 100000; echo the end"


def shell(command: str, id: str = "sh") -> Reply:
    return Reply(Call("run_shell_command", {"command": command}, id))


def test_a_long_output_is_shown_by_its_ends_and_kept_whole(bench: Bench) -> None:
    def script(request: Received) -> Reply:
        if not request.serial:
            return shell(LONG)
        if request.serial == 1:
            path = answer(request, "sh").split("whole text in ")[1].split(" ...]")[0]
            lines = Call("read_file", {"file_path": path, "offset": 50_000, "limit": 2}, "read")
            outside = Call("read_file", {"file_path": str(Path(path).parent.parent / "x")}, "no")
            write = Call("write_file", {"file_path": path, "content": "x"}, "write")
            return Reply(lines, Call("grep_search", {"pattern": "^77777$", "path": path}, "grep"), outside, write)
        return SO

    finished = bench.run(script, "--approval-mode", "auto-edit", "--allowed-tools", "Bash(seq *),Bash(echo *)")
    assert 0 == finished.code
    told = bench.answers(1)["sh"]
    assert 25_000 < len(told) < 25_500
    assert told.startswith("1\n2\n3\n")
    assert told.rstrip().endswith("the end\n[exit code: 0]")
    assert "50001\n50002\n" in bench.answers(2)["read"]
    assert "77777" in bench.answers(2)["grep"]
    assert finished.results()["no"]["is_error"]
    assert finished.results()["write"]["is_error"]
    assert len(finished.results()["sh"]["content"]) > 25_500  # people see more
    (kept,) = bench.home.rglob("sh.txt")
    assert 0o600 == kept.stat().st_mode & 0o777


def answer(request: Received, id: str) -> str:
    return next(str(m["content"]) for m in request.body["messages"] if m.get("tool_call_id") == id)


def test_without_a_transcript_what_was_left_out_goes_with_the_run(bench: Bench) -> None:
    bench.settings(tools={"maxOutputChars": 100})
    assert 0 == bench.run([shell(LONG), SO], "-y", "--no-chat-recording").code
    path = Path(bench.answers()["sh"].split("whole text in ")[1].split(" ...]")[0])
    assert not path.exists()
    bench.settings(tools={"maxOutputChars": -1})
    assert 0 == bench.run([shell("seq 10000"), SO], "-y").code
    assert 48_000 < len(bench.answers()["sh"])


def test_files_are_read_in_parts_that_fit(bench: Bench) -> None:
    bench.write("a.txt", "".join(f"line {i}\n" for i in range(20_000)))
    assert 0 == bench.run([Reply(Call("read_file", {"file_path": "a.txt", "limit": 20_000}, "r")), SO]).code
    told = bench.answers()["r"]
    assert len(told) < 25_500
    assert "of 20000; use offset and limit to read others]" in told
    assert "left out" not in told


def working(request: Received) -> Reply:
    """A model that reads on and on, and sums up when it is asked to."""
    if "Below is the record of work" in str(request.body["messages"][-1]["content"]):
        return Reply("SUMMARY: all parts before this one were read.", usage=(5000, 20, 0))
    size = len(json.dumps(request.body["messages"])) // 4
    if request.serial > 12:
        return Reply(Call("structured_output", {"summary": "fine"}, "so"), usage=(size, 5, 0))
    read = Call("read_file", {"file_path": "a.txt", "offset": request.serial * 100, "limit": 100}, f"r{request.serial}")
    return Reply(f"part {request.serial}", read, usage=(size, 5, 0))


def test_a_history_that_grows_too_long_is_summed_up_told_and_recorded(bench: Bench) -> None:
    bench.write("a.txt", "".join(f"line {i} {'x' * 90}\n" for i in range(2000)))
    bench.settings(model={"contextWindow": 16_000})
    finished = bench.run(working, prompt="read it all", form="stream-json")
    assert 0 == finished.code
    events = [message["data"] for message in finished.messages if message.get("subtype") == "compaction"]
    assert events
    assert all(event["after_tokens"] < event["before_tokens"] for event in events)
    assert "The history was summed up" in finished.stderr
    assert all(len(json.dumps(body["messages"])) < 16_000 * 4 for body in bench.received)
    last = bench.received[-1]["messages"]
    assert last[1]["content"].startswith("read it all")
    assert "SUMMARY: all parts" in last[1]["content"]
    records = [json.loads(line) for line in bench.transcripts[0].read_text().splitlines()]
    assert len(events) == sum(record.get("subtype") == "chat_compression" for record in records)
    again = bench.run([Reply("again")], "--continue", schema=None, prompt="go on")
    assert 0 == again.code
    assert "SUMMARY: all parts" in bench.received[0]["messages"][1]["content"]
    assert len(bench.received[0]["messages"]) == len(last) + 3  # the answer, its result, and the new prompt


@pytest.mark.parametrize("summary", [Reply("SUMMARY"), Reply(status=400, message="no"), Reply("")])
def test_a_service_that_finds_a_request_too_long_gets_a_shorter_one(bench: Bench, summary: Reply) -> None:
    def script(request: Received) -> Reply:
        text = json.dumps(request.body["messages"])
        if "Below is the record of work" in text:
            return summary
        if len(text) > 60_000:
            return Reply(status=400, message="This model's maximum context length is 8192 tokens.")
        if request.serial > 6:
            return SO
        limits = {"file_path": "a.txt", "offset": request.serial * 100, "limit": 100}
        return Reply(Call("read_file", limits, f"r{request.serial}"))

    bench.write("a.txt", "".join(f"line {i} {'x' * 120}\n" for i in range(2000)))
    finished = bench.run(script)
    assert (0, 1) == (finished.code, sum(m.get("subtype") == "compaction" for m in finished.messages))
    text = json.dumps(bench.received[-1]["messages"])
    said = "".join(block.text for block in summary.blocks if isinstance(block, Say))
    assert ("SUMMARY" in text) == (summary.status == 200 and bool(said))
    assert "read_file" in text


def test_the_answers_that_failed_are_in_no_summary(bench: Bench) -> None:
    asked: list[Any] = []

    def script(request: Received) -> Reply:
        if "Below is the record of work" in str(request.body["messages"][-1]["content"]):
            asked.append(request.body)
            return Reply("SUMMARY")
        if not request.serial:
            return Reply(Call("structured_output", {"summary": ["top-secret"]}, "bad"))
        return working(request)

    bench.write("a.txt", "".join(f"line {i} {'x' * 90}\n" for i in range(2000)))
    bench.settings(model={"contextWindow": 16_000})
    assert 0 == bench.run(script).code
    assert asked
    assert "top-secret" not in json.dumps(asked)
