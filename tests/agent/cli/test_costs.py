"""What a run may cost, with its subagents, and how the result tells what it did cost."""

from __future__ import annotations

import json
import signal
from typing import Any

import pytest

from tests.agent.cli.conftest import Bench, until
from tests.agent.servers import Call, Received, Reply, ScriptedServer

PRICES = json.dumps({"scripted": {"input": 10, "output": 100, "cached": 1}})


def so(id: str = "so") -> Call:
    return Call("structured_output", {"summary": "fine"}, id)


def delegating(request: Received) -> Reply:
    """A model that gives everything to subagents, which read forever."""
    names = {tool["function"]["name"] for tool in request.body["tools"]}
    if "structured_output" in names:
        return Reply(Call("agent", {"description": "d", "prompt": f"look {request.serial}"}, f"a{request.serial}"))
    return Reply(Call("read_file", {"file_path": "a.txt", "offset": request.serial}, f"r{request.serial}"))


LIMITS: list[tuple[list[str], int, str, int]] = [
    # flags, exit code, reason, calls of the model: the replies of the script have 18 tokens each
    (["--max-session-turns", "2"], 53, "max_turns", 2),
    (["--max-session-turns", "5"], 53, "max_turns", 5),
    (["--max-tool-calls", "1"], 55, "tool_calls", 2),
    (["--max-tool-calls", "4"], 55, "tool_calls", 5),
    (["--max-tokens-total", "40"], 57, "max_tokens_total", 3),
    (["--max-cost", "0.002", "--prices", PRICES], 58, "max_cost", 3),
]


@pytest.mark.parametrize(("flags", "code", "reason", "calls"), LIMITS)
def test_limits_bound_subagents(bench: Bench, flags: list[str], code: int, reason: str, calls: int) -> None:
    bench.write("a.txt", "alpha\n")
    finished = bench.run(delegating, *flags, "--max-wall-time", "30")
    assert (code, reason, calls) == (finished.code, finished.result["termination_reason"], len(bench.received))
    assert flags[0] in finished.result["error"]["message"]
    assert sorted(use["id"] for use in finished.uses()) == sorted(finished.results())
    assert 18 * calls == finished.result["usage"]["total_tokens"]


def test_limits_bound_subagents_in_the_background(bench: Bench) -> None:
    def script(request: Received) -> Reply:
        reply = delegating(request)
        call = reply.blocks[0]
        assert isinstance(call, Call)
        if call.name == "agent":
            if request.serial:
                return Reply("waiting")
            return Reply(Call("agent", {"description": "d", "prompt": "look", "run_in_background": True}, "bg"))
        return reply

    bench.write("a.txt", "alpha\n")
    finished = bench.run(script, "--max-tokens-total", "100", "--max-wall-time", "30")
    assert (57, "max_tokens_total") == (finished.code, finished.result["termination_reason"])
    assert len(bench.received) <= 7


def test_the_result_tells_what_the_run_cost(bench: Bench) -> None:
    finished = bench.run([Reply(Call("nothing", {}), usage=(1000, 10, 400)), Reply(so())], "--prices", PRICES)
    # 600 new and 400 cached tokens in, 10 out; then 8 new, 3 cached, 7 out
    assert (0, round((6000 + 400 + 1000 + 80 + 3 + 700) / 1e6, 6)) == (finished.code, finished.result["total_cost_usd"])
    bench.settings(model={"prices": json.loads(PRICES)})
    assert 0 < bench.run([Reply(so())]).result["total_cost_usd"] < 0.001
    bench.settings()
    assert "total_cost_usd" not in bench.run([Reply(so())]).result
    assert 0 == bench.command("-p", "x", "--model", "speaker", "-o", "json").result["total_cost_usd"]


@pytest.mark.parametrize("form", ["json", "stream-json"])
def test_a_run_that_is_cancelled_tells_what_it_used(bench: Bench, form: str) -> None:
    with ScriptedServer([Reply(Call("nothing", {})), Reply("some words " * 20, stall_after=3)]) as server:
        running = bench.start(server, "--prices", PRICES, form=form)
        until(lambda: len(server.received) > 1)
        running.send(signal.SIGINT)
        finished = running.finish()
    assert "cancelled" == finished.result["termination_reason"]
    assert 18 <= finished.result["usage"]["total_tokens"]
    assert 0 < finished.result["total_cost_usd"]


def test_a_budget_in_dollars_needs_prices(bench: Bench) -> None:
    finished = bench.run([], "--max-cost", "1")
    assert (52, []) == (finished.code, bench.received)
    assert "--prices" in finished.result["error"]["message"]
    assert 0 == bench.run([Reply(so())], "--max-cost", "1", "--prices", PRICES).code
    bench.write("prices.json", PRICES)
    assert 0 == bench.run([Reply(so())], "--max-cost", "-1", "--prices", "prices.json").code


BAD: list[tuple[list[str], str]] = [
    *((["--max-cost", text], "--max-cost: ") for text in ("", "-2", "nan", "inf", "much")),
    *((["--max-tokens-total", text], "--max-tokens-total: ") for text in ("", "-2", "1.5")),
    *((["--prices", text], "--prices") for text in ("", "[]", "nowhere", "{", '{"m": {"input": -1, "output": 1}}')),
    *((["--max-tokens", text], "--max-tokens: ") for text in ("", "0", "-1", "x")),
    *((["--temperature", text], "--temperature: ") for text in ("", "-1", "3", "nan", "warm")),
    *((["--timeout", text], "--timeout: ") for text in ("", "0", "soon")),
    *((["--max-retries", text], "--max-retries: ") for text in ("", "-1", "1000")),
]


@pytest.mark.parametrize(("flags", "words"), BAD)
def test_amounts_that_make_no_sense_stop_the_run_at_start_up(bench: Bench, flags: list[str], words: str) -> None:
    finished = bench.run([], *flags)
    assert (52, []) == (finished.code, bench.received)
    assert words in finished.result["error"]["message"]


def test_estimated_tokens_count_where_a_server_tells_none(bench: Bench) -> None:
    replies = [Reply("x" * 700, Call("nothing", {"n": n}, f"c{n}"), usage=(0, 0, 0)) for n in range(50)]
    finished = bench.run(replies, "--max-tokens-total", "20000")
    assert (57, True) == (finished.code, finished.result["usage"]["is_estimated"])
    assert len(bench.received) < 15


# How the model is asked.


def test_flags_reach_the_model(bench: Bench) -> None:
    flags = ["--max-tokens", "77", "--temperature", "0.5", "--effort", "low", "--seed", "3"]
    assert 0 == bench.run([Reply(so())], *flags).code
    asked = {"max_tokens": 77, "temperature": 0.5, "reasoning_effort": "low", "seed": 3}
    assert asked == {name: bench.received[0].get(name) for name in asked}
    bench.settings(model={"maxOutputTokens": 5, "temperature": 1, "effort": "high"})
    assert 0 == bench.run([Reply(so())]).code
    assert [5, 1, "high"] == [bench.received[0][name] for name in ("max_tokens", "temperature", "reasoning_effort")]


def test_retries_are_told_bounded_and_settable(bench: Bench) -> None:
    failing = [Reply(status=503, message="busy")] * 9
    finished = bench.run(failing, "--max-retries", "1", form="text")
    assert (69, 2) == (finished.code, len(bench.received))
    assert "The model could not be asked (HTTP 503: busy); attempt 2 begins" in finished.stderr
    assert (69, 1) == (bench.run(failing, "--max-retries", "0").code, len(bench.received))


def test_a_request_that_takes_too_long_is_given_up(bench: Bench) -> None:
    slow = Reply("a b c d e f g h", pieces=8, pace_s=0.5)
    finished = bench.run([slow], "--timeout", "1s", "--max-retries", "0")
    assert 69 == finished.code
    assert "took too long" in finished.result["error"]["message"]


def test_another_model_takes_over_when_the_first_one_fails(bench: Bench) -> None:
    def script(request: Received) -> Reply:
        if request.body["model"] == "scripted":
            return Reply(status=529, message="overloaded")
        return Reply(so()) if request.serial > 2 else Reply(Call("nothing", {"n": request.serial}))

    finished = bench.run(script, "--max-retries", "0", "--fallback-model", "spare", form="stream-json")
    assert 0 == finished.code
    assert ["scripted", "spare", "spare", "spare"] == [body["model"] for body in bench.received]
    (event,) = [message for message in finished.messages if message.get("subtype") == "model_fallback"]
    assert {"fromModel": "scripted", "toModel": "spare", "statusCode": 529} == event["data"]
    assert "spare takes over" in finished.stderr


# Replies that are no answers.

NO_ANSWERS: list[tuple[Reply, int, str]] = [
    (Reply("The first half", finish="length"), 61, "reply_truncated"),
    (Reply("", finish="length"), 61, "reply_truncated"),
    (Reply("I will not", finish="refusal"), 62, "reply_refused"),
    (Reply("", finish="refusal"), 62, "reply_refused"),
    (Reply(""), 63, "reply_empty"),
    (Reply(" \n"), 63, "reply_empty"),
]


@pytest.mark.parametrize(("reply", "code", "reason"), NO_ANSWERS)
@pytest.mark.parametrize("form", ["text", "json"])
def test_a_reply_that_is_no_answer_is_a_failure(bench: Bench, reply: Reply, code: int, reason: str, form: str) -> None:
    finished = bench.run([reply], schema=None, form=form)
    assert code == finished.code
    assert finished.stderr
    if form == "text":
        assert "" == finished.stdout
    else:
        assert (reason, True) == (finished.result["termination_reason"], finished.result["is_error"])


def test_with_a_schema_a_refusal_is_told_as_one_after_the_reminders(bench: Bench) -> None:
    finished = bench.run([Reply("no", finish="refusal")] * 3)
    assert (62, "reply_refused", 3) == (finished.code, finished.result["termination_reason"], len(bench.received))


# Ids that mean nothing.


@pytest.mark.parametrize("ids", [("x", "x", "x"), ("", "", "")])
def test_one_id_for_all_calls_makes_none_of_them_a_duplicate(bench: Bench, ids: Any) -> None:
    command = {"command": "echo ran >> log"}
    replies = [Reply(Call("run_shell_command", command, id)) for id in ids]
    finished = bench.run([*replies, Reply(so("x" if ids[0] else ""))], "-y")
    assert (0, "ran\n" * 3) == (finished.code, (bench.workspace / "log").read_text())
    assert not any(block["is_error"] for block in finished.results().values())
