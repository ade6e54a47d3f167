"""Strings by length and pattern, as JSON text or raw.

A pattern describes the decoded string. It is read as nodes over characters first; `spelled` then writes each of its
characters as JSON may spell it.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import groupby
from operator import itemgetter

from dovetail.grammar import regex
from dovetail.grammar.ir import (
    ANY_CHAR,
    EMPTY,
    NOTHING,
    Call,
    Chars,
    Lit,
    Node,
    Repeat,
    Rule,
    Seq,
    Without,
    alt,
    complement,
    walk,
)

from .text import CHAR, QUOTE, concat, spell

Span = tuple[int, int | None]  # fewest and most characters


@lru_cache(maxsize=1024)
def bounded(low: int, high: int | None, excludes: tuple[bytes, ...]) -> Node:
    """A JSON string of low to high characters."""
    inside: Node = Repeat(CHAR, low, high)
    return Call(Rule("string", Seq((QUOTE, Without(inside, excludes) if excludes else inside, QUOTE))))


@lru_cache(maxsize=1024)
def matching(patterns: tuple[str, ...], low: int, high: int | None, barred: tuple[str, ...] = ()) -> Node:
    """A JSON string of low to high characters in which every pattern is found and none of `barred`."""
    return quoted(language(patterns, low, high, barred))


def quoted(text: Node) -> Node:
    """A JSON string that denotes one of the texts of `text`."""
    return text if text == NOTHING else Call(Rule("pattern", concat(QUOTE, spelled(text), QUOTE)))


@lru_cache(maxsize=1024)
def language(patterns: tuple[str, ...], low: int, high: int | None, barred: tuple[str, ...] = ()) -> Node:
    """The decoded strings of low to high characters in which every pattern is found and none of `barred`."""
    return regex.language(patterns, barred, low, high)


@lru_cache(maxsize=1024)
def other_than(
    words: frozenset[str],
    low: int = 0,
    high: int | None = None,
    patterns: tuple[str, ...] = (),
    barred: tuple[str, ...] = (),
) -> Node:
    """The strings of `language` that are none of `words`."""
    text = language(patterns, low, high, barred)
    fitting = [word for word in sorted(words) if low <= len(word) and (high is None or len(word) <= high)]
    if not fitting or text == NOTHING:
        return text
    if patterns or barred:
        return regex.intersect(text, barred=[Lit(word.encode()) for word in fitting])
    return _outside(fitting, low, high)


def _outside(words: list[str], low: int, high: int | None, depth: int = 0) -> Node:
    """Any rest of low to high characters of a string in order that is no rest of `words` behind `depth` characters."""
    ways: list[Node] = [EMPTY] if low <= depth and words[0][depth:] else []
    taken: list[str] = []
    for char, group in groupby((word for word in words if word[depth:]), itemgetter(depth)):
        taken.append(char)
        inner = _outside(list(group), low, high, depth + 1)
        if inner != NOTHING:
            ways.append(concat(Lit(char.encode()), inner))
    if high is None or depth < high:
        others = complement((ord(char), ord(char)) for char in taken)
        ways.append(concat(others, _sized(max(low - depth - 1, 0), None if high is None else high - depth - 1)))
    return alt(*ways)


def _sized(low: int, high: int | None) -> Node:
    return Repeat(ANY_CHAR, low, high)


def contains(text: str, patterns: tuple[str, ...]) -> bool:
    """Whether every pattern is found in `text`."""
    return not patterns or regex.intersect(Lit(text.encode()), language(patterns, 0, None)) != NOTHING


def spelled(node: Node) -> Node:
    """`node` with every character as JSON may spell it inside a string."""
    return regex.mapped(node, spell)


def raw(text: Node, close: bytes, excludes: tuple[bytes, ...]) -> Node:
    """`text` followed by `close`, which it does not contain itself."""
    barred = tuple(word for word in (close, *excludes) if _may_contain(text, word.decode()[0]))
    return concat(Without(text, barred) if barred else text, Lit(close))


def _may_contain(text: Node, char: str) -> bool:
    code = ord(char)
    for node in walk(text):
        if isinstance(node, Lit) and char.encode() in node.data:
            return True
        if isinstance(node, Chars) and any(low <= code <= high for low, high in node.ranges):
            return True
    return False
