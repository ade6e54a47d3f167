"""Numbers about which more is said than their bounds: multiples, fractions, values that are barred.

A number in plain spelling is read digit by digit. What is asked of it is tracked beside the digits, each demand with
a small state of its own; all states together are one automaton, written as a rule for each state.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from functools import lru_cache
from math import gcd, lcm
from typing import Any, Protocol

from dovetail.errors import LimitError
from dovetail.grammar.ir import EMPTY, NOTHING, Call, Chars, Lit, Node, Rule, Seq, alt

MAX_STATES = 20_000
MAX_REMAINDERS = 5_000

Bound = tuple[Decimal, bool]
Divisor = tuple[Decimal, bool]  # whether it must divide the number, or must not
State = tuple[str, tuple[Any, ...]]  # where in the number, and the state of each demand

# Behind the sign, a leading zero, digits, the point, and digits behind the point.
_SIGN, _ZERO, _WHOLE, _POINT, _FRACTION = "sign", "zero", "whole", "point", "fraction"
_ENDS = (_ZERO, _WHOLE, _FRACTION)
_DIGITS = "0123456789"

# The state of a demand that holds whatever follows; None is that of one that cannot hold any more.
_SETTLED = "settled"


class Demand(Protocol):
    """What is asked of a number."""

    start: Any

    def step(self, state: Any, char: str) -> Any:
        """The state after one more character."""

    def holds(self, state: Any) -> bool:
        """Whether a number that ends here is admitted."""


class _Multiple:
    """The number is a multiple of each divisor, or where that says so is none; the remainder serves them all.

    A state is the number of digits behind the point, -1 before it, and the remainder. How far a remainder is told
    depends on how many digits may still come, and of those from which the same follows one stands for all.
    """

    def __init__(self, divisors: Iterable[Divisor]) -> None:
        pairs = [(divisor.normalize(), wanted) for divisor, wanted in divisors]
        self._places = max(max(0, -int(divisor.as_tuple().exponent)) for divisor, _ in pairs)
        self._units = [(int(divisor.scaleb(self._places)), wanted) for divisor, wanted in pairs]
        self._strict = any(wanted for _, wanted in pairs)
        whole = lcm(*(unit for unit, _ in self._units))
        if whole * (self._places + 1) > MAX_REMAINDERS:
            raise LimitError(f"remainders of {whole} are too many to tell", "", "use smaller divisors")
        self._moduli = [whole // gcd(whole, 10 ** (self._places - place)) for place in range(self._places + 1)]
        self._known: dict[tuple[int, int], Any] = {}
        self._alike: dict[Any, Any] = {}
        self.start: Any = (-1, 0)

    def step(self, state: Any, char: str) -> Any:
        if char == "-":
            return state
        places, remainder = state
        if char == ".":
            return self._state(0, remainder)
        if places == self._places:
            # One more digit is too fine for any multiple.
            return state if char == "0" else None if self._strict else _SETTLED
        after = places + 1 if places >= 0 else -1
        return self._state(after, (remainder * 10 + int(char)) % self._moduli[max(after, 0)])

    def _state(self, places: int, remainder: int) -> Any:
        found = self._known.get((places, remainder), self)
        if found is self:
            found = self._known[places, remainder] = self._alike.setdefault(*self._follows(places, remainder))
        return found

    def _follows(self, places: int, remainder: int) -> tuple[Any, Any]:
        """What tells a state from others, and the state, None where no digits can mend it."""
        at = max(places, 0)
        met = tuple([remainder * 10 ** (self._places - at) % unit == 0 for unit, _ in self._units])
        if places == self._places:
            # Only zeros may follow, or where nothing but the negative is asked, digits too fine for any multiple.
            fails = self._strict and met != tuple([wanted for _, wanted in self._units])
            return (places, met), None if fails else (places, remainder)
        moduli = self._moduli[at + 1 : at + 2] + (self._moduli[:1] if places < 0 else [])
        return (places, met, *[remainder * 10 % modulus for modulus in moduli]), (places, remainder)

    def holds(self, state: Any) -> bool:
        places, remainder = state
        scaled = remainder * 10 ** (self._places - max(places, 0))
        return all((scaled % unit == 0) == wanted for unit, wanted in self._units)


class _Compared:
    """The number lies below a bound, at it or above it, as `allowed` says by -1, 0 and 1.

    A state is whether there is a minus, whether the point is past, how many digits of this part there are, and how they
    compare with as many of the bound.
    """

    def __init__(self, bound: Decimal, allowed: Iterable[int]) -> None:
        self._negative = bound < 0
        whole, _, fraction = f"{abs(bound):f}".partition(".")
        self._whole, self._fraction = whole, fraction.rstrip("0")
        self._is_zero = not bound
        self._allowed = frozenset(allowed)
        self.start: Any = (False, False, 0, 0)

    def step(self, state: Any, char: str) -> Any:
        minus, behind, digits, order = state
        if char == "-":
            return (True, False, 0, 0) if self._negative or self._is_zero else self._settled(-1)
        if not minus and self._negative:
            return self._settled(1)
        sign = -1 if minus else 1
        if char == ".":
            order = -1 if digits < len(self._whole) else order
            return self._settled(sign * order) if order else (minus, True, 0, 0)
        limit = self._fraction if behind else self._whole
        if digits == len(limit):  # in front of the point one digit more is more, behind it if it is no zero
            return state if behind and char == "0" else self._settled(sign)
        if not order:
            order = (char > limit[digits]) - (char < limit[digits])
            if behind and order:
                return self._settled(sign * order)
        return minus, behind, digits + 1, order

    def _settled(self, order: int) -> Any:
        return _SETTLED if order in self._allowed else None

    def holds(self, state: Any) -> bool:
        minus, behind, digits, order = state
        if digits < len(self._fraction if behind else self._whole) or (not behind and not order and self._fraction):
            order = -1  # further digits of the limit are not all zero
        return (-order if minus else order) in self._allowed


def tracked(
    integer: bool,
    fraction: bool,
    minimum: Bound | None,
    maximum: Bound | None,
    divisors: tuple[Divisor, ...],
    banned: tuple[Decimal, ...],
    bare: bool = False,
) -> Node:
    """A number between bounds that is whole or not, some multiples or not, and none of `banned`; without exponent.

    Where `bare` it has no fraction either, not even zeros.
    """
    if integer or fraction:
        divisors = (*divisors, (Decimal(1), integer))
    needed = _needed(divisors)
    if needed is None or (integer and fraction):
        return NOTHING
    if minimum and maximum and (minimum[0], minimum[1] or maximum[1]) > (maximum[0], False):
        return NOTHING
    return _tracked(minimum, maximum, needed, tuple(dict.fromkeys(banned)), bare)


def _needed(divisors: Iterable[Divisor]) -> tuple[Divisor, ...] | None:
    """The divisors from which all others follow; None where they contradict each other."""
    distinct = sorted(set(divisors))
    places = max((max(0, -int(divisor.normalize().as_tuple().exponent)) for divisor, _ in distinct), default=0)
    units = [(int(divisor.scaleb(places)), holds) for divisor, holds in distinct]
    whole = lcm(*(unit for unit, holds in units if holds))
    wanted = [(Decimal(whole).scaleb(-places), True)] if any(holds for _, holds in units) else []
    barred: list[int] = []
    for unit in (unit for unit, holds in units if not holds):
        if wanted and whole % unit == 0:
            return None
        if all(unit % smaller for smaller in barred):
            barred.append(unit)
    return (*wanted, *((Decimal(unit).scaleb(-places), False) for unit in barred))


@lru_cache(maxsize=1024)
def _tracked(
    minimum: Bound | None, maximum: Bound | None, divisors: tuple[Divisor, ...], banned: tuple[Decimal, ...], bare: bool
) -> Node:
    demands: list[Demand] = [_Multiple(divisors)] if divisors else []
    if minimum is not None:
        demands.append(_Compared(minimum[0], (1,) if minimum[1] else (0, 1)))
    if maximum is not None:
        demands.append(_Compared(maximum[0], (-1,) if maximum[1] else (-1, 0)))
    demands += (_Compared(value, (-1, 1)) for value in banned)
    return _rules(demands, _DIGITS if bare else "." + _DIGITS)


def _following(alphabet: str) -> dict[str, list[tuple[str, str]]]:
    """The characters that may come at each place, with the place behind."""
    first = [(char, _ZERO if char == "0" else _WHOLE) for char in _DIGITS]
    fraction = [(char, _FRACTION) for char in _DIGITS]
    point = [(".", _POINT)] if "." in alphabet else []
    more = [(char, _WHOLE) for char in _DIGITS]
    return {
        "": [("-", _SIGN), *first],
        _SIGN: first,
        _ZERO: point,
        _WHOLE: [*point, *more],
        _POINT: fraction,
        _FRACTION: fraction,
    }


def _rules(demands: list[Demand], alphabet: str) -> Node:
    start: State = ("", tuple(demand.start for demand in demands))
    following = _following(alphabet)
    edges: dict[State, list[tuple[str, State]]] = {}
    pending = [start]
    while pending:
        state = pending.pop()
        if state in edges:
            continue
        if len(edges) >= MAX_STATES:
            raise LimitError("the multiples between these bounds are too many to tell", "", "narrow or drop the bounds")
        place, inner = state
        steps = edges[state] = []
        for char, reached in following[place]:
            after = _stepped(demands, inner, char)
            if after is not None:
                steps.append((char, (reached, after)))
                pending.append((reached, after))
    ends = {
        (place, inner)
        for place, inner in edges
        if place in _ENDS
        and all(one is _SETTLED or demand.holds(one) for demand, one in zip(demands, inner, strict=True))
    }
    return _written(start, edges, ends)


def _stepped(demands: list[Demand], states: tuple[Any, ...], char: str) -> tuple[Any, ...] | None:
    """The states of all demands after one more character; None where one cannot hold any more."""
    if len(states) == 1:  # the rest of a number is mostly about its remainder alone
        after = states[0] if states[0] is _SETTLED else demands[0].step(states[0], char)
        return None if after is None else (after,)
    found = []
    for demand, state in zip(demands, states, strict=True):
        if state is not _SETTLED:
            state = demand.step(state, char)
            if state is None:
                return None
        found.append(state)
    return tuple(found)


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
        targets: dict[State, str] = {}
        for char, reached in edges[state]:
            if reached in live:
                targets[reached] = targets.get(reached, "") + char
        ways: list[Node] = [EMPTY] if state in ends else []
        ways += (Seq((_one(chars), Call(rules[reached]))) for reached, chars in targets.items())
        rule.body = alt(*ways)
    return Call(rules[start])


@lru_cache(maxsize=4096)
def _one(chars: str) -> Node:
    if len(chars) == 1:
        return Lit(chars.encode())
    return Chars(tuple((ord(char), ord(char)) for char in sorted(chars)))
