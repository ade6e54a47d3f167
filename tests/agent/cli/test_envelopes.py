"""What a run prints, by the numbers of the scenarios of headless runs."""

from __future__ import annotations

import json

import pytest

from tests.agent.cli.conftest import Bench
from tests.agent.servers import Call, Reply, Say, ScriptedServer, Think

SO = Reply(Call("structured_output", {"summary": "fine"}, "so"))


def test_json_is_one_array_whose_last_element_is_the_result(bench: Bench) -> None:
    """Scenarios 72, 73 and 74."""
    finished = bench.run([SO])
    assert 1 == len(finished.stdout.splitlines())
    result = finished.result
    assert not result["is_error"]
    assert json.loads(result["result"]) == result["structured_result"] == {"summary": "fine"}
    assert {"subtype": "success", "num_turns": 1, "termination_reason": "structured_output"}.items() <= result.items()
    assert {"input_tokens": 11, "output_tokens": 7, "cache_read_input_tokens": 3, "total_tokens": 18} == result["usage"]
    assert 1 == result["stats"]["tools"]["structured_output"]["count"]
    streamed = bench.run([SO], form="stream-json")
    first = streamed.messages[0]
    assert ("system", "init") == (first["type"], first["subtype"])
    assert first["uuid"] == first["session_id"] == streamed.result["session_id"]
    assert {"cwd", "tools", "mcp_servers", "model", "permission_mode", "slash_commands", "agents"} <= first.keys()
    assert "stats" not in streamed.result
    assert [m["type"] for m in finished.messages] == [m["type"] for m in streamed.messages]


def test_a_reply_is_split_where_the_type_of_its_blocks_changes(bench: Bench) -> None:
    """Scenarios 77 and 78, the second with partial messages."""
    reply = Reply(Think("hm"), Say("Look"), Say("ing."), Call("structured_output", {"summary": "fine"}, "so"))
    finished = bench.run([reply], "--include-partial-messages", form="stream-json")
    messages = [message["message"] for message in finished.messages if message["type"] == "assistant"]
    assert [["thinking"], ["text"], ["tool_use"]] == [[b["type"] for b in m["content"]] for m in messages]
    assert "Looking." == messages[1]["content"][0]["text"]
    assert [None, None, "tool_use"] == [message["stop_reason"] for message in messages]
    assert [0, 0, 11] == [message["usage"]["input_tokens"] for message in messages]
    assert {"summary": "fine"} == messages[2]["content"][0]["input"]
    events = [message["event"] for message in finished.messages if message["type"] == "stream_event"]
    kinds = [event["type"] for event in events]
    assert 1 == kinds.count("message_start") == kinds.count("message_stop")
    assert 3 == kinds.count("content_block_start") == kinds.count("content_block_stop")
    pieces = [event["delta"] for event in events if event["type"] == "content_block_delta"]
    assert "Looking." == "".join(piece.get("text", "") for piece in pieces)
    assert {"summary": "fine"} == json.loads("".join(piece.get("partial_json", "") for piece in pieces))


def test_a_huge_result_is_cut_in_the_middle(bench: Bench) -> None:
    """Scenario 81."""
    bench.write("big.txt", "".join(f"line {i} ü\n" for i in range(100_000)))
    script = [Reply(Call("run_shell_command", {"command": "cat big.txt"}, "r")), SO]
    content = bench.run(script, "-y").results()["r"]["content"]
    assert len(json.dumps(content, ensure_ascii=False).encode()) <= 65_536
    head, _, tail = content.partition("\n[... truncated for Headless transport ...]\n")
    assert tail
    assert 3.5 < len(tail) / len(head) < 4.5


def test_without_a_key_there_is_a_lone_error_result(bench: Bench) -> None:
    """Scenario 82."""
    del bench.env["OPENAI_API_KEY"]
    for form in ("json", "stream-json", "text"):
        finished = bench.command("-p", "x", "--provider", "openai", "--model", "m", "-o", form)
        assert 1 == finished.code
        assert "OPENAI_API_KEY" in finished.stderr
        if form == "text":
            assert "" == finished.stdout
        else:
            assert ["result"] == [message["type"] for message in finished.messages]
            assert ("authentication", 0) == (finished.result["termination_reason"], finished.result["num_turns"])


FAILURES = [
    # what goes wrong, and the exit code
    (Reply(status=400, message="no such parameter"), 69),
    (Reply(status=403, message="not for you"), 1),
]


@pytest.mark.parametrize("form", ["text", "json", "stream-json"])
def test_a_failed_model_call_is_a_failed_run(bench: Bench, form: str) -> None:
    """Scenario 84: with and without a schema, in all formats, the error told once."""
    for failure, code in FAILURES:
        for schema in ({"type": "object"}, None):
            finished = bench.run([failure], schema=schema, form=form)
            assert code == finished.code
            assert 1 == finished.stderr.count(failure.message)
            if form == "text":
                assert "" == finished.stdout
            else:
                assert finished.result["is_error"]
                assert failure.message in finished.result["error"]["message"]


def test_pieces_are_balanced_when_a_stream_breaks(bench: Bench) -> None:
    """Scenario 79: the broken attempt is void, the next one counts, and both are balanced."""
    script = [Reply("some words to be cut", cut_after=3), SO]
    finished = bench.run(script, "--include-partial-messages", form="stream-json")
    assert 0 == finished.code
    kinds = [message["event"]["type"] for message in finished.messages if message["type"] == "stream_event"]
    assert kinds.count("message_start") == kinds.count("message_stop") == 2
    assert kinds.count("content_block_start") == kinds.count("content_block_stop")
    assert "some words" not in json.dumps([m for m in finished.messages if m["type"] == "assistant"])
    assert ["api_retry"] == [m["subtype"] for m in finished.messages if m["type"] == "system"][1:]


def test_every_message_belongs_to_the_session_and_has_an_id_of_its_own(bench: Bench) -> None:
    """Scenario 83 among others: each call has exactly one result."""
    bench.write("a.txt")
    script = [
        Reply("one", Call("read_file", {"file_path": "a.txt"}, "1"), Call("nothing", {}, "2")),
        Reply(Call("structured_output", {}, "3"), Call("glob", {"pattern": "*"}, "4")),
        SO,
    ]
    finished = bench.run(script, form="stream-json")
    assert ["1", "2", "3", "4", "so"] == [use["id"] for use in finished.uses()] == list(finished.results())
    ids = [message["uuid"] for message in finished.messages]
    assert len(ids) == len(set(ids))
    assert {finished.result["session_id"]} == {message["session_id"] for message in finished.messages}


def test_a_key_that_is_refused_is_an_authentication_error(bench: Bench) -> None:
    with ScriptedServer([SO], key="another") as server:
        finished = bench.start(server).finish()
    assert (1, "authentication") == (finished.code, finished.result["termination_reason"])
