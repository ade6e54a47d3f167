"""Runs from Python: types in, typed values out."""

from __future__ import annotations

import asyncio
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from pydantic import BaseModel, field_validator

import dovetail as dt
from dovetail.agent.output import event_schema
from dovetail.agent.types import ToolTurn
from tests.agent.scripted import ScriptedProvider
from tests.agent.servers import Call, Reply
from tests.agent.warm import ROOT


class Finding(BaseModel):
    file: str
    line: int

    @field_validator("line")
    @classmethod
    def _positive(cls, line: int) -> int:
        if line < 1:
            raise ValueError("lines count from 1")
        return line


class Review(BaseModel):
    findings: list[Finding]
    parent: Review | None = None


@dataclass
class Point:
    x: int
    y: int = 0


def answers(provider: ScriptedProvider) -> dict[str, str]:
    """What the second request told of the calls before it, by their ids."""
    turn = provider.requests[1].turns[-1]
    assert isinstance(turn, ToolTurn)
    return {result.tool_use_id: result.content for result in turn.results}


def so(value: Any, id: str = "") -> Reply:
    return Reply(Call("structured_output", value, id))


def test_a_pydantic_model_comes_back_as_one() -> None:
    provider = ScriptedProvider([so({"findings": [{"file": "a.py", "line": 3}], "parent": {"findings": []}})])
    result = dt.run("review", schema=Review, provider=provider)
    assert Review(findings=[Finding(file="a.py", line=3)], parent=Review(findings=[])) == result.value
    assert ("structured_output", 1) == (result.reason, result.turns)
    assert result.json == result.result["structured_result"]


def test_validators_of_the_type_speak_to_the_model() -> None:
    script = [so({"findings": [{"file": "a.py", "line": 0}]}), so({"findings": [{"file": "a.py", "line": 1}]})]
    provider = ScriptedProvider(script)
    assert 1 == dt.run("review", schema=Review, provider=provider).value.findings[0].line
    assert "findings/0/line: Value error, lines count from 1" in str(provider.requests[1].turns[-1])


TYPES: list[tuple[Any, Any, Any]] = [
    # type, arguments of the call, value
    (Point, {"x": 1}, Point(1)),
    (list[int], {"value": [1, 2]}, [1, 2]),
    (tuple[str, int], {"value": ["a", 1]}, ("a", 1)),
    (bool, {"value": True}, True),
    (dict[str, Point], {"p": {"x": 1}}, {"p": Point(1)}),
    (Point | None, {"value": None}, None),
    (Point | Review, {"x": 1}, Point(1)),
    ({"type": "array"}, {"value": [1]}, [1]),
    ({"type": "object"}, {"a": 1}, {"a": 1}),
]


@pytest.mark.parametrize(("schema", "arguments", "value"), TYPES, ids=str)
def test_any_type_that_pydantic_can_describe_is_a_schema(schema: Any, arguments: Any, value: Any) -> None:
    assert value == dt.run("x", schema=schema, provider=ScriptedProvider([so(arguments)])).value


def test_functions_are_tools() -> None:
    seen: list[tuple[int, int]] = []

    def add(a: int, b: int = 1) -> int:
        """Adds two numbers."""
        seen.append((a, b))
        return a + b

    async def shout(text: str) -> str:
        return text.upper()

    script = [Reply(Call("add", {"a": 2}, "1"), Call("shout", {"text": "hi"}, "2"), Call("add", {}, "3")), so({})]
    provider = ScriptedProvider(script)
    dt.run("x", schema={"type": "object"}, tools=[add, shout], builtin_tools=False, provider=provider)
    assert [(2, 1)] == seen
    assert {"structured_output", "add", "shout"} == {tool.name for tool in provider.requests[0].tools}
    told = answers(provider)
    assert ("3", "HI") == (told["1"], told["2"])
    assert '"a" is missing' in told["3"]


def test_the_callers_check_is_held_to() -> None:
    def even(value: Point) -> None:
        if value.x % 2:
            raise ValueError("x must be even")

    provider = ScriptedProvider([so({"x": 1}), so({"x": 2})])
    assert Point(2) == dt.run("x", schema=Point, validate=even, provider=provider).value
    assert "x must be even" in str(provider.requests[1].turns[-1])


def test_without_a_schema_the_answer_is_prose() -> None:
    result = dt.run("x", provider=ScriptedProvider([Reply("just words")]))
    assert (None, "just words", "completed") == (result.value, result.text, result.reason)


def test_a_run_that_fails_raises_with_its_reason() -> None:
    with pytest.raises(dt.RunError, match="Reached max session turns") as caught:
        dt.run("x", schema={}, max_turns=0, provider=ScriptedProvider([]))
    assert ("max_turns", True) == (caught.value.reason, caught.value.result.result["is_error"])


def test_the_async_twin_can_be_cancelled() -> None:
    async def main() -> None:
        provider = ScriptedProvider([Reply("words", stall_after=0)])
        task = asyncio.create_task(dt.run_async("x", schema={}, provider=provider))
        while not provider.requests:
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        with pytest.raises(dt.InputError, match="run was called in a coroutine"):
            dt.run("x", schema={}, provider=provider)

    asyncio.run(main())


def test_what_makes_no_sense_is_told(tmp_path: Path) -> None:
    with pytest.raises(dt.InputError, match="run has no option 'modle'"):
        dt.run("x", modle="y")  # type: ignore[call-overload]
    with pytest.raises(dt.InputError, match="5 has no JSON Schema"):
        dt.run("x", schema=5)  # type: ignore[call-overload]
    with pytest.raises(dt.InputError, match="there is no directory"):
        dt.run("x", workspace=tmp_path / "no", provider=ScriptedProvider([]))
    with pytest.raises(dt.SchemaError, match="did you mean"):
        dt.run("x", schema={"propertees": {}})


def test_built_in_tools_work_in_the_workspace(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("x = 1\n")
    script = [Reply(Call("glob", {"pattern": "*.py"}, "g"), Call("write_file", {"file_path": "b", "content": ""}, "w"))]
    provider = ScriptedProvider([*script, so({"files": ["a.py"]})])
    result = dt.run("List the Python files", schema={"type": "object"}, workspace=tmp_path, provider=provider)
    told = answers(provider)
    assert "a.py" in told["g"]
    assert "not found" in told["w"]  # writing is not offered unless the mode or a rule allows it
    assert {"files": ["a.py"]} == result.value


# The events of a run.


def test_events_come_as_they_happen_and_end_with_the_result() -> None:
    provider = ScriptedProvider([Reply("I look.", Call("mystery", {}, "m")), so({"x": 1})])

    async def main() -> list[dict[str, Any]]:
        seen = []
        async for event in dt.run_events("x", schema=Point, provider=provider):
            seen.append(event)
            if len(seen) == 2:
                assert 1 == len(provider.requests)  # the run goes on while its events are read
        return seen

    events = asyncio.run(main())
    assert ["system", "assistant", "assistant", "user", "assistant", "user", "result"] == [e["type"] for e in events]
    assert {"x": 1} == events[-1]["structured_result"]
    assert all(jsonschema_rs.validator_for(event_schema()).is_valid(event) for event in events)


def test_a_run_that_fails_ends_its_events_with_the_result() -> None:
    async def main() -> list[dict[str, Any]]:
        return [event async for event in dt.run_events("x", schema=Point, provider=ScriptedProvider([]), max_turns=0)]

    assert "max_turns" == asyncio.run(main())[-1]["termination_reason"]


def test_who_leaves_the_events_early_ends_the_run() -> None:
    provider = ScriptedProvider([Reply("slow", pace_s=60)])

    async def main() -> None:
        events = dt.run_events("x", schema=Point, provider=provider)
        assert "init" == (await anext(events))["subtype"]
        await events.aclose()

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_callback_hears_the_pieces_of_replies() -> None:
    kinds: list[str] = []
    provider = ScriptedProvider([so({"x": 1})])
    options: Any = {"on_event": lambda event: kinds.append(event["type"]), "partial_messages": True}
    dt.run("x", schema=Point, provider=provider, **options)
    assert "stream_event" in kinds
    assert "result" == kinds[-1]


def test_functions_of_one_reply_run_side_by_side() -> None:
    together = threading.Barrier(3, timeout=20)

    def meet(number: int) -> int:
        """Wait for the others."""
        together.wait()
        return number

    calls = [Call("meet", {"number": number}, f"m{number}") for number in range(3)]
    provider = ScriptedProvider([Reply(*calls), so({"x": 1})])
    assert 1 == dt.run("x", schema=Point, tools=[meet], provider=provider).value.x
    assert ["0", "1", "2"] == list(answers(provider).values())


def test_settings_servers_and_sessions_are_options(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOVETAIL_HOME", str(tmp_path / "home"))
    blocked = {"matcher": "glob", "hooks": [{"type": "command", "command": "echo not that >&2; exit 2"}]}
    script = [Reply(Call("glob", {"pattern": "*"}, "g")), Reply(Call("add", {"a": 1, "b": 2}, "h")), so({"x": 1})]
    provider = ScriptedProvider(script)
    server = {"command": sys.executable, "args": [str(ROOT / "tests/agent/mcp_server.py"), "stdio"]}
    options: Any = {"workspace": tmp_path, "settings": {"hooks": {"PreToolUse": [blocked]}}, "record": True}
    options |= {"mcp_servers": {"s": server | {"trust": True}}}
    result = dt.run("first", schema=Point, provider=provider, **options)
    assert "not that" in str(provider.requests[1].turns[-1])
    assert "3" in str(provider.requests[2].turns[-1])
    again = ScriptedProvider([so({"x": 2})])
    assert 2 == dt.run("second", schema=Point, provider=again, workspace=tmp_path, session=result.session_id).value.x
    assert "first" in str(again.requests[0].turns[0])


def test_a_run_may_cost_only_so_much() -> None:
    provider = ScriptedProvider([Reply(Call("mystery", {"n": n}, f"m{n}")) for n in range(9)])
    prices = {"scripted": {"input": 1000.0, "output": 1000.0}}
    with pytest.raises(dt.RunError) as error:
        dt.run("x", schema=Point, provider=provider, prices=prices, max_cost_usd=0.03)
    assert ("max_cost", 2) == (error.value.reason, len(provider.requests))
    with pytest.raises(dt.InputError, match="prices"):
        dt.run("x", schema=Point, provider=provider, max_cost_usd=1)


def test_without_a_model_nothing_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_MODEL", "ANTHROPIC_MODEL", "GEMINI_MODEL"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(dt.DovetailError, match="no model is named"):
        dt.run("x", schema=Point)
