"""From facts to nodes: strings, numbers, booleans and null as JSON; what is too much to hold is left out and noted."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from dovetail.errors import LimitError
from dovetail.grammar.ir import NOTHING, Node

from . import numbers, strings, text
from .facts import BOOLEAN, NULL, NUMBER, STRING, Facts
from .keys import json_key
from .pointers import located
from .reading import Reader
from .text import Pieces
from .tracked import tracked


def scalars(facts: Facts, pieces: Pieces, reader: Reader) -> list[Node]:
    """The ways to write a scalar that keeps to `facts`."""
    ways: list[Node] = []
    if facts.types & STRING:
        ways.append(string(facts, pieces, reader))
    if facts.types & NUMBER:
        ways.append(number(facts, pieces, reader))
    if facts.types & BOOLEAN:
        ways += (text.TRUE if value else text.FALSE for value in (True, False) if not _is_banned(facts, value))
    if facts.types & NULL and not _is_banned(facts, None):
        ways.append(text.NULL)
    return ways


def number(facts: Facts, pieces: Pieces, reader: Reader) -> Node:
    """A number; where multiples between bounds are too many to tell, the bounds remain."""
    bare = facts.integer and pieces.bare
    banned = tuple(Decimal(repr(one)) for one in facts.banned if _is_number(one))
    if facts.divisors or facts.fraction or banned:
        divisors = tuple((divisor, holds) for divisor, holds, _ in facts.divisors)
        try:
            return tracked(facts.integer, facts.fraction, facts.minimum, facts.maximum, divisors, banned, bare)
        except LimitError as error:
            where = facts.divisors[0][2] if facts.divisors else ()
            reader.widen(where, "multipleOf", error.problem)
    return numbers.number(facts.integer, facts.minimum, facts.maximum, bare)


def string(facts: Facts, pieces: Pieces, reader: Reader) -> Node:
    """A JSON string; `excludes` do not concern what a pattern describes."""
    if facts.high is not None and facts.low > facts.high:
        return NOTHING
    bounded = bool(facts.low) or facts.high is not None
    banned = facts.banned_words()
    if facts.patterns or facts.barred or (banned and bounded):
        inside = _language(facts, banned, reader)
        if inside is not None:
            return inside
    elif banned:
        return json_key(sorted(banned), pieces)
    return strings.bounded(facts.low, facts.high, pieces.excludes) if bounded else pieces.string


def _language(facts: Facts, banned: frozenset[str], reader: Reader) -> Node | None:
    """A JSON string with patterns; None where they are too much to hold."""
    where = facts.pattern_place()
    wanted, barred = facts.pattern_texts()
    try:
        if banned:
            return strings.quoted(located(where, strings.other_than, banned, facts.low, facts.high, wanted, barred))
        return located(where, strings.matching, wanted, facts.low, facts.high, barred)
    except LimitError as error:
        reader.widen(where[0] if where else (), where[1] if where else "pattern", error.problem)
        return None


def _is_banned(facts: Facts, value: Any) -> bool:
    return any(one is value for one in facts.banned)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
