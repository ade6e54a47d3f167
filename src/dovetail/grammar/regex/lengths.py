"""Patterns by the number of characters that they match."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from dovetail.grammar import ir
from dovetail.grammar.regex.syntax import Look, called, repeat, sequence, union

MAX_LENGTHS = 16

MAX_KNOWN = 10_000

Span = tuple[int, int | None]  # fewest and most characters
_SPANS: dict[ir.Rule, Span] = {}  # of rules, which are not changed once they are made


def span(node: ir.Node) -> Span:
    """The fewest and most characters of a text of `node`, or bounds of them; assertions and calls may match any."""
    if type(node) is ir.Chars:
        return 1, 1
    if type(node) is ir.Lit:
        size = len(node.data.decode(errors="replace"))
        return size, size
    if type(node) is ir.Seq:
        return sum_of([span(part) for part in node.parts])
    if type(node) is ir.Alt and node.parts:
        lows, highs = zip(*[span(part) for part in node.parts], strict=True)
        return min(lows), None if None in highs else max(highs)
    if type(node) is ir.Repeat:
        low, high = span(node.body)
        most = 0 if high == 0 or node.high == 0 else None if high is None or node.high is None else high * node.high
        return low * node.low, most
    if type(node) is ir.Call and not isinstance(node.rule, Look):
        return _SPANS[node.rule] if node.rule in _SPANS else _rule_span(node.rule)
    return 0, None


def _rule_span(root: ir.Rule) -> Span:
    """The span of a rule; what is met again inside of itself may be of any length."""
    if len(_SPANS) > MAX_KNOWN:
        _SPANS.clear()
    opened: set[ir.Rule] = set()
    pending = [root]
    while pending:
        rule = pending[-1]
        if rule in opened:
            pending.pop()
            _SPANS[rule] = span(rule.body)
        else:
            opened.add(rule)
            pending += [callee for callee in called(rule.body) if callee not in opened]
            _SPANS[rule] = 0, None
    return _SPANS[root]


def sum_of(spans: Iterable[Span]) -> Span:
    """The span of texts one behind the other."""
    lows, highs = zip((0, 0), *spans, strict=True)
    return sum(lows), None if None in highs else sum(highs)


def narrow(node: ir.Node, low: int, high: int | None) -> ir.Node | None:
    """The texts of `node` of low to high characters, where one repetition can take the limits up; None otherwise."""
    fewest, most = span(node)
    if low <= fewest and (high is None or (most is not None and most <= high)):
        return node
    if (most is not None and most < low) or (high is not None and fewest > high):
        return ir.NOTHING
    if type(node) is ir.Alt:
        return _any(narrow(part, low, high) for part in node.parts)
    if type(node) is ir.Seq:
        return _narrow_parts(node.parts, low, high)
    if type(node) is not ir.Repeat:
        return None
    unit, widest = span(node.body)
    if unit != widest or unit == 0:
        return None
    first = max(node.low, -(-low // unit))
    last = node.high if high is None else high // unit if node.high is None else min(node.high, high // unit)
    return ir.NOTHING if last is not None and first > last else repeat(node.body, first, last)


def _any(options: Iterable[ir.Node | None]) -> ir.Node | None:
    found: list[ir.Node] = []
    for option in options:
        if option is None:
            return None
        found.append(option)
    return union(found)


def _narrow_parts(parts: tuple[ir.Node, ...], low: int, high: int | None) -> ir.Node | None:
    """One part takes the limits up, beside each of the few lengths that the others may have."""
    choices = [_by_length(part) for part in parts]
    wide = [index for index, found in enumerate(choices) if found is None]
    if len(wide) > 1:
        return None
    at = wide[0] if wide else 0
    options: list[ir.Node | None] = []
    ways = [found if found is not None and index != at else [(0, ir.EMPTY)] for index, found in enumerate(choices)]
    for count, taken in enumerate(product(*ways)):
        if count == MAX_LENGTHS:
            return None
        left = sum(length for length, _ in taken)
        if high is None or left <= high:
            middle = narrow(parts[at], max(low - left, 0), None if high is None else high - left)
            around = [node for _, node in taken]
            options.append(middle and sequence((*around[:at], middle, *around[at + 1 :])))
    return _any(options)


def _by_length(node: ir.Node) -> list[tuple[int, ir.Node]] | None:
    """The few ways to match `node`, each of one length; None where they have many lengths."""
    fewest, most = span(node)
    if fewest == most:
        return [(fewest, node)]
    if most is None or most - fewest >= MAX_LENGTHS:
        return None
    found: list[tuple[int, ir.Node]] = []
    if type(node) is ir.Alt:
        for part in node.parts:
            ways = _by_length(part)
            if ways is None:
                return None
            found += ways
    elif type(node) is ir.Repeat and len({*span(node.body)}) == 1 and node.high is not None:
        unit = span(node.body)[0]
        found = [(unit * count, repeat(node.body, count, count)) for count in range(node.low, node.high + 1)]
    return found or None
