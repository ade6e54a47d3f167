"""Law 1 (exact masks) over a vocabulary of 131,072 real tokens, where masks cross words, caches and shortcuts.

Every token is tried by its bytes over a vocabulary of single bytes, which the other laws compare with the definition.
"""

from __future__ import annotations

import codecs
import contextlib
import re
import string
from functools import cache
from pathlib import Path
from typing import Any

import mistral_common
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

import dovetail as dt
from tests.machines import byte_vocabulary, mask

FOLDER = Path(mistral_common.__file__).parent / "data"
PEOPLE = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 20},
        "role": {"enum": ["user", "użytkownik", "ユーザー"]},
        "age": {"type": "integer"},
        "tags": {"type": "array", "items": {"type": "string", "pattern": "^[a-zéß]{2,8}$"}, "maxItems": 3},
    },
    "required": ["name", "role"],
}
TOOLS = {
    "type": "sequence",
    "elements": [
        {"type": "tag", "begin": "<think>", "content": {"type": "any_text"}, "end": "</think>"},
        {
            "type": "triggered_tags",
            "triggers": ["<tool_call>"],
            "tags": [
                {
                    "type": "tag",
                    "begin": '<tool_call>\n{"name": "people", "arguments": ',
                    "content": {"type": "json_schema", "json_schema": PEOPLE},
                    "end": "}\n</tool_call>",
                }
            ],
            "excludes": ["<think>"],
        },
    ],
}
# Keys that are none of the declared ones, and patterns found anywhere: walks that known masks cut short.
OPEN = {
    "properties": {
        "na": {"pattern": r"\d{4}-[a-f]{3}"},
        "name": {"pattern": r"\.y[a]?ml$"},
        "名前": {"format": "hostname"},
        "é": {"pattern": "^(?:ab){2,9}.*$", "maxLength": 30},
    }
}
# Loops over many characters: in several stacks, some characters ahead, behind a space, behind a call, with a few
# characters missing, and counted.
LOOPS = {
    "properties": {
        "words": {"pattern": r"^(?:\S+\s+){0,9}\S+$"},
        "media": {"pattern": r"^[a-z]+(?:\s*;\s*[a-z\d][\w!#-]+=[a-z\d]\w+)*$"},
        "codes": {"pattern": r"^([0-9A-Za-z]{6})|([0-9A-Za-z]{9})$"},
        "version": {"pattern": r"^(\d{1,5})(?:\.(\d{1,5}))?(-[a-zA-Z0-9_\-]+)?$"},
        "signs": {"pattern": r"^[^\w\\]*[A-Z][A-Z0-9_]+x\W+$"},
        "holes": {"pattern": "^[^あ-う€/]+(/[^、]+)?$"},
        "lines": {"pattern": r"^$|^(?:\S+\s+){0,3}\S+$", "maxLength": 40},
        "keys": {"type": "object", "patternProperties": {"^[^-。]+$": {"type": "integer"}}},
    }
}
NOTE = {"type": "object", "properties": {"note": {"type": "string", "minLength": 12, "maxLength": 31}}}
CALL = (
    '<tool_call>\n{"name": "people", "arguments": '
    '{"name": "Łódź \\"€\\"", "role": "ユーザー", "tags": ["aé", "ßß"]}}\n</tool_call>'
)
CASES: list[tuple[str, Any, str]] = [
    ("tools", TOOLS, f"<think>Überlegen… 1 < 2\n\n</think>Let me look 👀. {CALL} Done."),
    (
        "open",
        {"type": "json_schema", "json_schema": OPEN, "strict": False},
        '{"na": "in 2024-feed", "name": "ü.yaml", "名前": "a-b.example", "é": "ababab…", '
        '"nam": 1, "na\\u001fm\\n€": {}, "名": []}',
    ),
    (
        "loops",
        {"type": "json_schema", "json_schema": LOOPS},
        '{"words": "The lab\\nis 日本 \\" a", "media": "text ; charset=utf8", "codes": "abc12345z", '
        '"version": "0.12-a", "signs": "-- A_1x…", "holes": "かな a/あ", "lines": "日本 の\u3000 à", '
        '"keys": {"あa": 1, "。": 2}}',
    ),
    ("regex", {"type": "regex", "pattern": r"(\p{L}+ ){2,4}[^a-z]{3,10}\d{4}-\d\d"}, "Grüße aus KÖLN 🙂🙂🙂2024-01"),
    (
        "grammar",
        {"type": "grammar", "grammar": 'root ::= root [+-] n | n\nn ::= [0-9]+ | "(" root ")"'},
        "1+(22-(3+44))-5",
    ),
    ("text", {"type": "any_text", "excludes": ["STOP", "結束"]}, "naïve café 結 STO 👩‍👩‍👧"),
    (
        "bounded text",
        {"type": "json_schema", "json_schema": NOTE, "style": "qwen_xml", "pad": "\n"},
        "<parameter=note>\nthe </b> 👩‍👩‍👧 and </parameter\n</parameter>",
    ),
]


@cache
def tekken() -> tuple[Tekkenizer, dt.Vocabulary, list[bytes]]:
    tokenizer = Tekkenizer.from_file(FOLDER / "tekken_240911.json")
    special = tokenizer.num_special_tokens
    tokens = [b""] * special
    tokens += [tokenizer.id_to_byte_piece(index) for index in range(special, tokenizer.n_words)]
    return tokenizer, dt.Vocabulary(tokens, {f"<special_{i}>": i for i in range(special)}, [2]), tokens


@pytest.mark.parametrize(("fmt", "text"), [(fmt, text) for _, fmt, text in CASES], ids=[name for name, _, _ in CASES])
def test_masks_of_a_real_vocabulary_equal_brute_force(fmt: Any, text: str) -> None:
    tokenizer, vocabulary, tokens = tekken()
    path = tokenizer.encode(text, bos=False, eos=False)
    # Each prefix twice: with cold caches, and then with what the first walk left behind.
    for _ in range(2):
        matcher, by_bytes = dt.compile(fmt, vocabulary).matcher(), dt.compile(fmt, byte_vocabulary()).matcher()
        for step, token in enumerate(path):
            if step % 4 == 0:
                assert brute_force(by_bytes, tokens) == mask(matcher) - {2}
                assert (2 in mask(matcher)) == by_bytes.is_complete
            assert matcher.accept(token)
            assert by_bytes.accept_bytes(tokens[token])
        assert matcher.is_complete


def brute_force(by_bytes: dt.Matcher, tokens: list[bytes]) -> set[int]:
    """Every token whose bytes may come next; a prefix that failed is not tried again."""
    allowed = set()
    failed: set[bytes] = set()
    for index, data in enumerate(tokens):
        if not data or any(data[:size] in failed for size in range(1, len(data))):
            continue
        if by_bytes.accept_bytes(data):
            by_bytes.rollback(1)
            allowed.add(index)
        elif len(data) <= 2:
            failed.add(data)
    return allowed


def test_masks_that_were_evicted_are_made_again() -> None:
    tokenizer, vocabulary, tokens = tekken()
    fmt = {"type": "json_schema", "json_schema": OPEN, "strict": False}
    special = {f"<special_{i}>": i for i in range(tokenizer.num_special_tokens)}
    small = dt.Vocabulary(tokens, special, [2], cache_bytes=200_000)
    matcher, oracle = dt.compile(fmt, small).matcher(), dt.compile(fmt, vocabulary).matcher()
    for token in tokenizer.encode('{"na": "2024-abc", "x": "y", "nam": ["é", {"a": 1}]}', bos=False, eos=False):
        assert mask(oracle) == mask(matcher)
        assert matcher.accept(token)
        assert oracle.accept(token)
    assert small.memory()["masks"] < 1_000_000


@cache
def spelled() -> list[tuple[int, str, bytes]]:
    """The tokens that may stand in a text: what is whole of each, and the bytes of a character that it begins."""
    _, _, tokens = tekken()
    found = []
    for index, data in enumerate(tokens):
        reader = codecs.getincrementaldecoder("utf-8")()
        with contextlib.suppress(UnicodeDecodeError):
            whole = reader.decode(data)
            if data:
                found.append((index, whole, reader.getstate()[0]))
    return found


@given(
    st.sets(st.sampled_from([string.ascii_uppercase, string.digits, *string.punctuation, " "])),
    st.none() | st.sets(st.sampled_from("\u00e9\u00a0\u2028。、あ日\ufeff👩"), max_size=3),
    st.booleans(),
)
@settings(max_examples=25)
def test_loops_over_any_characters(more: set[str], holes: set[str] | None, spaced: bool) -> None:
    """Of a set of characters only what it adds to one that is known is looked at."""
    _, vocabulary, _ = tekken()
    ascii_chars = {*string.ascii_lowercase, *"".join(more)} - {" " if spaced else ""}
    missing = {chr(code) for code in range(0x80)} - ascii_chars | (holes or set())
    chars = f"[^{quoted(missing)}]" if holes is not None else f"[{quoted(ascii_chars)}]"
    words = f"(?: {chars}+)" if spaced else chars
    matcher = dt.compile({"type": "regex", "pattern": f"^{words}+\\n$"}, vocabulary).matcher()
    goes_on, ends = re.compile(f"{words}*{' ?' if spaced else ''}"), re.compile(f"{words}+\n")
    expected = set()
    for index, whole, begun in spelled():
        may_begin = holes is not None and (whole or not spaced)  # a character beyond ASCII
        if (ends.fullmatch(whole) and not begun) or (goes_on.fullmatch(whole) and (not begun or may_begin)):
            expected.add(index)
    assert mask(matcher) - {2} == expected


def quoted(chars: set[str]) -> str:
    return "".join(f"\\u{ord(char):04x}" if ord(char) < 0x10000 else char for char in sorted(chars))
