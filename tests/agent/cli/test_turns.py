"""The main turn of a run, by the numbers of the scenarios of headless runs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.agent.cli.conftest import Bench
from tests.agent.servers import Call, Received, Reply, Say, Think

SKIPPED = "Skipped: this turn's structured_output contract took precedence as the terminal output."
REISSUE = SKIPPED + " Re-issue this call in a separate turn if needed."


def so(summary: Any = "fine", id: str = "so") -> Call:
    return Call("structured_output", {"summary": summary}, id)


def bad(id: str = "bad", **arguments: Any) -> Call:
    return Call("structured_output", arguments or {"wrong": 1}, id)


def side(id: str = "side", content: str = "x") -> Call:
    return Call("write_file", {"file_path": "side.txt", "content": content}, id)


@pytest.mark.parametrize("order", [lambda: (so(), side()), lambda: (side(), so())])
def test_siblings_of_the_terminal_call_never_run(bench: Bench, order: Any) -> None:
    """Scenarios 26 and 27, and the first two rows of the seed's table of batches."""
    finished = bench.run([Reply(*order())], "-y")
    assert (0, {"summary": "fine"}) == (finished.code, finished.result["structured_result"])
    assert 1 == len(bench.received)
    assert not (bench.workspace / "side.txt").exists()
    assert {"side": SKIPPED, "so": "Structured output accepted."} == {
        id: block["content"] for id, block in finished.results().items()
    }
    assert not finished.results()["side"]["is_error"]
    assert [{"tool_name": "write_file", "tool_use_id": "side"}] == finished.result["suppressed_tool_calls"]


def test_calls_that_share_an_id_are_told_apart(bench: Bench) -> None:
    """Scenario 28: both are answered, under ids of their own."""
    finished = bench.run([Reply(so(id="same"), side(id="same"))], "-y")
    assert 0 == finished.code
    assert {use["id"] for use in finished.uses()} == set(finished.results())
    assert 2 == len(finished.results())


def test_a_bad_call_before_a_good_one_in_one_turn(bench: Bench) -> None:
    """Scenario 29."""
    finished = bench.run([Reply(bad(), so("second"))])
    assert (0, 1, {"summary": "second"}) == (finished.code, len(bench.received), finished.result["structured_result"])
    assert finished.results()["bad"]["is_error"]


def test_the_first_good_call_counts(bench: Bench) -> None:
    """Scenario 30."""
    finished = bench.run([Reply(so("first", "one"), so("second", "two"))])
    assert {"summary": "first"} == finished.result["structured_result"]
    assert SKIPPED == finished.results()["two"]["content"]


def test_a_bad_call_is_corrected_in_the_next_turn(bench: Bench) -> None:
    """Scenarios 31 and 32."""
    finished = bench.run([Reply(side(), bad()), Reply(so())], "-y")
    assert (0, 2, 2) == (finished.code, len(bench.received), finished.result["num_turns"])
    assert not (bench.workspace / "side.txt").exists()
    answers = bench.answers()
    assert REISSUE == answers["side"]
    assert 'the required property "summary" is missing' in answers["bad"]
    assert "Skipped:" not in answers["bad"]


def test_other_calls_run_as_ever(bench: Bench) -> None:
    """Scenario 33 and 41: without a terminal call the pre-scan does nothing; an unknown tool is only an error."""
    bench.write("a.txt", "alpha")
    calls = Call("read_file", {"file_path": "a.txt"}, "a"), side("b"), Call("no_such_tool", {}, "c")
    finished = bench.run([Reply(*calls), Reply(so())], "-y")
    assert (0, 2) == (finished.code, finished.result["num_turns"])
    assert "alpha" in bench.answers()["a"]
    assert (bench.workspace / "side.txt").exists()
    assert 'Tool "no_such_tool" not found.' in bench.answers()["c"]
    assert finished.results()["c"]["is_error"]


def test_prose_beside_the_call_is_dropped_in_text(bench: Bench) -> None:
    """Scenarios 34 and 70."""
    finished = bench.run([Reply(Think("hm"), Say("Here it is:"), so("Über"))], form="text")
    assert (0, '{"summary":"Über"}\n', "") == (finished.code, finished.stdout, finished.stderr)


def test_prose_gets_a_reminder_then_a_forced_call_then_exit_1(bench: Bench) -> None:
    """Scenarios 35, 36, 71 and 75, with the two second chances that the reference lacks."""
    finished = bench.run([Reply("p" * 500), Reply("more"), Reply("still prose")])
    assert (1, 3) == (finished.code, len(bench.received))
    message = finished.result["error"]["message"]
    assert "Model produced plain text instead of calling the structured_output tool" in message
    assert f'after 3 turn(s). Output preview (200+ chars): "{"p" * 200}".' in message
    assert not finished.result.keys() & {"result", "structured_result", "stats"}
    choices = [request.get("tool_choice") for request in bench.received]
    assert "structured_output" not in json.dumps(choices[:2])
    assert {"type": "function", "function": {"name": "structured_output"}} == choices[2]
    assert "plain text, which is thrown away" in bench.received[1]["messages"][-1]["content"]
    text = bench.run([Reply("p"), Reply("q"), Reply('"r"')], form="text")
    assert (1, "") == (text.code, text.stdout)
    assert 'after 3 turn(s). Output preview (5 chars): "pq\\"r\\"".' in text.stderr


def test_a_reminder_is_enough_for_a_model_that_forgot(bench: Bench) -> None:
    assert 0 == bench.run([Reply("The summary is fine."), Reply(so())]).code
    assert 0 == bench.run([Reply("prose"), Reply("prose"), Reply(so())]).code


def test_an_empty_reply_has_no_preview(bench: Bench) -> None:
    """Scenario 37."""
    finished = bench.run([Reply(), Reply(), Reply()])
    assert 1 == finished.code
    assert finished.result["error"]["message"].endswith("turn(s).")


def test_no_arguments_are_the_empty_object(bench: Bench) -> None:
    """Scenarios 38 and 39: {} is an answer, and differs from none."""
    finished = bench.run([Reply(Call("structured_output", ""))], schema={}, form="text")
    assert (0, "{}\n") == (finished.code, finished.stdout)
    null = bench.run([Reply(Call("structured_output", {"value": None}))], "--wrap-root", schema={"type": "null"})
    assert ("null", None) == (null.result["result"], null.result["structured_result"])


def test_without_a_schema_the_terminal_tool_is_unknown(bench: Bench) -> None:
    """Scenarios 40 and 76."""
    finished = bench.run([Reply(so()), Reply("prose")], schema=None)
    assert (0, "prose") == (finished.code, finished.result["result"])
    assert 'Tool "structured_output" not found.' in bench.answers()["so"]
    assert "structured_result" not in finished.result


def test_a_replayed_call_is_not_made_again(bench: Bench) -> None:
    """Scenario 42."""
    bench.write("a.txt", "alpha")
    read = Call("read_file", {"file_path": "a.txt"}, "same")
    finished = bench.run([Reply(read), Reply(read, bad()), Reply(so())])
    assert 0 == finished.code
    second = [message for message in bench.received[2]["messages"] if message["role"] == "tool"][1:]
    assert 'Duplicate provider tool call id "same" was already handled.' == second[0]["content"]
    assert '"summary" is missing' in second[1]["content"]
    looping = bench.run([Reply(read), Reply(read), Reply(read)])
    assert (1, "loop_detected") == (looping.code, looping.result["termination_reason"])


def test_the_same_bad_call_again_and_again_is_a_loop(bench: Bench) -> None:
    """Scenario 45, and the cap on failed structured calls that the reference lacks."""
    finished = bench.run([Reply(bad(f"id{i}")) for i in range(9)])
    assert (1, 5, "loop_detected") == (finished.code, len(bench.received), finished.result["termination_reason"])
    assert "Loop detection halted the run (consecutive_identical_calls" in finished.result["error"]["message"]
    assert "Cancelled" in finished.results()["id4"]["content"]
    different = bench.run(lambda request: Reply(bad(f"id{request.serial}", wrong=request.serial)))
    assert (56, 11, "structured_output_retries") == (
        different.code,
        len(bench.received),
        different.result["termination_reason"],
    )
    fewer = bench.run(lambda r: Reply(bad(f"id{r.serial}", wrong=r.serial)), "--max-structured-retries", "0")
    assert (56, 1, "error_max_structured_retries") == (fewer.code, len(bench.received), fewer.result["subtype"])


def test_repaired_values_are_what_is_emitted(bench: Bench) -> None:
    """Scenario 46: the reference emits the unrepaired value, which does not fit the schema."""
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    finished = bench.run([Reply(Call("structured_output", {"n": "3"}))], schema=schema)
    assert (0, {"n": 3}, '{"n":3}') == (
        finished.code,
        finished.result["structured_result"],
        finished.result["result"],
    )
    assert [{"pointer": "/n", "from": "string", "to": "number"}] == finished.result["structured_repairs"]


def test_known_formats_count(bench: Bench) -> None:
    """Scenario 47."""
    schema = {"type": "object", "properties": {"m": {"format": "email"}, "x": {"format": "made-up"}}}
    calls = [Reply(Call("structured_output", {"m": m, "x": "?"}, id)) for id, m in (("1", "nobody"), ("2", "a@b.ch"))]
    finished = bench.run(calls, schema=schema)
    assert (0, {"m": "a@b.ch", "x": "?"}) == (finished.code, finished.result["structured_result"])
    assert 'is not a "email"' in bench.answers()["1"]


def test_arguments_that_are_no_object_come_back_with_their_text(bench: Bench) -> None:
    cut = Reply(Call("structured_output", '{"summary": "abc', "1"), finish="length")
    finished = bench.run([cut, Reply(Call("structured_output", "[1]", "2")), Reply(so())])
    assert 0 == finished.code
    assert "cut off by its token limit" in bench.answers()["1"]
    assert "must be an object, not [1]" in bench.answers()["2"]


def test_all_findings_come_back_at_once(bench: Bench) -> None:
    schema = {
        "type": "object",
        "properties": {"risk": {"enum": ["low", "high"]}, "n": {"type": "integer"}},
        "required": ["risk", "n"],
    }
    good = Reply(Call("structured_output", {"risk": "low", "n": 1}))
    finished = bench.run([Reply(Call("structured_output", {"risk": "medium", "n": [2]}, "1")), good], schema=schema)
    assert 0 == finished.code
    for words in ('params/risk: "medium" is not one of the allowed values: ["low", "high"]', "params/n: [2] must be"):
        assert words in bench.answers()["1"]


def test_a_script_sees_every_answer_to_its_calls(bench: Bench) -> None:
    """A model that mixes everything in many turns; the server refuses a request that leaves a call unanswered."""
    bench.write("a.txt", "alpha")

    def script(request: Received) -> Reply:
        turn = request.serial
        if turn == 6:
            return Reply(so(id="last"), side("unused"))
        calls = [Call("read_file", {"file_path": "a.txt", "offset": turn}, f"r{turn}"), side(f"w{turn}", str(turn))]
        return Reply("words", *(calls + [bad(f"b{turn}", wrong=turn)] * (turn % 2)))

    finished = bench.run(script, "-y")
    assert (0, 7) == (finished.code, len(bench.received))
    assert [use["id"] for use in finished.uses()] == list(finished.results())
