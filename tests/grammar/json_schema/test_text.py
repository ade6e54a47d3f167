"""The spelling of JSON strings: one for what is declared or restricted, every one for free strings."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from dovetail.engine import accepts
from dovetail.grammar import ir
from dovetail.grammar.json_schema.values import characters, strings
from dovetail.grammar.json_schema.values.characters import JSON_QUOTES, key_end
from dovetail.grammar.json_schema.values.strings import other_member

SHORT = {'"': '\\"', "\\": "\\\\", "/": "\\/", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def spelling(char: str, way: int) -> str:
    """A character raw, in its short escape, or as code units in either case."""
    if way == 0 and char >= " " and char not in '"\\':
        return char
    if way == 1 and char in SHORT:
        return SHORT[char]
    units = char.encode("utf-16-be").hex()
    units = units.upper() if way == 2 else units
    return "".join(f"\\u{units[i : i + 4]}" for i in range(0, len(units), 4))


def canonical(word: str) -> str:
    return json.dumps(word, ensure_ascii=False)


def quoted(word: str) -> ir.Node:
    return JSON_QUOTES.around(JSON_QUOTES.spelled(word))


def other_key(names: list[str]) -> ir.Node:
    """A key of an object that is none of `names`, in front of nothing."""
    return other_member(names, key_end(ir.EMPTY, ir.EMPTY))


@st.composite
def spelled_texts(draw: st.DrawFn) -> tuple[str, str]:
    """A text and one of its spellings."""
    word = draw(texts)
    ways = draw(st.lists(st.integers(0, 3), min_size=len(word), max_size=len(word)) | st.just([-1]))
    if ways == [-1]:
        return word, canonical(word)
    return word, '"' + "".join(map(spelling, word, ways)) + '"'


@given(pair=spelled_texts(), other=texts)
def test_a_declared_text_has_one_spelling_and_a_free_one_all(pair: tuple[str, str], other: str) -> None:
    word, written = pair
    assert word == json.loads(written)
    assert accepts(ir.Rule("root", strings.bounded(0, None, ())), written)
    for node in (quoted(word), other_key([])):
        assert (written == canonical(word)) == accepts(ir.Rule("root", node), written)
    assert (written == canonical(other)) == accepts(ir.Rule("root", quoted(other)), written)


@given(
    words=st.lists(st.text("ab😀", max_size=4), min_size=1, max_size=6, unique=True), other=st.text("ab😀", max_size=4)
)
def test_one_of_several_words_is_known(words: list[str], other: str) -> None:
    node = ir.Rule("root", ir.alt(*map(quoted, words)))
    assert (other in words) == accepts(node, canonical(other))
    assert (other in words and other.isascii()) == accepts(node, json.dumps(other))


@given(
    names=st.lists(st.text('ab"é\n', max_size=3), max_size=5),
    pair=spelled_texts(),
    own=st.booleans(),
    at=st.integers(0, 9),
)
def test_another_key_is_none_of_the_names_in_its_one_spelling(
    names: list[str], pair: tuple[str, str], own: bool, at: int
) -> None:
    word, written = pair
    if own and names:
        word = names[at % len(names)]
        written = '"' + "".join(spelling(char, (at + i) % 4) for i, char in enumerate(word)) + '"'
    node = ir.Rule("root", other_key(names))
    assert (word not in names) == accepts(node, canonical(word))
    assert (word not in names and written == canonical(word)) == accepts(node, written)


@given(
    low=st.integers(0, 0x60) | st.integers(0, 0x10FFFF),
    size=st.integers(0, 0x60) | st.integers(0, 0x20000),
    code=st.integers(0, 0x60) | st.integers(0, 0x10FFFF),
    way=st.integers(0, 3),
)
def test_a_class_of_characters_has_one_spelling_for_each(low: int, size: int, code: int, way: int) -> None:
    high = min(low + size, 0x10FFFF)
    surrogates_alone = low >= 0xD800 and high <= 0xDFFF
    if not 0xD800 <= code <= 0xDFFF and not surrogates_alone:
        node = ir.Rule("root", characters.canonical(((low, high),), JSON_QUOTES))
        written = canonical(chr(code))[1:-1]
        assert (low <= code <= high) == accepts(node, written)
        other = spelling(chr(code), way)
        assert other == written or not accepts(node, other)
