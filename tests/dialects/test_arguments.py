"""One compiler of schemas: the arguments that a dialect's format admits are those that the schema admits as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import dovetail as dt
from dovetail.dialects.literals import spell_arguments
from dovetail.engine import accepts
from dovetail.errors import DialectError, LimitError, SchemaError
from dovetail.grammar import ir, json_schema
from dovetail.layouts.styles import CONTROLS, GEMMA, PYTHON, PYTHON_DICT, Literals
from dovetail.messages import Message, ToolCall
from dovetail.parsing.layouts import TaggedCall
from tests.grammar.json_schema.strategies import NAMES, schemas, values
from tests.grammar.json_schema.test_agreement import orders
from tests.turns import speaker_of

RAW_LINES = Literals("(", ")", "=", ", ", ("'", '"'), True, False, "True", "False", "None", raw=CONTROLS)
SYNTAXES = [PYTHON, PYTHON_DICT, GEMMA, RAW_LINES]

arguments = st.dictionaries(st.sampled_from([*NAMES, "x", "x_1"]), values, max_size=3)


def _about_arguments(schema: dict[str, Any], inside: bool) -> dict[str, Any]:
    """A schema of arguments, about which a random one speaks, or about one of them."""
    body = {word: value for word, value in schema.items() if word != "$defs"}
    said = {"properties": {"a": body}} if inside else {"allOf": [body]}
    return {"type": "object", **said, "$defs": schema["$defs"]}


parameters = st.builds(_about_arguments, schemas, st.booleans())


def lowered(schema: Any, strict: bool = False, **options: Any) -> ir.Rule:
    """The root rule, for schemas that are not refused: random ones are often contradictory."""
    try:
        return ir.Rule("root", json_schema.lower(schema, strict=strict, **options))
    except (SchemaError, LimitError):
        assume(False)
        raise


def can_be_bare(value: Any) -> bool:
    match value:
        case dict():
            return all(key and can_be_bare(item) for key, item in value.items())
        case list():
            return all(map(can_be_bare, value))
        case _:
            return True


@pytest.mark.parametrize("syntax", SYNTAXES)
@given(schema=parameters, value=arguments)
@settings(max_examples=150)
def test_literals_are_accepted_exactly_when_they_are_valid(syntax: Literals, schema: Any, value: Any) -> None:
    assume(can_be_bare(value) or not syntax.bare_keys)
    rule = lowered(schema, style=syntax, any_order=True)
    assert jsonschema_rs.Draft202012Validator(schema).is_valid(value) == accepts(rule, spell_arguments(value, syntax))


@pytest.mark.parametrize("syntax", SYNTAXES)
@given(schema=parameters, value=arguments)
@settings(max_examples=100)
def test_literals_are_accepted_in_their_order_exactly_when_they_are_valid(
    syntax: Literals, schema: Any, value: Any
) -> None:
    assume(can_be_bare(value) or not syntax.bare_keys)
    rule = lowered(schema, style=syntax)
    ways: Iterator[Any] = iter([value]) if syntax.sorted_keys else orders(value)
    valid = jsonschema_rs.Draft202012Validator(schema).is_valid(value)
    assert valid == any(accepts(rule, spell_arguments(one, syntax)) for one in ways)


def tools(schema: Any) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "f", "parameters": schema}}]


@pytest.mark.parametrize("name", ["gemma_4", "lfm2", "llama_4"])
@given(schema=parameters, seed=st.integers(0, 1 << 32))
@settings(max_examples=40, suppress_health_check=[HealthCheck.filter_too_much])
def test_literals_that_are_spoken_read_back_as_valid(name: str, schema: Any, seed: int) -> None:
    dialect = dt.dialects.get(name)
    call = dialect.calls[0].call
    assert isinstance(call, TaggedCall)
    lowered(schema, strict=True, style=call.arguments)
    said = speaker_of(dialect, seed).speak(dialect.format(tools(schema), "required", False, parallel_tool_calls=False))
    assume(said.complete)
    message = dialect.parse(said.data, tools(schema), reasoning=False)
    (said_call,) = message.tool_calls
    assert not message.diagnostics
    assert jsonschema_rs.Draft202012Validator(schema).is_valid(value_of(said_call.arguments)), said.data


def value_of(text: str) -> Any:
    """A JSON value whose objects have no key twice: literals do not remember undeclared ones.

    A fraction that floats round away is left out, as the judge reads floats.
    """

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        assume(len(found) == len(pairs))
        return found

    def number(text: str) -> float:
        assume(float(text).is_integer() == (Decimal(text) == Decimal(text).to_integral_value()))
        return float(text)

    return json.loads(text, object_pairs_hook=members, parse_float=number)


# The tags of minimax_m3 cannot name what a schema does not declare, and its format says so.
@pytest.mark.parametrize("name", sorted({*dt.dialects.names()} - {"minimax_m3"}))
@given(schema=parameters, value=arguments.filter(can_be_bare))
@settings(max_examples=25, suppress_health_check=[HealthCheck.filter_too_much])
def test_every_dialect_admits_the_arguments_that_json_admits(name: str, schema: Any, value: Any) -> None:
    admitted = accepts(lowered(schema, strict=True, any_order=True), json.dumps(value, ensure_ascii=False))
    dialect = dt.dialects.get(name)
    call = dialect.calls[0].call
    style = call.arguments if isinstance(call, TaggedCall) else "json"
    try:
        said = dialect.render(Message(tool_calls=(ToolCall.of("f", value),)))
        taken = dt.accepts(dialect.format(tools(schema), "required", "auto", any_order=True), said)
    except (DialectError, SchemaError):
        assume(False)
        raise
    # In markup the text of one value may be that of another: 5 and "5".
    exact = style == "json" or isinstance(style, Literals)
    assert (taken == admitted) if exact else (taken or not admitted), said
