"""One compiler of schemas: the arguments that a dialect's format admits are those that the schema admits as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dovetail.dialects.literals import spell_arguments
from dovetail.engine import accepts
from dovetail.errors import LimitError, SchemaError
from dovetail.formats.styles import Literals
from dovetail.grammar import ir, json_schema
from dovetail.parsing.layouts import GEMMA, PYTHON, PYTHON_DICT
from tests.grammar.json_schema.strategies import NAMES, schemas, values
from tests.grammar.json_schema.test_agreement import orders

RAW_LINES = Literals("(", ")", "=", ", ", ("'", '"'), True, False, "True", "False", "None", raw_lines=True)
SYNTAXES = [PYTHON, PYTHON_DICT, GEMMA, RAW_LINES]

arguments = st.dictionaries(st.sampled_from([*NAMES, "x", "x_1"]), values, max_size=3)


def _about_arguments(schema: dict[str, Any], inside: bool) -> dict[str, Any]:
    """A schema of arguments, about which a random one speaks, or about one of them."""
    body = {word: value for word, value in schema.items() if word != "$defs"}
    said = {"properties": {"a": body}} if inside else {"allOf": [body]}
    return {"type": "object", **said, "$defs": schema["$defs"]}


parameters = st.builds(_about_arguments, schemas, st.booleans())


def lowered(schema: Any, **options: Any) -> ir.Rule:
    """The root rule, for schemas that are not refused: random ones are often contradictory."""
    try:
        return ir.Rule("root", json_schema.lower(schema, strict=False, **options))
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
@settings(max_examples=300)
def test_literals_are_accepted_exactly_when_they_are_valid(syntax: Literals, schema: Any, value: Any) -> None:
    assume(can_be_bare(value) or not syntax.bare_keys)
    rule = lowered(schema, style=syntax, any_order=True)
    assert jsonschema_rs.Draft202012Validator(schema).is_valid(value) == accepts(rule, spell_arguments(value, syntax))


@pytest.mark.parametrize("syntax", SYNTAXES)
@given(schema=parameters, value=arguments)
@settings(max_examples=200)
def test_literals_are_accepted_in_their_order_exactly_when_they_are_valid(
    syntax: Literals, schema: Any, value: Any
) -> None:
    assume(can_be_bare(value) or not syntax.bare_keys)
    rule = lowered(schema, style=syntax)
    ways: Iterator[Any] = iter([value]) if syntax.sorted_keys else orders(value)
    valid = jsonschema_rs.Draft202012Validator(schema).is_valid(value)
    assert valid == any(accepts(rule, spell_arguments(one, syntax)) for one in ways)
