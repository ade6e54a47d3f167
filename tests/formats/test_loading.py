"""The shapes in which a request carries a format."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel
from typing_extensions import TypedDict

from dovetail.errors import FormatError, LimitError
from dovetail.formats import JsonSchemaFormat, load_format
from dovetail.formats.loading import bare_schema

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TEXT = {"type": "any_text"}
CALL = {"type": "json_schema", "json_schema": SCHEMA}

SHAPES: list[tuple[str, Any, dict[str, Any]]] = [
    ("a structural tag", {"type": "structural_tag", "format": CALL}, CALL),
    ("a structural tag without its type", {"format": CALL}, CALL),
    ("a bare format", CALL, CALL),
    ("text", {"type": "text"}, {"type": "any_text"}),
    ("a JSON object", {"type": "json_object"}, {"type": "json_schema", "json_schema": {"type": "object"}}),
    (
        "an OpenAI schema",
        {"type": "json_schema", "json_schema": {"name": "weather", "schema": SCHEMA}},
        CALL,
    ),
    (
        "an OpenAI schema, strict",
        {"type": "json_schema", "json_schema": {"name": "weather", "schema": SCHEMA, "strict": True}},
        CALL | {"strict": True},
    ),
    (
        "an OpenAI schema, not strict",
        {"type": "json_schema", "json_schema": {"name": "w", "description": "d", "schema": SCHEMA, "strict": False}},
        CALL | {"strict": False},
    ),
    (
        "an OpenAI schema that is null on strict",
        {"type": "json_schema", "json_schema": {"name": "weather", "schema": SCHEMA, "strict": None}},
        CALL,
    ),
    (
        "an OpenAI schema without a schema",
        {"type": "json_schema", "json_schema": {"name": "anything"}},
        {"type": "json_schema", "json_schema": {"type": "object"}},
    ),
    (
        "structures and triggers",
        {
            "type": "structural_tag",
            "structures": [
                {"begin": "<a>", "schema": SCHEMA, "end": "</a>"},
                {"begin": "<b>", "schema": True, "end": "."},
            ],
            "triggers": ["<a", "<b"],
        },
        {
            "type": "triggered_tags",
            "triggers": ["<a", "<b"],
            "tags": [
                {"begin": "<a>", "content": CALL, "end": "</a>"},
                {"begin": "<b>", "content": {"type": "json_schema", "json_schema": True}, "end": "."},
            ],
        },
    ),
    (
        "structures with a schema as text, without a type",
        {"structures": [{"begin": "<a>", "schema": json.dumps(SCHEMA), "end": "</a>"}], "triggers": ["<a"]},
        {
            "type": "triggered_tags",
            "triggers": ["<a"],
            "tags": [{"begin": "<a>", "content": CALL, "end": "</a>"}],
        },
    ),
]


@pytest.mark.parametrize(("source", "expected"), [shape[1:] for shape in SHAPES], ids=[shape[0] for shape in SHAPES])
def test_a_request_shape_gives_its_format(source: Any, expected: dict[str, Any]) -> None:
    assert expected == load_format(source).to_dict()
    assert expected == load_format(json.dumps(source)).to_dict()
    assert expected == load_format(json.dumps(source).encode()).to_dict()


def test_a_schema_about_names_is_no_envelope() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}, "schema": {"type": "string"}}}
    assert schema == load_format({"type": "json_schema", "json_schema": schema}).to_dict()["json_schema"]


class Answer(BaseModel):
    sure: bool


@dataclass
class AnswerFields:
    sure: bool


class AnswerDict(TypedDict):
    sure: bool


BARE: list[tuple[Any, bool]] = [
    # source, whether it is a schema and two switches
    ({"type": "json_schema", "json_schema": SCHEMA}, True),
    ({"type": "json_schema", "json_schema": SCHEMA, "strict": False}, True),
    ({"type": "json_schema", "json_schema": {}, "any_order": True, "strict": True}, True),
    (SCHEMA, True),
    ({"enum": [1, 2]}, True),
    ({"$ref": "#/$defs/a", "$defs": {"a": {}}}, True),
    ({"type": ["string", "null"]}, True),
    (Answer, True),
    (AnswerFields, True),
    (AnswerDict, True),
    ({"type": "json_schema", "json_schema": True}, False),
    ({"type": "json_schema", "json_schema": SCHEMA, "strict": 1}, False),
    ({"type": "json_schema", "json_schema": {1: 2}}, False),
    ({"type": "json_schema", "json_schema": {"name": "a", "schema": SCHEMA}}, False),
    ({"type": "json_schema", "json_schema": SCHEMA, "style": "qwen_xml"}, False),
    ({"type": "qwen_xml_parameter", "json_schema": SCHEMA}, False),
    (JsonSchemaFormat(json_schema=SCHEMA), False),
    (json.dumps({"type": "json_schema", "json_schema": SCHEMA}), False),
]


@pytest.mark.parametrize(("source", "is_bare"), BARE)
def test_a_bare_schema_says_what_its_format_would(source: Any, is_bare: bool) -> None:
    bare = bare_schema(source)
    assert is_bare == (bare is not None)
    if bare is not None:
        schema, strict, any_order, _ = bare
        assert load_format(source) == JsonSchemaFormat(json_schema=schema, strict=strict, any_order=any_order)


REFUSED: list[tuple[Any, str, str]] = [
    # source, path, words of the problem
    ("{", "line 1, column 2", "not JSON"),
    (b"\xff", "byte 0", "not UTF-8"),
    ('"a"', "", "the string"),
    ("[1]", "", "must be an object"),
    (3, "", "must be an object"),
    (None, "", "must be an object"),
    ({"type": "structural_tag"}, "/format", "`format` is missing"),
    ({"type": "structural_tag", "format": 3}, "/format", "must be an object"),
    ({"type": "structural_tag", "structures": [], "triggers": ["a"]}, "/structures", "`structures` is []"),
    ({"structures": [{"begin": "a", "schema": {}, "end": "b"}]}, "/triggers", "`triggers` is missing"),
    ({"structures": [3], "triggers": ["a"]}, "/structures/0", "a structure is 3"),
    ({"structures": [{"begin": "a", "end": "b"}], "triggers": ["a"]}, "/structures/0/schema", "missing"),
    ({"structures": [{"begin": 1, "schema": {}, "end": "b"}], "triggers": ["a"]}, "/structures/0/begin", "is 1"),
    ({"structures": [{"begin": "b", "schema": {}, "end": "b"}], "triggers": ["a"]}, "/tags/0/begin", "no trigger"),
    ({"type": "json_schema", "json_schema": {"name": "a", "schema": 3}}, "/json_schema/json_schema", "is 3"),
]


@pytest.mark.parametrize(("source", "path", "words"), REFUSED, ids=[str(case[0])[:40] for case in REFUSED])
def test_a_malformed_request_is_refused_with_its_place(source: Any, path: str, words: str) -> None:
    with pytest.raises(FormatError) as caught:
        load_format(source)
    assert path == caught.value.path
    assert words in caught.value.problem
    assert caught.value.fix


def nested(levels: int) -> dict[str, Any]:
    fmt: dict[str, Any] = {"type": "const_string", "value": "x"}
    for _ in range(levels - 1):
        fmt = {"type": "sequence", "elements": [fmt]}
    return fmt


def test_a_hundred_levels_are_the_limit() -> None:
    assert load_format(nested(100))
    for levels in (101, 300, 100_000):
        with pytest.raises(LimitError, match="100 levels"):
            load_format(nested(levels))


def test_a_format_inside_itself_is_refused() -> None:
    fmt: dict[str, Any] = {"type": "sequence", "elements": []}
    fmt["elements"].append(fmt)
    with pytest.raises(LimitError):
        load_format(fmt)


def test_json_that_is_nested_without_end_is_refused() -> None:
    with pytest.raises(LimitError):
        load_format("[" * 100_000)


def test_formats_without_types_load_in_linear_time() -> None:
    fmt: dict[str, Any] = {"value": "x"}
    for _ in range(99):
        fmt = {"elements": [fmt]}
    assert load_format(fmt)


@pytest.mark.parametrize("rules", [[1], [True], [{}], [None], [[]], [""], 3, {"a": 1}])
def test_rules_of_any_shape_are_refused_with_a_path(rules: object) -> None:
    with pytest.raises(FormatError):
        load_format({"rules": rules})
