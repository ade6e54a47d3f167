"""Patterns by the number of characters that they match."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from dovetail.grammar import ir
from dovetail.grammar.regex.syntax import NOTHING, Cat, Or, Rep, Syntax, cat, union

MAX_LENGTHS = 16

Span = tuple[int, int | None]  # fewest and most characters

MAX_KNOWN = 10_000
_UNKNOWN: Span = (0, None)
_SPANS: dict[ir.Rule, Span] = {}  # of rules, which are not changed once they are made
_JOINED: dict[int, tuple[Syntax, Span]] = {}  # of sequences and choices by identity: formats use the same many times


def span(node: Syntax) -> Span:
    """The fewest and most characters of a text of `node`, or bounds of them; assertions match none."""
    if type(node) is ir.Chars:
        return 1, 1
    if type(node) is Cat or type(node) is Or:
        return _joined_span(node)
    if type(node) is Rep:
        return _times(span(node.body), node.low, node.high)
    if type(node) is ir.Call:
        return _SPANS[node.rule] if node.rule in _SPANS else _rule_span(node.rule)
    return 0, 0


def _joined_span(node: Cat | Or) -> Span:
    known = _JOINED.get(id(node))
    if known is None:
        if len(_JOINED) > MAX_KNOWN:
            _JOINED.clear()
        spans = [span(part) for part in node.parts]
        known = _JOINED[id(node)] = node, sum_of(spans) if isinstance(node, Cat) else _widest(spans)
    return known[1]


def _rule_span(root: ir.Rule) -> Span:
    """The same for a rule; no upper bound where rules call each other in a circle."""
    if len(_SPANS) > MAX_KNOWN:
        _SPANS.clear()
    pending = [root]
    opened: set[ir.Rule] = set()
    while pending:
        rule = pending[-1]
        opened.add(rule)
        missing: list[ir.Rule] = []
        found = _node_span(rule.body, missing)
        if not opened.isdisjoint(missing):
            _SPANS.update(dict.fromkeys(opened, (0, None)))
            break
        pending += missing
        if not missing:
            opened.discard(rule)
            _SPANS[rule] = found
            while pending and pending[-1] in _SPANS:
                pending.pop()
    return _SPANS[root]


def _node_span(node: ir.Node, missing: list[ir.Rule]) -> Span:
    """The span of a node; `missing` gets the rules that it calls and of which none is known."""
    if type(node) is ir.Chars:
        return 1, 1
    if type(node) is ir.Seq:
        return sum_of([_node_span(part, missing) for part in node.parts])
    if type(node) is ir.Call:
        found = _SPANS.get(node.rule)
        if found is None:
            missing.append(node.rule)
        return found or _UNKNOWN
    if type(node) is ir.Alt:
        return _widest([_node_span(part, missing) for part in node.parts])
    if type(node) is ir.Lit:
        return (len(node.data.decode()),) * 2
    if type(node) is ir.Repeat:
        return _times(_node_span(node.body, missing), node.low, node.high)
    for part in ir.children(node):
        _node_span(part, missing)
    return _UNKNOWN


def _widest(spans: list[Span]) -> Span:
    highs = [high for _, high in spans]
    most = None if None in highs else max((high or 0 for high in highs), default=0)
    return min((low for low, _ in spans), default=0), most


def _times(one: Span, low: int, high: int | None) -> Span:
    fewest, most = one
    return fewest * low, 0 if most == 0 or high == 0 else None if most is None or high is None else most * high


def sum_of(spans: Iterable[Span]) -> Span:
    """The span of texts one behind the other."""
    lows, highs = 0, 0
    bounded = True
    for low, high in spans:
        lows += low
        highs += high or 0
        bounded = bounded and high is not None
    return lows, highs if bounded else None


def narrow(node: Syntax, low: int, high: int | None) -> Syntax | None:
    """The texts of `node` of low to high characters, where one repetition can take the limits up; None otherwise."""
    fewest, most = span(node)
    if low <= fewest and (high is None or (most is not None and most <= high)):
        return node
    if (most is not None and most < low) or (high is not None and fewest > high):
        return NOTHING
    match node:
        case Or(parts):
            return _any(narrow(part, low, high) for part in parts)
        case Cat(parts):
            return _narrow_parts(parts, low, high)
        case Rep(body, first, last):
            unit, widest = span(body)
            if unit != widest or unit == 0:
                return None
            first = max(first, -(-low // unit))
            most = last if high is None else high // unit if last is None else min(last, high // unit)
            return NOTHING if most is not None and first > most else Rep(body, first, most)
        case _:
            return None


def _any(options: Iterable[Syntax | None]) -> Syntax | None:
    found: list[Syntax] = []
    for option in options:
        if option is None:
            return None
        found.append(option)
    return union(*found)


def _narrow_parts(parts: tuple[Syntax, ...], low: int, high: int | None) -> Syntax | None:
    """One part takes the limits up, beside each of the few lengths that the others may have."""
    lengths = [_by_length(part) for part in parts]
    wide = [index for index, found in enumerate(lengths) if found is None]
    if len(wide) > 1:
        return None
    at = wide[0] if wide else 0
    left, right = _joined(lengths[:at]), _joined(lengths[at + 1 :])
    if left is None or right is None:
        return None
    options: list[Syntax | None] = []
    for (before, head), (after, tail) in product(left.items(), right.items()):
        rest = before + after
        if high is None or rest <= high:
            middle = narrow(parts[at], max(low - rest, 0), None if high is None else high - rest)
            options.append(None if middle is None else NOTHING if middle == NOTHING else cat(head, middle, tail))
    return None if len(options) > MAX_LENGTHS else _any(options)


def _by_length(node: Syntax) -> dict[int, Syntax] | None:
    """The texts of `node` by their length; None where they have many lengths."""
    fewest, most = span(node)
    if fewest == most:
        return {fewest: node}
    if most is None or most - fewest >= MAX_LENGTHS:
        return None
    found: dict[int, Syntax] = {}
    match node:
        case Cat(parts):
            return _joined([_by_length(part) for part in parts])
        case Or(parts):
            for part in parts:
                lengths = _by_length(part)
                if lengths is None:
                    return None
                for length, texts in lengths.items():
                    found[length] = union(found[length], texts) if length in found else texts
        case Rep(body, low, high):
            unit, widest = span(body)
            if unit != widest or high is None:
                return None
            found = {unit * count: Rep(body, count, count) for count in range(low, high + 1)}
        case _:
            return None
    return found


def _joined(lengths: Iterable[dict[int, Syntax] | None]) -> dict[int, Syntax] | None:
    joined: dict[int, Syntax] = {0: Cat(())}
    for found in lengths:
        if found is None:
            return None
        longer: dict[int, Syntax] = {}
        for (before, head), (after, tail) in product(joined.items(), found.items()):
            both = cat(head, tail)
            longer[before + after] = union(longer[before + after], both) if before + after in longer else both
        joined = longer
        if len(joined) > MAX_LENGTHS:
            return None
    return joined
