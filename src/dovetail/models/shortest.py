"""The shortest output that a grammar has."""

from __future__ import annotations

import math
import string
from collections.abc import Iterator

from dovetail.grammar import ir

# A call weighs less than any byte but more than nothing, so that of two equal ways the one with fewer calls is
# shorter, and no way leads back to itself.
_BYTE = float(1 << 20)

_LETTERS = string.ascii_lowercase + string.digits + string.ascii_uppercase

_Weights = dict[int, float]


def shortest(root: ir.Rule) -> Iterator[bytes | ir.Tokens]:
    """Pieces of the shortest output in order; a piece that is not bytes is one token out of those."""
    rules = _weigh_rules(root)
    known = {id(rule): _weigh_nodes(rule.body, rules) for rule in ir.reachable(root)}
    pending: list[tuple[ir.Node, _Weights]] = [(root.body, known[id(root)])]
    while pending:
        node, weights = pending.pop()
        match node:
            case ir.Lit(data):
                yield data
            case ir.Chars(ranges):
                yield chr(_nicest(ranges)).encode()
            case ir.Bytes(ranges):
                yield bytes([_nicest(ranges)])
            case ir.Tokens():
                yield node
            case ir.Call(rule):
                pending.append((rule.body, known[id(rule)]))
            case _:
                pending += [(part, weights) for part in reversed(_way(node, weights))]


def _way(node: ir.Node, weights: _Weights) -> list[ir.Node]:
    """What the shortest way through a node consists of."""
    match node:
        case ir.Seq(parts):
            return list(parts)
        case ir.Alt(parts):
            return [min(parts, key=lambda part: weights[id(part)])]
        case ir.Repeat(body, low):
            return [body] * low
        case ir.Capture(_, body) | ir.Without(body):
            return [body]
        case ir.NewKey():
            return []
        case ir.Text():
            stop, arm = min(_arms(node), key=lambda arm: len(arm[0]) * _BYTE + weights[id(arm[1])])
            return [ir.Lit(stop), arm]
        case ir.Unlisted():
            text, rest = min(_departures(node), key=lambda way: len(way[0]) * _BYTE + weights[id(way[1])])
            return [ir.Lit(text), rest]
        case ir.Measured(states, at, _, _, end):
            chars: list[ir.Node] = []
            for place in ir.measured_way(node) or ():
                char, at = states[at][0][place]
                chars.append(char)
            return [*chars, ir.Lit(end)]
        case ir.AnyOrder(members, _, separator, close, started):
            required = [member for member, needed in members if needed]
            joined = [part for member in required for part in (separator, member)]
            return [*joined[0 if started else 1 :], close]
        case _:
            raise AssertionError(f"no way leads through {node!r}")


def _weigh_rules(root: ir.Rule) -> _Weights:
    """The weight of the shortest output of each rule, by going over all rules until nothing changes."""
    rules = ir.reachable(root)
    weights = {id(rule): math.inf for rule in rules}
    changed = True
    while changed:
        changed = False
        for rule in reversed(rules):
            weight = _weigh_nodes(rule.body, weights)[id(rule.body)]
            if weight < weights[id(rule)]:
                weights[id(rule)] = weight
                changed = True
    return weights


def _weigh_nodes(body: ir.Node, rules: _Weights) -> _Weights:
    """The weight of each node of a rule; the inner ones first, however deep."""
    weights: _Weights = {}
    for node in reversed(list(_within(body))):
        weights[id(node)] = _weigh(node, weights, rules)
    return weights


def _within(body: ir.Node) -> Iterator[ir.Node]:
    pending = [body]
    while pending:
        node = pending.pop()
        yield node
        # The parts of these are made anew each time, but weights go by identity.
        if isinstance(node, ir.Unlisted):
            pending.extend((node.rest, node.other, node.end))
        else:
            pending.extend(ir.children(node))


def _weigh(node: ir.Node, weights: _Weights, rules: _Weights) -> float:
    match node:
        case ir.Lit(data):
            return len(data) * _BYTE
        case ir.Chars(ranges):
            return _width(_nicest(ranges)) * _BYTE if ranges else math.inf
        case ir.Bytes(ranges):
            return _BYTE if ranges else math.inf
        case ir.Tokens():
            return _BYTE
        case ir.Call(rule):
            return rules[id(rule)] + 1
        case ir.Alt(parts):
            return min((weights[id(part)] for part in parts), default=math.inf)
        case ir.Repeat(body, low):
            return low * weights[id(body)] if low else 0.0
        case ir.Text():
            return min((len(stop) * _BYTE + weights[id(arm)] for stop, arm in _arms(node)), default=math.inf)
        case ir.Unlisted():
            return min((len(text) * _BYTE + weights[id(rest)] for text, rest in _departures(node)), default=math.inf)
        case ir.Measured(end=end):
            way = ir.measured_way(node)
            if way is None:
                return math.inf
            return sum(weights[id(part)] for part in _way(node, weights)[:-1]) + len(end) * _BYTE
        case _:
            return sum(weights[id(part)] for part in _way(node, weights))


def _arms(node: ir.Text) -> list[tuple[bytes, ir.Node]]:
    ends = [*node.stops, *([] if node.after is None else [(b"", node.after)])]
    if not node.min_chars:
        return ends
    words = "".join(word.decode() for word in (*node.excludes, *(stop for stop, _ in node.stops)))
    filler = next(char for char in (*_LETTERS, *map(chr, range(128))) if char not in words)
    return [(filler.encode() * node.min_chars + stop, arm) for stop, arm in ends]


def _departures(node: ir.Unlisted) -> Iterator[tuple[bytes, ir.Node]]:
    """Short ways to be none of the words: to end before one is complete, or to go on as none of them goes on."""
    prefixes = {word[:length] for word in node.words for length in range(len(word))} | {""}
    for prefix in sorted(prefixes, key=lambda text: (len(text), text)):
        if prefix not in node.words:
            yield prefix.encode(), node.end
        going_on = {word[len(prefix)] for word in node.words if word.startswith(prefix) and len(word) > len(prefix)}
        for char in _LETTERS:
            if char not in going_on and any(low <= ord(char) <= high for low, high in node.chars.ranges):
                yield (prefix + char).encode(), node.rest
                break
        yield prefix.encode(), node.other


def _nicest(ranges: tuple[tuple[int, int], ...]) -> int:
    """A letter or digit where the ranges hold one, or else one of the shortest members, rather no control character."""
    for wanted in b"a0":
        if any(low <= wanted <= high for low, high in ranges):
            return wanted
    first = ranges[0][0]
    return next((low for low, high in ranges if high > 32 and _width(low) == _width(first)), first)


def _width(code: int) -> int:
    """How many bytes a character takes."""
    return 1 + (code > 0x7F) + (code > 0x7FF) + (code > 0xFFFF)
