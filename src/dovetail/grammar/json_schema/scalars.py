"""From constraints to nodes: strings, numbers, booleans and null; what is too much to hold is left out and noted."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any, ParamSpec

from dovetail.errors import LimitError
from dovetail.grammar.ir import NOTHING, Node
from dovetail.grammar.json_schema.read.constraints import BOOLEAN, NULL, NUMBER, STRING, Constraints
from dovetail.grammar.json_schema.read.equality import is_number
from dovetail.grammar.json_schema.read.pointers import located
from dovetail.grammar.json_schema.read.reader import Reader
from dovetail.grammar.json_schema.spell.json import Spelling
from dovetail.grammar.json_schema.values import numbers, strings

P = ParamSpec("P")


def scalars(known: Constraints, pieces: Spelling, reader: Reader) -> list[Node]:
    """The ways to write a scalar that keeps to `constraints`."""
    ways: list[Node] = []
    if known.types & STRING:
        ways.append(string(known, pieces, reader))
    if known.types & NUMBER:
        ways.append(number(known, reader))
    if known.types & BOOLEAN:
        ways += (pieces.true if value else pieces.false for value in (True, False) if not _is_banned(known, value))
    if known.types & NULL and not _is_banned(known, None):
        ways.append(pieces.null)
    return ways


def number(known: Constraints, reader: Reader) -> Node:
    """A number; where multiples between bounds are too many to tell, the bounds remain."""
    banned = tuple(Decimal(repr(one)) for one in known.banned if is_number(one))
    divisors = tuple((divisor, holds) for divisor, holds, _ in known.divisors)
    try:
        return numbers.number(known.integer, known.minimum, known.maximum, divisors, banned, known.fraction)
    except LimitError as error:
        if not (divisors or banned or known.fraction):
            raise
        reader.widen(known.divisors[0][2] if divisors else (), "multipleOf", error.problem)
        return numbers.number(known.integer, known.minimum, known.maximum)


def string(known: Constraints, pieces: Spelling, reader: Reader) -> Node:
    """A string."""
    if known.high is not None and known.low > known.high:
        return NOTHING
    bounded = bool(known.low) or known.high is not None
    banned = known.banned_words()
    if known.patterns or known.barred or (banned and bounded):
        inside = _language(known, pieces, reader)
        if inside is not None:
            return inside
    elif banned:
        return pieces.other_than(banned)
    return pieces.bounded(known.low, known.high) if bounded else pieces.by_type["string"]


def _language(known: Constraints, pieces: Spelling, reader: Reader) -> Node | None:
    """A string with patterns; None where they are too much to hold."""
    excludes = () if known.patterns and pieces.patterns_overrule else pieces.excludes
    if known.banned_words() or excludes:
        found = described(known, excludes, reader)
        return None if found is None else pieces.denoting(found, excludes)
    wanted, barred = known.pattern_texts()
    return _noted(known, reader, pieces.matching, wanted, known.low, known.high, barred)


def described(known: Constraints, excludes: tuple[bytes, ...], reader: Reader) -> Node | None:
    """The decoded strings that `constraints` admit without `excludes`; None where they are too much to hold."""
    wanted, barred = known.pattern_texts()
    return _noted(
        known, reader, strings.language, wanted, known.low, known.high, barred, known.banned_words(), excludes
    )


def _noted(
    known: Constraints, reader: Reader, make: Callable[P, Node], *args: P.args, **kwargs: P.kwargs
) -> Node | None:
    """What `make` gives; where that is too much, it is noted at the place of the pattern."""
    where = known.pattern_place()
    try:
        return located(where, make, *args, **kwargs)
    except LimitError as error:
        reader.widen(where[0] if where else (), where[1] if where else "pattern", error.problem)
        return None


def _is_banned(known: Constraints, value: Any) -> bool:
    return any(one is value for one in known.banned)
