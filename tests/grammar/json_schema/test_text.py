"""The spelling of JSON strings."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from dovetail.engine import accepts
from dovetail.grammar import ir
from dovetail.grammar.json_schema import text
from dovetail.grammar.json_schema.keys import json_key

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


@st.composite
def spelled_texts(draw: st.DrawFn) -> tuple[str, str]:
    """A text and one of its spellings."""
    word = draw(texts)
    return word, "".join(spelling(char, draw(st.integers(0, 3))) for char in word)


@given(pair=spelled_texts(), other=texts)
def test_a_text_is_known_in_all_its_spellings(pair: tuple[str, str], other: str) -> None:
    word, written = pair
    assert word == json.loads(f'"{written}"')
    assert accepts(ir.Rule("root", text.spell_text(word)), written)
    assert accepts(ir.Rule("root", text.STRING), f'"{written}"')
    assert (word == other) == accepts(ir.Rule("root", text.spell_text(other)), written)


@given(
    words=st.lists(st.text("ab😀", max_size=4), min_size=1, max_size=6, unique=True), other=st.text("ab😀", max_size=4)
)
def test_one_of_several_words_is_known(words: list[str], other: str) -> None:
    node = ir.alt(*map(text.quoted, words))
    assert (other in words) == accepts(ir.Rule("root", node), json.dumps(other, ensure_ascii=False))
    assert (other in words) == accepts(ir.Rule("root", node), json.dumps(other))


@given(
    names=st.lists(st.text('ab"é', max_size=3), max_size=5),
    pair=spelled_texts(),
    own=st.booleans(),
    at=st.integers(0, 9),
)
def test_another_key_is_none_of_the_names_in_any_spelling(
    names: list[str], pair: tuple[str, str], own: bool, at: int
) -> None:
    word, written = pair
    if own and names:
        word = names[at % len(names)]
        written = "".join(spelling(char, (at + i) % 4) for i, char in enumerate(word))
    node = json_key(names, text.pieces(0, ()))
    assert (word not in names) == accepts(ir.Rule("root", node), f'"{written}"')


@given(low=st.integers(0, 0x10FFFF), size=st.integers(0, 0x20000), code=st.integers(0, 0x10FFFF), way=st.integers(0, 3))
def test_a_class_of_characters_is_known_in_all_spellings(low: int, size: int, code: int, way: int) -> None:
    high = min(low + size, 0x10FFFF)
    surrogates_alone = low >= 0xD800 and high <= 0xDFFF
    if not 0xD800 <= code <= 0xDFFF and not surrogates_alone:
        node = ir.Rule("root", text.spell(((low, high),)))
        assert (low <= code <= high) == accepts(node, spelling(chr(code), way))


@given(
    letters=st.frozensets(st.characters(max_codepoint=0x7F)),
    char=st.characters(max_codepoint=0x9F) | st.characters(exclude_categories=["Cs"]),
    way=st.integers(1, 3),
)
def test_escapes_of_other_characters_leave_out_the_letters_alone(letters: frozenset[str], char: str, way: int) -> None:
    others = ir.Rule("root", ir.Call(text.ESCAPES.others["".join(sorted(letters))]))
    assert accepts(others, spelling(char, way)[1:]) == (char not in letters)
    # As the core itself writes them, behind the lead.
    unlisted = ir.Rule("root", ir.Unlisted(tuple(letters), text.ESCAPES, ir.EMPTY, ir.NOTHING))
    assert accepts(unlisted, spelling(char, way)) == (char not in letters)
