"""Arguments as literals: Python's and Gemma's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dovetail as dt
from dovetail.dialects.literals import spell_arguments
from dovetail.formats import JsonSchemaFormat
from dovetail.grammar import json_schema
from dovetail.layouts.styles import GEMMA, PYTHON, Literals


def literal_arguments(schema: Any, syntax: Literals, excludes: Sequence[str] = ()) -> JsonSchemaFormat:
    return JsonSchemaFormat(json_schema=schema, style=syntax, excludes=tuple(excludes))


SYNTAXES = {"python": PYTHON, "gemma": GEMMA}
TREE = {"$ref": "#/$defs/node"}
NODE = {"type": "object", "properties": {"next": TREE}}

ACCEPTED = [
    # schema of the property a, syntax, text of the arguments, accepted
    ({"type": "string"}, "python", '(a="x")', True),
    ({"type": "string"}, "python", "(a='it\\'s')", True),
    ({"type": "string"}, "python", "(a=x)", False),
    ({"type": "string", "maxLength": 2}, "python", '(a="xy")', True),
    ({"type": "string", "maxLength": 2}, "python", '(a="xyz")', False),
    ({"type": "string"}, "gemma", '{a:<|"|>x "y" <| z<|"|>}', True),
    ({"type": "string", "minLength": 2}, "gemma", '{a:<|"|>x<|"|>}', False),
    ({"type": "string", "pattern": "^[ab]+$"}, "gemma", '{a:<|"|>abba<|"|>}', True),
    ({"type": "string", "pattern": "^[ab]+$"}, "gemma", '{a:<|"|>c<|"|>}', False),
    ({"type": "string", "pattern": "b"}, "gemma", '{a:<|"|>abc<|"|>}', True),
    ({"type": "integer", "minimum": 3}, "python", "(a=3)", True),
    ({"type": "integer", "minimum": 3}, "python", "(a=2)", False),
    ({"type": "boolean"}, "python", "(a=True)", True),
    ({"type": "boolean"}, "python", "(a=false)", True),
    ({"type": "boolean"}, "gemma", "{a:True}", False),
    ({"type": ["null", "integer"]}, "python", "(a=None)", True),
    ({"enum": ["x", 1, None]}, "python", '(a="x")', True),
    ({"enum": ["x", 1, None]}, "gemma", '{a:<|"|>x<|"|>}', True),
    ({"enum": ["x", 1, None]}, "gemma", "{a:2}", False),
    ({"const": {"b": [True]}}, "python", '(a={"b": [True]})', True),
    ({"type": "array", "items": {"type": "integer"}}, "python", "(a=[])", True),
    ({"type": "array", "items": {"type": "integer"}}, "python", "(a=[1, 2])", True),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 1}, "python", "(a=[])", False),
    ({"type": "array", "items": {"type": "integer"}, "maxItems": 1}, "gemma", "{a:[1,2]}", False),
    ({"type": "array", "maxItems": 0}, "gemma", "{a:[]}", True),
    ({"properties": {"b": {"type": "null"}}}, "python", '(a={"b": None})', True),
    ({"properties": {"b": {"type": "null"}}}, "gemma", "{a:{b:null}}", True),
    ({"type": "object"}, "gemma", '{a:{any:[1,{thing:<|"|><|"<<|"|>}]}}', True),
    ({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "python", "(a=1)", True),
    ({"anyOf": [{"type": "integer"}, {"type": "boolean"}]}, "python", '(a="1")', False),
    ({}, "python", '(a={"b": [1, -2.5e3, None, "x"]})', True),
    ({}, "python", "(a=b)", False),
    (TREE, "python", '(a={"next": {"next": {}}})', True),
    (TREE, "python", '(a={"next": {"next": 5}})', False),
    ({"type": "string", "pattern": "cat|dog"}, "python", "(a='two cats')", True),
    ({"type": "string", "pattern": "cat|dog"}, "gemma", '{a:<|"|>dogs<|"|>}', True),
    ({"type": "string", "pattern": "cat|dog"}, "python", '(a="cow")', False),
    ({"type": "string", "format": "date"}, "python", '(a="2024-02-29")', True),
    ({"type": "string", "format": "date"}, "gemma", '{a:<|"|>tomorrow<|"|>}', False),
    ({"type": "integer", "enum": ["x", 1]}, "python", '(a="x")', False),
    ({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 3}]}, "python", "(a=5)", False),
    ({"oneOf": [{"type": "integer"}, {"type": "number", "minimum": 3}]}, "python", "(a=2)", True),
    ({"additionalProperties": {"type": "integer"}}, "gemma", "{a:{x:1}}", True),
    ({"additionalProperties": {"type": "integer"}}, "gemma", "{a:{x:null}}", False),
    ({"patternProperties": {"^x": {"type": "null"}}}, "python", "(a={'x1': None, \"y\": 1})", True),
    ({"patternProperties": {"^x": {"type": "null"}}}, "python", "(a={'x1': 1})", False),
    ({"required": ["b"]}, "gemma", "{a:{b:1}}", True),
    ({"type": "object", "required": ["b"]}, "gemma", "{a:{c:1}}", False),
    ({"properties": {"b": {}, "d": {}}, "additionalProperties": True}, "gemma", "{a:{a:1,b:1,c:1,d:1,e:1}}", True),
    ({"properties": {"b": {}, "d": {}}, "additionalProperties": True}, "gemma", "{a:{c:1}}", True),
    ({"properties": {"b": {}, "d": {}}, "additionalProperties": True}, "gemma", "{a:{d:1,b:1}}", False),
    ({"properties": {"b": {}}, "additionalProperties": True, "required": ["b"]}, "gemma", "{a:{c:1}}", False),
    ({"properties": {"b": {}}, "additionalProperties": True, "minProperties": 2}, "gemma", "{a:{a:1,b:1}}", True),
    ({"properties": {"b": {}}, "additionalProperties": True, "minProperties": 2}, "gemma", "{a:{b:1}}", False),
    ({"const": "it's"}, "python", "(a='it\\'s')", True),
    ({"const": "it's"}, "python", '(a="it\\\'s")', False),
    ({"const": "\u007f\n\x01"}, "python", "(a='\u007f\\n\\u0001')", True),
    ({"const": "é"}, "python", "(a='\\xe9')", False),
    ({"type": "string", "maxLength": 1}, "python", "(a='\\xe9')", True),
    ({"type": "string", "maxLength": 1}, "python", "(a='\\U0001F600')", True),
    ({"const": {"b": 1, "a": True}}, "gemma", "{a:{a:true,b:1}}", True),
    ({"type": "array", "uniqueItems": True, "items": {"enum": [True, "x"]}}, "python", "(a=['x', True])", True),
    ({"type": "array", "uniqueItems": True, "items": {"enum": [True, "x"]}}, "python", "(a=['x', \"x\"])", False),
    (TREE, "python", '(a={"last": 5})', False),
]


@pytest.mark.parametrize(("schema", "syntax", "text", "accepted"), ACCEPTED)
def test_a_schema_says_which_literals_are_taken(schema: Any, syntax: str, text: str, accepted: bool) -> None:
    whole = {"type": "object", "properties": {"a": schema}, "required": ["a"], "$defs": {"node": NODE}}
    assert accepted == dt.accepts(literal_arguments(whole, SYNTAXES[syntax]), text)


MEMBERS = [
    # required, the keys that are there, accepted
    ([], "", True),
    ([], "c", True),
    ([], "ac", True),
    ([], "ca", False),
    (["b"], "b", True),
    (["b"], "abc", True),
    (["b"], "ac", False),
    (["a", "c"], "ac", True),
    (["a", "c"], "abc", True),
    (["a", "c"], "ab", False),
]


@pytest.mark.parametrize(("required", "keys", "accepted"), MEMBERS)
def test_optional_arguments_may_be_left_out(required: list[str], keys: str, accepted: bool) -> None:
    schema = {"type": "object", "properties": {key: {"type": "integer"} for key in "abc"}, "required": required}
    fmt = literal_arguments(schema, PYTHON)
    assert accepted == dt.accepts(fmt, f"({', '.join(f'{key}=1' for key in keys)})")


def test_a_syntax_may_sort_its_keys() -> None:
    schema = {"type": "object", "properties": {"b": {"type": "integer"}, "A": {"type": "integer"}}}
    assert "{A:1,b:2}" == spell_arguments({"b": 2, "A": 1}, GEMMA)
    assert dt.accepts(literal_arguments(schema, GEMMA), "{A:1,b:2}")
    assert "(b=2, A=1)" == spell_arguments({"b": 2, "A": 1}, PYTHON)


REFUSED = [
    # schema, words of the message, path
    ({"properties": {"a": {"type": "thing"}}}, "type", "/p/properties/a/type"),
    ({"properties": {"a": {"type": "array", "uniqueItems": True}}}, "uniqueItems", "/p/properties/a/uniqueItems"),
    ({"properties": {"a b": {}}}, "without quotes", "/p/properties/a b"),
    ({"properties": {"b": {"properties": {"": {}}}}}, "without quotes", "/p/properties/b/properties/"),
    ({"properties": {"a": {"items": 5}}}, "schema", "/p/properties/a/items"),
    ({"properties": 5}, "properties must be", "/p/properties"),
    ({"type": "array", "properties": {"a": {}}}, "no value", "/p"),
    ({"properties": {"a": {"$ref": "#/nowhere"}}}, "names nothing", "/p/properties/a/$ref"),
    ({"properties": {"a": {"not": {}}}, "required": ["a"]}, "no value", "/p"),
]


@pytest.mark.parametrize(("schema", "words", "path"), REFUSED)
def test_what_cannot_be_written_is_refused(schema: Any, words: str, path: str) -> None:
    with pytest.raises(dt.SchemaError, match=words) as caught:
        json_schema.lower(schema, style=GEMMA, path="/p")
    assert path == caught.value.path


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b_2"]), inner),
    max_leaves=10,
)
TEXTS_AROUND_QUOTES = st.text(st.sampled_from('<|">x'), max_size=10).filter(
    lambda text: '<|"|>' not in text + '<|"|>'[:4]
)


@given(value=st.dictionaries(st.sampled_from(["key", "x"]), VALUES), syntax=st.sampled_from([PYTHON, GEMMA]))
def test_any_value_that_is_spelled_is_taken(value: dict[str, Any], syntax: Literals) -> None:
    assert dt.accepts(literal_arguments(True, syntax), spell_arguments(value, syntax))


@pytest.mark.parametrize(
    ("quote", "excludes"), [('<|"|>', ("<|x", '"]-^\\')), ("aba", ("bb",)), ("aa", ("ab", "\x01"))]
)
@given(data=st.data())
def test_excluded_texts_are_in_no_string(quote: str, excludes: tuple[str, ...], data: st.DataObject) -> None:
    text = data.draw(st.text(st.sampled_from(sorted({*"cé", *quote, *"".join(excludes)})), max_size=10)) + quote
    wanted = text.index(quote) == len(text) - len(quote) and not any(word in text for word in excludes)
    declared = [{"properties": {"a": {"type": "string"}}}] if quote == GEMMA.quotes[0] else []
    for schema in (True, *declared):
        fmt = literal_arguments(schema, Literals("{", "}", ":", ",", (quote,), False, True), excludes)
        assert wanted == dt.accepts(fmt, f"{{a:{quote}{text}}}")


def test_lengths_and_patterns_hold_beside_excluded_texts() -> None:
    schema = {"properties": {"a": {"type": "string", "maxLength": 2}}}
    fmt = literal_arguments(schema, GEMMA, ["]x"])
    assert [True, False, False] == [dt.accepts(fmt, f'{{a:<|"|>{text}<|"|>}}') for text in ("ab", "abc", "]x")]
    fmt = literal_arguments({"properties": {"a": {"pattern": "^a", "type": "string"}}}, GEMMA, ["]x"])
    assert [True, False, False] == [dt.accepts(fmt, f'{{a:<|"|>{text}<|"|>}}') for text in ("abc", "bc", "a]x")]


@given(text=TEXTS_AROUND_QUOTES)
def test_raw_text_ends_at_its_quote_and_not_before(text: str) -> None:
    for schema in (True, {"properties": {"a": {"type": "string"}}}):
        fmt = literal_arguments(schema, GEMMA)
        assert dt.accepts(fmt, '{a:<|"|>' + text + '<|"|>}') == ('<|"|>' not in (text + '<|"|>')[:-1])
