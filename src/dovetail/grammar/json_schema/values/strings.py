"""Strings by length and pattern, between quotes or raw.

A pattern describes the decoded string. It is read as nodes over characters first; `quoted` then writes each of its
characters in its canonical spelling, and the quotes around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial

from dovetail.errors import LimitError
from dovetail.grammar import regex
from dovetail.grammar.ir import (
    ANY_CHAR,
    EMPTY,
    NOTHING,
    Call,
    Lit,
    Measured,
    Node,
    Repeat,
    Rule,
    Seq,
    Text,
    Unlisted,
    Without,
    alt,
    chars,
    complement,
    seq,
    walk,
)
from dovetail.grammar.regex.charset import Ranges

from .characters import (
    BACKSLASH,
    JSON_QUOTES,
    NEW_KEY,
    NEW_KEY_OF_FEW,
    QUOTE,
    AnyQuotes,
    KeyEnd,
    Quotes,
    RawQuotes,
    canonical,
    intersect,
)

MAX_PATTERNS = 100
MAX_ESCAPED = 1_000  # characters of an excluded text: its escapes are nested
ANYTHING: Node = Repeat(ANY_CHAR, 0, None)
_ESCAPE_BYTES = b"\\u0123456789abcdefnrt"
_NAME = "^[A-Za-z_][A-Za-z_0-9]*$"
_TEXT = r"^[^\0]+$"

Entities = tuple[tuple[str, str], ...]


@lru_cache(maxsize=1024)
def bounded(low: int, high: int | None, excludes: tuple[bytes, ...], quotes: AnyQuotes = JSON_QUOTES) -> Node:
    """A string of low to high characters, in any of their spellings."""
    if isinstance(quotes, RawQuotes):
        return quoted(language((), low, high), excludes, quotes)
    inside: Node = Repeat(quotes.free_char, low, high)
    return Call(Rule("string", Seq((quotes.mark, Without(inside, excludes) if excludes else inside, quotes.mark))))


@lru_cache(maxsize=1024)
def matching(
    patterns: tuple[str, ...], low: int, high: int | None, barred: tuple[str, ...] = (), quotes: AnyQuotes = JSON_QUOTES
) -> Node:
    """A string of low to high characters in which every pattern is found and none of `barred`."""
    _check_count(patterns, barred)
    measured = None if isinstance(quotes, RawQuotes) else regex.measured(patterns, barred, low, high)
    if measured is None or isinstance(quotes, RawQuotes):
        return quoted(language(patterns, low, high, barred), (), quotes)
    states, limits = measured
    if not states:
        return NOTHING
    spelled = tuple((tuple((canonical(ranges, quotes), to) for ranges, to in edges), ends) for edges, ends in states)
    return Call(Rule("pattern", Seq((quotes.mark, Measured(spelled, 0, *limits, quotes.mark.data)))))


def quoted(language: Node, excludes: tuple[bytes, ...] = (), quotes: AnyQuotes = JSON_QUOTES) -> Node:
    """A string that denotes a text of `language`, without escapes where these could make one of `excludes`."""
    if regex.is_empty(language):
        return NOTHING
    if isinstance(quotes, RawQuotes):
        return Call(Rule("raw", seq(quotes.mark, raw(language, quotes.mark.data, excludes))))
    if any(word[:1] in _ESCAPE_BYTES or b"\\" in word for word in excludes):
        language = regex.restrict(language, quotes.unescaped)
        inside = seq(quotes.mark, language, quotes.mark)
        return NOTHING if regex.is_empty(language) else Call(Rule("pattern", inside))
    return as_string(language, quotes)


@lru_cache(maxsize=1024)
def _escaped(quotes: Quotes, tail: Node) -> Node:
    """An escape with what follows it."""
    return Seq((BACKSLASH, Call(Rule("escaped", Seq((quotes.escape, tail))))))


def unlisted(words: Sequence[str], quotes: Quotes, tail: Node, end: Node) -> Node | None:
    """What is none of `words`, behind a quote, then `end`; `tail` is the rest of any. None if words have escapes."""
    if all(quotes.spelled(word) == word.encode() for word in words):
        return Unlisted(tuple(words), quotes.unescaped, tail, _escaped(quotes, tail), end)
    longest = max(map(len, words))
    if longest > MAX_ESCAPED:
        problem = f"a text of {longest} characters with escapes is excluded, more than {MAX_ESCAPED}"
        raise LimitError(problem, "", "use a shorter name, or set additionalProperties to false")
    return None


@lru_cache(maxsize=1024)
def as_string(language: Node, quotes: Quotes = JSON_QUOTES) -> Node:
    """A string that denotes a text of `language`, of which there are some; the same each time."""
    if isinstance(language, Unlisted):
        inside = unlisted(language.words, quotes, quotes.tail, quotes.mark)
        if inside is not None:
            return Call(Rule("pattern", Seq((quotes.mark, inside))))
    spelling = regex.Spelling(partial(canonical, quotes=quotes), lambda word: Lit(quotes.spelled(word)))
    # Where any text may follow, the tail is that of all keys and patterns.
    return Call(Rule("pattern", seq(quotes.mark, regex.closed(language, spelling, quotes.mark, quotes.tail))))


@lru_cache(maxsize=1024)
def language(
    patterns: tuple[str, ...],
    low: int = 0,
    high: int | None = None,
    barred: tuple[str, ...] = (),
    words: frozenset[str] = frozenset(),
    excludes: tuple[bytes, ...] = (),
) -> Node:
    """The decoded strings of low to high characters but `words` in which every pattern is found and none of `barred`.

    They contain none of `excludes`.
    """
    _check_count(patterns, barred)
    node = regex.language(patterns, barred, low, high, words)
    return regex.without(node, excludes) if excludes and node != NOTHING else node


def _check_count(patterns: tuple[str, ...], barred: tuple[str, ...]) -> None:
    if len(patterns) + len(barred) > MAX_PATTERNS:
        problem = f"{len(patterns) + len(barred)} patterns for one string are more than {MAX_PATTERNS}"
        raise LimitError(problem, "", "join them")


def contains(word: str, patterns: tuple[str, ...], barred: tuple[str, ...] = ()) -> bool:
    """Whether every pattern is found in `word`, and none of `barred`."""
    matched = [regex.admits(language((pattern,)), word) for pattern in (*patterns, *barred)]
    return all(matched[: len(patterns)]) and not any(matched[len(patterns) :])


def raw(language: Node, close: bytes, excludes: tuple[bytes, ...]) -> Node:
    """A text of `language` followed by `close`, which it does not contain itself."""
    *head, last = language.parts if isinstance(language, Seq) and language.parts else (language,)
    if isinstance(last, Repeat) and last.body == ANY_CHAR and (not last.low or _counts_up(close, excludes)):
        # Any characters at the end the core counts up to `close`, where that cannot have begun before.
        begins = chars((ord(word.decode()[0]),) * 2 for word in (close, *excludes))
        if regex.intersect(seq(*head), Seq((ANYTHING, begins, ANYTHING))) == NOTHING:
            return seq(*head, free(close, excludes, last.low, last.high))
    words = (close, *excludes)
    calls = any(isinstance(node, Call) for node in walk(language))
    return seq(regex.without(language, words) if calls else Without(language, words), Lit(close, special=True))


@lru_cache(maxsize=1024)
def free(close: bytes, excludes: tuple[bytes, ...], low: int, high: int | None) -> Node:
    """Any text of low to high characters up to `close`."""
    return Call(Rule("raw", Text(excludes, ((close, EMPTY),), None, max_chars=high, min_chars=low)))


def _counts_up(close: bytes, excludes: tuple[bytes, ...]) -> bool:
    """Whether free text can have a lower bound: its stop does not overlap itself, and some character always goes on."""
    overlaps = any(close.startswith(close[at:]) for at in range(1, len(close)))
    return not overlaps and len({byte for word in (close, *excludes) for byte in word if byte < 128}) < 128


# Keys of an object that are not declared: those that match a pattern, and all others; each in its one spelling.


def other_member(names: Sequence[str], end: KeyEnd) -> Node:
    """A JSON string that denotes none of `names`, with what follows it."""
    if not names:
        return Seq((QUOTE, end.inside))
    inside = unlisted(names, JSON_QUOTES, end.inside, end.quote)
    return quoted_member(language((), words=frozenset(names)), end) if inside is None else Seq((QUOTE, inside))


def quoted_member(keys: Node, end: KeyEnd) -> Node:
    """A JSON string that denotes a text of `keys`, with what follows it; the string is the same for all members."""
    if keys == ANYTHING:
        return other_member((), end)
    new = NEW_KEY if regex.grows(keys) else NEW_KEY_OF_FEW
    return Seq((as_string(keys, JSON_QUOTES), new, end.after))


def marked_key(names: Sequence[str], keys: Node | None, identifiers: bool, entities: Entities) -> Node:
    """A key that is none of `names`, and one of `keys` where these are given, with some characters as entities."""
    if keys is None:
        keys = language((_NAME if identifiers else _TEXT,), words=frozenset(names))
    return regex.mapped(keys, regex.Spelling.of(partial(_entity, entities))) if entities else keys


@lru_cache(maxsize=4096)
def _entity(entities: Entities, ranges: Ranges) -> Node:
    unescaped = intersect(ranges, complement((ord(char), ord(char)) for char, _ in entities).ranges)
    written = (Lit(name.encode()) for char, name in entities if intersect(ranges, ((ord(char), ord(char)),)))
    return alt(*([regex.chars(unescaped)] if unescaped else []), *written)
