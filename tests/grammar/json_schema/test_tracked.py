"""Numbers with multiples, fractions and barred values, against decimal arithmetic."""

from __future__ import annotations

from decimal import Decimal

from dovetail.grammar.json_schema.tracked import tracked
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dovetail as dt
from dovetail.engine import accepts
from dovetail.errors import LimitError
from dovetail.grammar import ir

spellings = st.from_regex(r"-?(0|[1-9][0-9]{0,3})(\.[0-9]{1,3})?", fullmatch=True)
bounds = st.none() | st.tuples(spellings.map(Decimal), st.booleans())
units = st.sampled_from(["2", "3", "4", "7", "10", "16", "100", "0.5", "2.5", "0.75", "0.1", "0.01"])
divisors = st.lists(st.tuples(units.map(Decimal), st.booleans()), max_size=3)


def lies_between(value: Decimal, low: tuple[Decimal, bool] | None, high: tuple[Decimal, bool] | None) -> bool:
    above = low is None or value > low[0] or (value == low[0] and not low[1])
    return above and (high is None or value < high[0] or (value == high[0] and not high[1]))


@given(
    text=spellings,
    kind=st.sampled_from(["any", "integer", "fraction"]),
    low=bounds,
    high=bounds,
    multiples=divisors,
    banned=st.lists(spellings.map(Decimal), max_size=2),
)
def test_a_number_is_accepted_exactly_when_all_demands_hold(
    text: str,
    kind: str,
    low: tuple[Decimal, bool] | None,
    high: tuple[Decimal, bool] | None,
    multiples: list[tuple[Decimal, bool]],
    banned: list[Decimal],
) -> None:
    value = Decimal(text)
    whole = value == value.to_integral_value()
    wanted = lies_between(value, low, high) and value not in banned
    wanted = wanted and (kind == "any" or whole == (kind == "integer"))
    wanted = wanted and all((value % divisor == 0) == holds for divisor, holds in multiples)
    try:
        node = tracked(kind == "integer", kind == "fraction", low, high, tuple(multiples), tuple(banned))
    except LimitError:
        assume(False)
        raise
    assert wanted == (node != ir.NOTHING and accepts(ir.Rule("root", node), text))


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
