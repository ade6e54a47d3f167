"""Values written as text become JSON of the type that their schema declares."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from dovetail.parsing.declared import KINDS, Declared

DEFS: dict[str, Any] = {
    "zip": {"type": "string"},
    "count": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
    "self": {"anyOf": [{"$ref": "#/$defs/self"}, {"type": "boolean"}]},
    "chain": {"$ref": "#/$defs/zip"},
}
CASES: list[tuple[Any, str, str]] = [
    # schema, text, JSON
    ({"type": "string"}, "02134", '"02134"'),
    ({"type": "string"}, "null", '"null"'),
    ({"type": "string"}, ' "quoted" ', '" \\"quoted\\" "'),
    ({"$ref": "#/$defs/zip"}, "02134", '"02134"'),
    ({"$ref": "#/$defs/chain"}, "5", '"5"'),
    ({"$ref": "#/$defs/count"}, "5", "5"),
    ({"$ref": "#/$defs/count"}, "null", "null"),
    ({"$ref": "#/$defs/self"}, "true", "true"),
    ({"$ref": "#/$defs/missing"}, "5", "5"),
    ({"type": "integer"}, " 5\n", "5"),
    ({"type": "number"}, "1e3", "1e3"),
    ({"type": ["string", "null"]}, "null", "null"),
    ({"type": ["string", "null"]}, "5", '"5"'),
    ({"type": "string", "nullable": True}, "null", "null"),
    ({"type": "string", "nullable": True}, "5", '"5"'),
    ({"anyOf": [{"type": "string"}, {"type": "number"}]}, "5", "5"),
    ({"anyOf": [{"type": "string"}, {"type": "number"}]}, "02134", '"02134"'),
    ({"oneOf": [{"type": "object"}, {"type": "string"}]}, '{"a": 1}', '{"a": 1}'),
    ({"oneOf": [{"type": "object"}, {"type": "string"}]}, "{a: 1}", '"{a: 1}"'),
    ({"allOf": [{"type": "string"}, {"minLength": 1}]}, "5", '"5"'),
    ({"type": "string", "anyOf": [{"pattern": "a"}, {"minLength": 1}]}, "5", '"5"'),
    ({"enum": ["1", 2]}, "1", '"1"'),
    ({"enum": ["1", 2]}, "2", "2"),
    ({"const": 5}, "5", "5"),
    ({"items": {}}, "[1]", "[1]"),
    ({"properties": {}}, "{}", "{}"),
    ({}, "5", "5"),
    ({}, "five", '"five"'),
    ({}, '"five"', '"\\"five\\""'),
    (None, "[1]", "[1]"),
    (True, "true", "true"),
]
REPAIRED: list[tuple[Any, str, str]] = [
    ({"type": "boolean"}, "True", "true"),
    ({"type": ["boolean", "null"]}, "None", "null"),
    ({"type": "integer"}, '"30"', "30"),
    ({"type": "integer"}, "007", "7"),
    ({"type": "number"}, "+1.5", "1.5"),
    ({"type": "integer"}, "seven", '"seven"'),
    ({"type": "object"}, "[1]", '"[1]"'),
]


def declared(schema: Any) -> Declared:
    return Declared({"$defs": DEFS}, schema)


@pytest.mark.parametrize(("schema", "text", "json"), CASES)
def test_text_becomes_json_of_the_declared_type(schema: Any, text: str, json: str) -> None:
    known = declared(schema)
    assert (json, True) == known.as_json(text, known.kinds)


@pytest.mark.parametrize(("schema", "text", "json"), REPAIRED)
def test_what_is_not_of_the_declared_type_is_mended_and_told(schema: Any, text: str, json: str) -> None:
    known = declared(schema)
    assert (json, False) == known.as_json(text, known.kinds)


def test_properties_and_items_are_found_behind_references_and_alternatives() -> None:
    item = {"type": "object", "properties": {"n": {"type": "integer"}}}
    schema = {"anyOf": [{"$ref": "#/$defs/list"}, {"type": "null"}]}
    known = Declared({"$defs": {"list": {"type": "array", "prefixItems": [{"type": "null"}], "items": item}}}, schema)
    assert {"array", "null"} == known.kinds
    assert {"null"} == known.item(0).kinds
    assert {"number"} == known.item(1).property("n").kinds
    assert known.item(1).property("other").kinds == KINDS


def test_keys_that_are_not_declared_follow_the_schema_for_others() -> None:
    known = declared({"patternProperties": {"^a": {"type": "string"}}, "additionalProperties": {"type": "null"}})
    assert {"string", "null"} == known.property("b").kinds


def test_a_hostile_schema_is_looked_at_only_so_far() -> None:
    wide: dict[str, Any] = {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}
    assert Declared(wide, wide).kinds == KINDS


def test_odd_literals_of_a_model_warn_nobody() -> None:
    code = """
import dovetail as dt
tools = [{"type": "function", "function": {"name": "f", "parameters": {"properties": {"a": {"type": "object"}}}}}]
for value in (r"{'k': '\\C'}", "{'k': 1or 2}"):
    parameter = f"<parameter=a>\\n{value}\\n</parameter>"
    output = f"<tool_call>\\n<function=f>\\n{parameter}\\n</function>\\n</tool_call>"
    print(dt.dialects.get("qwen_3_coder").parse(output, tools).tool_calls[0].arguments)
"""
    ran = subprocess.run([sys.executable, "-W", "always", "-c", code], capture_output=True, text=True, check=True)
    assert "" == ran.stderr
    assert ['{"a": {"k": "\\\\C"}}', '{"a": "{\'k\': 1or 2}"}'] == ran.stdout.splitlines()
