"""Numbers about which something is said: bounds, multiples, fractions, values that are barred.

Integers have no fraction and no exponent; a number with limits is a plain decimal, read digit by digit. What is asked
of it is tracked beside the digits, each demand with a small state of its own; all states together are one automaton,
written as a rule for each state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import cache, lru_cache
from math import gcd, lcm
from typing import Any, NoReturn

from dovetail.errors import LimitError
from dovetail.grammar.ir import EMPTY, NOTHING, Call, Chars, Node, Repeat, Rule, alt, is_nothing, lit, seq
from dovetail.grammar.regex.automaton import Automaton, explored, to_node

from .characters import INTEGER, NUMBER

MAX_STATES = 20_000
MAX_REMAINDERS = 5_000
MAX_DIGITS = 2_000
MAX_WRITTEN = 40  # bounds of integers up to here are written digit by digit: that takes a tenth of an automaton's time

Bound = tuple[Decimal, bool]  # the limit, and whether it is itself excluded
Divisor = tuple[Decimal, bool]  # whether it must divide the number, or must not
State = tuple[str, tuple[Any, ...]]  # where in the number, and the state of each demand

# Behind the sign, a leading zero, digits, the point, and digits behind the point.
_SIGN, _ZERO, _WHOLE, _POINT, _FRACTION = "sign", "zero", "whole", "point", "fraction"
_ENDS = (_ZERO, _WHOLE, _FRACTION)
_DIGITS = "0123456789"
_ALPHABET: list[tuple[tuple[int, int], ...]] = [((ord(char), ord(char)),) for char in _DIGITS + ".-"]
_DOT, _MINUS = 10, 11  # among these

# The state of a demand that holds whatever follows; None is that of one that cannot hold any more.
_SETTLED = "settled"


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
        self._alike: dict[Any, Any] = {}
        self.start: Any = (-1, 0)

    def sign(self, state: Any) -> Any:
        return state

    def point(self, state: Any) -> Any:
        return self._state(0, state[1])

    def digits(self, state: Any) -> list[Any]:
        places, remainder = state
        if places == self._places:
            # One more digit is too fine for any multiple.
            return [state, *[None if self._strict else _SETTLED] * 9]
        after = places + 1 if places >= 0 else -1
        modulus = self._moduli[max(after, 0)]
        return [self._state(after, one % modulus) for one in range(remainder * 10, remainder * 10 + 10)]

    def _state(self, places: int, remainder: int) -> Any:
        return self._alike.setdefault(*self._follows(places, remainder))

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
        whole, _, fraction = f"{bound.copy_abs():f}".partition(".")
        self._whole, self._fraction = whole, fraction.rstrip("0")
        self._is_zero = not bound
        self._allowed = frozenset(allowed)
        self.start: Any = (False, False, 0, 0)

    def sign(self, state: Any) -> Any:
        return (True, False, 0, 0) if self._negative or self._is_zero else self._settled(-1)

    def point(self, state: Any) -> Any:
        minus, _, digits, order = state
        order = -1 if digits < len(self._whole) else order
        return self._settled(-order if minus else order) if order else (minus, True, 0, 0)

    def digits(self, state: Any) -> list[Any]:
        minus, behind, digits, order = state
        if not minus and self._negative:
            return [self._settled(1)] * 10
        sign = -1 if minus else 1
        limit = self._fraction if behind else self._whole
        if digits == len(limit):  # in front of the point one digit more is more, behind it if it is no zero
            return [state if behind else self._settled(sign), *[self._settled(sign)] * 9]
        if order:
            return [(minus, behind, digits + 1, order)] * 10
        at = int(limit[digits])
        less, more = ((self._settled(sign * one) if behind else (minus, behind, digits + 1, one)) for one in (-1, 1))
        return [*[less] * at, (minus, behind, digits + 1, 0), *[more] * (9 - at)]

    def _settled(self, order: int) -> Any:
        return _SETTLED if order in self._allowed else None

    def holds(self, state: Any) -> bool:
        minus, behind, digits, order = state
        if digits < len(self._fraction if behind else self._whole) or (not behind and not order and self._fraction):
            order = -1  # further digits of the limit are not all zero
        return (-order if minus else order) in self._allowed


# What is asked of a number: the states after a minus, the point and each digit, and whether it may end in one.
Demand = _Multiple | _Compared


def number(
    integer: bool,
    minimum: Bound | None,
    maximum: Bound | None,
    divisors: tuple[Divisor, ...] = (),
    banned: tuple[Decimal, ...] = (),
    fraction: bool = False,
) -> Node:
    """A number between bounds that is whole or not, some multiples or not, and none of `banned`."""
    if not (minimum or maximum or divisors or banned or fraction):
        return INTEGER if integer else NUMBER
    for bound in (minimum, maximum):
        if bound is not None and (digits := _digits(bound[0])) > MAX_DIGITS:
            raise LimitError(f"a bound has {digits} digits, more than {MAX_DIGITS}", "", "use a shorter number")
    if fraction:
        divisors = (*divisors, (Decimal(1), False))
    if integer and divisors:  # where nothing finer is asked, the spelling shows that it is one
        divisors = (*divisors, (Decimal(1), True))
    needed = _needed(divisors)
    if needed is None:
        return NOTHING
    return _tracked(integer, minimum, maximum, needed, tuple(dict.fromkeys(banned)))


def _digits(value: Decimal) -> int:
    """How many digits the plain spelling has, those of a fraction twice: they take more steps to follow."""
    _, digits, exponent = value.as_tuple()
    return len(digits) + abs(int(exponent)) * (1 if int(exponent) > 0 else 2)


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
    integer: bool,
    minimum: Bound | None,
    maximum: Bound | None,
    divisors: tuple[Divisor, ...],
    banned: tuple[Decimal, ...],
) -> Node:
    bounds = [bound for bound in (minimum, maximum) if bound is not None]
    if integer and not divisors and not banned and all(_digits(bound[0]) <= MAX_WRITTEN for bound in bounds):
        return _integers(_within(minimum, 1), _within(maximum, -1))
    demands: list[Demand] = [_Multiple(divisors)] if divisors else []
    if minimum is not None:
        demands.append(_Compared(minimum[0], (1,) if minimum[1] else (0, 1)))
    if maximum is not None:
        demands.append(_Compared(maximum[0], (-1,) if maximum[1] else (-1, 0)))
    demands += (_Compared(value, (-1, 1)) for value in banned)
    node = to_node(_Tracker(demands, not integer).run())
    return node if is_nothing(node) else Call(Rule("number", node))


def _within(bound: Bound | None, step: int) -> int | None:
    """The first integer from a bound on, upwards or downwards."""
    if bound is None:
        return None
    whole = int(bound[0].to_integral_value(ROUND_CEILING if step > 0 else ROUND_FLOOR))
    return whole + step * (bound[1] and whole == bound[0])


def _integers(low: int | None, high: int | None) -> Node:
    """The integers from `low` to `high`, written digit by digit; None is no bound."""
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


class _Tracker:
    """Follows the states of all demands at once."""

    def __init__(self, demands: list[Demand], pointed: bool) -> None:
        self._demands = demands
        self._digits = [cache(demand.digits) for demand in demands]  # beside others each is asked again and again
        self._pointed = pointed  # whether there may be a point and digits behind it

    def run(self) -> Automaton:
        start: State = ("", tuple([demand.start for demand in self._demands]))
        return explored(_ALPHABET, start, self._follow, MAX_STATES, _refuse)

    def _follow(self, state: State, automaton: Automaton) -> Iterator[tuple[int, State]]:
        place, inner = state
        if place in _ENDS and all(one is _SETTLED or self._demands[at].holds(one) for at, one in enumerate(inner)):
            automaton.accepting.add(len(automaton.edges))
        if place != _ZERO:
            reached = _FRACTION if place in (_POINT, _FRACTION) else _WHOLE
            rows = [[_SETTLED] * 10 if one is _SETTLED else self._digits[at](one) for at, one in enumerate(inner)]
            for symbol, after in enumerate(zip(*rows, strict=True)):
                if None in after:
                    continue
                if symbol or place not in ("", _SIGN):
                    yield 1 << symbol, (reached, after)
                elif self._pointed or not place:  # the integer zero has no sign
                    yield 1, (_ZERO, after)
        if not place or (self._pointed and place in (_ZERO, _WHOLE)):
            symbol, reached, step = (_DOT, _POINT, "point") if place else (_MINUS, _SIGN, "sign")
            both = zip(self._demands, inner, strict=True)
            after = tuple([one if one is _SETTLED else getattr(demand, step)(one) for demand, one in both])
            if None not in after:
                yield 1 << symbol, (reached, after)


def _refuse() -> NoReturn:
    problem = "the multiples between these bounds are too many to tell"
    raise LimitError(problem, "", "narrow or drop the bounds")
