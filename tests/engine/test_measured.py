"""Text along an automaton that counts its characters."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dovetail as dt
from dovetail.grammar import ir
from dovetail.models.shortest import shortest
from tests.machines import byte_vocabulary, check_exact_masks, compiled, mask
from tests.strategies import SeededDice, Tokens, make_measured, token_tables

SEEDS = st.integers(0, 2**32)
A, B = ir.lit("a"), ir.lit("b")
WIDE = ir.complement([(0, 31), (34, 34), (92, 92)])
ESCAPED = ir.Alt((WIDE, ir.Seq((ir.lit("\\"), ir.Call(ir.Rule("escape", ir.Alt((ir.lit("n"), ir.lit("u00e9")))))))))


def loop(char: ir.Node, low: int, high: int | None) -> ir.Measured:
    return ir.Measured(((((char, 0),), True),), 0, low, high, b'"')


def pairs(low: int, high: int | None) -> ir.Measured:
    """`ab` any number of times."""
    return ir.Measured(((((A, 1),), True), (((B, 0),), False)), 0, low, high, b'"')


def between(low: int, high: int | None) -> ir.Measured:
    """Letters, a colon, and letters again."""
    letters = ir.Chars(((97, 122), (233, 233)))
    first = (((letters, 1),), False)
    later = (((letters, 1), (ir.lit(":"), 2)), False)
    return ir.Measured((first, later, (((letters, 3),), False), (((letters, 3),), True)), 0, low, high, b'"')


def takes(text: ir.Measured, output: str) -> bool:
    matcher = compiled(ir.Rule("root", text)).matcher()
    return matcher.accept_bytes(output.encode()) and matcher.is_complete


MEASURED: list[tuple[ir.Measured, list[str], list[str]]] = [
    # text, outputs that it accepts, outputs that it refuses
    (loop(A, 0, 0), ['"'], ['a"']),
    (loop(A, 2, 3), ['aa"', 'aaa"'], ['"', 'a"', 'aaaa"', "aa"]),
    (loop(A, 2, None), ['aa"', "a" * 500 + '"'], ['"', 'a"']),
    (loop(ESCAPED, 2, 3), ['é🦋"', '\\n\\u00e9x"', '\\n\\n"'], ['\\u00e9"', 'é\\n\\nx"', '\\u00e"', "\\n\\n\\u00e"]),
    (pairs(0, 3), ['"', 'ab"'], ['a"', "aba", 'abab"']),
    (pairs(0, 4), ['"', 'ab"', 'abab"'], ['ababab"', "ababa"]),
    (between(0, 5), ['a:b"', 'aa:bb"', 'aaa:é"'], ["aaaa", 'aa:bbb"', "aaa:bb", ':a"']),
    (between(5, 6), ['aa:bb"', 'é:éééé"'], ['a:bb"', "aaaaa", 'aaa:bbb"']),
]


@pytest.mark.parametrize(("text", "yes", "no"), MEASURED)
def test_every_character_is_counted_however_it_is_spelled(text: ir.Measured, yes: list[str], no: list[str]) -> None:
    assert yes == [output for output in yes if takes(text, output)]
    assert [] == [output for output in no if takes(text, output)]


@pytest.mark.parametrize("most", [0, 4_000, 20_000, 1_000_000, 2**30 - 1])
def test_a_large_bound_is_counted_and_not_copied_out(most: int) -> None:
    matcher = compiled(ir.Rule("root", loop(A, most // 2, most))).matcher()
    whole = min(most, 20_000)
    assert matcher.accept_bytes(b"a" * whole)
    if whole == most:
        assert matcher.forced() == b'"'
        assert not matcher.fork().accept_bytes(b"a")
    assert matcher.accept_bytes(b'"') == (whole == most)


def test_a_text_goes_on_only_where_enough_characters_are_left_to_end_it() -> None:
    tokens = [b"a", b"a:", b":", b":b", b'b"', b'"', b"aa", b"a:b", b'a:b"', b"\xc3", b"\xa9"]
    matcher = compiled(ir.Rule("root", between(0, 4)), dt.Vocabulary(tokens)).matcher()
    assert mask(matcher) == {0, 1, 6, 7, 8, 9}
    assert matcher.accept(6)
    assert mask(matcher) == {2, 3}
    matcher.rollback(1)
    assert matcher.accept(9)
    assert mask(matcher) == {10}
    assert matcher.accept(10)
    assert mask(matcher) == {0, 1, 2, 3, 7, 8, 9}


def test_texts_that_differ_in_their_bounds_alone_share_what_is_known_of_them() -> None:
    known = dt.Vocabulary([bytes([byte]) for byte in range(256)])
    grammars = [dt.compile(ir.Rule("root", between(0, most)), known) for most in (100, 200, 300)]
    matchers = [grammar.matcher() for grammar in grammars]
    assert mask(matchers[0])
    before = known._store.automaton_bytes
    assert mask(matchers[0]) == mask(matchers[1]) == mask(matchers[2])
    assert known._store.automaton_bytes - before < 5_000


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (pairs(1, 4), "goes on from where it may end"),
        (loop(A, 3, 2), "reversed"),
        (loop(ir.lit('"'), 0, 2), "begins like its end"),
        (loop(ir.EMPTY, 0, 2), "must begin with a byte"),
        (loop(ir.Call(ir.Rule("a", ir.Alt((A, B)))), 0, 2), "must begin with a byte"),
        (loop(ir.Alt((WIDE, ir.lit("ab"))), 0, 2), "begins like another spelling"),
        (loop(A, 0, 2**30 + 1), "must be between"),
        (ir.Measured((), 0, 0, 1, b'"'), "no states"),
        (ir.Measured(((((A, 1),), True),), 0, 0, 1, b'"'), "must be between"),
        (ir.Measured(((((A, 0),), True),), 0, 0, 1, b""), "must end with something"),
        (ir.Measured(((((A, 0),), True),), 0, 0, 1, b"\xa9"), "must end with something"),
        (ir.Measured(((((A, 0),), False),), 0, 0, 1, b'"'), "matches nothing"),
        (between(0, 2), "matches nothing"),
    ],
)
def test_what_cannot_be_measured_is_refused(text: ir.Measured, problem: str) -> None:
    with pytest.raises(dt.GrammarError, match=problem):
        dt.compile(ir.Rule("root", text), byte_vocabulary()).matcher()


def test_the_shortest_text_has_no_more_characters_than_it_needs() -> None:
    for text, least in [
        (loop(A, 0, 9), 0),
        (loop(A, 4, 9), 4),
        (between(0, 9), 3),
        (between(7, 9), 7),
        (pairs(0, 9), 0),
    ]:
        found = b"".join(piece for piece in shortest(ir.Rule("root", text)) if isinstance(piece, bytes)).decode()
        assert takes(text, found)
        assert len(found) == least + 1


# Any automaton, bounds and vocabulary.


@settings(max_examples=200)
@given(seed=SEEDS, table=token_tables())
@pytest.mark.slow
def test_masks_of_measured_text_equal_brute_force_also_when_it_was_saved(seed: int, table: Tokens) -> None:
    dice = SeededDice(seed)
    rule = ir.Rule("root", ir.Seq((ir.optional(ir.lit("<")), make_measured(dice), ir.optional(A))))
    check_exact_masks(rule, table, dice)


@settings(max_examples=100)
@given(seed=SEEDS, factor=st.sampled_from((1, 7, 30)))
def test_every_text_within_bounds_can_be_finished(seed: int, factor: int) -> None:
    dice = SeededDice(seed)
    matcher = compiled(ir.Rule("root", make_measured(dice, factor))).matcher()
    for _ in range(1_500):
        allowed = mask(matcher)
        if matcher.is_complete:
            return
        assert allowed
        assert matcher.accept(dice.pick([byte for byte in b'ab<\\nu0"/>' if byte in allowed] or sorted(allowed)))


# Patterns of JSON Schema.


PATTERNS = [
    r"^\S+@\S+$",
    r"^[ab]+(-[ab]+)*$",
    r"^([ab]+):([ab-]+):([ab]+)?:(\w+)$",
    r"^\w.*\w$",
    r"a",
    r"^(ab|-)*$",
    r"-$",
]
TEXTS = st.text(st.sampled_from('ab-:@ é\n"'), max_size=14)


@st.composite
def schemas(draw: st.DrawFn) -> dict[str, object]:
    low = draw(st.integers(0, 6))
    high = draw(st.none() | st.integers(low, 12))
    limits = {"minLength": low, **({} if high is None else {"maxLength": high})}
    return {"type": "string", "pattern": draw(st.sampled_from(PATTERNS)), **limits}


@settings(max_examples=400)
@given(schema=schemas(), text=TEXTS)
def test_a_pattern_with_limits_takes_the_texts_that_keep_to_both(schema: dict[str, object], text: str) -> None:
    low, high = schema["minLength"], schema.get("maxLength", len(text))
    assert isinstance(low, int)
    assert isinstance(high, int)
    pattern = str(schema["pattern"]).replace("$", r"\Z")
    expected = re.search(pattern, text, re.ASCII) is not None and low <= len(text) <= high
    tag = {"type": "json_schema", "json_schema": schema}
    try:
        assert dt.accepts(tag, json.dumps(text, ensure_ascii=False)) == expected
        assert not text or not dt.accepts(tag, '"' + "".join(f"\\u{ord(char):04x}" for char in text) + '"')
    except dt.SchemaError:
        assert not expected
