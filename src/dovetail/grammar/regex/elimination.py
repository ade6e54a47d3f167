"""Automata back to nodes, by eliminating states (Brzozowski and McCluskey 1963)."""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from dovetail.errors import LimitError
from dovetail.grammar import ir
from dovetail.grammar.regex.automaton import Automaton
from dovetail.grammar.regex.syntax import Cat, Or, Rep, Syntax

MAX_SIZE = 20_000
MAX_DEPTH = 300


@dataclass(frozen=True, slots=True)
class _Expr:
    """A node, how many nodes it holds when its shared parts are written out, and how deep they nest."""

    node: ir.Node
    size: int
    depth: int = 1


_EMPTY = _Expr(ir.EMPTY, 0)


def to_node(automaton: Automaton) -> ir.Node:
    """A node without calls for the language of `automaton`."""
    count = len(automaton.edges)
    source, sink = count, count + 1
    out: list[dict[int, _Expr]] = [{} for _ in range(count + 2)]
    for state, edges in enumerate(automaton.edges):
        by_target: dict[int, list[tuple[int, int]]] = {}
        for symbol, target in edges:
            by_target.setdefault(target, []).extend(automaton.alphabet[symbol])
        out[state] = {target: _Expr(chars(spans), 1) for target, spans in by_target.items()}
    for state in automaton.accepting:
        out[state][sink] = _EMPTY
    for state, rests in automaton.exits.items():
        for rest in rests:
            leaving = _measured(direct(rest))
            out[state][sink] = _choose(out[state][sink], leaving) if sink in out[state] else leaving
    out[source][0] = _EMPTY
    return _eliminated(out, source, sink)


def _eliminated(out: list[dict[int, _Expr]], source: int, sink: int) -> ir.Node:
    into: list[set[int]] = [set() for _ in out]
    for state, targets in enumerate(out):
        for target in targets:
            into[target].add(state)
    # Weights change as neighbours go; a stale entry is skipped when it comes up.
    weights = {state: _weight(state, out, into) for state in range(source)}
    queue = [(weight, state) for state, weight in weights.items()]
    heapify(queue)
    while queue:
        weight, state = heappop(queue)
        if weights.get(state) != weight:
            continue
        del weights[state]
        near = {*into[state], *out[state]} & weights.keys()
        _eliminate(state, out, into)
        for other in near:
            weights[other] = _weight(other, out, into)
            heappush(queue, (weights[other], other))
    return out[source][sink].node if sink in out[source] else ir.NOTHING


def direct(tree: Syntax) -> ir.Node:
    """The node of a pattern without assertions, of the same shape."""
    match tree:
        case ir.Chars():
            return tree
        case Cat(parts):
            return ir.seq(*_literals([direct(part) for part in parts]))
        case Or(parts):
            return ir.alt(*(direct(part) for part in parts))
        case Rep(_, _, 0):
            return ir.EMPTY
        case Rep(body, 1, 1):
            return direct(body)
        case Rep(body, low, high):
            return ir.Repeat(direct(body), low, high)
        case _:
            raise AssertionError("assertions are resolved first")


def _literals(parts: list[ir.Node]) -> list[ir.Node]:
    """Neighbouring single characters as one literal."""
    joined: list[ir.Node] = []
    for part in parts:
        if not isinstance(part, ir.Chars) or len(part.ranges) != 1 or part.ranges[0][0] != part.ranges[0][1]:
            joined.append(part)
            continue
        char = ir.lit(chr(part.ranges[0][0]))
        last = joined[-1] if joined else None
        if isinstance(last, ir.Lit):
            joined[-1] = ir.Lit(last.data + char.data)
        else:
            joined.append(char)
    return joined


def _measured(node: ir.Node) -> _Expr:
    size, deepest = 0, 0
    pending = [(node, 1)]
    while pending:
        current, depth = pending.pop()
        size, deepest = size + 1, max(deepest, depth)
        pending.extend((child, depth + 1) for child in ir.children(current))
    return _EMPTY if node == ir.EMPTY else _Expr(node, size, deepest)


def chars(spans: list[tuple[int, int]]) -> ir.Node:
    """A class, or a literal where only one character is in it; the gap of the surrogates is closed."""
    if any(high == 0xD7FF for _, high in spans) and any(low == 0xE000 for low, _ in spans):
        spans = [*spans, (0xD800, 0xDFFF)]
    merged = ir.chars(spans)
    (low, high), *more = merged.ranges
    return ir.lit(chr(low)) if low == high and not more else merged


def _weight(state: int, out: list[dict[int, _Expr]], into: list[set[int]]) -> int:
    """How much text the elimination of `state` adds (Delgado and Morais 2004)."""
    sources = [other for other in into[state] if other != state]
    targets = [expr.size for target, expr in out[state].items() if target != state]
    before = sum(out[other][state].size for other in sources)
    loop = out[state][state].size if state in out[state] else 0
    return before * len(targets) + sum(targets) * len(sources) + loop * len(sources) * len(targets)


def _eliminate(state: int, out: list[dict[int, _Expr]], into: list[set[int]]) -> None:
    loop = out[state].pop(state, None)
    into[state].discard(state)
    for target in out[state]:
        into[target].discard(state)
    for source in into[state]:
        head = out[source].pop(state)
        if loop is not None:
            head = _join(head, _Expr(ir.star(_unoptional(loop.node)), loop.size + 1, loop.depth + 1))
        for target, tail in out[state].items():
            through = _join(head, tail)
            known = out[source].get(target)
            found = through if known is None else _choose(known, through)
            if found.size > MAX_SIZE or found.depth > MAX_DEPTH:
                raise LimitError("the pattern grows too large without its assertions", "", "use fewer lookarounds")
            out[source][target] = found
            into[target].add(source)
    out[state], into[state] = {}, set()


def _unoptional(node: ir.Node) -> ir.Node:
    return node.body if isinstance(node, ir.Repeat) and (node.low, node.high) == (0, 1) else node


def _join(left: _Expr, right: _Expr) -> _Expr:
    if left is _EMPTY or right is _EMPTY:
        return right if left is _EMPTY else left
    ends, begins = _parts(left, ir.Seq), _parts(right, ir.Seq)
    last, first = ends[-1], begins[0]
    if isinstance(last, ir.Lit) and isinstance(first, ir.Lit):
        ends, begins = (*ends[:-1], ir.Lit(last.data + first.data)), begins[1:]
    return _Expr(ir.seq(*ends, *begins), left.size + right.size, _depth(left, right, ir.Seq))


def _choose(left: _Expr, right: _Expr) -> _Expr:
    if left is _EMPTY or right is _EMPTY:
        other = right if left is _EMPTY else left
        nullable = isinstance(other.node, ir.Repeat) and other.node.low == 0
        return other if nullable else _Expr(ir.optional(other.node), other.size + 1, other.depth + 1)
    branches = (*_parts(left, ir.Alt), *_parts(right, ir.Alt))
    return _Expr(ir.alt(*branches), left.size + right.size, _depth(left, right, ir.Alt))


def _parts(expr: _Expr, kind: type[ir.Seq | ir.Alt]) -> tuple[ir.Node, ...]:
    return expr.node.parts if isinstance(expr.node, kind) else (expr.node,)


def _depth(left: _Expr, right: _Expr, kind: type[ir.Seq | ir.Alt]) -> int:
    return 1 + max(expr.depth - isinstance(expr.node, kind) for expr in (left, right))
