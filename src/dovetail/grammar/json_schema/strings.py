"""Strings by length and pattern, as JSON text or raw.

A pattern describes the decoded string. It is read as nodes over characters first; `spelled` then writes each of its
characters as JSON may spell it.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from itertools import groupby
from operator import itemgetter

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
    Node,
    Repeat,
    Rule,
    Seq,
    Without,
    alt,
    complement,
    walk,
)

from .text import CHAR, QUOTE, Ranges, concat, spell

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
    nodes = [regex.search(pattern) for pattern in patterns]
    if NOTHING in nodes:
        return NOTHING
    if barred:
        return regex.intersect(*nodes, _sized(low, high), barred=[regex.search(pattern) for pattern in barred])
    if not nodes:
        return _sized(low, high)
    return _limit(nodes[0] if len(nodes) == 1 else regex.intersect(*nodes), low, high)


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


def _limit(node: Node, low: int, high: int | None) -> Node:
    """The texts of `node` that have low to high characters."""
    narrowed = _narrow(node, low, high)
    return regex.intersect(node, _sized(low, high)) if narrowed is None else narrowed


def _span(node: Node) -> Span:
    match node:
        case Lit(data):
            size = len(data.decode())
            return size, size
        case Chars():
            return 1, 1
        case Seq(parts):
            spans = [_span(part) for part in parts]
            return sum(low for low, _ in spans), _sum([high for _, high in spans])
        case Alt(parts):
            spans = [_span(part) for part in parts]
            highs = [high for _, high in spans]
            most = None if None in highs else max((high or 0 for high in highs), default=0)
            return min((low for low, _ in spans), default=0), most
        case Repeat(body, low, high):
            fewest, most = _span(body)
            return fewest * low, 0 if most == 0 or high == 0 else None if most is None or high is None else most * high
        case _:
            raise LimitError("the pattern is too large to combine with a length", "", "drop minLength and maxLength")


def _sum(highs: list[int | None]) -> int | None:
    known = [high for high in highs if high is not None]
    return sum(known) if len(known) == len(highs) else None


def _narrow(node: Node, low: int, high: int | None) -> Node | None:
    """Move the limits into the one repetition that they concern; None where several share them."""
    fewest, most = _span(node)
    if low <= fewest and (high is None or (most is not None and most <= high)):
        return node
    if (most is not None and most < low) or (high is not None and fewest > high):
        return NOTHING
    match node:
        case Alt(parts):
            narrowed = [_narrow(part, low, high) for part in parts]
            if None in narrowed:
                return None
            return alt(*(part for part in narrowed if part is not None and part != NOTHING))
        case Seq(parts):
            loose = [index for index, part in enumerate(parts) if len(set(_span(part))) > 1]
            if len(loose) != 1:
                return None
            rest = sum(_span(part)[0] for index, part in enumerate(parts) if index != loose[0])
            middle = _narrow(parts[loose[0]], max(low - rest, 0), None if high is None else high - rest)
            return None if middle is None else concat(*parts[: loose[0]], middle, *parts[loose[0] + 1 :])
        case Repeat(body, first, last):
            unit, widest = _span(body)
            if unit != widest or unit == 0:
                return None
            first = max(first, -(-low // unit))
            most = last if high is None else high // unit if last is None else min(last, high // unit)
            return NOTHING if most is not None and first > most else Repeat(body, first, most)
        case _:
            return None


def spelled(node: Node) -> Node:
    """`node` with every character as JSON may spell it inside a string."""
    return mapped(node, spell)


def mapped(node: Node, char: Callable[[Ranges], Node]) -> Node:
    """`node` with every class of characters replaced by what `char` gives for it."""
    match node:
        case Lit(data):
            return concat(*(char(((ord(one), ord(one)),)) for one in data.decode()))
        case Chars(ranges):
            return char(ranges)
        case Seq(parts):
            return concat(*(mapped(part, char) for part in parts))
        case Alt(parts):
            return Alt(tuple(mapped(part, char) for part in parts))
        case Repeat(body, low, high):
            return Repeat(mapped(body, char), low, high)
        case _:
            raise LimitError("the pattern is too large to spell", "", "simplify the pattern")


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
