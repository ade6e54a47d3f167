"""Integers between two bounds, written digit by digit; what else may be asked of a number takes an automaton."""

from __future__ import annotations

from functools import cache, lru_cache

from dovetail.grammar.ir import EMPTY, NOTHING, Call, Chars, Node, Repeat, Rule, alt, lit, seq


def integers(low: int | None, high: int | None) -> Node:
    """The integers from `low` to `high`, as JSON spells them; None is no bound."""
    if low is not None and high is not None and low > high:
        return NOTHING
    arms = []
    if high is None or high >= 0:
        arms.append(_natural(max(low or 0, 0), high))
    if low is None or low < 0:
        least = 1 if high is None else max(-high, 1)
        arms.append(seq(lit("-"), _natural(least, None if low is None else -low)))
    return Call(Rule("number", alt(*arms)))


def _natural(low: int, high: int | None) -> Node:
    """The integers from `low`, which is not negative, to `high`."""
    first, last = str(low), None if high is None else str(high)
    if last is not None and len(first) == len(last):
        return _alike(first, last)
    arms = [_alike(first, "9" * len(first))]
    # The numbers with more digits than the least one and fewer than the greatest.
    if last is None or len(last) - len(first) > 1:
        arms.append(seq(_digit(1, 9), Repeat(_digit(0, 9), len(first), None if last is None else len(last) - 2)))
    if last is not None:
        arms.append(_alike("1" + "0" * (len(last) - 1), last))
    return alt(*arms)


@lru_cache(maxsize=4096)
def _alike(low: str, high: str) -> Node:
    """The numbers between two that have as many digits."""
    if not low:
        return EMPTY
    first, last = int(low[0]), int(high[0])
    if first == last:
        return seq(lit(low[0]), _alike(low[1:], high[1:]))
    rest = len(low) - 1
    arms = []
    if low[1:].strip("0"):
        arms.append(seq(lit(low[0]), _alike(low[1:], "9" * rest)))
        first += 1
    if high[1:].strip("9"):
        arms.append(seq(lit(high[0]), _alike("0" * rest, high[1:])))
        last -= 1
    if first <= last:
        arms.append(seq(_digit(first, last), Repeat(_digit(0, 9), rest, rest) if rest else EMPTY))
    return alt(*arms)


@cache
def _digit(low: int, high: int) -> Node:
    return Chars(((48 + low, 48 + high),))
