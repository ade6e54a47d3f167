"""Patterns with limits as automata that are measured."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dovetail as dt
from dovetail.grammar import ir, regex
from dovetail.grammar.export.portable import portable
from dovetail.grammar.json_schema.values import strings
from dovetail.grammar.regex.languages import Limits, States
from tests.machines import compiled
from tests.strategies import SeededDice, make_measured, make_output

MEASURED: list[tuple[str, Limits, int, Limits]] = [
    # pattern, limits, the states that it has, the limits that are left
    (r"^\S+@\S+$", (5, 255), 4, (5, 255)),
    (r"^\S+@\S+$", (3, 255), 4, (0, 255)),
    (r"^\S+@\S+$", (5, None), 4, (5, None)),
    (r"^[a-z]+(-[a-z]+)*$", (0, 50), 2, (0, 50)),
    (r"^(ab)*c*$", (0, 7), 3, (0, 7)),
    (r"^(?:\S+\s+){0,29}\S+$", (0, 300), 60, (0, 300)),
    (r"^\w.*\w$", (2, 60), 3, (0, 60)),
    (r"^abc+$", (0, 2), 0, (0, 2)),
]


@pytest.mark.parametrize(("pattern", "limits", "count", "left"), MEASURED)
def test_a_pattern_with_limits_has_no_more_states_than_without(
    pattern: str, limits: Limits, count: int, left: Limits
) -> None:
    found = regex.measured((pattern,), (), *limits)
    assert found is not None
    states, kept = found
    assert (len(states), kept) == (count, left)


@pytest.mark.parametrize(
    ("pattern", "limits"),
    [
        (r"^\S+@\S+$", (0, None)),
        (r"^\S+@\S+$", (3, None)),
        (r"^[a-z]{2,10}$", (0, 12)),  # keeps to the limits anyway
        (r"^[a-z]{2,60}$", (5, 50)),  # its own count takes the limits up
        (r"^(ab)*c?$", (3, 9)),  # four characters and not five: the number that is left does not tell
        (r"^(a{1,60}b{1,60})*$", (0, 99)),  # too many states
    ],
)
def test_other_patterns_are_not_measured(pattern: str, limits: Limits) -> None:
    assert regex.measured((pattern,), (), *limits) is None


def test_limits_that_no_text_keeps_to_leave_nothing() -> None:
    assert strings.matching((r"^\S+@\S+$",), 0, 2) == ir.NOTHING
    with pytest.raises(dt.SchemaError):
        dt.accepts(
            {"type": "json_schema", "json_schema": {"type": "string", "pattern": "^abc+$", "maxLength": 2}}, '""'
        )


PATTERNS = (r"^\S+@\S+$", r"^a+(-a+)*$", r"^(ab)*c*$", r"^\w.*\w$", "a-", r"^(a|b@)+$", "[^a]b", r"^.*@", "^-?a*$")
TEXTS = st.text(st.sampled_from("ab@-c é\n"), max_size=12)


def takes(states: States, limits: Limits, text: str) -> bool:
    at: int | None = 0 if states else None
    for char in text:
        if at is not None:
            edges = states[at][0]
            at = next((to for ranges, to in edges if any(low <= ord(char) <= high for low, high in ranges)), None)
    low, high = limits
    return at is not None and states[at][1] and low <= len(text) and (high is None or len(text) <= high)


@settings(max_examples=400)
@given(
    wanted=st.lists(st.sampled_from(PATTERNS), min_size=1, max_size=2),
    barred=st.lists(st.sampled_from(PATTERNS), max_size=1),
    low=st.integers(0, 5),
    more=st.none() | st.integers(0, 6),
    text=TEXTS,
)
def test_measured_patterns_are_those_of_the_product(
    wanted: list[str], barred: list[str], low: int, more: int | None, text: str
) -> None:
    high = None if more is None else low + more
    found = regex.measured(wanted, barred, low, high)
    if found is not None:
        assert takes(*found, text) == regex.admits(regex.language(wanted, barred, low, high), text)


@settings(max_examples=100)
@given(seed=st.integers(0, 2**32))
def test_a_measured_text_is_exported_by_the_number_of_its_characters(seed: int) -> None:
    dice = SeededDice(seed)
    rule = ir.Rule("root", make_measured(dice))
    matcher = compiled(rule).matcher()
    written = compiled(portable(rule)).matcher()
    for _ in range(5):
        output = make_output(dice, rule)
        assert (matcher.accept_bytes(output) and matcher.is_complete) == (
            written.accept_bytes(output) and written.is_complete
        )
        matcher.reset()
        written.reset()


def test_a_pattern_with_limits_is_exported_too() -> None:
    schema = {"type": "string", "pattern": "^a+(-a+)*$", "maxLength": 4}
    rule = portable(dt.grammar.lower.lower(dt.load_format({"type": "json_schema", "json_schema": schema})))
    for text, expected in [("aaaa", True), ("a-aa", True), ("aaa-", False), ("aaaaa", False), ("", False)]:
        matcher = compiled(rule).matcher()
        assert (matcher.accept_bytes(json.dumps(text).encode()) and matcher.is_complete) == expected
