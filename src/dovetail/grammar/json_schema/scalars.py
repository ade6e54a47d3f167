"""From facts to nodes: strings, numbers, booleans and null; what is too much to hold is left out and noted."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, ParamSpec

from dovetail.errors import LimitError
from dovetail.grammar.ir import NOTHING, Node

from . import numbers, strings
from .facts import BOOLEAN, NULL, NUMBER, STRING, Facts
from .pointers import located
from .reading import Reader
from .spelling import Spelling
from .values import is_number

P = ParamSpec("P")


def scalars(facts: Facts, pieces: Spelling, reader: Reader) -> list[Node]:
    """The ways to write a scalar that keeps to `facts`."""
    ways: list[Node] = []
    if facts.types & STRING:
        ways.append(string(facts, pieces, reader))
    if facts.types & NUMBER:
        ways.append(number(facts, reader))
    if facts.types & BOOLEAN:
        ways += (pieces.true if value else pieces.false for value in (True, False) if not _is_banned(facts, value))
    if facts.types & NULL and not _is_banned(facts, None):
        ways.append(pieces.null)
    return ways


def number(facts: Facts, reader: Reader) -> Node:
    """A number; where multiples between bounds are too many to tell, the bounds remain."""
    banned = tuple(Decimal(repr(one)) for one in facts.banned if is_number(one))
    divisors = tuple((divisor, holds) for divisor, holds, _ in facts.divisors)
    try:
        return numbers.number(facts.integer, facts.minimum, facts.maximum, divisors, banned, facts.fraction)
    except LimitError as error:
        if not (divisors or banned or facts.fraction):
            raise
        reader.widen(facts.divisors[0][2] if divisors else (), "multipleOf", error.problem)
        return numbers.number(facts.integer, facts.minimum, facts.maximum)


def string(facts: Facts, pieces: Spelling, reader: Reader) -> Node:
    """A string."""
    if facts.high is not None and facts.low > facts.high:
        return NOTHING
    bounded = bool(facts.low) or facts.high is not None
    banned = facts.banned_words()
    if facts.patterns or facts.barred or (banned and bounded):
        inside = _language(facts, pieces, reader)
        if inside is not None:
            return inside
    elif banned:
        return pieces.other_than(banned)
    return pieces.bounded(facts.low, facts.high) if bounded else pieces.by_type["string"]


def _language(facts: Facts, pieces: Spelling, reader: Reader) -> Node | None:
    """A string with patterns; None where they are too much to hold."""
    excludes = () if facts.patterns and pieces.patterns_overrule else pieces.excludes
    if facts.banned_words() or excludes:
        found = described(facts, excludes, reader)
        return None if found is None else pieces.denoting(found, excludes)
    wanted, barred = facts.pattern_texts()
    return _noted(facts, reader, pieces.matching, wanted, facts.low, facts.high, barred)


def described(facts: Facts, excludes: tuple[bytes, ...], reader: Reader) -> Node | None:
    """The decoded strings that `facts` admit without `excludes`; None where they are too much to hold."""
    wanted, barred = facts.pattern_texts()
    return _noted(
        facts, reader, strings.language, wanted, facts.low, facts.high, barred, facts.banned_words(), excludes
    )


def _noted(facts: Facts, reader: Reader, make: Callable[P, Node], *args: P.args, **kwargs: P.kwargs) -> Node | None:
    """What `make` gives; where that is too much, it is noted at the place of the pattern."""
    where = facts.pattern_place()
    try:
        return located(where, make, *args, **kwargs)
    except LimitError as error:
        reader.widen(where[0] if where else (), where[1] if where else "pattern", error.problem)
        return None


def _is_banned(facts: Facts, value: Any) -> bool:
    return any(one is value for one in facts.banned)
