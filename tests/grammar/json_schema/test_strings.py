"""Decoded strings by pattern, length and what they must not be, against Python's `re`."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.engine import accepts
from dovetail.grammar import ir
from dovetail.grammar.json_schema.values import strings


def takes(node: ir.Node, text: str) -> bool:
    return node != ir.NOTHING and accepts(ir.Rule("root", node), text)


CASES = [
    # patterns, barred patterns, fewest and most characters, words that are left out, strings that fit, that do not
    (("^a",), ("b", "c$"), 0, 5, (), ["a", "aca"], ["ab", "ac", "aaaaaa", "x"]),
    ((), ("b",), 0, None, (), ["", "a"], ["b", "abc"]),
    ((), ("^x", "^y"), 1, None, (), ["a"], ["", "x", "yx"]),
    ((), ("",), 0, None, (), [], ["", "a"]),
    ((), (), 1, 4, ("", "ab", "abc", "xyz"), ["a", "abcd", "xy"], ["", "ab", "abc", "abcde", "xyz"]),
    (("^[a-c]",), (), 0, 4, ("ab", "xyz"), ["a", "abc"], ["", "ab", "xyz", "abcde"]),
    ((), (), 0, 0, ("",), [], ["", "a"]),
    ((), (), 0, None, ("é", "😀"), ["e", "éé"], ["é", "😀"]),
]


@pytest.mark.parametrize(("patterns", "barred", "low", "high", "words", "yes", "no"), CASES)
def test_a_string_is_what_its_patterns_say_and_none_of_what_is_barred(
    patterns: tuple[str, ...],
    barred: tuple[str, ...],
    low: int,
    high: int | None,
    words: tuple[str, ...],
    yes: list[str],
    no: list[str],
) -> None:
    node = strings.language(patterns, low, high, barred, frozenset(words))
    assert yes == [text for text in yes if takes(node, text)]
    assert [] == [text for text in no if takes(node, text)]


def test_what_is_left_by_what_is_barred_has_one_spelling() -> None:
    node = strings.matching((), 0, None, ("b",))
    texts = ('"a"', '"b"', r'"\u0062"', r'"\u0061"', r'"\n"', r'"\u000a"')
    assert [True, False, False, False, True, False] == [takes(node, text) for text in texts]


PATTERNS = st.lists(st.sampled_from(["a", "^a", "b$", "^(ab)*$", "a.?b", "^.{2,3}$", "[^a]"]), max_size=2)
TEXTS = st.lists(st.text("ab1", max_size=5), min_size=8, max_size=8)


@settings(max_examples=100, deadline=None)
@given(
    patterns=PATTERNS,
    barred=PATTERNS,
    low=st.integers(0, 2),
    high=st.none() | st.integers(2, 4),
    words=st.frozensets(st.text("ab", max_size=3), max_size=3),
    texts=TEXTS,
)
def test_strings_agree_with_python(
    patterns: list[str], barred: list[str], low: int, high: int | None, words: frozenset[str], texts: list[str]
) -> None:
    node = strings.language(tuple(patterns), low, high, tuple(barred), words)
    for text in texts:
        fits = low <= len(text) <= (9 if high is None else high) and text not in words
        fits = fits and all(re.search(pattern, text) for pattern in patterns)
        assert (fits and not any(re.search(pattern, text) for pattern in barred)) == takes(node, text), text
