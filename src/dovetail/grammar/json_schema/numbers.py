"""Numbers: ranges and single values, plain and with an exponent.

No automaton can compare every spelling with a bound: 0.001e5 and 100e0 are the same however many zeros there are. So
beside the plain spelling there is the scientific one, with one digit before the point, and for integers one without a
fraction. A single value has its exponent only where its shortest spelling has one. Fractions may be padded with zeros.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from functools import lru_cache

from dovetail.errors import LimitError
from dovetail.grammar.ir import EMPTY, NOTHING, Alt, Call, Chars, Lit, Node, Repeat, Rule, Seq, alt, optional, star

from .prune import prune
from .text import BARE_INTEGER, DIGIT, INTEGER, NUMBER, ZERO, ZEROS, concat
from .tracked import tracked

Bound = tuple[Decimal, bool]  # the limit, and whether it is itself excluded

_NONZERO = Chars(((0x31, 0x39),))
_MINUS = Lit(b"-")
_DOT = Lit(b".")
_FRACTION = optional(Seq((_DOT, Repeat(DIGIT, 1, None))))
_MARK = Chars(((0x45, 0x45), (0x65, 0x65)))
_PLUS = optional(Lit(b"+"))
_ANY_POWER = Seq((optional(Chars(((0x2B, 0x2B), (0x2D, 0x2D)))), Repeat(DIGIT, 1, 2)))
_ONE, _TEN = (Decimal(1), False), (Decimal(10), True)

MANY_DIGITS = 400  # of a bound; where it has more, they are followed one by one
MAX_DIGITS = 2_000
MAX_POWER = 99  # of ten, unless a bound has a larger one: so that the value stays within a 64-bit float


def _digit(low: int, high: int) -> Node:
    return Lit(b"%d" % low) if low == high else Chars(((0x30 + low, 0x30 + high),))


def whole(low: int, high: int | None) -> Node:
    """The decimal digits of an integer from `low` (at least 0) to `high`."""
    parts: list[Node] = []
    if low == 0:
        parts.append(ZERO)
        low = 1
    if high is not None and low > high:
        return alt(*parts)
    first = len(str(low))
    last = first if high is None else len(str(high))
    full_from = first if low == 10 ** (first - 1) else first + 1
    full_to = None if high is None else last if high == 10**last - 1 else last - 1
    if full_from > first:
        parts += _blocks(low, 10**first - 1 if high is None else min(high, 10**first - 1), first)
    if full_to is None or full_from <= full_to:
        parts.append(Seq((_NONZERO, Repeat(DIGIT, full_from - 1, None if full_to is None else full_to - 1))))
    if high is not None and full_to is not None and full_to < last and (last > first or full_from == first):
        parts += _blocks(max(low, 10 ** (last - 1)), high, last)
    return alt(*parts)


def _blocks(low: int, high: int, length: int) -> list[Node]:
    """The integers from `low` to `high`, all of `length` digits, by the digits with which they begin."""
    least, most = str(low), str(high)
    at = next((place for place in range(length) if least[place] != most[place]), length)
    if at == length:
        return [Lit(least.encode())]
    ways: list[Node] = []
    first, last = int(least[at]), int(most[at])
    end = len(least.rstrip("0")) - 1
    if end > at:  # above `least`, by how many of its digits a number shares
        ways.append(_beginning(least, end, int(least[end]), 9))
        ways += (_beginning(least, place, int(least[place]) + 1, 9) for place in range(end - 1, at, -1))
        first += 1
    end = len(most.rstrip("9")) - 1
    ways.append(_beginning(least, at, first, last - (end > at)))
    if end > at:
        ways += (_beginning(most, place, 0, int(most[place]) - 1) for place in range(at + 1, end))
        ways.append(_beginning(most, end, 0, int(most[end])))
    return [way for way in ways if way != NOTHING]


def _beginning(digits: str, place: int, low: int, high: int) -> Node:
    """As many digits as `digits` has, those before `place` the same, the one there from `low` to `high`."""
    if low > high:
        return NOTHING
    rest = len(digits) - place - 1
    more = () if rest == 0 else (DIGIT,) if rest == 1 else (Repeat(DIGIT, rest, rest),)
    return concat(*([Lit(digits[:place].encode())] if place else []), _digit(low, high), *more)


def _tail(low: str | None, above: bool, high: str | None, below: bool) -> Node:
    """The digits after the point so that low <= 0.digits <= high; `above` and `below` exclude the limit itself."""
    if low is not None and not low.strip("0") and not above:
        low = None
    if low is None and high is None:
        return star(DIGIT)
    if high is not None and not high.strip("0"):
        # Only zeros are left to stay at or under the limit.
        return NOTHING if below or low is not None else star(ZERO)
    floor = int(low[:1] or "0") if low is not None else 0
    ceiling = int(high[0]) if high is not None else 9
    if floor > ceiling:
        return NOTHING
    parts: list[Node] = [] if low is not None else [EMPTY]
    if floor == ceiling:
        parts.append(concat(_digit(floor, floor), _tail(low and low[1:], above, high and high[1:], below)))
        return alt(*parts)
    start, end = floor, ceiling
    if low is not None:
        # With the limit's digits used up, only a digit other than zero gets above it, at this place or a later one.
        parts.append(_above(low, above))
        start += 1
    if high is not None:
        parts.append(concat(_digit(ceiling, ceiling), _tail(None, False, high[1:], below)))
        end -= 1
    if start <= end:
        parts.append(concat(_digit(start, end), star(DIGIT)))
    return alt(*parts)


def _above(low: str, above: bool) -> Node:
    """A first digit equal to that of `low`, and whatever must follow."""
    if not low.strip("0"):
        return Seq((Repeat(ZERO, 1, None), _NONZERO, star(DIGIT)))
    return concat(_digit(int(low[0]), int(low[0])), _tail(low[1:], above, None, False))


def _split(value: Decimal) -> tuple[int, str]:
    """The integer part and the fraction's digits of a number of at least 0."""
    integer, _, fraction = f"{value:f}".partition(".")
    return int(integer), fraction.rstrip("0")


def _fraction(low: str | None, above: bool, high: str | None, below: bool) -> Node:
    """The fraction, point included; none at all is a fraction of zero."""
    digits = _tail(low, above, high, below)
    bare = (low is None or (not low and not above)) and not (high == "" and below)
    if digits == NOTHING:
        return EMPTY if bare else NOTHING
    written = Seq((_DOT, _nonempty(digits)))
    return optional(written) if bare else written


def _nonempty(digits: Node) -> Node:
    """At least one digit: a point is never the last character."""
    match digits:
        case Repeat(body, 0, None):
            return Repeat(body, 1, None)
        case Alt(parts) if parts and parts[0] == EMPTY:
            return alt(*parts[1:])
        case _:
            return digits


def _magnitude(low: Bound | None, high: Bound | None) -> Node:
    """A number without sign between two bounds, of which the lower is at least 0."""
    first, fraction = _split(low[0]) if low else (0, "")
    above = low is not None and low[1]
    if high is None:
        nearest = concat(whole(first, first), _fraction(fraction, above, None, False))
        return alt(Seq((whole(first + 1, None), _FRACTION)), nearest)
    if high[0] < (low[0] if low else 0):
        return NOTHING
    last, ceiling = _split(high[0])
    below = high[1]
    if first == last:
        return concat(whole(first, first), _fraction(fraction, above, ceiling, below))
    parts = [concat(whole(first, first), _fraction(fraction, above, None, False))]
    if first + 1 < last:
        parts.append(Seq((whole(first + 1, last - 1), _FRACTION)))
    parts.append(concat(whole(last, last), _fraction(None, False, ceiling, below)))
    return alt(*parts)


def _negate(bound: Bound | None) -> Bound | None:
    return None if bound is None else (bound[0].copy_negate(), bound[1])


def _clamp(bound: Bound | None) -> Bound:
    return bound if bound is not None and bound >= (Decimal(0), False) else (Decimal(0), False)


@lru_cache(maxsize=1024)
def number(integer: bool, minimum: Bound | None, maximum: Bound | None, bare: bool = False) -> Node:
    """A number between two bounds, whole where `integer`, and where `bare` written without a fraction."""
    if minimum is None and maximum is None:
        return BARE_INTEGER if bare else INTEGER if integer else NUMBER
    if minimum is not None and maximum is not None and (minimum[0], minimum[1] or maximum[1]) > (maximum[0], False):
        return NOTHING
    digits = max(_digits(bound[0]) for bound in (minimum, maximum) if bound is not None)
    if digits > MAX_DIGITS:
        raise LimitError(f"a bound has {digits} digits, more than {MAX_DIGITS}", "", "use a shorter number")
    if digits > MANY_DIGITS:
        return tracked(integer, False, minimum, maximum, (), (), bare)
    body = prune(_integers(_first(minimum), _last(maximum), bare) if integer else _reals(minimum, maximum))
    return body if body == NOTHING else Call(Rule("number", body))


def _digits(value: Decimal) -> int:
    """How many digits the plain spelling has, those of a fraction twice: they take more steps to follow."""
    _, digits, exponent = value.as_tuple()
    return len(digits) + abs(int(exponent)) * (1 if int(exponent) > 0 else 2)


def _first(minimum: Bound | None) -> int | None:
    if minimum is None:
        return None
    low = int(minimum[0].to_integral_value(ROUND_CEILING))
    return low + 1 if minimum[1] and low == minimum[0] else low


def _last(maximum: Bound | None) -> int | None:
    if maximum is None:
        return None
    high = int(maximum[0].to_integral_value(ROUND_FLOOR))
    return high - 1 if maximum[1] and high == maximum[0] else high


def _integers(low: int | None, high: int | None, bare: bool) -> Node:
    if low is not None and high is not None and low > high:
        return NOTHING
    parts: list[Node] = []
    if high is None or high >= 0:
        parts += _sized(EMPTY, max(low or 0, 0), high, bare)
    if low is None or low <= 0:
        parts += _sized(_MINUS, max(0, -high) if high is not None else 0, None if low is None else -low, bare)
    return alt(*parts)


def _sized(sign: Node, low: int, high: int | None, bare: bool) -> list[Node]:
    """An integer without sign from `low` to `high`, plain or with an exponent."""
    plain = concat(sign, whole(low, high))
    if bare:
        return [plain]
    if high == 0:
        return [concat(plain, ZEROS)]
    if high is None and low <= 1:
        return [concat(plain, ZEROS, optional(Seq((_MARK, _PLUS, Repeat(DIGIT, 1, 2)))))]
    ways = [concat(plain, ZEROS)]
    ways += (concat(sign, digits, ZEROS, _MARK, power) for digits, power in _rounded(low, high))
    return ways


def _rounded(low: int, high: int | None) -> Iterator[tuple[Node, Node]]:
    """Single digits and their exponents: those of the bounds, and those between."""
    first, last = len(str(low)) - 1, MAX_POWER + 1 if high is None else len(str(high)) - 1
    least = -(-low // 10**first)
    most = 9 if high is None else high // 10**last
    if first == last:
        if least <= most:
            yield _digit(least, most), _power(first, first)
        return
    if least <= 9:
        yield _digit(least, 9), _power(first, first)
    if first + 1 < last:
        yield _NONZERO, _power(first + 1, last - 1)
    if high is not None:
        yield _digit(1, most), _power(last, last)


def _power(low: int, high: int) -> Node:
    """An exponent from `low` to `high`."""
    ways: list[Node] = []
    if high >= 0:
        ways.append(concat(_PLUS, star(ZERO), whole(max(low, 0), high)))
    if low < 0:
        ways.append(concat(_MINUS, star(ZERO), whole(max(0, -high), -low)))
    return alt(*ways)


def _reals(minimum: Bound | None, maximum: Bound | None) -> Node:
    zero = (Decimal(0), False)
    if minimum is not None and minimum == _negate(maximum):
        return alt(*_sizes(optional(_MINUS), zero, maximum))
    parts: list[Node] = []
    if maximum is None or maximum[0] > 0 or maximum == zero:
        parts += _sizes(EMPTY, _clamp(minimum), maximum)
    if minimum is None or minimum[0] < 0 or minimum == zero:
        parts += _sizes(_MINUS, _clamp(_negate(maximum)), _negate(minimum))
    return alt(*(part for part in parts if part != NOTHING))


def _sizes(sign: Node, low: Bound, high: Bound | None) -> list[Node]:
    """A number without sign between two bounds, plain or with an exponent."""
    if high is None and not low[0]:
        return [concat(sign, _magnitude(low, None), optional(Seq((_MARK, _ANY_POWER))))]
    ways = [concat(sign, _magnitude(low, high))]
    if low == (Decimal(0), False) and high is not None and high[0]:
        ways.append(concat(sign, ZERO, ZEROS, _MARK, _ANY_POWER))
    ways += (concat(sign, mantissa, _MARK, power) for mantissa, power in _scientific(low, high) if mantissa != NOTHING)
    return ways


def _scientific(low: Bound, high: Bound | None) -> Iterator[tuple[Node, Node]]:
    """Mantissas with one digit before the point and their exponents: those of the bounds, and those between."""
    if high is not None and not high[0]:
        return
    first = low[0].adjusted() if low[0] else -MAX_POWER - 1
    last = high[0].adjusted() if high is not None else MAX_POWER + 1
    least, most = _mantissa(low) if low[0] else _ONE, _TEN if high is None else _mantissa(high)
    if first == last:
        yield _magnitude(least, most), _power(first, first)
        return
    if low[0]:
        yield _magnitude(least, _TEN), _power(first, first)
    if first + 1 < last:
        yield _magnitude(_ONE, _TEN), _power(first + 1, last - 1)
    if high is not None:
        yield _magnitude(_ONE, most), _power(last, last)


def _mantissa(bound: Bound) -> Bound:
    """The bound with its point behind the first digit."""
    digits = bound[0].as_tuple().digits
    return Decimal((0, digits, 1 - len(digits))), bound[1]


@lru_cache(maxsize=4096)
def literal(text: str) -> Node:
    """Every plain spelling of the number that `text` denotes, and its scientific one where `text` has an exponent."""
    value = Decimal(text)
    integer, fraction = _split(value.copy_abs())
    sign = optional(_MINUS) if not value else _MINUS if value < 0 else EMPTY
    padding: Node = star(ZERO) if fraction else ZEROS
    plain = concat(sign, Lit(f"{integer}{'.' if fraction else ''}{fraction}".encode()), padding)
    if "e" not in text.lower():
        return plain
    digits = str(int("".join(map(str, value.as_tuple().digits)))).rstrip("0") or "0"
    mantissa = digits[0] + ("." + digits[1:] if digits[1:] else "")
    exponent = value.adjusted()
    scientific = concat(
        sign, Lit(mantissa.encode()), star(ZERO) if digits[1:] else ZEROS, _MARK, _power(exponent, exponent)
    )
    return alt(plain, scientific)
