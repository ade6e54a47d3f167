"""Strings by length and pattern, between quotes or raw.

A pattern describes the decoded string. It is read as nodes over characters first; `quoted` then writes each of its
characters in its canonical spelling, and the quotes around them.
"""

from __future__ import annotations

from functools import lru_cache, partial

from dovetail.errors import LimitError
from dovetail.grammar import regex
from dovetail.grammar.ir import (
    ANY_CHAR,
    EMPTY,
    NOTHING,
    Alt,
    Call,
    Chars,
    Lit,
    Measured,
    Node,
    Repeat,
    Rule,
    Seq,
    Text,
    Without,
    alt,
    walk,
)

from .memory import by_identity
from .text import JSON_QUOTES, AnyQuotes, Quotes, RawQuotes, canonical, concat

MAX_PATTERNS = 100
ANYTHING: Node = Repeat(ANY_CHAR, 0, None)
_ESCAPE_BYTES = b"\\u0123456789abcdefnrt"


@lru_cache(maxsize=1024)
def bounded(low: int, high: int | None, excludes: tuple[bytes, ...], quotes: AnyQuotes = JSON_QUOTES) -> Node:
    """A string of low to high characters, in any of their spellings."""
    if isinstance(quotes, RawQuotes):
        return quoted(language((), low, high), excludes, quotes)
    inside: Node = Repeat(quotes.free_char, low, high)
    return Call(Rule("string", Seq((quotes.mark, Without(inside, excludes) if excludes else inside, quotes.mark))))


@lru_cache(maxsize=1024)
def matching(
    patterns: tuple[str, ...],
    low: int,
    high: int | None,
    barred: tuple[str, ...] = (),
    quotes: AnyQuotes = JSON_QUOTES,
) -> Node:
    """A string of low to high characters in which every pattern is found and none of `barred`."""
    _check_count(patterns, barred)
    found = None if isinstance(quotes, RawQuotes) else regex.measured(patterns, barred, low, high)
    if found is None or isinstance(quotes, RawQuotes):
        return quoted(language(patterns, low, high, barred), (), quotes)
    states, limits = found
    if not states:
        return NOTHING
    spelled = tuple((tuple((canonical(ranges, quotes), to) for ranges, to in edges), ends) for edges, ends in states)
    return Call(Rule("pattern", Seq((quotes.mark, Measured(spelled, 0, *limits, quotes.mark.data)))))


def quoted(language: Node, excludes: tuple[bytes, ...] = (), quotes: AnyQuotes = JSON_QUOTES) -> Node:
    """A string that denotes a text of `language`, without escapes where these could make one of `excludes`."""
    if regex.is_empty(language):
        return NOTHING
    if isinstance(quotes, RawQuotes):
        return Call(Rule("raw", concat(quotes.mark, raw(language, quotes.mark.data, excludes))))
    if any(word[:1] in _ESCAPE_BYTES or b"\\" in word for word in excludes):
        language = regex.restrict(language, quotes.unescaped)
        inside = concat(quotes.mark, language, quotes.mark)
        return NOTHING if regex.is_empty(language) else Call(Rule("pattern", inside))
    return as_string(language, quotes)


@by_identity(1024)
def as_string(language: Node, quotes: Quotes = JSON_QUOTES) -> Node:
    """A string that denotes a text of `language`, of which there are some; the same each time."""
    spelling = regex.Spelling(partial(canonical, quotes=quotes), lambda word: Lit(quotes.spelled(word)))
    # Where any text may follow, the tail is that of all keys and patterns.
    return Call(Rule("pattern", concat(quotes.mark, regex.closed(language, spelling, quotes.mark, quotes.tail))))


@lru_cache(maxsize=1024)
def language(patterns: tuple[str, ...], low: int, high: int | None, barred: tuple[str, ...] = ()) -> Node:
    """The decoded strings of low to high characters in which every pattern is found and none of `barred`."""
    _check_count(patterns, barred)
    return regex.language(patterns, barred, low, high)


@lru_cache(maxsize=1024)
def other_than(
    words: frozenset[str],
    low: int = 0,
    high: int | None = None,
    patterns: tuple[str, ...] = (),
    barred: tuple[str, ...] = (),
    excludes: tuple[bytes, ...] = (),
) -> Node:
    """The strings of `language` that are none of `words` and contain none of `excludes`."""
    _check_count(patterns, barred)
    found = regex.language(patterns, barred, low, high, words)
    return regex.without(found, excludes) if excludes and found != NOTHING else found


def _check_count(patterns: tuple[str, ...], barred: tuple[str, ...]) -> None:
    if len(patterns) + len(barred) > MAX_PATTERNS:
        problem = f"{len(patterns) + len(barred)} patterns for one string are more than {MAX_PATTERNS}"
        raise LimitError(problem, "", "join them")


def contains(word: str, patterns: tuple[str, ...], barred: tuple[str, ...] = ()) -> bool:
    """Whether every pattern is found in `word`, and none of `barred`."""
    found = [regex.admits(language((pattern,), 0, None), word) for pattern in (*patterns, *barred)]
    return all(found[: len(patterns)]) and not any(found[len(patterns) :])


def raw(language: Node, close: bytes, excludes: tuple[bytes, ...]) -> Node:
    """A text of `language` followed by `close`, which it does not contain itself."""
    ways = [
        _free_at_last(way, close, excludes) for way in (language.parts if isinstance(language, Alt) else (language,))
    ]
    if NOTHING not in ways:
        return alt(*ways)
    if any(isinstance(node, Call) for node in walk(language)):
        return concat(regex.without(language, (close, *excludes)), Lit(close, special=True))
    barred = tuple(word for word in (close, *excludes) if _may_contain(language, word.decode()[0]))
    return concat(Without(language, barred) if barred else language, Lit(close, special=True))


def _free_at_last(language: Node, close: bytes, excludes: tuple[bytes, ...]) -> Node:
    """The same for a text that ends with any characters, which the core counts up to `close`; NOTHING for others."""
    *head, last = language.parts if isinstance(language, Seq) and language.parts else (language,)
    if not isinstance(last, Repeat) or last.body != ANY_CHAR or (last.low and not _counts_up(close, excludes)):
        return NOTHING
    if any(_may_contain(part, word.decode()[0]) for part in head for word in (close, *excludes)):
        return NOTHING
    return concat(*head, free(close, excludes, last.low, last.high))


@lru_cache(maxsize=1024)
def free(close: bytes, excludes: tuple[bytes, ...], low: int, high: int | None) -> Node:
    """Any text of low to high characters up to `close`."""
    return Call(Rule("raw", Text(excludes, ((close, EMPTY),), None, max_chars=high, min_chars=low)))


def _counts_up(close: bytes, excludes: tuple[bytes, ...]) -> bool:
    """Whether free text can have a lower bound: its stop does not overlap itself, and some character always goes on."""
    overlaps = any(close.startswith(close[at:]) for at in range(1, len(close)))
    return not overlaps and len({byte for word in (close, *excludes) for byte in word if byte < 128}) < 128


def _may_contain(language: Node, char: str) -> bool:
    code = ord(char)
    for node in walk(language):
        if isinstance(node, Call):
            return True
        if isinstance(node, Lit) and char.encode() in node.data:
            return True
        if isinstance(node, Chars) and any(low <= code <= high for low, high in node.ranges):
            return True
    return False
