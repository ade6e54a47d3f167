"""Objects that are read at a glance become what the general way makes of them."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any, cast

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dovetail as dt
from dovetail._core import Glance
from dovetail.errors import InputError
from dovetail.grammar import ir
from dovetail.grammar.json_schema import plain
from dovetail.grammar.json_schema.lowering import Lowering
from dovetail.grammar.json_schema.reading import Reader
from dovetail.grammar.json_schema.text import pieces

TEXT, NUMBER = {"type": "string"}, {"type": "number"}
BASE = {"properties": {"a": TEXT, "b": {"$ref": "#/$defs/deep"}}, "required": ["a"]}
ABC = {"type": "object", "properties": {"a": TEXT, "b": {"minLength": 2}, "c": NUMBER}}
DEEP = {"$defs": {"deep": {"type": "object", "properties": {"c": NUMBER}}}}

GLANCED: list[dict[str, Any]] = [
    {"type": "object", "properties": {"a": TEXT, "é": NUMBER}, "required": ["é"]},
    {"type": "object", "properties": {"a": TEXT}, "additionalProperties": False},
    {"type": "object", "properties": {"a": {"type": "array", "items": NUMBER}}, "required": ["a", "a"]},
    {"type": "object", "properties": {"a": {"type": "array", "items": {"type": "object", "properties": {"b": TEXT}}}}},
    {"type": "object", "properties": {"a": {"items": {"type": "null"}, "type": "array", "minLength": 2}}},
    {"type": "array", "items": {"type": "array", "items": {"enum": ["é"]}}},
    {"type": "array", "items": {"enum": [1, 2]}, "additionalItems": False},
    {"type": "array", "items": False},
    {"type": "array", "items": [TEXT], "additionalItems": NUMBER, "$schema": "http://json-schema.org/draft-07/schema"},
    {"type": "object", "properties": {"a": {"type": ["integer", "number", "null", "null"]}, "b": {"enum": ["x", "x"]}}},
    {"type": "object", "properties": {"b": {"title": "b"}, "c": {"type": "string", "enum": ["", "a", "é"]}}},
    {"type": "object", "properties": {"a": {"type": []}}},
    {"type": "object", "properties": {"a": {"type": "text"}}},
    {"type": "object", "properties": {"a": {"type": ["string", 1]}}},
    {"type": "object", "properties": {"a": {"enum": []}, "b": {"type": "string", "enum": []}}},
    {"type": "object", "properties": {"a": True, "b": {"type": "string", "enum": "ab"}}},
    {"type": "object", "properties": {"\ud800": TEXT}},
    {"type": "object", "properties": {"a": TEXT}, "required": ["b"]},
    {"type": "object", "properties": {"a": TEXT}, "required": "a"},
    {"type": "object", "properties": {"a": TEXT}, "required": [1]},
    {"type": "object", "properties": [], "additionalProperties": 1},
    {"type": "object", "additionalProperties": NUMBER},
    {"type": "object", "additionalProperties": {"type": "object", "additionalProperties": {}}},
    {"type": "object", "patternProperties": {"^x-": TEXT}},
    {"type": "object", "patternProperties": {"^x-": TEXT}, "additionalProperties": False},
    {"type": "object", "patternProperties": {"^x-": TEXT}, "additionalProperties": NUMBER},
    {"type": "object", "patternProperties": {"": TEXT}},
    {"type": "object", "patternProperties": {"^x-": {"type": "string", "enum": [1]}}},
    {"type": "object", **DEEP, "allOf": [BASE, {"properties": {"d": TEXT}}]},
    {"type": "object", **DEEP, "allOf": [BASE, {"properties": {"a": {"minLength": 3}}, "required": ["b"]}]},
    {"type": "object", **DEEP, "allOf": [BASE, {"properties": {"a": NUMBER}}]},
    {"type": "object", **DEEP, "allOf": [BASE, {"required": ["unknown"]}]},
    {"type": "object", **DEEP, "allOf": [BASE, {"properties": {"a": {}, "b": {}}, "additionalProperties": False}]},
    {"type": "object", **DEEP, "allOf": [BASE, {"properties": {"a": {}}, "additionalProperties": False}]},
    {"type": "object", **DEEP, "allOf": [BASE], "unevaluatedProperties": False},
    {"type": "object", **DEEP, "allOf": [BASE, {"additionalProperties": True}], "unevaluatedProperties": False},
    {"type": "object", **DEEP, "allOf": [BASE], "unevaluatedProperties": NUMBER},
    {"type": "object", "propertyNames": TEXT, "additionalProperties": NUMBER},
    {"type": "object", "properties": {"a": TEXT}, "propertyNames": {"title": "any"}},
    {**ABC, "anyOf": [{"required": ["a"]}, {"required": ["b", "c"]}]},
    {**ABC, "anyOf": [{"required": ["b"]}, {"required": ["b", "c"]}, {"required": ["b"]}]},
    {**ABC, "anyOf": [{"required": ["b"]}, {"required": ["unknown"]}]},
    {**ABC, "anyOf": [{"required": ["b"]}, {"properties": {"a": NUMBER}}]},
    {**ABC, "required": ["b"], "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
    {**ABC, "additionalProperties": False, "oneOf": [{"required": ["a"]}, {"required": ["b"]}, {"required": ["c"]}]},
    {**ABC, "oneOf": [{"required": ["a", "b"]}, {"required": ["b", "c"]}]},
    {**ABC, "required": ["a"], "oneOf": [{"required": ["a"]}, {"required": ["b"]}]},
    {**ABC, "dependentRequired": {"a": ["b"], "b": ["c"]}},
    {**ABC, "if": {"required": ["a"]}, "then": {"required": ["b"]}, "else": {"required": ["c"]}},
    {**ABC, "anyOf": [{"required": ["a", "z"]}, {"required": ["y"]}, {"properties": {"x": False, "y": False}}]},
    {**ABC, "allOf": [{"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, {"properties": {"a": False}}]},
    {**ABC, "allOf": [{"required": ["a"]}, {"anyOf": [{"properties": {"a": False}}, {"properties": {"b": False}}]}]},
    {**ABC, "properties": {"a": TEXT, "b": False}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
]


class Blind:
    """Reads no object and no array at a glance."""

    def __init__(self, glance: Glance) -> None:
        self.value = glance.value
        self.freely = glance.freely

    def next(self, lowering: Lowering) -> Any:
        return lowering._pending.pop() if lowering._pending else None

    def declared(self, *_: Any) -> None:
        return None


def lowered(schema: Any, strict: bool, free_order: bool, *, blind: bool = False) -> tuple[ir.Node, bool] | str:
    """The node, and whether every rule was seen to match something; the problem where it is refused."""
    lowering = Lowering(Reader(schema, None, strict), pieces(20, ()), free_order)
    if blind:
        lowering.glance = cast(Glance, Blind(lowering.glance))
    try:
        node = lowering.value(((schema, ()),))
        lowering.finish()
    except (InputError, UnicodeEncodeError) as error:
        return str(error)
    return node, lowering.is_met()


def are_alike(left: Any, right: Any) -> bool:
    """Whether two nodes are equal, with the rules that they call."""
    pairs: dict[int, int] = {}
    pending: list[tuple[Any, Any]] = [(left, right)]
    while pending:
        one, two = pending.pop()
        if one is two:
            continue
        if type(one) is not type(two):
            return False
        if isinstance(one, ir.Rule):
            if id(one) not in pairs:
                pending.append((one.body, two.body))
            if pairs.setdefault(id(one), id(two)) != id(two):
                return False
        elif isinstance(one, tuple):
            if len(one) != len(two):
                return False
            pending += zip(one, two, strict=True)
        elif hasattr(one, "__slots__") and not isinstance(one, ir.Spellings):
            pending += [(getattr(one, name), getattr(two, name)) for name in one.__slots__]
        elif one != two:
            return False
    return True


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("free_order", [False, True])
@pytest.mark.parametrize("schema", GLANCED)
def test_what_is_read_at_a_glance_is_what_the_general_way_gives(
    schema: dict[str, Any], strict: bool, free_order: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    glanced = lowered(schema, strict, free_order)
    # In the declared order plain objects are written in another form, of the same texts.
    for name in ("_map", "_joined", "read_either") if free_order else ("_map", "_joined"):
        monkeypatch.setattr(plain, name, lambda *_: None)
    general = lowered(schema, strict, free_order, blind=free_order)
    if isinstance(glanced, str) or isinstance(general, str):
        assert glanced == general
    else:
        assert are_alike(glanced[0], general[0])
        assert glanced[1] == general[1]


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


def test_patterns_that_say_the_same_are_one_where_it_matches_every_key() -> None:
    schema = {"type": "object", "patternProperties": {"^a": NUMBER, ".*": NUMBER, "b$": NUMBER}}
    alone = {"type": "object", "patternProperties": {".*": NUMBER}}
    assert are_alike(lowered(schema, False, True), lowered(alone, False, True))
    told_apart = {"type": "object", "patternProperties": {"^a": {"const": True}, ".*": {"const": 1}}}
    for key, value, valid in (("a", 1, False), ("a", True, False), ("b", 1, True), ("b", True, False)):
        document = {key: value}
        assert jsonschema_rs.is_valid(told_apart, document) == valid
        format = {"type": "json_schema", "json_schema": told_apart, "any_order": True}
        assert dt.accepts(format, json.dumps(document)) == valid


def test_a_pattern_that_says_the_same_as_another_is_still_checked() -> None:
    with pytest.raises(InputError, match=r"/patternProperties/\("):
        dt.accepts(
            {"type": "json_schema", "json_schema": {"type": "object", "patternProperties": {".*": {}, "(": {}}}}, "{}"
        )
