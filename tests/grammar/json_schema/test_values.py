"""JSON text by keyword: what a schema accepts and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail.engine import accepts
from dovetail.grammar import ir, json_schema


def takes(schema: Any, text: str, **options: Any) -> bool:
    return accepts(ir.Rule("root", json_schema.lower(schema, **options)), text)


PERSON = {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]}
LETTERS = {"type": "object", "properties": {name: {"type": "integer"} for name in "abcde"}}
MIDDLE = {"type": "object", "properties": {name: {"type": "integer"} for name in "abc"}, "required": ["b"]}
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "properties": {"v": {"type": "integer"}, "k": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "required": ["v"],
        }
    },
}
TAGGED = {
    "anyOf": [
        {"type": "string"},
        {"type": "object", "properties": {"t": {"const": "a"}, "x": {"type": "integer"}}, "required": ["t", "x"]},
        {"type": "object", "properties": {"t": {"const": "b"}}, "required": ["t"]},
    ]
}
CLOSED_PAIR = {"prefixItems": [{"type": "integer"}, {"type": "string"}], "items": False, "type": "array"}
OPEN_PAIR = {"prefixItems": [{"type": "integer"}, {"type": "string"}], "type": "array", "minItems": 2}

CASES: list[tuple[Any, list[str], list[str]]] = [
    # schema, texts it accepts, texts it refuses
    (
        True,
        ["1", "{}", '{"a":[1,{"b":null}]}', '"x"', "-0.5e-3"],
        ["", "x", "01", "1.", ".5", "[1,]", '{"a"}', "nul", " 1"],
    ),
    ({}, ["[]"], ["]"]),
    ({"title": "T", "description": "d", "default": 1, "x-own": 2}, ["1", '"a"'], ["a"]),
    ({"type": "null"}, ["null"], ["1"]),
    ({"type": "boolean"}, ["true", "false"], ["True"]),
    ({"type": "number"}, ["1", "-0", "1.5", "1E+9", "1e-9", "1.50"], ["+1", "0x1", "1.", '"1"']),
    (
        {"type": "integer"},
        ["5", "-5", "0", "123456789012345678901"],
        ["5.5", "5e-1", "05", "5.", "5.0", "5e1", "5.00E+2", "-0", "-05"],
    ),
    # An integer has no fraction and no exponent, in whatever draft.
    *(
        ({"$schema": f"http://json-schema.org/{draft}", "type": ["integer", "null"], **more}, ["40"], no)
        for draft in ("draft-04/schema#", "draft-07/schema#")
        for more in ({}, {"minimum": 2}, {"multipleOf": 20}, {"enum": [40, 40.5, None]}, {"const": 40.0})
        for no in (["40.0", "4e1", "40.5"],)
    ),
    ({"type": ["integer", "null"]}, ["1", "null"], ["1.5", '"a"']),
    ({"type": ["integer", "number"]}, ["1", "1.5"], ["null"]),
    # Free strings: every escape decodes, control characters are escaped.
    (
        {"type": "string"},
        ['""', '"é😀"', r'"\"\\\/\b\f\n\r\t"', r'"\u00e9\uD83D\ude00"', '"\x7f"'],
        ['"', '"\n"', r'"\x"', "a"],
    ),
    ({"type": "string"}, [], [r'"\ud83d"', r'"\ude00"', r'"\ud83dx"', r'"\ud83d\u0041"', r'"\u12g4"']),
    (
        {"minLength": 2, "maxLength": 3},
        ['"ab"', '"éé😀"', r'"\ud83d\ude00\n"', "1", "[]"],
        ['"a"', '"abcd"', r'"\ud83d\ude00"'],
    ),
    ({"type": "string", "maxLength": 0}, ['""'], ['"a"']),
    ({"type": "string", "minLength": 2.0}, ['"ab"'], ['"a"']),
    ({"type": "string", "pattern": "a+b"}, ['"ab"', '"xaabx"'], ['"a"', r'"\u0061b"']),
    (
        {"type": "string", "pattern": "^a.b$"},
        ['"a\\"b"', r'"a\\b"', '"aéb"', '"a/b"', r'"a\tb"', r'"a\u001fb"'],
        ['"a\\nb"', '"ab"', '"a"b"', r'"a\u00e9b"', r'"a\/b"', r'"a\u0009b"', r'"a\u001Fb"'],
    ),
    ({"type": "string", "pattern": "^a+b$", "maxLength": 3}, ['"ab"', '"aab"'], ['"aaab"']),
    ({"type": "string", "pattern": "b", "maxLength": 3, "minLength": 2}, ['"ab"', '"abb"'], ['"aaab"', '"aaa"', '"b"']),
    (
        {"type": "string", "pattern": "^(a|bc)*$", "minLength": 2, "maxLength": 3},
        ['"aa"', '"abc"', '"bca"'],
        ['"a"', '"bcbc"'],
    ),
    ({"type": "string", "allOf": [{"pattern": "a"}, {"pattern": "b"}]}, ['"ab"', '"ba"'], ['"a"', '"b"']),
    # Single values, in their one spelling.
    ({"const": "é"}, ['"é"'], ['"e"', r'"\u00e9"', r'"\u00E9"']),
    ({"const": "😀"}, ['"😀"'], [r'"\ud83d"', r'"\ud83d\ude00"']),
    (
        {"const": "\x7f/\x00\n"},
        ['"\x7f/\\u0000\\n"'],
        ['"\\u007f/\\u0000\\n"', '"\x7f\\/\\u0000\\n"', '"\x7f/\\u0000\\u000a"'],
    ),
    ({"const": 1}, ["1"], ["true", "1.1", "10", "1.0", "1.000", "1e0"]),
    ({"const": 1.5}, ["1.5"], ["1", "15", "1.50", "15e-1"]),
    ({"const": 0}, ["0"], ["false", "00", "-0", "0.0"]),
    ({"const": 1e-7}, ["1e-07"], ["1e-8", "0.0000001", "1e-7", "1E-07"]),
    ({"const": 1e22}, ["1e+22"], ["1e22", "10000000000000000000000"]),
    ({"const": None}, ["null"], ["0"]),
    (
        {"const": {"x": [1, "é"], "y": {}}},
        ['{"x":[1,"é"],"y":{}}', '{ "x" : [ 1 , "é" ] , "y":{ } }'],
        ["{}", '{"x":[1]}', '{"x":[1,"\\u00e9"],"y":{}}', '{"x":[1.0,"é"],"y":{}}'],
    ),
    (
        {"enum": ["a", 1, None, True, [], [1, 2]]},
        ['"a"', "1", "null", "true", "[]", "[1, 2]"],
        ["false", '"b"', "[1]", "{}"],
    ),
    ({"enum": ["abc", "abd", "ab", "x", ""]}, ['"abc"', '"abd"', '"ab"', '"x"', '""'], ['"a"', '"abcd"']),
    ({"enum": ["a", 1, 2.5], "type": "integer"}, ["1"], ['"a"', "2.5"]),
    ({"enum": ["a", "bb", "ccc"], "minLength": 2, "pattern": "^b|c$"}, ['"bb"', '"ccc"'], ['"a"']),
    ({"enum": [{"a": 1}, {"a": "x"}], "properties": {"a": {"type": "integer"}}}, ['{"a":1}'], ['{"a":"x"}']),
    ({"enum": [[1], [1, 2]], "minItems": 2}, ["[1,2]"], ["[1]"]),
    ({"allOf": [{"enum": [1, 2]}, {"enum": [2.0, 3]}]}, ["2"], ["1", "3"]),
    # Objects: declared order, optional keys skippable, others after them.
    (
        PERSON,
        ['{"a":1}', '{"a": 1, "b": "x"}', '{\n"a"\t:\r1 , "b":"x" }'],
        ["{}", '{"b":"x","a":1}', '{"a":1,}', '{"a":1,"c":2}'],
    ),
    (
        PERSON,
        [r'{"a":1,"b":"\u0078"}'],
        ['{"a":1,"b":"x","b":"y"}', '{"a":1 "b":"x"}', '{,"a":1}', '{"a":"1"}', r'{"\u0061":1}', ' {"a":1}'],
    ),
    (
        LETTERS,
        ["{}", '{"a":1}', '{"e":1}', '{"a":1,"c":3}', '{"b":1,"c":2,"e":4}'],
        ['{"b":1,"a":2}', '{"a":1,}', '{"f":1}'],
    ),
    (MIDDLE, ['{"b":1}', '{"a":1,"b":1}', '{"b":1,"c":2}', '{"a":1,"b":1,"c":2}'], ["{}", '{"a":1}', '{"a":1,"c":1}']),
    ({"type": "object"}, ["{}", '{"a":{"b":[1]}}'], ["[]"]),
    ({"type": "object", "properties": {}}, ["{}"], ['{"a":1}']),
    (
        {**PERSON, "additionalProperties": True},
        ['{"a":1,"c":2}', '{"a":1,"A":[]}', '{"a":1,"":0,"aa":1}'],
        ['{"a":1,"a":2}'],
    ),
    (
        {**PERSON, "additionalProperties": True},
        ['{"a":1,"bb":2}', r'{"a":1,"\u001f":2}'],
        [r'{"a":1,"\u0061":2}', r'{"a":1,"\u0062b":2}', r'{"a":1,"\u001F":2}', r'{"a":1,"c":2,"b":"x"}'],
    ),
    (
        {**LETTERS, "additionalProperties": {"type": "null"}},
        ['{"z":null}', '{"a":1,"z":null}', "{}"],
        ['{"z":1}', '{"z":null,"a":1}'],
    ),
    ({"additionalProperties": {"type": "integer"}}, ['{"x":1,"y":2}', "1", "{}"], ['{"x":"a"}']),
    ({"type": "object", "properties": {"n": False, "m": {}}}, ["{}", '{"m":1}'], ['{"n":1}']),
    ({"type": "object", "required": ["x"]}, ['{"x":1}', '{"x":[],"y":2}'], ["{}", '{"y":2}']),
    ({"properties": {"é\n": {}}, "type": "object"}, ['{"é\\n":1}'], ['{"é":1}']),
    (
        {"type": "object", "patternProperties": {"^x_": {"type": "integer"}}},
        ['{"x_a":1,"b":"c"}', "{}"],
        ['{"x_a":"1"}'],
    ),
    (
        {"properties": {"x_a": {"minimum": 3}}, "patternProperties": {"^x_": {"type": "integer"}}, "type": "object"},
        ['{"x_a":3}', '{"x_b":1}', '{"x_a":4,"x_b":0}'],
        ['{"x_a":2}', '{"x_a":3.5}', '{"y":1}', '{"x_b":"1"}'],
    ),
    (
        {
            "type": "object",
            "propertyNames": {"pattern": "^[a-z]+$", "maxLength": 3},
            "additionalProperties": {"type": "null"},
        },
        ["{}", '{"abc":null}'],
        ['{"abcd":null}', '{"A":null}', '{"a":1}'],
    ),
    ({**LETTERS, "minProperties": 1}, ['{"a":1}', '{"b":1,"e":1}'], ["{}"]),
    ({**LETTERS, "maxProperties": 0}, ["{}"], ['{"a":1}']),
    ({**MIDDLE, "maxProperties": 1}, ['{"b":1}'], ["{}", '{"a":1,"b":1}']),
    ({**MIDDLE, "minProperties": 3}, ['{"a":1,"b":1,"c":1}'], ['{"a":1,"b":1}']),
    (
        {"type": "object", "minProperties": 1, "maxProperties": 2},
        ['{"a":1}', '{"a":1,"b":1}'],
        ["{}", '{"a":1,"b":1,"c":1}'],
    ),
    # Arrays.
    ({"type": "array"}, ["[]", '[1,"a",[]]', "[ 1 , 2 ]"], ["{}", "[1,]", "[,1]"]),
    ({"type": "array", "items": {"type": "integer"}}, ["[]", "[1]", "[1,2,3,4]"], ['["a"]', "[1 2]"]),
    (
        {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3},
        ["[1,2]", "[1 , 2,3]"],
        ["[]", "[1]", "[1,2,3,4]"],
    ),
    ({"type": "array", "minItems": 1}, ["[1]", "[1,2,3]"], ["[]"]),
    ({"type": "array", "maxItems": 0}, ["[]", "[ ]"], ["[1]"]),
    ({"type": "array", "items": False}, ["[]"], ["[1]"]),
    ({"maxItems": 1}, ["[]", "[1]", '"a"'], ["[1,2]"]),
    (CLOSED_PAIR, ["[]", "[1]", '[1,"a"]'], ['[1,"a",3]', '["a"]']),
    (OPEN_PAIR, ['[1,"a"]', '[1,"a",3,null]'], ["[1]", "[]"]),
    ({**CLOSED_PAIR, "minItems": 1, "maxItems": 1}, ["[1]"], ["[]", '[1,"a"]']),
    # Numbers between bounds.
    ({"type": "integer", "minimum": 1, "maximum": 20}, ["1", "20", "7"], ["0", "21", "-1", "100", "7.0"]),
    ({"type": "number", "exclusiveMinimum": 0, "maximum": 0.5}, ["0.5", "0.01", "0.50"], ["0", "0.51", "-0", "0."]),
    ({"minimum": 10}, ["10", "99.5", '"a"'], ["9", "-10"]),
    # Unions and references.
    (TREE, ['{"v":1}', '{"v":1,"k":[{"v":2,"k":[]}]}'], ["{}", '{"v":1,"k":[{}]}']),
    (TAGGED, ['"s"', '{"t":"a","x":1}', '{"t":"b"}'], ['{"t":"a"}', '{"t":"b","x":1}', "1"]),
    (
        {"type": "object", "properties": {"a": {}, "b": {}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]},
        ['{"a":1}', '{"b":1}', '{"a":1,"b":2}'],
        ["{}"],
    ),
    ({"anyOf": [{"minimum": 5}, {"maximum": 1}], "type": "integer"}, ["5", "1", "-3"], ["3", '"a"']),
    ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, ["null"], ["1"]),
    (
        {"$ref": "#/$defs/a", "minLength": 2, "$defs": {"a": {"type": "string", "maxLength": 3}}},
        ['"ab"'],
        ['"a"', '"abcd"', "1"],
    ),
    ({"$ref": "#/definitions/a", "definitions": {"a": {"type": "null"}}}, ["null"], ["1"]),
    ({"$ref": "#/$defs/a~1b~0c%25", "$defs": {"a/b~c%": {"type": "null"}}}, ["null"], ["1"]),
    ({"$ref": "#/anyOf/0", "anyOf": [{"type": "null"}, {}]}, ["null"], ["1"]),
    (
        {
            "allOf": [
                {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
                {"properties": {"b": {}}},
            ]
        },
        ['{"a":1}', '{"a":1,"b":""}'],
        ['{"b":""}', '{"a":1,"c":2}'],
    ),
    ({"oneOf": [{"type": "string"}, {"type": "integer"}]}, ['"a"', "1"], ["1.5"]),
    ({"oneOf": [{"const": 1}, {"enum": [2, 3]}]}, ["1", "3"], ["4"]),
    # Formats that are regular, and those that are not known.
    ({"type": "string", "format": "date"}, ['"2024-02-29"'], ['"2023-02-29"', '"2024-1-1"']),
    ({"type": "string", "format": "uuid"}, ['"2eb8aa08-aa98-11ea-b4aa-73b441d16380"'], ['"2eb8aa08"']),
    ({"type": "string", "format": "password"}, ['"anything"'], ["1"]),
]


@pytest.mark.parametrize(("schema", "yes", "no"), CASES)
def test_a_schema_accepts_its_values_and_no_others(schema: Any, yes: list[str], no: list[str]) -> None:
    assert yes == [text for text in yes if takes(schema, text)]
    assert [] == [text for text in no if takes(schema, text)]


OPTIONS: list[tuple[Any, dict[str, Any], list[str], list[str]]] = [
    # schema, options, texts it accepts, texts it refuses
    (
        PERSON,
        {"strict": False},
        ['{"a":1,"c":2,"d":[]}', '{"a":1,"b":"","c":0}'],
        [r'{"a":1,"\u0061":2}', '{"a":1,"c":2,"b":"x"}'],
    ),
    (
        PERSON,
        {"any_order": True},
        ['{"a":1,"b":"x"}', '{"b":"x","a":1}', '{"a":1}'],
        ['{"b":"x"}', "{}", '{"a":1,"a":1}'],
    ),
    (
        LETTERS,
        {"any_order": True},
        ["{}", '{"e":1,"a":2}', '{"c":1,"b":1,"a":1,"e":1,"d":1}'],
        ['{"a":1,"a":1}', '{"f":1}'],
    ),
    (
        PERSON,
        {"any_order": True, "strict": False},
        ['{"b":"x","a":1}', '{"z":1,"a":1,"y":2}', '{"z":1,"a":1,"y":2,"b":"","k":{}}'],
        ['{"z":1}', '{"b":"x"}', '{"z":1,"a":1,"a":2}'],
    ),
    (
        {"const": {"a": 1, "b": 2}},
        {"any_order": True},
        ['{"a":1,"b":2}', '{"b":2,"a":1}'],
        ['{"a":1}', '{"a":1,"b":2,"a":1}'],
    ),
    *(
        (
            {"type": "array", "items": {"enum": [f"v{i}" for i in range(count)]}, "uniqueItems": True, "minItems": low},
            {},
            ['["v1"]', '["v2", "v0","v1"]', *(["[]"] if not low else [])],
            ['["v1","v1"]', '["v2","v0",\t"v2"]', '["v99"]', *(["[]"] if low else [])],
        )
        for count in (3, 8, 9, 60)
        for low in (0, 1)
    ),
    # An object is closed while strict, yet oneOf looks at what the schema says: one that fits both arms fits neither.
    (
        {"oneOf": [PERSON, {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}]},
        {},
        ['{"a":1}', '{"b":""}'],
        ['{"a":1,"b":""}', '{"b":"","a":"x"}', "{}"],
    ),
    ({"enum": [{"a": 1, "z": 2}], **PERSON}, {}, ['{"a":1,"z":2}'], ['{"a":1}']),
    (PERSON, {"max_whitespace": 0}, ['{"a":1,"b":"x y"}'], ['{"a": 1}', '{ "a":1}']),
    (PERSON, {"max_whitespace": 2}, ['{  "a":  1}'], ['{   "a":1}']),
    (PERSON, {}, ['{"a":' + " " * 20 + "1}"], ['{"a":' + " " * 21 + "1}"]),
    (
        True,
        {"excludes": ["ab", ":", "12", "true"]},
        ['{"a":12}', "true", '["a","b"]', r'"\u0061b"'],
        ['"ab"', '":"', '"x12"', '"true"'],
    ),
    (True, {"excludes": ["bad"]}, ['{"good":1}'], ['{"bad":1}', '{"xbady":"a"}']),
    ({"type": "string", "maxLength": 3}, {"excludes": ["bc"]}, ['"abd"', '"b"'], ['"bc"', '"abc"', '"abdd"']),
    ({"enum": ["safe", "x bad"]}, {"excludes": ["bad"]}, ['"safe"'], ['"x bad"']),
    ({"type": "string", "pattern": "^b.d$"}, {"excludes": ["bad"]}, ['"bad"'], ['"b"']),
    (
        {"type": "string", "not": {"enum": ["x"]}, "maxLength": 9},
        {"excludes": ["bad"]},
        ['"ba"', '"b ad"'],
        ['"a bad"', '"x"', r'"\u0062ad"'],
    ),
    ({"type": "string", "not": {"pattern": "z"}}, {"excludes": ["<|"]}, ['"<"'], ['"<|"', r'"\u003c|"', '"z"']),
    ({"type": "string", "not": {"pattern": "z"}}, {"excludes": ["u00"]}, ['"u0"'], ['"u00"', r'"\u0061"', '"z"']),
    ({"properties": {"bad": {}, "a": {}}, "type": "object"}, {"excludes": ["bad"]}, ['{"a":1}', "{}"], ['{"bad":1}']),
    (
        {"properties": {"a": {}}, "type": "object", "additionalProperties": True},
        {"excludes": ["bad"]},
        ['{"a":1,"b":2}', '{"ba":1}', '{"aa":1}'],
        ['{"bad":1}', '{"a":1,"xbady":2}', r'{"\u0061":1}', '{"a":1,"a":1}'],
    ),
    (
        {"properties": {"a": {}, "b": {}}, "type": "object", "additionalProperties": True},
        {"excludes": ["<|x|>"]},
        ['{"a":1,"c<":2}', '{"ab":1}', '{"ab":"<|x"}'],
        ['{"a<|x|>":1}', '{"c":1,"<|x|>":2}', r'{"\u0061b":1}', '{"a":1,"a":1}', '{"ab":"<|x|>"}'],
    ),
]


@pytest.mark.parametrize(("schema", "options", "yes", "no"), OPTIONS)
def test_options_change_what_is_accepted(schema: Any, options: dict[str, Any], yes: list[str], no: list[str]) -> None:
    assert yes == [text for text in yes if takes(schema, text, **options)]
    assert [] == [text for text in no if takes(schema, text, **options)]


def test_the_same_schema_is_lowered_once() -> None:
    assert json_schema.lower(PERSON) is json_schema.lower(dict(PERSON))


def test_equal_numbers_of_different_types_are_different_schemas() -> None:
    assert takes({"const": 1}, "1")
    assert not takes({"const": True}, "1")
    assert takes({"const": True}, "true")


def test_a_deeply_nested_schema_is_lowered_without_deep_recursion() -> None:
    schema: Any = {"type": "integer"}
    for _ in range(10_000):
        schema = {"type": "array", "items": schema}
    assert takes(schema, "[]")
    assert takes(schema, "[[[]]]")
    assert not takes(schema, "[[[1]]]")


def test_a_hundred_keys_come_in_any_order_and_each_once() -> None:
    names = [f"k{index}" for index in range(100)]
    schema = {"type": "object", "properties": {name: {"type": "null"} for name in names}, "required": names[50:]}
    rule = ir.Rule("root", json_schema.lower(schema, any_order=True))
    backwards = ",".join(f'"{name}":null' for name in reversed(names))
    assert accepts(rule, "{" + backwards + "}")
    assert not accepts(rule, "{" + backwards + ',"k3":null}')
    assert not accepts(rule, '{"k1":null,"k2":null}')
    assert not accepts(rule, "{" + ",".join(f'"{name}":null' for name in names[51:]) + "}")
