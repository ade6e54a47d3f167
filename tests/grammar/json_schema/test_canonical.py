"""One text for each value: what a mask admits where a schema leaves neither free strings nor fractions."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dovetail as dt
from dovetail.engine import accepts
from dovetail.models.speaker import Speaker
from tests.grammar.json_schema.strategies import lowered
from tests.grammar.json_schema.test_styles import PLAIN
from tests.grammar.json_schema.test_text import canonical, spelling
from tests.machines import byte_vocabulary, mask

NAMES = ["a", "b", "é", 'q"', "n\n", "\x01", "😀"]
TEXTS = ["", "x", "x/y", '"', "\\", "\x7f", "\t", "\x1f", "Ω", "😀"]
TOKENS = re.compile(r'"(?:[^"\\]|\\.)*"|[^\s"\[\]{},:]+|[\[\]{},:]', re.DOTALL)

scalars = st.none() | st.booleans() | st.integers(-200, 200) | st.sampled_from(TEXTS)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=5,
)
PATTERNS = ["^[a-c]+$", "é|\\\\", "^.{2}$", '"$', "^[\\x00-\\x20]*$", "^x(?!y)"]
leaves = st.one_of(
    st.sampled_from([{"type": "null"}, {"type": "boolean"}, {"type": "integer"}, {"type": ["integer", "null"]}]),
    st.lists(values, min_size=1, max_size=4).map(lambda found: {"enum": found}),
    values.map(lambda value: {"const": value}),
    st.fixed_dictionaries(
        {"type": st.just("integer")},
        optional={
            "minimum": st.integers(-30, 5),
            "exclusiveMaximum": st.integers(0, 300),
            "multipleOf": st.sampled_from([2, 3, 2.5]),
            "not": st.integers(0, 9).map(lambda value: {"const": value}),
        },
    ),
    st.fixed_dictionaries(
        {"type": st.just("string"), "pattern": st.sampled_from(PATTERNS)},
        optional={"minLength": st.integers(0, 2), "maxLength": st.integers(3, 6)},
    ),
    st.sampled_from(["date", "ipv4", "uuid"]).map(lambda name: {"type": "string", "format": name}),
)


def _objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {
            "type": st.just("object"),
            "properties": st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
            "additionalProperties": st.just(False) | inner,
        },
        optional={
            "required": st.lists(st.sampled_from(NAMES), max_size=2, unique=True),
            "patternProperties": st.dictionaries(st.sampled_from(["^a", '"$']), inner, max_size=1),
            "minProperties": st.integers(0, 2),
        },
    )


def _arrays(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {"type": st.just("array"), "items": inner},
        optional={"prefixItems": st.lists(inner, min_size=1, max_size=2), "minItems": st.integers(0, 2)},
    )


def _unions(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    arms = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        st.sampled_from(["anyOf", "oneOf", "allOf"]).flatmap(lambda name: arms.map(lambda found: {name: found})),
        st.tuples(inner, inner, inner).map(lambda found: {"anyOf": [found[0]], "if": found[1], "then": found[2]}),
        st.tuples(inner, inner).map(lambda found: {"allOf": [found[0], {"not": found[1]}]}),
    )


schemas = st.recursive(leaves, lambda inner: _objects(inner) | _arrays(inner) | _unions(inner), max_leaves=6)


def minified(text: str) -> str:
    """A JSON text without the white space between its tokens."""
    return "".join(TOKENS.findall(text))


def respelled(text: str, dice: random.Random) -> Iterator[str]:
    """Other spellings of the same value, each with one string or number written in another way."""
    for token in TOKENS.finditer(text):
        yield from (text[: token.start()] + other + text[token.end() :] for other in others(token[0], dice))


def others(token: str, dice: random.Random) -> Iterator[str]:
    """Other spellings of a string, one of whose characters is escaped where it need not be, or of an integer."""
    if token.startswith('"') and len(word := json.loads(token)):
        at = dice.randrange(len(word))
        inside = [canonical(char)[1:-1] for char in word]
        for way in range(4):
            inside[at] = spelling(word[at], way)
            if (other := '"' + "".join(inside) + '"') != token:
                yield other
    elif re.fullmatch("-?[0-9]+", token):
        yield from (f"{token}.0", f"{token}.00", f"{token}e0", f"{token}E+0")
        yield from ("-0", "-0.0", "0e5") if token == "0" else (f"{token}0e-1",)


@settings(max_examples=400)
@given(schema=schemas, seed=st.integers(0, 1 << 32), any_order=st.booleans())
@pytest.mark.slow
def test_each_value_has_one_text_up_to_white_space(schema: Any, seed: int, any_order: bool) -> None:
    rule = lowered(schema, strict=False, any_order=any_order)
    said = Speaker(seed).speak(rule, max_tokens=200, soft_limit=20)
    assume(said.complete)
    text = said.data.decode().removesuffix("<|end|>")
    value = json.loads(text)
    short = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    assert short == minified(text)
    assert accepts(rule, short)
    for other in respelled(short, random.Random(seed)):
        assert json.loads(other, parse_float=Decimal) == value
        assert not accepts(rule, other), other


@settings(max_examples=200)
@given(schema=schemas, value=values)
def test_a_value_that_is_admitted_is_admitted_as_python_writes_it_alone(schema: Any, value: Any) -> None:
    rule = lowered(schema, strict=False, any_order=True)
    text = json.dumps(value, ensure_ascii=False)
    taken = accepts(rule, text)
    assert taken == accepts(rule, minified(text))
    assert not any(accepts(rule, other) for other in respelled(text, random.Random(0)))


TRIP = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "unit": {"enum": ["é/C", 5]}},
    "required": ["city"],
}
ODD = [
    (r'{"c\u0069ty": 1}', '{"city": 1}'),
    (r'{"c\u0069ty": "x"}', '{"city": "x"}'),
    ('{"city": "x", "days": 14.0}', '{"city": "x", "days": 14}'),
    ('{"city": "x", "days": -0}', '{"city": "x", "days": 0}'),
    ('{"city": "x", "days": 1e1}', '{"city": "x", "days": 10}'),
    ('{"city": "x", "days": -0.000}', '{"city": "x", "days": 0}'),
    (r'{"city": "x", "unit": "\u00e9/C"}', '{"city": "x", "unit": "é/C"}'),
    (r'{"city": "x", "unit": "é\/C"}', '{"city": "x", "unit": "é/C"}'),
    ('{"city": "x", "unit": 5.0}', '{"city": "x", "unit": 5}'),
    (r'{"city": "x", "o\u0074her": 1}', '{"city": "x", "other": 1}'),
]


@pytest.mark.parametrize(("odd", "plain"), ODD)
@pytest.mark.parametrize("any_order", [False, True])
def test_what_is_declared_has_one_spelling(odd: str, plain: str, any_order: bool) -> None:
    tag = {"type": "json_schema", "json_schema": TRIP, "strict": False, "any_order": any_order}
    assert not dt.accepts(tag, odd)
    assert dt.accepts(tag, plain) is ('"city": 1' not in plain)


def test_a_free_string_may_be_spelled_in_every_way() -> None:
    for schema in ({"type": "string"}, {"type": "string", "minLength": 4, "maxLength": 4}):
        for text in (r'"caf\u00e9"', r'"caf\u00E9"', '"café"', r'"\u0063af/"', r'"caf\/"'):
            assert dt.accepts({"type": "json_schema", "json_schema": schema}, text)


@pytest.mark.parametrize(("style", "_", "age"), PLAIN)
@pytest.mark.parametrize("number", ["7.0", "-0", "1e1", "07", "7e0"])
def test_numbers_in_markup_have_one_spelling(style: str, _: str, age: str, number: str) -> None:
    schema = {"type": "object", "properties": {"age": {"type": "integer"}, "v": {"enum": [7]}}, "required": ["age"]}
    for name in ("age", "v"):
        one = {**schema, "required": [name]}
        markup = age.replace("age", name)
        tag = {"type": "json_schema", "json_schema": one, "style": style}
        assert dt.accepts(tag, markup)
        assert not dt.accepts(tag, markup.replace("7", number))


NESTING = ("cohere_xml", "minimax_m3_xml")  # which mark up what is inside arguments too


@pytest.mark.parametrize(("style", "_", "age"), [row for row in PLAIN if row[0] not in NESTING])
@pytest.mark.parametrize(("odd", "plain"), ODD)
def test_json_in_markup_has_one_spelling(style: str, _: str, age: str, odd: str, plain: str) -> None:
    schema = {"type": "object", "properties": {"age": TRIP}, "required": ["age"]}
    tag = {"type": "json_schema", "json_schema": schema, "style": style, "strict": False}
    markup = age.replace('"number"', '"object"')
    assert not dt.accepts(tag, markup.replace("7", odd))
    assert dt.accepts(tag, markup.replace("7", plain)) is ('"city": 1' not in plain)


@settings(max_examples=150)
@given(schema=schemas, seed=st.integers(0, 1 << 32), any_order=st.booleans())
def test_what_is_forced_is_what_the_mask_says(schema: Any, seed: int, any_order: bool) -> None:
    rule = lowered(schema, strict=False, any_order=any_order, max_whitespace=0)
    matcher = dt.compile(rule, byte_vocabulary()).matcher()
    dice = random.Random(seed)
    for _ in range(30):
        for byte in matcher.forced():
            assert not matcher.is_complete
            assert {byte} == mask(matcher)
            assert matcher.accept(byte)
        allowed = sorted(mask(matcher))
        assert matcher.is_complete or len(allowed) != 1
        if not allowed or not matcher.accept(dice.choice(allowed)):
            break
