"""Batches of calls: order, parallelism, and one result for each on every way out."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from dovetail.agent.contract import make_contract
from dovetail.agent.loop import Limits
from dovetail.agent.protocols import ToolContext
from dovetail.agent.types import ToolOutput
from tests.agent.scripted import ScriptedProvider, execute, make_run, results, uses
from tests.agent.servers import Call, Reply

S1 = {"type": "object", "properties": {"summary": {"type": "string"}}, "required": ["summary"]}
SO = Reply(Call("structured_output", {"summary": "fine"}, "so"))


class Probe:
    """A tool that writes down when its calls begin and end."""

    description = "waits a little"
    mcp_server = ""
    parameters: Mapping[str, Any] = {"type": "object", "properties": {"n": {"type": "integer"}}}

    def __init__(self, name: str, read_only: bool, log: list[str]) -> None:
        self.name = name
        self.read_only = read_only
        self._log = log

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        self._log.append(f"+{context.call_id}")
        # Later calls end earlier, so that results in order of the calls are no accident.
        await asyncio.sleep(0.05 / (1 + args.get("n", 0)))
        self._log.append(f"-{context.call_id}")
        return ToolOutput(f"result of {context.call_id}")


def probes() -> tuple[list[str], list[Probe]]:
    log: list[str] = []
    return log, [Probe("read", True, log), Probe("write", False, log)]


def calls(names: str) -> list[Call]:
    return [Call({"r": "read", "w": "write"}[name], {"n": index}, f"{name}{index}") for index, name in enumerate(names)]


def most_at_once(log: list[str]) -> int:
    most = now = 0
    for entry in log:
        now += 1 if entry[0] == "+" else -1
        most = max(most, now)
    return most


def test_neighbors_that_read_run_together_and_everything_else_by_itself() -> None:
    """Scenario 43."""
    log, tools = probes()
    run = make_run(ScriptedProvider([Reply(*calls("rrwrr")), SO]), make_contract(S1), tools)
    assert "structured_output" == execute(run).reason
    assert log.index("-r0") < log.index("+w2") > log.index("-r1")
    assert log.index("-w2") < log.index("+r3")
    assert log.index("+r1") < log.index("-r0")
    assert log.index("+r4") < log.index("-r3")
    assert ["r0", "r1", "w2", "r3", "r4", "so"] == list(results(run)) == uses(run)


@pytest.mark.parametrize(("limit", "expected"), [(1, 1), (2, 2), (10, 6)])
def test_no_more_calls_run_at_once_than_the_limit(limit: int, expected: int) -> None:
    """Scenario 44; DOVETAIL_MAX_TOOL_CONCURRENCY sets the limit."""
    log, tools = probes()
    run = make_run(
        ScriptedProvider([Reply(*calls("rrrrrr")), SO]), make_contract(S1), tools, Limits(max_parallel=limit)
    )
    execute(run)
    assert expected == most_at_once(log)


class Failing(Probe):
    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        raise RuntimeError("it broke")


def test_a_tool_that_breaks_is_an_error_for_the_model() -> None:
    run = make_run(ScriptedProvider([Reply(Call("read", {}, "r")), SO]), make_contract(S1), [Failing("read", True, [])])
    assert "structured_output" == execute(run).reason
    assert ("RuntimeError: it broke", True) == (results(run)["r"]["content"], results(run)["r"]["is_error"])


def test_arguments_of_any_tool_are_checked_and_repaired() -> None:
    log, tools = probes()
    script = [Reply(Call("read", {"n": "2"}, "a"), Call("read", {"n": "x"}, "b"), Call("read", "{", "c")), SO]
    run = make_run(ScriptedProvider(script), make_contract(S1), tools)
    execute(run)
    assert ["+a", "-a"] == log
    assert 'params/n: "x" must be integer' in results(run)["b"]["content"]
    assert "the arguments are not valid JSON" in results(run)["c"]["content"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ('{"n": 1e999}', "the number 1e999 is too large"),
        ('{"n": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "nested too deeply"),
        ("7", "must be an object, not 7"),
    ],
)
def test_arguments_that_json_could_not_carry_are_refused(arguments: str, words: str) -> None:
    script = [Reply(Call("structured_output", arguments, "1")), Reply(Call("structured_output", {"n": 1}))]
    run = make_run(ScriptedProvider(script), make_contract({"properties": {"n": {"type": ["number", "string"]}}}))
    ending = execute(run)
    assert {"n": 1} == (ending.captured and ending.captured.value)
    assert words in results(run)["1"]["content"]
    json.dumps(run.messages, allow_nan=False).encode()


def test_a_provider_that_numbers_its_calls_anew_each_turn_repeats_nothing() -> None:
    log, tools = probes()
    names = ["read", "write", "read", "write", "read"]
    script = [*(Reply(Call(name, {}, "call_0")) for name in names), SO]
    run = make_run(ScriptedProvider(script), make_contract(S1), tools)
    assert "structured_output" == execute(run).reason
    assert 2 * len(names) == len(log)


def test_a_run_that_is_cancelled_from_outside_ends_and_answers_every_call() -> None:
    log, tools = probes()

    async def main() -> None:
        run = make_run(ScriptedProvider([Reply(*calls("wwr"))]), make_contract(S1), tools)
        task = asyncio.create_task(run.execute())
        while not log:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert ["w0", "w1", "r2"] == list(results(run))
        assert "+w1" not in log

    asyncio.run(main())


class Stubborn(Probe):
    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        self._log.append("started")
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return ToolOutput("I do not care")
        return ToolOutput("late")


def test_a_tool_that_swallows_its_cancellation_does_not_keep_the_run() -> None:
    log: list[str] = []

    async def main() -> None:
        run = make_run(
            ScriptedProvider([Reply(Call("read", {}, "r"))]), make_contract(S1), [Stubborn("read", True, log)]
        )
        task = asyncio.create_task(run.execute())
        while not log:
            await asyncio.sleep(0)
        run.interrupt()
        assert "cancelled" == (await task).reason
        assert ["r"] == list(results(run))

    asyncio.run(main())


def test_a_signal_after_the_answer_was_captured_changes_nothing() -> None:
    """Scenario 60."""

    async def main() -> None:
        provider = ScriptedProvider([SO])
        run = make_run(provider, make_contract(S1))
        task = asyncio.create_task(run.execute())
        while not run._state.captured:
            await asyncio.sleep(0)
        run.interrupt()
        ending = await task
        assert ("structured_output", {"summary": "fine"}) == (
            ending.reason,
            ending.captured and ending.captured.value,
        )
        assert 1 == [message["type"] for message in run.messages].count("result")

    asyncio.run(main())
