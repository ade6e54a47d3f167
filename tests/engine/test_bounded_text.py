"""Free text that counts its characters and reads its own stop."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dovetail as dt
from dovetail.grammar import ir
from tests.machines import byte_vocabulary, check_exact_masks, compiled, mask
from tests.strategies import SeededDice, Tokens, token_tables

SEEDS = st.integers(0, 2**32)
TAG = b"</p>"


def stopping(*stops: bytes, least: int = 0, most: int | None = None, excludes: tuple[bytes, ...] = ()) -> ir.Text:
    return ir.Text(excludes, tuple((stop, ir.EMPTY) for stop in stops), None, max_chars=most, min_chars=least)


def takes(text: ir.Text, data: bytes) -> bool:
    matcher = compiled(ir.Rule("root", text)).matcher()
    return matcher.accept_bytes(data) and matcher.is_complete


BOUNDED: list[tuple[ir.Text, list[str], list[str]]] = [
    # text, outputs that it accepts, outputs that it refuses
    (stopping(TAG, most=0), ["</p>"], ["a</p>", "<</p>"]),
    (stopping(TAG, most=3), ["</p>", "abc</p>", "</p</p>", "é🦋€</p>"], ["abcd</p>", "<</p</p>", "a</p>b</p>"]),
    (stopping(TAG, least=2), ["ab</p>", "</</p>", "é🦋</p>", "a</p</p>"], ["</p>", "a</p>", "🦋</p>", "a</p></p>"]),
    (stopping(TAG, least=2, most=2), ["ab</p>", "a<</p>", "</</p>"], ["a</p>", "abc</p>", "<</</p>"]),
    (stopping(TAG, least=1, most=6, excludes=(b"<b",)), ["a<</p>", "b<</p>"], ["<b</p>", "</p>", "1234567</p>"]),
    (stopping(b"aba", most=2), ["aba", "baba", "bbaba"], ["abaa", "ababa", "bbbaba"]),
    (stopping(b"a", b"baa", most=0), ["a"], ["ba", "baa"]),
    (stopping(b"<", b"<p", least=1, most=1), ["a<", "a<p"], ["<", "<p", "ab<", "<p<", "a<p<"]),
    (stopping("｜é".encode(), least=1, most=1), ["é｜é", "｜｜é"], ["｜é", "｜é｜é", "éé｜é"]),
]


@pytest.mark.parametrize(("text", "yes", "no"), BOUNDED)
def test_what_stands_before_the_stop_is_counted(text: ir.Text, yes: list[str], no: list[str]) -> None:
    assert yes == [output for output in yes if takes(text, output.encode())]
    assert [] == [output for output in no if takes(text, output.encode())]


@pytest.mark.parametrize("most", [0, 4_000, 20_000, 1_000_000, 2**30])
def test_a_large_bound_is_counted_and_not_copied_out(most: int) -> None:
    matcher = compiled(ir.Rule("root", stopping(TAG, least=most // 2, most=most))).matcher()
    whole = min(most, 20_000)
    assert matcher.accept_bytes(b"a" * whole)
    if whole == most:
        assert matcher.forced() == TAG
        assert not matcher.fork().accept_bytes(b"a")
    assert matcher.accept_bytes(TAG) == (whole == most)


def test_only_the_stop_is_allowed_when_no_character_is_left() -> None:
    tokens = [b"a", b"<", b"</", b"/p>", b"</p>", b"<a", b"a<", b"a</p>", b"</p>b", b"<</p>"]
    matcher = compiled(ir.Rule("root", stopping(TAG, least=1, most=2)), dt.Vocabulary(tokens)).matcher()
    assert mask(matcher) == {0, 1, 2, 5, 6, 7, 9}
    assert matcher.accept(1)
    # The stop that the first "<" could begin would leave the text without a character.
    assert mask(matcher) == {0, 1, 2, 4, 6, 7, 9}
    assert matcher.accept(1)
    assert mask(matcher) == {1, 2, 3, 4}
    matcher.rollback(1)
    assert matcher.accept(0)
    assert mask(matcher) == {1, 2, 4}


def test_a_special_token_is_part_of_a_stop_where_the_text_may_end() -> None:
    tokens = [b"a", b"<", b"<s>", b"!", b"b"]
    known = dt.Vocabulary(tokens, {"<s>": 2})
    matcher = compiled(ir.Rule("root", stopping(b"<s>!", least=1, most=2)), known).matcher()
    assert mask(matcher) == {0, 1, 3, 4}
    assert matcher.accept(0)
    assert mask(matcher) == {0, 1, 2, 3, 4}
    assert matcher.accept(3)
    assert mask(matcher) == {1, 2}
    assert matcher.accept(2)
    assert mask(matcher) == {3}
    # What begins behind the special token, and is whole first, is no part of that stop.
    cut = compiled(ir.Rule("root", stopping(b"<s>ba", b"b", most=2)), known).matcher()
    assert mask(cut) == {0, 1, 3, 4}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (stopping(b"aba", least=1), "begin inside another"),
        (stopping(b"ab", b"bc", least=1), "begin inside another"),
        (stopping(b"abc", b"b", least=1), "begin inside another"),
        (stopping(*(bytes((byte,)) for byte in range(128)), least=1), "one of ASCII"),
        (stopping(TAG, least=3, most=2), "reversed"),
        (stopping(b"\xa9", most=2), "whole one"),
        (ir.Text(stops=((TAG, ir.EMPTY),), max_tokens=3), "cannot have stops"),
        (ir.Text(max_tokens=3, min_chars=1), "not both"),
        (ir.Text(min_chars=2**30 + 1), "min_chars must be"),
    ],
)
def test_bounds_that_cannot_be_counted_are_refused(text: ir.Text, problem: str) -> None:
    with pytest.raises(dt.GrammarError, match=problem):
        dt.compile(ir.Rule("root", text), byte_vocabulary()).matcher()


# Any bounds, stops and excludes.


LETTERS = ("a", "b", "<", "/", "é", "🦋")
words = st.lists(st.sampled_from(LETTERS), min_size=1, max_size=4).map(lambda letters: "".join(letters).encode())


@st.composite
def bounded_texts(draw: st.DrawFn) -> ir.Text:
    least = draw(st.integers(0, 4))
    most = draw(st.none() | st.integers(least, least + 4))
    stops = tuple((stop, ir.EMPTY) for stop in draw(st.lists(words, min_size=1, max_size=3, unique=True)))
    after = draw(st.sampled_from((None, None, ir.EMPTY)))
    return ir.Text(tuple(draw(st.lists(words, max_size=2))), stops, after, (), most, min_chars=least)


@st.composite
def outputs(draw: st.DrawFn, text: ir.Text) -> bytes:
    pieces = [letter.encode() for letter in LETTERS] + [stop for stop, _ in text.stops]
    return b"".join(draw(st.lists(st.sampled_from(pieces), max_size=8))) + draw(st.sampled_from(pieces))


def ways(text: ir.Text, data: bytes) -> Iterator[bytes]:
    """What may stand before the end of `data`: all of it, or what is before the stop that is whole first."""
    if text.after is not None:
        yield data
    stops = [stop for stop, _ in text.stops]
    places = [(at, stop) for stop in stops for at in range(len(data)) if data.startswith(stop, at)]
    # Nothing begins behind an excluded string: the text is no text there.
    places = [(at, stop) for at, stop in places if not any(word in data[:at] for word in text.excludes)]
    first = min((at + len(stop) for at, stop in places), default=0)
    yield from (data[:at] for at, stop in places if at + len(stop) == first and data[at:] in stops)


def is_text(text: ir.Text, data: bytes) -> bool:
    try:
        size = len(data.decode())
    except UnicodeDecodeError:
        return False
    barred = (*text.excludes, *(stop for stop, _ in text.stops))
    return text.min_chars <= size <= (size if text.max_chars is None else text.max_chars) and not any(
        word in data for word in barred
    )


@settings(max_examples=500)
@given(data=st.data(), text=bounded_texts(), cuts=st.lists(st.integers(0, 40), max_size=4))
def test_a_text_is_what_stands_before_its_first_stop_however_it_is_cut(
    data: st.DataObject, text: ir.Text, cuts: list[int]
) -> None:
    output = data.draw(outputs(text))
    matcher = compiled(ir.Rule("root", text)).matcher()
    chunks = [output[start:end] for start, end in pairwise((0, *sorted(cuts), len(output)))]
    taken = all(matcher.accept_bytes(chunk) for chunk in chunks)
    assert any(is_text(text, value) for value in ways(text, output)) == (taken and matcher.is_complete)


@settings(max_examples=120)
@given(text=bounded_texts(), table=token_tables(), seed=SEEDS)
@pytest.mark.slow
def test_masks_of_bounded_text_equal_brute_force_also_when_it_was_saved(
    text: ir.Text, table: Tokens, seed: int
) -> None:
    rule = ir.Rule("root", ir.Seq((text, ir.optional(ir.lit("a")))))
    check_exact_masks(rule, table, SeededDice(seed))


@settings(max_examples=100)
@given(text=bounded_texts(), factor=st.sampled_from((1, 7, 30)), seed=SEEDS)
def test_every_text_within_bounds_can_be_finished(text: ir.Text, factor: int, seed: int) -> None:
    most = None if text.max_chars is None else text.max_chars * factor
    wide = stopping(*dict(text.stops), least=text.min_chars * factor, most=most, excludes=text.excludes)
    matcher = compiled(ir.Rule("root", wide)).matcher()
    dice = SeededDice(seed)
    letters = sorted({byte for letter in LETTERS for byte in letter.encode()})
    for _ in range(400):
        allowed = mask(matcher)
        if matcher.is_complete:
            return
        assert allowed
        assert matcher.accept(dice.pick([byte for byte in letters if byte in allowed] or sorted(allowed)))
    assume(most is None)
