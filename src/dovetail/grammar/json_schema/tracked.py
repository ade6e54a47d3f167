"""Numbers about which more is said than their bounds: multiples, fractions, values that are barred.

A number in plain spelling is read digit by digit. What is asked of it is tracked beside the digits, each demand with
a small state of its own; all states together are one automaton, written as a rule for each state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from functools import lru_cache
from math import lcm
from typing import Any, Protocol

from dovetail.errors import LimitError
from dovetail.grammar.ir import EMPTY, NOTHING, Call, Chars, Lit, Node, Rule, Seq, alt

MAX_STATES = 20_000
MAX_REMAINDERS = 5_000

Bound = tuple[Decimal, bool]
State = tuple[str, tuple[Any, ...]]  # where in the number, and the state of each demand

# Behind the sign, a leading zero, digits, the point, and digits behind the point.
_SIGN, _ZERO, _WHOLE, _POINT, _FRACTION = "sign", "zero", "whole", "point", "fraction"
_ENDS = (_ZERO, _WHOLE, _FRACTION)


class Demand(Protocol):
    """What is asked of a number."""

    start: Any

    def step(self, state: Any, char: str) -> Any:
        """The state after one more character."""

    def holds(self, state: Any) -> bool:
        """Whether a number that ends here is admitted."""


class _Multiple:
    """The number is a multiple of each divisor, or where that says so is none; the remainder serves them all."""

    def __init__(self, divisors: Sequence[tuple[Decimal, bool]]) -> None:
        self._places = max(max(0, -int(divisor.normalize().as_tuple().exponent)) for divisor, _ in divisors)
        self._units = [(int(divisor.scaleb(self._places)), wanted) for divisor, wanted in divisors]
        self._whole = lcm(*(unit for unit, _ in self._units))
        if self._whole * (self._places + 1) > MAX_REMAINDERS:
            raise LimitError(f"remainders of {self._whole} are too many to tell", "", "use smaller divisors")
        self.start: Any = (0, -1)  # the remainder, and the digits behind the point; -1 before it

    def step(self, state: Any, char: str) -> Any:
        remainder, places = state
        if char == "-":
            return state
        if char == ".":
            return remainder, 0
        if places == self._places:
            return (remainder, places) if char == "0" else (-1, places)  # too fine for any multiple
        if remainder >= 0:
            remainder = (remainder * 10 + int(char)) % self._whole
        return remainder, places + 1 if places >= 0 else -1

    def holds(self, state: Any) -> bool:
        remainder, places = state
        scaled = remainder * 10 ** (self._places - max(places, 0))
        return all((remainder >= 0 and scaled % unit == 0) == wanted for unit, wanted in self._units)


class _Compared:
    """The number lies on one side of a bound, the bound included or not; `equal` asks for the bound alone, or not."""

    def __init__(self, bound: Decimal, allowed: Iterable[int]) -> None:
        self._negative = bound < 0
        whole, _, fraction = f"{abs(bound):f}".partition(".")
        self._whole, self._fraction = whole, fraction.rstrip("0")
        self._allowed = frozenset(allowed)  # -1 below, 0 equal, 1 above
        self.start: Any = (False, 0, 0, False)  # a minus, digits of this part, how they compare, behind the point

    def step(self, state: Any, char: str) -> Any:
        minus, digits, order, behind = state
        if char == "-":
            return True, 0, 0, False
        if char == ".":
            return minus, 0, self._of_whole(digits, order), True
        limit = self._fraction if behind else self._whole
        if order == 0:
            wanted = limit[digits] if digits < len(limit) else "0" if behind else char
            order = (char > wanted) - (char < wanted)
        return minus, min(digits + 1, len(limit) + 1), order, behind

    def _of_whole(self, digits: int, order: int) -> int:
        size = (digits > len(self._whole)) - (digits < len(self._whole))
        return size or order

    def holds(self, state: Any) -> bool:
        minus, digits, order, behind = state
        if not behind:
            order, digits = self._of_whole(digits, order), 0
        if order == 0 and digits < len(self._fraction):
            order = -1  # further digits of the limit are not all zero
        zero = not self._whole.strip("0") and not self._fraction
        if minus != self._negative and not (zero and order == 0):
            return (-1 if minus else 1) in self._allowed
        return (-order if minus else order) in self._allowed


@lru_cache(maxsize=1024)
def tracked(
    integer: bool,
    fraction: bool,
    minimum: Bound | None,
    maximum: Bound | None,
    divisors: tuple[tuple[Decimal, bool], ...],
    banned: tuple[Decimal, ...],
    bare: bool = False,
) -> Node:
    """A number between bounds that is whole or not, some multiples or not, and none of `banned`; without exponent.

    Where `bare` it has no fraction either, not even zeros.
    """
    if integer or fraction:
        divisors = (*divisors, (Decimal(1), integer))
        if integer and fraction:
            return NOTHING
    demands: list[Demand] = [_Multiple(divisors)] if divisors else []
    if minimum is not None:
        demands.append(_Compared(minimum[0], (1,) if minimum[1] else (0, 1)))
    if maximum is not None:
        demands.append(_Compared(maximum[0], (-1,) if maximum[1] else (-1, 0)))
    demands += (_Compared(value, (-1, 1)) for value in banned)
    return _rules(demands, "-0123456789" if bare else "-.0123456789")


def _following(place: str, char: str) -> str | None:
    if char == "-":
        return _SIGN if place == "" else None
    if char == ".":
        return _POINT if place in (_ZERO, _WHOLE) else None
    if place in (_POINT, _FRACTION):
        return _FRACTION
    if place in ("", _SIGN):
        return _ZERO if char == "0" else _WHOLE
    return _WHOLE if place == _WHOLE else None


def _rules(demands: list[Demand], alphabet: str) -> Node:
    start: State = ("", tuple(demand.start for demand in demands))
    edges: dict[State, list[tuple[str, State]]] = {}
    pending = [start]
    while pending:
        state = pending.pop()
        if state in edges:
            continue
        if len(edges) >= MAX_STATES:
            raise LimitError("the multiples between these bounds are too many to tell", "", "narrow or drop the bounds")
        place, inner = state
        edges[state] = []
        for char in alphabet:
            reached = _following(place, char)
            if reached is not None:
                after = tuple(demand.step(one, char) for demand, one in zip(demands, inner, strict=True))
                edges[state].append((char, (reached, after)))
                pending.append((reached, after))
    ends = {
        state
        for state in edges
        if state[0] in _ENDS and all(d.holds(one) for d, one in zip(demands, state[1], strict=True))
    }
    return _written(start, edges, ends)


def _written(start: State, edges: dict[State, list[tuple[str, State]]], ends: set[State]) -> Node:
    """A rule for each state from which an end can be reached."""
    before: dict[State, list[State]] = {}
    for state, steps in edges.items():
        for _, reached in steps:
            before.setdefault(reached, []).append(state)
    live, pending = set(ends), list(ends)
    while pending:
        for state in before.get(pending.pop(), ()):
            if state not in live:
                live.add(state)
                pending.append(state)
    if start not in live:
        return NOTHING
    rules = {state: Rule("number", EMPTY) for state in live}
    for state, rule in rules.items():
        targets: dict[State, list[str]] = {}
        for char, reached in edges[state]:
            if reached in live:
                targets.setdefault(reached, []).append(char)
        ways: list[Node] = [EMPTY] if state in ends else []
        ways += (Seq((_one(chars), Call(rules[reached]))) for reached, chars in targets.items())
        rule.body = alt(*ways)
    return Call(rules[start])


def _one(chars: list[str]) -> Node:
    if len(chars) == 1:
        return Lit(chars[0].encode())
    return Chars(tuple((ord(char), ord(char)) for char in sorted(chars)))
