"""Several ways to write one object, and what becomes of them."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dovetail as dt
from dovetail.grammar.json_schema.read.one_of import MAX_CONTEXTS
from dovetail.grammar.json_schema.read.reader import Reader

TEXT, NUMBER = {"type": "string"}, {"type": "number"}


KINDS = [{"properties": {"kind": {"const": kind}}} for kind in "abc"]

CHOICES: list[tuple[dict[str, Any], int]] = [
    # what stands around a oneOf of KINDS, and the branches that are left: three where the arms exclude each other
    ({"type": "object", "required": ["kind"]}, 3),
    ({"allOf": [{"type": "object"}, {"required": ["kind"]}]}, 3),
    ({"type": "string"}, 0),
]


@pytest.mark.parametrize(("around", "branches"), CHOICES)
def test_arms_that_the_schema_around_them_tells_apart_are_a_plain_choice(around: dict[str, Any], branches: int) -> None:
    for schema in ({**around, "oneOf": KINDS}, {"oneOf": KINDS, **around}, {"allOf": [{"oneOf": KINDS}, around]}):
        assert len(Reader(schema).read(((schema, ()),))) == branches


def test_arms_are_compared_in_a_few_contexts_only() -> None:
    # Beyond these they are compared without one, which is exact as well.
    names = [f"k{index}" for index in range(MAX_CONTEXTS + 4)]
    arms = [{"properties": {name: {"const": 1} for name in names}}, {"properties": {"k0": {"const": 2}}}]
    schema = {"type": "object", "anyOf": [{"required": [name]} for name in names], "oneOf": arms}
    fmt = {"type": "json_schema", "json_schema": schema, "strict": False}
    for name in (names[1], names[-1]):
        values = [{"k0": 1, name: 1}, {"k0": 2, name: 3}, {"k0": 3, name: 1}, {name: 3}, {name: 1}]
        assert [True, True, False, True, False] == [dt.accepts(fmt, json.dumps(value)) for value in values]


def test_arms_that_are_told_apart_by_a_key_are_none_where_it_may_be_absent() -> None:
    schema = {"type": "object", "properties": {"x": TEXT}, "oneOf": KINDS}
    fmt = {"type": "json_schema", "json_schema": schema, "strict": False}
    texts = {'{"kind": "a"}': True, '{"kind": "d"}': False, '{"x": ""}': False, "{}": False}
    assert {text: dt.accepts(fmt, text) for text in texts} == texts


PART = {
    "type": "object",
    "properties": {"name": TEXT},
    "required": ["name"],
    "oneOf": [
        {"properties": {"parts": {"type": "array", "items": {"$ref": "#/$defs/part"}}}, "required": ["parts"]},
        {"properties": {"sizes": {"type": "array", "items": NUMBER}}, "required": ["sizes"]},
    ],
}


def nested(depth: int, leaf: dict[str, Any]) -> dict[str, Any]:
    return {"name": "a", "parts": [nested(depth - 1, leaf)]} if depth else leaf


@pytest.mark.parametrize("depth", range(5))
def test_a_choice_between_open_objects_can_be_nested(depth: int) -> None:
    answer = {"type": "json_schema", "json_schema": {"$ref": "#/$defs/part", "$defs": {"part": PART}}}
    loose = {**answer, "strict": False, "any_order": True}
    assert dt.accepts(loose, json.dumps(nested(depth, {"sizes": [1], "name": "b"})))
    assert not dt.accepts(loose, json.dumps(nested(depth, {"sizes": [1], "name": "b", "parts": []})))


NEVER: list[Any] = [False, {"not": {}}, {"not": True}]


@pytest.mark.parametrize("never", NEVER)
def test_one_way_to_fail_is_enough_where_it_is_sure(never: Any) -> None:
    # What has a and no b fails the second arm in two ways at once: a may not be there, and b is missing.
    arms = [
        {"required": ["a"], "properties": {"b": never, "c": never}},
        {"required": ["b", "c"], "properties": {"a": never}},
    ]
    schema = {"type": "object", "oneOf": arms}
    assert len(Reader(schema).read(((schema, ()),))) == len(arms)
    fmt = {"type": "json_schema", "json_schema": schema, "strict": False}
    texts = {"{}": False, '{"a":1}': True, '{"a":1,"b":2}': False, '{"b":1,"c":2}': True, '{"b":1}': False}
    assert texts == {text: dt.accepts(fmt, text) for text in texts}


def test_no_way_is_left_to_have_another_member_in_a_closed_object() -> None:
    closed = {"type": "object", "properties": {"a": TEXT}, "additionalProperties": False}
    schema = {**closed, "not": {"properties": {"a": {"const": "x"}}, "additionalProperties": False}}
    assert len(Reader(schema).read(((schema, ()),))) == 1
    fmt = {"type": "json_schema", "json_schema": schema}
    assert [True, False, False] == [dt.accepts(fmt, text) for text in ('{"a":"y"}', '{"a":"x"}', "{}")]
