"""No key comes twice in an object: what a matcher remembers beside its automaton."""

from __future__ import annotations

import json
import random
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dovetail as dt
from tests.machines import byte_vocabulary, mask

ANYTHING = {"type": "json_schema", "json_schema": True, "max_whitespace_cnt": 2}
TEXTS = [
    ('{"a":1,"b":2}', True),
    ('{"a":1,"a":2}', False),
    ('{"a":1,"b":2,"a":3}', False),
    (r'{"\n":1,"n":2,"\\n":3}', True),
    (r'{"\n":1,"a":2,"\n":3}', False),
    (r'{"\u0001":1,"u0001":2}', True),
    (r'{"\u0001":1,"\u0001":2}', False),
    ('{"":1,"":2}', False),
    ('{"a":1,"A":2}', True),
    ('{"😀":1,"😁":2}', True),
    ('{"😀":1,"😁":2,"😀":3}', False),
    (r'{"a\"":1,"a":2,"a\\":3}', True),
    (r'{"a\"":1,"a\"":2}', False),
    ('{"a":{"a":{"a":1}}}', True),
    ('{"a":{"b":1},"b":{"b":1}}', True),
    ('{"a":{"b":1,"c":2,"b":3}}', False),
    ('[{"a":1},{"a":1}]', True),
    ('[{"a":1},{"a":1,"b":[1,{}],"a":1}]', False),
    ('{"a":["a","a"],"b":"a"}', True),
    ('{"a":"}","b":"{","a":1}', False),
    (r'{"a":"\"a\":","b":1}', True),
    ('{"a":[[[{}]]] ,\n"a" :1}', False),
]


@pytest.mark.parametrize(("text", "accepted"), TEXTS)
@pytest.mark.parametrize("any_order", [False, True])
def test_a_key_comes_once_in_an_object(text: str, accepted: bool, any_order: bool) -> None:
    assert accepted is dt.accepts({**ANYTHING, "any_order": any_order}, text)


OPEN: list[tuple[dict[str, Any], str, bool]] = [
    ({"properties": {"a": {}}}, '{"a":{"x":1},"x":{"x":1}}', True),
    ({"properties": {"a": {}}}, '{"a":1,"x":1,"x":1}', False),
    ({"properties": {"a": {}}}, '{"a":{"x":1,"x":1}}', False),
    ({"properties": {"é": {}}}, '{"é":1,"x":1,"x":1}', False),
    ({"patternProperties": {"^x": {}}}, '{"x1":1,"y":1,"x2":1}', True),
    ({"patternProperties": {"^x": {}}}, '{"x1":1,"y":1,"x1":1}', False),
    ({"patternProperties": {"^x": {}}}, '{"x1":1,"y":1,"y":1}', False),
    ({"propertyNames": {"pattern": "^[a-z]+$"}}, '{"ab":1,"a":1}', True),
    ({"propertyNames": {"pattern": "^[a-z]+$"}}, '{"ab":1,"ab":1}', False),
    ({"minProperties": 2}, '{"a":1,"a":1}', False),
    ({"anyOf": [{"properties": {"a": {"const": 1}}}, {"required": ["b"]}]}, '{"b":1,"x":1,"x":1}', False),
]


@pytest.mark.parametrize(("schema", "text", "accepted"), OPEN)
@pytest.mark.parametrize("any_order", [False, True])
@pytest.mark.parametrize("excludes", [[], ["<stop>"]])
def test_keys_that_are_not_declared_come_once(
    schema: dict[str, Any], text: str, accepted: bool, any_order: bool, excludes: list[str]
) -> None:
    fmt = {"type": "json_schema", "json_schema": {"type": "object", **schema}, "strict": False}
    assert accepted is dt.accepts({**fmt, "any_order": any_order, "excludes": excludes}, text)


EITHER = {
    "type": "or",
    "elements": [
        {"type": "json_schema", "json_schema": {"type": "object", "additionalProperties": {"type": kind}}}
        for kind in ("integer", "string")
    ],
}
STRING_FIRST = {"properties": {"q": {"type": "string"}}, "additionalProperties": True}
AFTER_TEXT = {
    "type": "sequence",
    "elements": [{"type": "regex", "pattern": "[^;]*;"}, {"type": "json_schema", "json_schema": STRING_FIRST}],
}
BESIDE: list[tuple[dict[str, Any], str, bool]] = [
    ({"type": "or", "elements": [ANYTHING, {"type": "any_text"}]}, '{"a":1,"a":2} or so', True),
    (
        {"type": "plus", "content": {"type": "tag", "begin": "<", "content": ANYTHING, "end": ">"}},
        '<{"a":1}><{"a":1}>',
        True,
    ),
    ({"type": "tag", "begin": '{"arguments":', "content": ANYTHING, "end": "}"}, '{"arguments":{"a":1,"a":1}}', False),
    ({"type": "tag", "begin": '{"a":', "content": ANYTHING, "end": ',"b":1}'}, '{"a":{"a":1,"b":2},"b":1}', True),
    # What stands before is no JSON: a reader that it led astray must begin anew.
    (
        {"type": "sequence", "elements": [{"type": "regex", "pattern": '[{",: a1]*;'}, ANYTHING]},
        '{"a":1,";{"a":1}',
        True,
    ),
    (
        {"type": "sequence", "elements": [{"type": "regex", "pattern": '[{",: a1]*;'}, ANYTHING]},
        '{" ;{"a":1,"a":1}',
        False,
    ),
    (
        {"type": "sequence", "elements": [ANYTHING, {"type": "regex", "pattern": "[^;]*;"}, ANYTHING]},
        '{"a":1} , "a":1, "b" ;{"b":1,"a":1}',
        True,
    ),
    (
        {"type": "sequence", "elements": [ANYTHING, {"type": "regex", "pattern": "[^;]*;"}, ANYTHING]},
        '{"a":1} {" ;{"b":1,"b":1}',
        False,
    ),
    # Two readings of one output come to the end of the same key.
    (EITHER, '{"a":1,"b":2}', True),
    (EITHER, '{"a":"","b":""}', True),
    (EITHER, '{"a":"","a":""}', False),
    ({"type": "or", "elements": [ANYTHING, AFTER_TEXT]}, '{"k":1,";{"q":"","k":2}', True),
    ({"type": "or", "elements": [ANYTHING, AFTER_TEXT]}, r'{"k":1,"l":";{"q":"a\"b","k":2}', True),
    ({"type": "or", "elements": [ANYTHING, AFTER_TEXT]}, r'{"k":1,"l":";{"q":"a\"b","k":2,"k":3}', False),
]


@pytest.mark.parametrize(("fmt", "text", "accepted"), BESIDE)
def test_what_is_no_json_is_not_read_as_json(fmt: dict[str, Any], text: str, accepted: bool) -> None:
    assert accepted is dt.accepts(fmt, text)


Members = list[tuple[str, Any]]
KEYS = st.sampled_from(["", "a", "b", "ab", '"', "\\", "/", "\n", "é", "😀", "a,", '{"a":'])
VALUES: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.integers(0, 9), st.none(), KEYS),
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.lists(st.tuples(KEYS, inner), max_size=4),
    max_leaves=12,
)


def written(value: Any, dice: random.Random) -> str:
    """JSON text, strings in any spelling; a list stands for the members of an object, a tuple for an array."""
    gap = dice.choice(["", "", " ", "\n"])
    match value:
        case str():
            return '"' + "".join(spelled(char, dice) for char in value) + '"'
        case list():
            keys = (json.dumps(key, ensure_ascii=False) for key, _ in value)
            members = (f"{gap}{key}{gap}:{written(inner, dice)}" for key, (_, inner) in zip(keys, value, strict=True))
            return "{" + ",".join(members) + gap + "}"
        case tuple():
            return "[" + ",".join(gap + written(inner, dice) for inner in value) + gap + "]"
        case _:
            return json.dumps(value)


def spelled(char: str, dice: random.Random) -> str:
    pairs = char.encode("utf-16-be").hex()
    units = "".join(f"\\u{pairs[at : at + 4]}" for at in range(0, len(pairs), 4))
    plain = json.dumps(char, ensure_ascii=False)[1:-1]
    return dice.choice([plain, plain, units, units.upper().replace("U", "u")])


def has_twins(value: Any) -> bool:
    match value:
        case list():
            keys = [key for key, _ in value]
            return len(set(keys)) < len(keys) or any(has_twins(inner) for _, inner in value)
        case tuple():
            return any(map(has_twins, value))
        case _:
            return False


@settings(max_examples=400)
@given(value=VALUES, seed=st.integers(0, 2**32))
def test_a_value_is_accepted_exactly_when_no_object_has_a_key_twice(value: Any, seed: int) -> None:
    dice = random.Random(seed)
    text = written(value, dice).encode()
    matcher = dt.compile(ANYTHING, byte_vocabulary()).matcher()
    # In pieces, some of them taken back and said again.
    at = 0
    while at < len(text):
        piece = text[at : at + dice.randrange(1, 8)]
        if not matcher.accept_bytes(piece):
            break
        at += len(piece)
        if dice.random() < 0.2 and matcher.steps:
            matcher.rollback(steps := dice.randrange(min(matcher.steps, 3)))
            at = matcher.position
            assert steps == 0 or at < len(text)
        if dice.random() < 0.1:
            matcher = matcher.fork()
    assert (at == len(text)) is (not has_twins(value))


PIECES = [
    *b'"a" "a": "b": "": a" b" a": b":1 :1,"a ,"a" ,"a":1,"a":1 {"a":1,"a": {"a":1,"b":'.split(),
    *b'},"a" }," "," a":" ","" "a":1, a":1, a":1,"a "","a"'.split(),
    *rb'\u \u0061 u0061 \u0061" u0061": 0061" \" \"a" a\" \ud83d \ude00" ude00'.split(),
    b"\xf0\x9f",
    b"\x98\x80",
]


@cache
def pieces() -> dt.Vocabulary:
    return dt.Vocabulary([*(bytes([byte]) for byte in range(256)), *PIECES, b""], {}, [256 + len(PIECES)])


SPOKEN: list[Any] = [
    ANYTHING,
    {**ANYTHING, "json_schema": {"type": "object", "properties": {"a": {}}}, "strict": False, "any_order": True},
    {**ANYTHING, "json_schema": {"additionalProperties": {"patternProperties": {"^a": {"type": "integer"}}}}},
    {"type": "or", "elements": [ANYTHING, {"type": "any_text"}]},
    {"type": "sequence", "elements": [{"type": "regex", "pattern": '[{}",:a\\\\]{0,9};'}, ANYTHING]},
    {"type": "star", "content": {"type": "tag", "begin": '"a":', "content": ANYTHING, "end": ";"}},
    {"type": "or", "elements": [{"type": "any_tokens"}, ANYTHING]},
]
# Keys of which there are so few that they may all be there.
FEW: list[Any] = [
    {"propertyNames": {"enum": ["a", "b"]}},
    {"propertyNames": {"enum": ["a", "ab", "", "😀", '"', "\n"]}, "additionalProperties": {"type": "integer"}},
    {"propertyNames": {"maxLength": 1, "pattern": "[ab]?"}},
    {"patternProperties": {"^(aaa|b.*)$": {}}, "additionalProperties": False},
    {"patternProperties": {"^[ab]{2}$": {"propertyNames": {"const": "a"}}}, "additionalProperties": False},
    {"patternProperties": {"^[ab]?$": {"type": "integer"}}, "propertyNames": {"pattern": "^[a-c]*$"}},
    {"properties": {"a": {}}, "patternProperties": {"^b": {}, "^[ab]{1,2}$": {}}, "additionalProperties": False},
    {"patternProperties": {"^[aé]$": {}}, "additionalProperties": False, "minProperties": 2},
    {"propertyNames": {"enum": ["a", "b", "c"]}, "minProperties": 2, "maxProperties": 2},
    {"properties": {"a": {}, "ab": {}}, "propertyNames": {"enum": ["a", "b", "ab", "aa"]}, "additionalProperties": {}},
]
SPOKEN += (
    {**ANYTHING, "json_schema": {"type": "object", **schema}, "any_order": free}
    for schema in FEW
    for free in (False, True)
)
SPOKEN += ({"type": "or", "elements": [fmt, {"type": "any_text"}]} for fmt in SPOKEN[-4:])


@settings(max_examples=400)
@given(fmt=st.sampled_from(SPOKEN), seed=st.integers(0, 2**32))
def test_a_token_is_allowed_exactly_when_it_is_accepted(fmt: Any, seed: int) -> None:
    dice = random.Random(seed)
    matcher = dt.compile(fmt, pieces()).matcher()
    likely = [*range(256, 257 + len(PIECES)), *b'{}[]":,a1\\']
    for _ in range(dice.randrange(25)):
        allowed = mask(matcher)
        assert allowed == {token for token in range(257 + len(PIECES)) if matcher.validate([token])}
        assert not (forced := matcher.forced()) or matcher.fork().accept_bytes(forced)
        # Each byte is a token, so that there is no dead end either.
        assert allowed or matcher.is_finished
        if not allowed:
            return
        assert matcher.accept(dice.choice([token for token in likely if token in allowed] or sorted(allowed)))
        if dice.random() < 0.1:
            matcher.rollback(dice.randrange(matcher.steps))


LEFT = [
    ({"propertyNames": {"enum": ["ab", "ac"]}}, '{"ab":{}', ",} "),
    ({"propertyNames": {"enum": ["ab", "ac"]}}, '{"ab":{},"a', "c"),
    ({"propertyNames": {"enum": ["a\n", "a\t"]}}, '{"a\\n":{},"a\\', "t"),
    ({"propertyNames": {"enum": ["a\x01", "a\x02"]}}, '{"a\\u0001":{},"a', "\\"),
    ({"propertyNames": {"enum": ["a\x01", "a\x12"]}}, '{"a\\u0001":{},"a\\u00', "1"),
    ({"propertyNames": {"enum": ["ab", "ac"]}}, '{"ab":{},"ac":{}', "} "),
    ({"propertyNames": {"enum": ["é", "e"]}}, '{"é":{},"', "e"),
    ({"propertyNames": {"pattern": "^(default|[0-9]{3})$"}}, '{"default":{},"', "0123456789"),
    ({"propertyNames": {"pattern": "^(default|[0-9]{3})$"}}, '{"123":{},"12', "012456789"),
    ({"propertyNames": {"pattern": "^a{1,3}$"}}, '{"aa":{},"a', 'a"'),
    ({"propertyNames": {"pattern": "^a{1,3}$"}}, '{"aaa":{},"a', 'a"'),
    ({"propertyNames": {"pattern": "^a{1,3}$"}}, '{"aaa":{},"aa":{},"a', '"'),
    ({"propertyNames": {"maxLength": 0}}, '{"":{}', "} "),
    ({"additionalProperties": {"propertyNames": {"const": "a"}}}, '{"x":{"a":{}}', ",} "),
    ({"additionalProperties": {"propertyNames": {"const": "a"}}}, '{"x":{"a":{}},"y":{"', "a"),
    ({"propertyNames": {"const": "a"}, "additionalProperties": {"type": "object"}}, '{"a":{"b":{}', ",} "),
    ({"additionalProperties": {"type": "string"}}, '{"a":"\\', '"\\/bfnrtu'),
]


@pytest.mark.parametrize(("schema", "text", "left"), LEFT)
@pytest.mark.parametrize("any_order", [False, True])
def test_what_could_only_end_as_a_key_that_is_there_does_not_begin(
    schema: dict[str, Any], text: str, left: str, any_order: bool
) -> None:
    schema = {"type": "object", **schema}
    fmt = {"type": "json_schema", "json_schema": schema, "any_order": any_order, "max_whitespace_cnt": 0}
    matcher = dt.compile(fmt, byte_vocabulary()).matcher()
    assert matcher.accept_bytes(text.encode())
    assert set(left.replace(" ", "").encode()) == mask(matcher)
    whole = dt.compile(fmt, pieces()).matcher()
    assert all(whole.accept(byte) for byte in text.encode())
    assert mask(whole) == {token for token in range(256 + len(PIECES)) if whole.validate([token])}


@pytest.mark.parametrize(
    ("any_order", "text", "left"),
    [
        (False, '{"a":{}', ",}"),
        (False, '{"b":{}', "}"),
        (False, '{"a":{},"b":{}', "}"),
        (True, '{"b":{}', ",}"),
        (True, '{"b":{},"a":{}', "}"),
    ],
)
def test_a_declared_key_that_was_there_or_passed_over_leaves_nothing(any_order: bool, text: str, left: str) -> None:
    schema = {"properties": {"a": {}}, "propertyNames": {"enum": ["a", "b"]}, "additionalProperties": {}}
    fmt = {"type": "json_schema", "json_schema": {"type": "object", **schema}, "any_order": any_order}
    matcher = dt.compile({**fmt, "max_whitespace_cnt": 0}, byte_vocabulary()).matcher()
    assert matcher.accept_bytes(text.encode())
    assert set(left.encode()) == mask(matcher)


def test_a_saved_grammar_remembers_keys() -> None:
    grammar = dt.compile(ANYTHING, byte_vocabulary())
    matcher = dt.CompiledGrammar.load(grammar.save(), byte_vocabulary()).matcher()
    assert matcher.accept_bytes(b'{"a":1,')
    assert not matcher.accept_bytes(b'"a"')
    matcher.reset()
    assert matcher.accept_bytes(b'{"a"')


def test_ten_thousand_keys_are_remembered() -> None:
    matcher = dt.compile(ANYTHING, byte_vocabulary()).matcher()
    assert matcher.accept_bytes(b'{"":0')
    for number in range(10_000):
        assert matcher.accept_bytes(b',"%d":1' % number)
    for number in range(0, 10_000, 100):
        assert not matcher.accept_bytes(b',"%d"' % number)


def test_ten_thousand_open_objects_are_remembered() -> None:
    matcher = dt.compile(ANYTHING, byte_vocabulary()).matcher()
    assert matcher.accept_bytes(b'{"a":' * 10_000 + b"1")
    for _ in range(10_000):
        assert not matcher.accept_bytes(b',"a"')
        assert matcher.accept_bytes(b',"b":1}')
    assert matcher.is_complete
