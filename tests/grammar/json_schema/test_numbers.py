"""Numbers by what is asked of them, against decimal arithmetic, and their one spelling."""

from __future__ import annotations

import json
import re
from decimal import Decimal

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dovetail as dt
from dovetail.engine import accepts
from dovetail.errors import LimitError
from dovetail.grammar import ir
from dovetail.grammar.json_schema.values import numbers
from dovetail.grammar.json_schema.values.numbers import Bound

decimals = st.one_of(
    st.integers(-1200, 1200).map(Decimal),
    st.tuples(st.integers(-5000, 5000), st.sampled_from([10, 100, 1000])).map(lambda pair: Decimal(pair[0]) / pair[1]),
    st.integers(-(10**40), 10**40).map(Decimal),
)
bounds = st.one_of(st.none(), st.tuples(decimals, st.booleans()))
plain_texts = st.sampled_from(["0", "-0", "-0.0"]) | st.from_regex(
    r"-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,3})?", fullmatch=True
)
small_bounds = st.none() | st.tuples(plain_texts.map(Decimal), st.booleans())
units = st.sampled_from(["2", "3", "4", "7", "10", "16", "100", "0.5", "2.5", "0.75", "0.1", "0.01"])
divisors = st.lists(st.tuples(units.map(Decimal), st.booleans()), max_size=3)

WHOLE = re.compile(r"0|-?[1-9][0-9]*")
PLAIN = re.compile(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?")
NUMBER = re.compile(rf"{PLAIN.pattern}([eE][+-]?[0-9]+)?")


def is_written(text: str, integer: bool, limited: bool) -> bool:
    """Whether a number is spelled as one of its kind: with limits of any sort it is a plain decimal."""
    return (WHOLE if integer else PLAIN if limited else NUMBER).fullmatch(text) is not None


def takes(node: ir.Node, text: str) -> bool:
    return node != ir.NOTHING and accepts(ir.Rule("root", node), text)


def inside(value: Decimal, low: Bound | None, high: Bound | None) -> bool:
    above = low is None or value > low[0] or (value == low[0] and not low[1])
    return above and (high is None or value < high[0] or (value == high[0] and not high[1]))


@given(integer=st.booleans(), low=bounds, high=bounds, value=decimals, zeros=st.integers(0, 3), near=st.booleans())
@settings(max_examples=400)
def test_a_plain_number_is_accepted_exactly_between_the_bounds(
    integer: bool, low: Bound | None, high: Bound | None, value: Decimal, zeros: int, near: bool
) -> None:
    if near and low is not None:
        value = low[0]
    text = f"{value:f}" + ("." if zeros and "." not in f"{value:f}" else "") + "0" * zeros
    expected = inside(value, low, high) and is_written(text, integer, bool(low or high))
    assert expected == takes(numbers.number(integer, low, high), text)


@given(
    text=plain_texts,
    kind=st.sampled_from(["any", "integer", "fraction"]),
    low=small_bounds,
    high=small_bounds,
    multiples=divisors,
    banned=st.lists(plain_texts.map(Decimal), max_size=2),
)
def test_a_number_is_accepted_exactly_when_all_demands_hold(
    text: str,
    kind: str,
    low: Bound | None,
    high: Bound | None,
    multiples: list[tuple[Decimal, bool]],
    banned: list[Decimal],
) -> None:
    value = Decimal(text)
    wanted = inside(value, low, high) and value not in banned
    limited = bool(low or high or multiples or banned or kind == "fraction")
    wanted = wanted and is_written(text, kind == "integer", limited)
    wanted = wanted and not (kind == "fraction" and value == value.to_integral_value())
    wanted = wanted and all((value % divisor == 0) == holds for divisor, holds in multiples)
    try:
        node = numbers.number(kind == "integer", low, high, tuple(multiples), tuple(banned), kind == "fraction")
    except LimitError:
        assume(False)
        raise
    assert wanted == takes(node, text)


@given(integer=st.booleans(), low=bounds, high=bounds, text=st.text("-+0123456789.eE", max_size=6))
@settings(max_examples=400)
def test_a_number_with_bounds_has_no_exponent_and_an_integer_no_fraction(
    integer: bool, low: Bound | None, high: Bound | None, text: str
) -> None:
    fits = is_written(text, integer, bool(low or high)) and inside(Decimal(text), low, high)
    assert fits == takes(numbers.number(integer, low, high), text)


@settings(max_examples=60, deadline=None)
@given(
    number=st.integers(-60, 60),
    arms=st.lists(
        st.tuples(st.sampled_from([2, 3, 4, 6, 10, 2.5, 7.5]), st.booleans(), st.sampled_from([None, 5, 10]))
    ),
)
def test_a_union_of_multiples_is_any_of_them(number: int, arms: list[tuple[float, bool, int | None]]) -> None:
    assume(arms)
    schemas = []
    for divisor, holds, low in arms:
        one = {"multipleOf": divisor} if holds else {"not": {"multipleOf": divisor}}
        schemas.append(one if low is None else {**one, "minimum": low})
    fits = any(
        (Decimal(number) % Decimal(str(divisor)) == 0) == holds and (low is None or number >= low)
        for divisor, holds, low in arms
    )
    schema = {"type": "integer", "anyOf": schemas}
    assert fits == dt.accepts({"type": "json_schema", "json_schema": schema}, str(number))


def test_bounds_of_many_digits_are_held_or_refused() -> None:
    tiny = numbers.number(False, (Decimal("1e-320"), False), (Decimal("1.7976931348623157e308"), False))
    assert accepts(ir.Rule("root", tiny), "0." + "0" * 319 + "1")
    assert not accepts(ir.Rule("root", tiny), "0." + "0" * 320 + "1")
    with pytest.raises(LimitError, match="digits"):
        numbers.number(True, (Decimal("9" * 4000), False), None)


@given(value=st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_a_constant_number_is_written_as_python_writes_it(value: float) -> None:
    tag = {"type": "json_schema", "json_schema": {"const": value}}
    assert dt.accepts(tag, json.dumps(value))
    for other in (
        f"{json.dumps(value)}1",
        f"{json.dumps(value)}.0",
        f"{Decimal(value):.400f}",
        f"{json.dumps(value)}e0",
    ):
        assert not dt.accepts(tag, other)
