"""Numbers between bounds and single numbers."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.engine import accepts
from dovetail.errors import LimitError
from dovetail.grammar import ir
from dovetail.grammar.json_schema import numbers
from dovetail.grammar.json_schema.numbers import Bound

decimals = st.one_of(
    st.integers(-1200, 1200).map(Decimal),
    st.tuples(st.integers(-5000, 5000), st.sampled_from([10, 100, 1000])).map(lambda pair: Decimal(pair[0]) / pair[1]),
    st.integers(-(10**40), 10**40).map(Decimal),
)
bounds = st.one_of(st.none(), st.tuples(decimals, st.booleans()))


def inside(value: Decimal, low: Bound | None, high: Bound | None) -> bool:
    above = low is None or value > low[0] or (value == low[0] and not low[1])
    return above and (high is None or value < high[0] or (value == high[0] and not high[1]))


@given(integer=st.booleans(), low=bounds, high=bounds, value=decimals, zeros=st.integers(0, 3), near=st.booleans())
@settings(max_examples=1500)
def test_a_plain_number_is_accepted_exactly_between_the_bounds(
    integer: bool, low: Bound | None, high: Bound | None, value: Decimal, zeros: int, near: bool
) -> None:
    if near and low is not None:
        value = low[0]
    text = f"{value:f}" + ("." if zeros and "." not in f"{value:f}" else "") + "0" * zeros
    if not zeros:
        text = f"{value:f}"
    expected = inside(value, low, high) and not (integer and value != value.to_integral_value())
    node = numbers.number(integer, low, high)
    assert expected == (node != ir.NOTHING and accepts(ir.Rule("root", node), text))


@given(
    integer=st.booleans(),
    low=bounds,
    high=bounds,
    mantissa=st.from_regex(r"-?[1-9](\.[0-9]{1,3})?", fullmatch=True),
    power=st.integers(-50, 50),
    near=st.booleans(),
)
@settings(max_examples=1500)
def test_a_number_with_an_exponent_is_accepted_exactly_between_the_bounds(
    integer: bool, low: Bound | None, high: Bound | None, mantissa: str, power: int, near: bool
) -> None:
    if near and low is not None and low[0]:
        power = low[0].adjusted()
        sign, digits, _ = low[0].as_tuple()
        mantissa = ("-" if sign else "") + "{}.{}".format(digits[0], "".join(map(str, digits[1:4]))).rstrip(".")
    if integer:
        # Before the exponent of an integer stand zeros behind the point at most, and no exponent is below zero.
        mantissa, power = mantissa.partition(".")[0], abs(power)
    value = Decimal(f"{mantissa}e{power}")
    node = numbers.number(integer, low, high)
    assert inside(value, low, high) == (node != ir.NOTHING and accepts(ir.Rule("root", node), f"{mantissa}e{power}"))


@given(integer=st.booleans(), low=bounds, high=bounds, text=st.text("-+0123456789.e", max_size=6))
@settings(max_examples=1500)
def test_what_is_accepted_between_bounds_is_a_json_number(
    integer: bool, low: Bound | None, high: Bound | None, text: str
) -> None:
    node = numbers.number(integer, low, high)
    if node != ir.NOTHING and accepts(ir.Rule("root", node), text):
        value = json.loads(text, parse_int=Decimal, parse_float=Decimal)
        assert inside(value, low, high)
        assert not integer or value == value.to_integral_value()


def test_bounds_of_many_digits_are_held_or_refused() -> None:
    tiny = numbers.number(False, (Decimal("1e-320"), False), (Decimal("1.7976931348623157e308"), False))
    assert accepts(ir.Rule("root", tiny), "0." + "0" * 319 + "1")
    assert not accepts(ir.Rule("root", tiny), "0." + "0" * 320 + "1")
    with pytest.raises(LimitError, match="digits"):
        numbers.number(True, (Decimal("9" * 4000), False), None)


@given(value=st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False)))
def test_a_single_number_is_accepted_as_python_writes_it(value: float) -> None:
    node = ir.Rule("root", numbers.literal(repr(value)))
    assert accepts(node, json.dumps(value))
    assert accepts(node, f"{Decimal(repr(value)):f}")
    assert not accepts(node, json.dumps(value) + "1")
