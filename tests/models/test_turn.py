"""The turn of a local model: one rule for schemas that no grammar holds, told by notes."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import jsonschema
import pytest

import dovetail as dt
from dovetail.models import LocalTurn, Sampling, Speaker, plan_turn

HELLO = [{"role": "user", "content": "Well?"}]
TAGS = {
    "type": "object",
    "properties": {
        "tags": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
        "n": {"type": "integer"},
    },
    "required": ["tags", "n"],
    "additionalProperties": False,
}
LOOSE = {**TAGS, "properties": {**TAGS["properties"], "tags": {"type": "array", "items": {"type": "string"}}}}
SENSELESS = {"type": "object", "properties": {"x": False}, "required": ["x"]}


def tool(name: str, schema: Any, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": schema, **more}}


def said(turn: LocalTurn, **sampling: Any) -> Any:
    async def collect() -> Any:
        parser = turn.parser()
        async for step in turn.steps(Sampling(**sampling)):
            parser.feed(step.data)
        return parser.finish()

    return asyncio.run(collect())


@pytest.mark.parametrize("strict", [{}, {"strict": True}, {"strict": False}])
@pytest.mark.parametrize("dialect", ["hermes", "qwen_3_coder", "gemma_4", "mistral"])
def test_a_tool_that_cannot_be_held_exactly_is_held_as_far_as_possible(dialect: str, strict: dict[str, Any]) -> None:
    tools = [tool("plain", {"type": "object", "properties": {}}), tool("tag", TAGS, **strict)]
    choice = {"type": "function", "function": {"name": "tag"}}
    turn = plan_turn(Speaker(3, dialect=dialect), HELLO, tools=tools, tool_choice=choice, reasoning="disabled")
    ((code, path, text),) = turn.notes
    assert ("schema_widened", "/tools/1/function/parameters/properties/tags/uniqueItems") == (code, path)
    assert "not held" in text
    for seed in range(3):
        (call, *_) = said(turn, seed=seed, soft_limit=20).tool_calls
        jsonschema.validate(call.value, LOOSE)


def test_an_answer_that_cannot_be_held_exactly_is_held_as_far_as_possible() -> None:
    answer = {"type": "json_schema", "json_schema": {"name": "tags", "schema": TAGS, "strict": True}}
    turn = plan_turn(Speaker(3), HELLO, response_format=answer)
    assert ["/response_format/json_schema/properties/tags/uniqueItems"] == [note.path for note in turn.notes]
    jsonschema.validate(json.loads(said(turn, seed=1, soft_limit=20).content), LOOSE)


def test_what_is_held_exactly_needs_no_note() -> None:
    turn = plan_turn(Speaker(3), HELLO, tools=[tool("f", LOOSE)], response_format=None)
    assert () == turn.notes


def test_a_schema_that_makes_no_sense_is_an_error_with_its_place_unless_nobody_wants_strictness() -> None:
    speaker, plain = Speaker(3), tool("plain", {"type": "object", "properties": {}})
    with pytest.raises(dt.SchemaError) as error:
        plan_turn(speaker, HELLO, tools=[plain, tool("odd", SENSELESS)])
    assert error.value.path.startswith("/tools/1/function/parameters")
    turn = plan_turn(speaker, HELLO, tools=[plain, tool("odd", SENSELESS, strict=False)], tool_choice="required")
    assert ["/tools/1/function/parameters"] == [note.path for note in turn.notes]
    assert "any object is allowed" in turn.notes[0].text


def test_an_answer_that_makes_no_sense_is_an_error_with_its_place() -> None:
    with pytest.raises(dt.SchemaError) as error:
        plan_turn(Speaker(3), HELLO, response_format={"type": "json_schema", "json_schema": SENSELESS})
    assert error.value.path.startswith("/response_format/json_schema")
    with pytest.raises(dt.GrammarError) as wrong:
        plan_turn(Speaker(3), HELLO, response_format={"type": "regex", "pattern": "a("})
    assert wrong.value.path.startswith("/response_format/pattern")
