"""Law 6 (honest schemas): schemas that are refused, with the place and the reason."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.errors import FormatError, LimitError, SchemaError
from dovetail.grammar import json_schema

SELF = {"$ref": "#"}
_MEMBER = {"type": "object", "properties": {"n": {"$ref": "#/$defs/not_so"}}}
HOLDS_ITS_NEGATION = {"allOf": [_MEMBER, {"$ref": "#/$defs/not_so"}], "$defs": {"not_so": {"not": _MEMBER}}}

REFUSED: list[tuple[Any, str, str]] = [
    # schema, where, words the message must contain
    (False, "", "no value can satisfy"),
    ({"type": "string", "minLength": 3, "maxLength": 2}, "", "no value can satisfy"),
    ({"type": "integer", "minimum": 3, "maximum": 2}, "", "no value can satisfy"),
    ({"type": "integer", "enum": ["a"]}, "", "no value can satisfy"),
    ({"allOf": [{"type": "string"}, {"type": "integer"}]}, "", "no value can satisfy"),
    ({"type": "array", "minItems": 2, "maxItems": 1}, "", "no value can satisfy"),
    ({"type": "array", "items": False, "minItems": 1}, "", "no value can satisfy"),
    ({"type": "object", "properties": {"n": SELF}, "required": ["n"]}, "", "no value can satisfy"),
    (HOLDS_ITS_NEGATION, "", "no value can satisfy"),
    ({"type": "object", "properties": {"n": False}, "required": ["n"]}, "", "no value can satisfy"),
    ({"type": "object", "additionalProperties": False, "required": ["n"]}, "", "no value can satisfy"),
    ({"type": "string", "pattern": "a^"}, "", "no value can satisfy"),
    (SELF, "/$ref", "leads back to itself"),
    ({"anyOf": [SELF]}, "/anyOf/0/$ref", "leads back to itself"),
    ({"allOf": [SELF], "type": "string"}, "/allOf/0/$ref", "leads back to itself"),
    (
        {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}},
        "/$defs/b/$ref",
        "back to itself",
    ),
    (
        {"properties": {"x/y": {"type": "strin"}}, "type": "object"},
        "/properties/x~1y/type",
        "'strin' is not a JSON type",
    ),
    ({"type": 3}, "/type", "3 is not a JSON type"),
    ({"items": 3, "type": "array"}, "/items", "object or a boolean"),
    ({"enum": "a"}, "/enum", "must be a list"),
    ({"minLength": -1}, "/minLength", "whole number"),
    ({"maxLength": "3"}, "/maxLength", "whole number"),
    ({"type": "array", "minItems": 1.5}, "/minItems", "whole number"),
    ({"minimum": "1"}, "/minimum", "must be a number"),
    ({"pattern": 1}, "/pattern", "must be a string"),
    ({"pattern": "(", "type": "string"}, "/pattern", ""),
    ({"type": "object", "properties": []}, "/properties", "must be an object"),
    ({"type": "object", "required": "a"}, "/required", "list of strings"),
    ({"type": "object", "properties": {"a": {}}, "required": [["a"]]}, "/required", "list of strings"),
    ({"anyOf": []}, "/anyOf", "list of schemas"),
    ({"$ref": "#/$defs/x"}, "/$ref", "names nothing"),
    ({"$ref": "https://example.com/other"}, "/$ref", "leads to another document"),
    ({"$ref": 1}, "/$ref", "must be a string"),
    ({"oneOf": [{}, {}]}, "", "no value can satisfy"),
    ({"not": {}}, "", "no value can satisfy"),
    ({"uniqueItems": True}, "/uniqueItems", "uniqueItems cannot be held exactly"),
    ({"type": "string", "format": "regex"}, "/format", "format cannot be held exactly"),
    ({"not": {"uniqueItems": True}}, "/not/uniqueItems", "its negation"),
    ({"dependencies": 1}, "/dependencies", "must be an object"),
    ({"multipleOf": 0}, "/multipleOf", "more than 0"),
    ({"items": {"multipleOf": 0.123456789}}, "/items/multipleOf", "remainders"),
    ({"const": float("nan")}, "", "cannot be written as JSON"),
    ({"maxLength": float("inf")}, "", "cannot be written as JSON"),
    ({"type": "object", "properties": {"\ud800": {}}}, "", "surrogate without its partner"),
    *(
        ({"properties": {"a": {keyword: True}}, "type": "object"}, f"/properties/a/{keyword}", keyword)
        for keyword in ("multipleOf", "dependentRequired", "allOf")
    ),
]


@pytest.mark.parametrize(("schema", "where", "words"), REFUSED)
def test_a_schema_is_refused_with_place_and_reason(schema: Any, where: str, words: str) -> None:
    with pytest.raises(SchemaError) as caught:
        json_schema.lower(schema, path="/format")
    assert "/format" + where == caught.value.path
    assert words in caught.value.problem
    assert caught.value.fix


WIDE = {"type": "object", "properties": {f"k{i}": {} for i in range(5000)}}
PRODUCT = {"allOf": [{"anyOf": [{"pattern": f"a{i}"}, {"pattern": f"b{i}"}]} for i in range(20)]}


@pytest.mark.parametrize(
    ("schema", "options", "words"),
    [
        (WIDE, {"any_order": True}, "any_order is limited"),
        (PRODUCT, {}, "multiply to more than"),
        ({"type": "object", "patternProperties": {f"{i}": {} for i in range(8)}}, {}, "too many states|overlap"),
    ],
)
def test_what_would_grow_without_bound_is_refused(schema: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises(LimitError, match=words):
        json_schema.lower(schema, **options)


def test_a_value_nested_too_deeply_is_refused() -> None:
    value: Any = 1
    for _ in range(10_000):
        value = [value]
    with pytest.raises(LimitError, match="nested deeper"):
        json_schema.lower({"const": value})


@pytest.mark.parametrize(
    ("style", "excludes", "words"),
    [
        ("xml", (), "no style"),
        ("qwen_xml", (" a",), "whitespace"),
        ("cohere_xml", ("a",), "cannot be used"),
        ("minimax_m3_xml", ("a",), "cannot be used"),
    ],
)
def test_options_that_do_not_fit_the_style_are_refused(style: str, excludes: tuple[str, ...], words: str) -> None:
    with pytest.raises(FormatError, match=words):
        json_schema.lower({"type": "object"}, style=style, excludes=excludes)
