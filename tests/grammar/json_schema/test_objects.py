"""Objects of everyday shapes: what is declared, what is demanded, and what a pattern says of the rest."""

from __future__ import annotations

import json
from itertools import combinations, permutations, product
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dovetail as dt
from dovetail.errors import InputError

TEXT, NUMBER = {"type": "string"}, {"type": "number"}
BASE = {"properties": {"a": TEXT, "b": {"$ref": "#/$defs/deep"}}, "required": ["a"]}
ABC = {"type": "object", "properties": {"a": TEXT, "b": {"minLength": 2}, "c": NUMBER}}
DEEP = {"$defs": {"deep": {"type": "object", "properties": {"c": NUMBER}}}}

EVERYDAY: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": TEXT, "b": NUMBER}, "required": ["b"]},
    {"type": "object", "properties": {"a": TEXT}, "additionalProperties": False},
    {"type": "object", "properties": {"a": {"type": "array", "items": NUMBER}}, "required": ["a"]},
    {"type": "object", "properties": {"a": {"type": ["integer", "number", "null"]}, "b": {"enum": ["x", 1]}}},
    {"type": "object", "properties": {"a": {"type": "string", "enum": ["", "x", "é"]}, "c": {"title": "c"}}},
    {"type": "object", "properties": {"a": TEXT}, "required": ["b"]},
    {"type": "object", "additionalProperties": NUMBER},
    {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": {}}},
    {"type": "object", "patternProperties": {"^a": TEXT}},
    {"type": "object", "patternProperties": {"^a": TEXT}, "additionalProperties": False},
    {"type": "object", "patternProperties": {"^a": TEXT}, "additionalProperties": NUMBER},
    {"type": "object", "patternProperties": {"": TEXT}},
    {"type": "object", **DEEP, "allOf": [BASE, {"properties": {"d": TEXT}}]},
    {"type": "object", **DEEP, "allOf": [BASE, {"properties": {"a": {"minLength": 3}}, "required": ["b"]}]},
    {"type": "object", **DEEP, "allOf": [BASE, {"required": ["d"]}]},
    {"type": "object", **DEEP, "allOf": [BASE, {"properties": {"a": {}, "b": {}}, "additionalProperties": False}]},
    {"type": "object", **DEEP, "allOf": [BASE, {"properties": {"a": {}}, "additionalProperties": False}]},
    {"type": "object", **DEEP, "allOf": [BASE], "unevaluatedProperties": False},
    {"type": "object", **DEEP, "allOf": [BASE, {"additionalProperties": True}], "unevaluatedProperties": False},
    {"type": "object", **DEEP, "allOf": [BASE], "unevaluatedProperties": NUMBER},
    {"type": "object", "propertyNames": TEXT, "additionalProperties": NUMBER},
    {**ABC, "anyOf": [{"required": ["a"]}, {"required": ["b", "c"]}]},
    {**ABC, "anyOf": [{"required": ["b"]}, {"required": ["b", "c"]}, {"required": ["b"]}]},
    {**ABC, "anyOf": [{"required": ["b"]}, {"properties": {"a": {"const": "xx"}}}]},
    {**ABC, "required": ["b"], "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    {**ABC, "additionalProperties": False, "oneOf": [{"required": ["a"]}, {"required": ["b"]}, {"required": ["c"]}]},
    {**ABC, "oneOf": [{"required": ["a", "b"]}, {"required": ["b", "c"]}]},
    {**ABC, "dependentRequired": {"a": ["b"], "b": ["c"]}},
    {**ABC, "if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}},
    {**ABC, "anyOf": [{"required": ["a", "d"]}, {"properties": {"b": False, "c": False}}]},
    {**ABC, "allOf": [{"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"properties": {"a": False}}]},
    {**ABC, "allOf": [{"required": ["a"]}, {"anyOf": [{"properties": {"b": False}}, {"properties": {"c": False}}]}]},
    {**ABC, "properties": {"a": TEXT, "b": False}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
]
VALUES = ["x", "xxx", 1, 0.5, None, [1], {}, {"c": 1}]


@pytest.mark.parametrize("schema", EVERYDAY)
@pytest.mark.parametrize("any_order", [False, True])
def test_an_object_is_accepted_exactly_when_it_is_valid(schema: dict[str, Any], any_order: bool) -> None:
    validator = jsonschema_rs.validator_for(schema)
    tag = {"type": "json_schema", "json_schema": schema, "strict": False, "any_order": any_order}
    documents = [
        dict(zip(names, values, strict=True))
        for size in range(5)
        for names in combinations("abcd", size)
        for values in list(product(VALUES, repeat=size))[:: 8 ** max(size - 2, 0)]
    ]
    wrong = [one for one in documents if is_taken(tag, one, any_order) != validator.is_valid(one)]
    assert [] == wrong


def is_taken(tag: dict[str, Any], document: dict[str, Any], any_order: bool) -> bool:
    """Whether a document is accepted, where the order of the keys is fixed in one of its orders."""
    orders = [document.items()] if any_order else permutations(document.items())
    return any(dt.accepts(tag, json.dumps(dict(members))) for members in orders)


NAMES = "abxy"
SOME_NAMES = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)
DEMAND = st.fixed_dictionaries(
    {}, optional={"required": SOME_NAMES, "properties": SOME_NAMES.map(lambda names: dict.fromkeys(names, False))}
)
DEMANDS = st.lists(DEMAND, min_size=1, max_size=4)
DEMANDING = st.fixed_dictionaries(
    {"type": st.just("object"), "properties": st.just({"a": {"type": "integer"}, "b": {"const": 1}})},
    optional={
        "additionalProperties": st.booleans(),
        "required": st.lists(st.sampled_from("ab"), max_size=1),
        "anyOf": DEMANDS,
        "oneOf": DEMANDS,
        "dependentRequired": st.dictionaries(st.sampled_from(NAMES), SOME_NAMES, max_size=2),
    },
)


@given(schema=DEMANDING)
@settings(max_examples=300, deadline=None)
def test_members_that_must_be_there_or_must_not_are_those_that_json_schema_says(schema: dict[str, Any]) -> None:
    validator = jsonschema_rs.validator_for(schema)
    tag = {"type": "json_schema", "json_schema": schema, "strict": False, "any_order": True}
    objects = [dict.fromkeys(names, 1) for size in range(5) for names in combinations(NAMES, size)]
    try:
        taken = [dt.accepts(tag, json.dumps(value)) for value in objects]
    except dt.SchemaError:
        taken = [False] * len(objects)  # no value satisfies it
    assert taken == [validator.is_valid(value) for value in objects]


TOLD_APART = {"type": "object", "patternProperties": {"^a": {"const": True}, ".*": {"const": 1}}}
ALIKE = {"type": "object", "patternProperties": {"^a": NUMBER, ".*": NUMBER, "b$": NUMBER}}


@pytest.mark.parametrize("schema", [TOLD_APART, ALIKE])
@pytest.mark.parametrize("any_order", [False, True])
def test_a_key_keeps_to_each_pattern_that_it_matches(schema: dict[str, Any], any_order: bool) -> None:
    tag = {"type": "json_schema", "json_schema": schema, "any_order": any_order}
    for key, value in product(("a", "b", "ab", "", "x"), (1, True, 0.5, "1")):
        document = {key: value}
        assert dt.accepts(tag, json.dumps(document)) == jsonschema_rs.is_valid(schema, document)


def test_a_pattern_that_says_the_same_as_another_is_still_checked() -> None:
    with pytest.raises(InputError, match=r"/patternProperties/\("):
        dt.accepts(
            {"type": "json_schema", "json_schema": {"type": "object", "patternProperties": {".*": {}, "(": {}}}}, "{}"
        )
