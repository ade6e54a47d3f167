"""Patterns by the number of characters that they match."""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.grammar import ir
from dovetail.grammar.regex.syntax import Look, called, repeat

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
    """The texts of `node` of low to high characters, where it is a repetition that takes the limits up; or None."""
    fewest, most = span(node)
    if low <= fewest and (high is None or (most is not None and most <= high)):
        return node
    if (most is not None and most < low) or (high is not None and fewest > high):
        return ir.NOTHING
    if type(node) is not ir.Repeat:
        return None
    unit, widest = span(node.body)
    if unit != widest or unit == 0:
        return None
    first = max(node.low, -(-low // unit))
    last = node.high if high is None else high // unit if node.high is None else min(node.high, high // unit)
    return ir.NOTHING if last is not None and first > last else repeat(node.body, first, last)
