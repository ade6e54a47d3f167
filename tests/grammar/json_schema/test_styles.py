"""Arguments in the markup of model families."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.engine import accepts
from dovetail.errors import FormatError, SchemaError
from dovetail.grammar import ir, json_schema
from dovetail.layouts.styles import KINDS, Layout


def takes(style: str | Layout, schema: Any, text: str, **options: Any) -> bool:
    return accepts(ir.Rule("root", json_schema.lower(schema, style=style, **options)), text)


PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name"],
}

PLAIN = [
    # style, the same two arguments in its markup
    ("qwen_xml", "<parameter=name>Bob</parameter>", "<parameter=age> 7\n</parameter>"),
    ("minimax_xml", '<parameter name="name">Bob</parameter>', '<parameter name="age"> 7\n</parameter>'),
    (
        "glm_xml",
        "<arg_key>name</arg_key><arg_value>Bob</arg_value>",
        "<arg_key>age</arg_key> \n<arg_value> 7\n</arg_value>",
    ),
    (
        "glm_4_5_xml",
        "<arg_key>name</arg_key>\n<arg_value>Bob</arg_value>",
        "<arg_key>age</arg_key>\n<arg_value> 7\n</arg_value>",
    ),
    (
        "muse_xml",
        '<atem:parameter name="name">Bob</atem:parameter>',
        '<atem:parameter name="age"> 7\n</atem:parameter>',
    ),
    (
        "deepseek_xml",
        '<｜DSML｜parameter name="name" string="true">Bob</｜DSML｜parameter>',
        '<｜DSML｜parameter name="age" string="false"> 7\n</｜DSML｜parameter>',
    ),
    (
        "deepseek_v4_1_xml",
        '<｜DSML｜ parameter name="name" string="true">Bob</｜DSML｜ parameter>',
        '<｜DSML｜ parameter name="age" string="false"> 7\n</｜DSML｜ parameter>',
    ),
    (
        "kimi_k3_xml",
        '<|open|>argument key="name" type="string"<|sep|>Bob<|close|>argument<|sep|>',
        '<|open|>argument key="age" type="number"<|sep|> 7\n<|close|>argument<|sep|>',
    ),
    (
        "cohere_xml",
        '<cofl:value name="name" type="raw">Bob</cofl:value>',
        '<cofl:value name="age" type="json"> 7\n</cofl:value>',
    ),
    (
        "minimax_m3_xml",
        "]<]minimax[>[<name>Bob]<]minimax[>[</name>",
        "]<]minimax[>[<age> 7\n]<]minimax[>[</age>",
    ),
]


@pytest.mark.parametrize(("style", "name", "age"), PLAIN)
def test_each_style_has_its_markup(style: str, name: str, age: str) -> None:
    assert takes(style, PERSON, name)
    assert takes(style, PERSON, name + age)
    assert takes(style, PERSON, f"\n {name}\n{age}\t\n")
    assert not takes(style, PERSON, age)
    assert not takes(style, PERSON, age + name)
    assert takes(style, PERSON, age + name, any_order=True)
    assert not takes(style, PERSON, name + name)
    assert not takes(style, PERSON, name + age.replace("7", "x"))
    assert not takes(style, PERSON, '{"name": "Bob"}')


def test_every_style_is_known() -> None:
    assert set(json_schema.STYLES) == {"json", *(style for style, _, _ in PLAIN)}


def value(schema: Any, text: str, **options: Any) -> bool:
    """Whether `text` is taken between the tags of a parameter."""
    parameters = {"type": "object", "properties": {"v": schema}, "required": ["v"]}
    return takes("qwen_xml", parameters, f"<parameter=v>{text}</parameter>", **options)


QWEN: list[tuple[Any, list[str], list[str]]] = [
    # schema of one argument, texts it accepts, texts it refuses
    ({"type": "string"}, ["", "a", '"<é>\n', "</parameter", " x "], ["</parameter>", "a</parameter>b"]),
    ({"type": "string", "minLength": 2, "maxLength": 13}, ["ab", "</parameter"], ["a", "a</parameter>", "ab" * 7]),
    ({"type": "string", "maxLength": 2}, ["", "é🦋", "</"], ["abc", "</p", "</parameter>"]),
    ({"type": "string", "pattern": "^a+$"}, ["a", "aa"], ["", "b", " a"]),
    ({"type": "string", "pattern": "b"}, ["abc", "<b"], ["a", "b</parameter>"]),
    (
        {"type": "string", "pattern": "^https?://", "minLength": 9, "maxLength": 12},
        ["http://ab", "https://a.bc", "http://</p\n"],
        ["http://a", "https://a.bcd", "ftp://abcd", "http://</parameter>"],
    ),
    ({"type": "string", "pattern": "^<", "maxLength": 12}, ["<", "</parameter"], ["a", "</parameter>", "<" * 13]),
    ({"type": "string", "pattern": "^a", "maxLength": 1_000_000}, ["a" * 9_999], ["b", "a</parameter>"]),
    ({"const": "x y"}, ["x y"], ['"x y"', " x y", "x"]),
    ({"const": '"\\'}, ['"\\'], ['"\\"\\\\"']),
    ({"enum": ["red", 5, None]}, ["red", "5", " 5 ", "null"], ["blue", " red", '"red"']),
    ({"type": "integer"}, ["5", "\t5\n"], ["x", "", "5 5"]),
    ({"type": ["string", "integer"]}, ["5", "x", ""], ["</parameter>"]),
    ({"type": "array", "items": {"type": "string"}}, ['["a"]', ' [ "a" , "b" ] '], ["[a]", "a"]),
    (
        {"type": "object", "properties": {"x": {"type": "string"}}},
        ['{"x": "a"}', "{}"],
        ["{x}", "<parameter=x>a</parameter>"],
    ),
    ({"anyOf": [{"const": "a"}, {"type": "boolean"}]}, ["a", "true"], ["b"]),
    ({}, ["", "x", "[1]", '{"a": 1}', "5"], ["</parameter>"]),
]


@pytest.mark.parametrize("style", sorted(set(json_schema.STYLES) - {"json"}))
@pytest.mark.parametrize("low", [0, 3, 1_000_000])
def test_the_characters_of_raw_text_are_counted_however_many(style: str, low: int) -> None:
    bounded = {"type": "string", "minLength": low, "maxLength": 1_000_000}
    schema = {"type": "object", "properties": {"v": bounded}, "required": ["v"]}
    raw = [
        node
        for rule in ir.reachable(ir.Rule("root", json_schema.lower(schema, style=style)))
        for node in ir.walk(rule.body)
        if isinstance(node, ir.Text) and node.max_chars == 1_000_000
    ]
    assert [low] == [node.min_chars for node in raw]


def test_raw_text_whose_stop_overlaps_itself_has_bounds_too() -> None:
    layout = Layout("<", dict.fromkeys(KINDS, (">",)), "aba")
    schema = {"type": "object", "properties": {"v": {"type": "string", "minLength": 1, "maxLength": 2}}}
    yes, no = ["xaba", "xyaba"], ["aba", "xyzaba"]
    assert yes == [text for text in (*yes, *no) if takes(layout, schema, f"<v>{text}")]
    del schema["properties"]["v"]["minLength"]
    assert ["xaba", "xyaba", "aba"] == [text for text in (*yes, *no) if takes(layout, schema, f"<v>{text}")]


PADDED: list[tuple[Any, list[str], list[str]]] = [
    # schema of one argument, texts it accepts where a newline may stand around strings, texts it refuses
    ({"type": "string"}, ["", "\n", "\na\n", "a\n"], ["</parameter>"]),
    ({"enum": ["utc", 5]}, ["utc", "\nutc\n", "\n5\n"], ["\nutc", "utc\n", "\n\nutc\n\n", "\ncet\n"]),
    ({"type": "string", "enum": ["utc", "\n"]}, ["\nutc\n", "\n", "\n\n\n"], ["\n\n"]),
    ({"const": "x"}, ["x", "\nx\n"], ["\nx"]),
    ({"type": "string", "maxLength": 3}, ["abc", "\nabc\n", "\n\nab\n", "\n</\n"], ["\nabcd\n", "\nabc", "abcd"]),
    ({"type": "string", "minLength": 2}, ["\nab\n", "ab"], ["a", "</parameter>\n", "\na</parameter>\n"]),
    ({"type": "string", "pattern": "^a+$"}, ["aa", "\naa\n"], ["\naa", "\nab\n"]),
    ({"type": "string", "pattern": "b", "maxLength": 3}, ["\nabc\n", "b"], ["\nabcd\n", "\nac\n", "\nb</parameter>\n"]),
    ({"type": "string", "format": "date"}, ["2020-01-01", "\n2020-01-01\n"], ["\n2020-01-01"]),
    ({"type": "string", "not": {"const": "a"}}, ["b", "\nb\n"], ["a"]),
]


@pytest.mark.parametrize(("schema", "yes", "no"), PADDED)
def test_a_pad_stands_on_both_sides_of_a_string_or_on_none(schema: Any, yes: list[str], no: list[str]) -> None:
    assert yes == [text for text in yes if value(schema, text, pad="\n")]
    assert [] == [text for text in no if value(schema, text, pad="\n")]


def test_a_pad_is_white_space() -> None:
    with pytest.raises(FormatError, match="not white space"):
        json_schema.lower({}, style="qwen_xml", pad="\n>")


@pytest.mark.parametrize(("schema", "yes", "no"), QWEN)
def test_strings_are_raw_and_other_values_are_json(schema: Any, yes: list[str], no: list[str]) -> None:
    assert yes == [text for text in yes if value(schema, text)]
    assert [] == [text for text in no if value(schema, text)]


def test_values_as_python_writes_them_keep_to_their_schema() -> None:
    layout = Layout("<p k=", dict.fromkeys(KINDS, (">",)), "</p>", python=("boolean", "null", "object", "array"))
    items = {"type": "array", "items": {"type": ["boolean", "string"], "pattern": "^a"}}
    schema = {"type": "object", "properties": {"v": items, "w": {"type": "boolean"}}, "additionalProperties": False}
    yes = ["[True, 'a', \"ab\"]", '[true,"a"]', "[]"]
    no = ["[None]", "['b']", "[True,]", "[1]"]
    assert yes == [text for text in (*yes, *no) if takes(layout, schema, f"<p k=v>{text}</p>")]
    assert takes(layout, schema, "<p k=w>False</p>")
    assert not takes(layout, schema, "<p k=w>None</p>")


def test_excluded_words_stay_out_of_raw_text_and_of_strings_inside() -> None:
    assert value({"type": "string"}, "ok", excludes=["bad"])
    assert not value({"type": "string"}, "a bad one", excludes=["bad"])
    assert not value({"type": "string", "maxLength": 9}, "bad", excludes=["bad"])
    assert not value({"type": "string", "not": {"enum": ["x"]}}, "a bad one", excludes=["bad"])
    assert value({"type": "string", "not": {"pattern": "z"}}, "ok", excludes=["bad"])
    assert not value({"type": "string", "not": {"pattern": "z"}}, "bad", excludes=["bad"])
    assert not value({"type": "array"}, '["bad"]', excludes=["bad"])
    assert not value({"enum": ["ok", "bad"]}, "bad", excludes=["bad"])


def test_undeclared_arguments_have_names_and_values_of_their_schema() -> None:
    schema = {**PERSON, "additionalProperties": {"type": "boolean"}}
    head = "<parameter=name>x</parameter>"
    assert takes("qwen_xml", schema, head + "<parameter=nam>true</parameter><parameter=_9>false</parameter>")
    assert takes("qwen_xml", schema, head + "<parameter=names>true</parameter>")
    assert not takes("qwen_xml", schema, head + "<parameter=name>true</parameter>")
    assert not takes("qwen_xml", schema, head + "<parameter=a-b>true</parameter>")
    assert not takes("qwen_xml", schema, head + "<parameter=other>1</parameter>")


def test_an_object_without_declarations_takes_any_arguments() -> None:
    for schema in (True, {}, {"type": "object"}):
        assert takes("qwen_xml", schema, "")
        assert takes("qwen_xml", schema, "<parameter=a>x</parameter>\n<parameter=b>[1]</parameter>")
        assert not takes("qwen_xml", schema, "x")


def test_the_attribute_follows_the_kind_of_the_value() -> None:
    schema = {"type": "object", "properties": {"v": {"type": ["string", "integer"]}}, "required": ["v"]}
    for attribute, text, expected in (
        ("true", "x", True),
        ("true", "4", True),
        ("false", "4", True),
        ("false", "x", False),
    ):
        tag = f'<｜DSML｜parameter name="v" string="{attribute}">{text}</｜DSML｜parameter>'
        assert expected == takes("deepseek_xml", schema, tag)


def test_a_key_is_escaped_where_the_markup_demands_it() -> None:
    schema = {"type": "object", "properties": {'a"&<': {"type": "null"}}, "required": ['a"&<']}
    kimi = '<|open|>argument key="a&quot;&amp;<" type="null"<|sep|>null<|close|>argument<|sep|>'
    cohere = '<cofl:value name="a&quot;&amp;&lt;" type="json">null</cofl:value>'
    assert takes("kimi_k3_xml", schema, kimi)
    assert takes("cohere_xml", schema, cohere)


NESTED = {
    "type": "object",
    "properties": {
        "o": {"type": "object", "properties": {"s": {"type": "string"}}, "required": ["s"]},
        "l": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 2},
    },
    "required": ["o", "l"],
}


def test_nested_values_are_marked_up_where_the_style_does_so() -> None:
    o = '<cofl:value name="o" type="dict"><cofl:value name="s" type="raw">x</cofl:value></cofl:value>'
    item = '<cofl:value type="raw">x</cofl:value>'
    assert takes("cohere_xml", NESTED, f'{o}<cofl:value name="l" type="list">{item}{item}</cofl:value>')
    assert not takes("cohere_xml", NESTED, f'{o}<cofl:value name="l" type="list"></cofl:value>')
    assert not takes("cohere_xml", NESTED, f'{o}<cofl:value name="l" type="list">{item * 3}</cofl:value>')
    assert not takes("cohere_xml", NESTED, f'{o}<cofl:value name="l" type="json">["x"]</cofl:value>')
    mark = "]<]minimax[>["
    m3 = f"{mark}<o>{mark}<s>x{mark}</s>{mark}</o>{mark}<l>{mark}<item>x{mark}</item>{mark}</l>"
    assert takes("minimax_m3_xml", NESTED, m3)
    assert not takes("minimax_m3_xml", NESTED, m3.replace("</s>", "</t>"))


def test_a_whole_call_may_be_fixed() -> None:
    schema = {"enum": [{"a": "x", "b": [1, {"c": "d"}]}, 5]}
    assert takes("qwen_xml", schema, '<parameter=a>x</parameter><parameter=b>[1, {"c":"d"}]</parameter>')
    assert not takes("qwen_xml", schema, "<parameter=a>x</parameter>")
    assert not takes("qwen_xml", schema, "5")
    mark = "]<]minimax[>["
    items = f"{mark}<item>1{mark}</item>{mark}<item>{mark}<c>d{mark}</c>{mark}</item>"
    assert takes("minimax_m3_xml", schema, f"{mark}<a>x{mark}</a>{mark}<b>{items}{mark}</b>")


def test_references_inside_arguments_keep_their_kind() -> None:
    schema = {
        "$defs": {"t": {"type": "string"}},
        "type": "object",
        "properties": {"d": {"$ref": "#/$defs/t"}, "n": {"type": "array", "items": {"$ref": "#/$defs/t"}}},
        "required": ["d", "n"],
    }
    assert takes("qwen_xml", schema, '<parameter=d>x</parameter><parameter=n>["x"]</parameter>')
    assert not takes("qwen_xml", schema, "<parameter=d>x</parameter><parameter=n>[x]</parameter>")


def test_a_free_value_is_nested_without_end_where_the_style_marks_it_up() -> None:
    schema = {"type": "object", "properties": {"m": True}, "required": ["m"], "additionalProperties": False}
    inner = '<cofl:value name="a" type="dict"><cofl:value name="b" type="list"></cofl:value></cofl:value>'
    assert takes("cohere_xml", schema, f'<cofl:value name="m" type="dict">{inner}</cofl:value>')


@pytest.mark.parametrize(
    ("style", "schema", "words"),
    [
        ("qwen_xml", {"type": "string"}, "no value can satisfy"),
        ("minimax_m3_xml", {"type": "object", "additionalProperties": True, "properties": {"a": {}}}, "not declared"),
        ("minimax_m3_xml", {"type": "object", "properties": {"a>": {"type": "null"}}}, "name of a tag"),
        (
            "kimi_k3_xml",
            {"type": "object", "properties": {"a": {"const": "<|close|>argument<|sep|>"}}, "required": ["a"]},
            "no value",
        ),
    ],
)
def test_what_the_markup_cannot_say_is_refused(style: str, schema: Any, words: str) -> None:
    with pytest.raises(SchemaError, match=words):
        json_schema.lower(schema, style=style)
