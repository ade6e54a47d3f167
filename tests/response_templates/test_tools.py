"""Arguments cast by the schema of their tool."""

from __future__ import annotations

from typing import Any

import pytest

import dovetail as dt

TEMPLATE = {
    "start_anchor": "Z",
    "fields": {
        "tool_calls": {
            "open_pattern": "<(?P<name>\\w+)>",
            "close": "</>",
            "repeats": True,
            "content": "kv-lines",
            "transform": {"function": {"name": "{name}", "arguments": "{content}"}},
        }
    },
}
ROOT = {
    "$defs": {"count": {"type": "integer"}, "loop": {"$ref": "#/$defs/loop"}, "a/b": {"type": "boolean"}},
    "properties": {},
}


def cast(text: str, schema: Any) -> Any:
    tools = [{"name": "f", "parameters": {**ROOT, "properties": {"a": schema}}}]
    (call,) = dt.parse_response(f"<f>a:{text}</>", TEMPLATE, prefix="", tools=tools)["tool_calls"]
    return call["function"]["arguments"]["a"]


CASTS = [
    # text, schema, value
    ("7", {"type": "integer"}, 7),
    ("9223372036854775807", {"type": "integer"}, 9223372036854775807),
    ("9223372036854775807", {"type": "number"}, 9223372036854775807),
    ("9007199254740993.0", {"type": "integer"}, 9007199254740993),
    ("3.5", {"type": "integer"}, "3.5"),
    ("1e3", {"type": "integer"}, 1000),
    ("1e999999999", {"type": "integer"}, "1e999999999"),
    ("9" * 5000, {"type": "integer"}, "9" * 5000),
    ("1.50", {"type": "number"}, 1.5),
    ("nan", {"type": "number"}, "nan"),
    ("True", {"type": "boolean"}, True),
    ("no", {"type": "boolean"}, "no"),
    ("null", {"type": ["string", "null"]}, None),
    ("7", {"type": "string"}, "7"),
    ("7", {"anyOf": [{"type": "null"}, {"oneOf": [{"type": "integer"}]}]}, 7),
    ("7", {"$ref": "#/$defs/count"}, 7),
    ("true", {"$ref": "#/$defs/a~1b"}, True),
    ("7", {"$ref": "#/$defs/loop"}, "7"),
    ("7", {"$ref": "#/$defs/none"}, "7"),
    ("7", {"$ref": "http://example.com"}, "7"),
    ("2", {"enum": [1, 2]}, 2),
    ("2", {"enum": ["2", 2]}, "2"),
    ("3", {"enum": [1, 2]}, "3"),
    ("null", {"const": None}, None),
    ("1", {"type": ["integer", "string"], "enum": ["1", "2"]}, "1"),
    ("1", {"type": ["string", "integer"], "enum": [1, "2"]}, 1),
    ("1.0", {"type": "integer", "enum": [1]}, 1),
    ("True", {"type": "boolean", "enum": [True]}, True),
    ('{"b": "7"}', {"type": "object", "properties": {"b": {"type": "integer"}}}, {"b": "7"}),
    ("[1]", {"type": "object"}, "[1]"),
    ("7", True, "7"),
    ("7", {"anyOf": None, "type": 5}, "7"),
]


@pytest.mark.parametrize(("text", "schema", "value"), CASTS)
def test_text_takes_the_type_of_its_schema(text: str, schema: Any, value: Any) -> None:
    got = cast(text, schema)
    assert (type(value), value) == (type(got), got)


def test_nested_text_without_types_is_cast_too() -> None:
    pattern = "<(?P<key>\\w+)>(?P<value>.*?)</\\1>"
    content_args = {
        "tag_pattern": pattern,
        "value_parser": {"name": "xml-inline", "args": {"tag_pattern": "\\[(?P<key>\\w+)=(?P<value>\\w+)\\]"}},
    }
    fields = {"t": {**TEMPLATE["fields"]["tool_calls"], "content": "xml-inline", "content_args": content_args}}
    inner = {"type": "object", "properties": {"n": {"type": "integer"}, "s": {"type": "string"}}}
    tools = [{"name": "f", "parameters": {"properties": {"a": inner}}}]
    message = dt.parse_response(
        "<f><a>[n=7][s=7]</a></>", {"start_anchor": "Z", "fields": fields}, prefix="", tools=tools
    )
    assert {"a": {"n": 7, "s": "7"}} == message["t"][0]["function"]["arguments"]


def test_a_tool_may_be_a_function() -> None:
    def f(a: int) -> str:
        """
        Say it.

        Args:
            a: How often.
        """
        return "x" * a

    assert {"a": 7} == dt.parse_response("<f>a: 7</>", TEMPLATE, prefix="", tools=[f])["tool_calls"][0]["function"][
        "arguments"
    ]


@pytest.mark.parametrize("tool", [{}, {"function": {"name": 1}}, 5])
def test_a_tool_without_a_name_is_refused(tool: Any) -> None:
    with pytest.raises(dt.InputError, match="a tool has no name"):
        dt.parse_response("", TEMPLATE, prefix="", tools=[tool])
