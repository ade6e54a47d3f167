"""The engine under a schema agrees with an independent validator, on random schemas and values."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation
from itertools import permutations, product
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dovetail.engine import accepts
from dovetail.models.speaker import Speaker
from tests.grammar.json_schema.strategies import lowered, schemas, values


@given(schema=schemas, value=values, loose=st.booleans())
@settings(max_examples=1000)
@pytest.mark.slow
def test_a_value_is_accepted_exactly_when_it_is_valid(schema: Any, value: Any, loose: bool) -> None:
    rule = lowered(schema, strict=False, any_order=True)
    text = json.dumps(value, ensure_ascii=False, separators=None if loose else (",", ":"))
    assert jsonschema_rs.Draft202012Validator(schema).is_valid(value) == accepts(rule, text)


def orders(value: Any) -> Iterator[Any]:
    """The value with the keys of its objects in every order."""
    match value:
        case dict():
            for keys in permutations(value):
                for members in product(*(orders(value[key]) for key in keys)):
                    yield dict(zip(keys, members, strict=True))
        case list():
            yield from map(list, product(*map(orders, value)))
        case _:
            yield value


@given(schema=schemas, value=values)
@settings(max_examples=500)
@pytest.mark.slow
def test_a_value_is_accepted_in_the_declared_order_exactly_when_it_is_valid(schema: Any, value: Any) -> None:
    rule = lowered(schema, strict=False)
    texts = (json.dumps(one, ensure_ascii=False) for one in orders(value))
    assert jsonschema_rs.Draft202012Validator(schema).is_valid(value) == any(accepts(rule, text) for text in texts)


@given(schema=schemas, seed=st.integers(0, 1 << 32), strict=st.booleans())
@settings(max_examples=200)
@pytest.mark.slow
def test_whatever_is_spoken_under_a_schema_is_valid(schema: Any, seed: int, strict: bool) -> None:
    rule = lowered(schema, strict=strict)
    said = Speaker(seed).speak(rule, max_tokens=300, soft_limit=20)
    assume(said.complete)
    value = json.loads(said.data, parse_float=_number, object_pairs_hook=_members)
    assert jsonschema_rs.Draft202012Validator(schema).is_valid(value), said.data


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Members without a key twice: what is not declared is not remembered, and then counts are off."""
    found = dict(pairs)
    assume(len(found) == len(pairs))
    return found


def _number(text: str) -> float:
    """The number as it was said: whole where it is whole, and none that a float would make infinite or whole."""
    try:
        number = Decimal(text)
    except InvalidOperation:  # an exponent of many digits
        assume(False)
        raise
    assume(math.isfinite(float(number)))
    if number == number.to_integral_value():
        return int(number)
    assume(not float(number).is_integer())
    return float(number)
