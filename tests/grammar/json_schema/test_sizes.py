"""Keys that are not declared: how many there are, and which of their beginnings go on forever."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dovetail as dt
from dovetail.engine import accepts
from dovetail.errors import LimitError
from dovetail.grammar import ir, json_schema
from dovetail.grammar.json_schema.values import strings
from dovetail.grammar.regex import count, grows
from tests.machines import byte_vocabulary, mask

PATTERNS = [
    ("^x-", True),
    ("x", True),
    ("^[a-z]+$", True),
    ("^.*$", True),
    ("^(?!x).*$", True),
    ("^(?:a|b)[0-9]*$", True),
    (r"^\d{4}$", False),
    ("^$", False),
    ("^[a-z]+_id$", False),
    ("^[a-z]*(?:_id)?$", False),
    ("^(default|[0-9]{3})$", False),
    ("^(a|b.*)$", False),
    ("^a$|^bb*$", False),
    ("^(?!x$)[a-z]{1,3}$", False),
]


@pytest.mark.parametrize(("pattern", "endless"), PATTERNS)
def test_keys_grow_where_every_beginning_goes_on_forever(pattern: str, endless: bool) -> None:
    assert endless is grows(strings.language((pattern,), 0, None))


@pytest.mark.parametrize("pattern", [pattern for pattern, _ in PATTERNS if pattern != "^$"])
def test_keys_of_bounded_length_do_not_grow(pattern: str) -> None:
    assert not grows(strings.language((pattern,), 0, 8))
    assert not grows(strings.language((pattern,), 0, 2000))


COUNTS = [
    ("^$", 1),
    ("^(a|b|a)$", 2),
    ("^[a-z]{1,2}$", 26 + 26 * 26),
    ("^(a|ab)(b|)$", 3),
    ("^(?!x$)[xyz]$", 2),
    (r"^\d{3}$", None),
    ("^a*$", None),
    ("x", None),
]


@pytest.mark.parametrize(("pattern", "expected"), COUNTS)
def test_keys_are_counted_where_they_are_few(pattern: str, expected: int | None) -> None:
    assert expected == count(strings.language((pattern,), 0, None), 1000)


FEW = {"patternProperties": {"^[xy]$": False, "^z{1,2}$": {}}, "additionalProperties": False}
SOME_OTHER = {"not": {"additionalProperties": {"type": "string"}}}
BOUNDED: list[tuple[dict[str, Any], bool, str, str]] = [
    # schema, any order, what was said, what may come next
    ({"propertyNames": {"enum": ["a", "b"]}, "minProperties": 2}, False, '{"a":{}', ","),
    ({"propertyNames": {"enum": ["a", "b"]}, "minProperties": 2}, False, '{"a":{},"b":{}', "}"),
    ({"properties": {"c": {}, "d": {}}, **FEW, "minProperties": 3}, False, '{"', "cd"),
    ({"properties": {"c": {}, "d": {}}, **FEW, "minProperties": 4}, False, '{"', "c"),
    ({"properties": {"c": {}, "d": {}}, **FEW, "minProperties": 4}, True, '{"', "cdz"),
    ({"properties": {"c": {}, "d": {}}, **FEW, "minProperties": 4}, True, '{"d":{},"c":{},"z":{},"', "z"),
    # One of the two values is no string.
    ({"propertyNames": {"enum": ["a", "b"]}, **SOME_OTHER}, False, '{"a":"","b":', "-0123456789{[tfn"),
    ({"propertyNames": {"enum": ["a", "b"]}, **SOME_OTHER}, True, '{"a":"","b":', "-0123456789{[tfn"),
    ({"propertyNames": {"enum": ["a", "b"]}, **SOME_OTHER}, False, '{"a":{},"b":""', "}"),
    ({"propertyNames": {"enum": ["a", "b"]}, **SOME_OTHER}, True, '{"a":{},"b":""', "}"),
]


@pytest.mark.parametrize(("schema", "any_order", "said", "left"), BOUNDED)
def test_an_object_gets_as_many_members_as_it_needs(
    schema: dict[str, Any], any_order: bool, said: str, left: str
) -> None:
    schema = {"type": "object", **schema}
    fmt = {"type": "json_schema", "json_schema": schema, "any_order": any_order, "max_whitespace_cnt": 0}
    matcher = dt.compile(fmt, byte_vocabulary()).matcher()
    assert matcher.accept_bytes(said.encode())
    assert set(left.encode()) == mask(matcher)


IMPOSSIBLE: list[dict[str, Any]] = [
    {"propertyNames": {"enum": ["a", "b"]}, "minProperties": 3},
    {"propertyNames": {"maxLength": 0}, "minProperties": 2},
    {"properties": {"c": {}, "d": {}}, **FEW, "minProperties": 5},
]


@pytest.mark.parametrize("schema", IMPOSSIBLE)
@pytest.mark.parametrize("any_order", [False, True])
def test_more_members_than_there_are_keys_are_refused(schema: dict[str, Any], any_order: bool) -> None:
    with pytest.raises(dt.SchemaError, match="no value can satisfy"):
        dt.compile(
            {"type": "json_schema", "json_schema": {"type": "object", **schema}, "any_order": any_order},
            byte_vocabulary(),
        )


@pytest.mark.parametrize("schema", [{"not": {"const": '"' * 1500}}, {"properties": {'"' * 1500: True}}])
def test_a_long_word_with_escapes_is_refused_where_any_other_is_taken(schema: dict[str, Any]) -> None:
    with pytest.raises(LimitError, match="1500 characters with escapes"):
        json_schema.lower({"type": ["string", "object"], **schema}, strict=False)


def test_a_long_word_is_excluded() -> None:
    node = ir.Rule("root", json_schema.lower({"type": "string", "not": {"const": "w" * 5000}}))
    assert accepts(node, '"w"')
    assert not accepts(node, json.dumps("w" * 5000))
