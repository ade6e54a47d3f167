"""Automata back to nodes: a state that several others lead to is a rule, any other stands where it is reached.

A rule calls others at its end only, which the core does without a stack.
"""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.grammar import ir
from dovetail.grammar.regex.automaton import Automaton, symbols_of
from dovetail.grammar.regex.minimal import live_states
from dovetail.grammar.regex.syntax import But, Cat, Or, Rep, Syntax

MAX_DEPTH = 40
JOINED = frozenset((ir.Seq, ir.Lit, ir.Chars))  # what does not stay as it is in a sequence


def to_node(automaton: Automaton) -> ir.Node:
    """A node for the language of `automaton`, `ir.NOTHING` where it is empty."""
    live = live_states(automaton)
    return _Writer(automaton, live).node() if 0 in live else ir.NOTHING


class _Writer:
    def __init__(self, automaton: Automaton, live: set[int]) -> None:
        self._automaton = automaton
        self._live = live
        self._classes: dict[int, ir.Node] = {}
        entered: dict[int, int] = {0: 1}
        for state in live:
            for target in automaton.edges[state]:
                if target != state and target in live:
                    entered[target] = entered.get(target, 0) + 1
        self._calls = {state: _call() for state, times in entered.items() if times > 1}
        self._written: dict[int, ir.Node] = {}
        self._pending = list(self._calls)

    def node(self) -> ir.Node:
        """The start state, and the bodies of all rules."""
        start = self._reach(0, 0)
        for state in self._pending:
            self._calls[state].rule.body = self._body(state, 0)
        return start

    def _reach(self, state: int, depth: int) -> ir.Node:
        call = self._calls.get(state)
        if call is None:
            if depth < MAX_DEPTH:
                return self._body(state, depth)
            call = self._calls[state] = _call()
            self._pending.append(state)
        return call

    def _body(self, state: int, depth: int) -> ir.Node:
        targets = self._automaton.edges[state]
        ways: list[ir.Node] = [ir.EMPTY] if state in self._automaton.accepting else []
        ways += [self._exit(rest) for rest in self._automaton.exits.get(state, ())]
        for target, mask in targets.items():
            if target != state and target in self._live:
                ways.append(_led(self._class(mask), self._reach(target, depth + 1)))
        rest = ir.optional(ir.alt(*ways[1:])) if len(ways) > 1 and ways[0] == ir.EMPTY else ir.alt(*ways)
        return sequence((ir.star(self._class(targets[state])), rest)) if state in targets else rest

    def _class(self, mask: int) -> ir.Node:
        known = self._classes.get(mask)
        if known is None:
            spread = [span for symbol in symbols_of(mask) for span in self._automaton.alphabet[symbol]]
            known = self._classes[mask] = chars(spread)
        return known

    def _exit(self, rest: Syntax) -> ir.Node:
        known = self._written.get(id(rest))
        if known is None:
            node = direct(rest)
            known = node if _is_small(node) else ir.Call(ir.Rule("rest", node))
            self._written[id(rest)] = known
        return known


def _call() -> ir.Call:
    return ir.Call(ir.Rule("state", ir.NOTHING))


def _led(first: ir.Node, rest: ir.Node) -> ir.Node:
    """A class or literal and what follows it; as `sequence`, but written once per edge."""
    if type(rest) is not ir.Seq and type(rest) is not ir.Lit:
        return ir.Seq((first, rest))
    return sequence((first, rest))


def _is_small(node: ir.Node) -> bool:
    """Whether a node is no larger than a call of it would be."""
    match node:
        case ir.Seq(parts):
            return len(parts) < 3 and all(isinstance(part, ir.Lit | ir.Chars | ir.Call) for part in parts)
        case ir.Repeat(body):
            return isinstance(body, ir.Lit | ir.Chars)
        case _:
            return isinstance(node, ir.Lit | ir.Chars | ir.Call | ir.Unlisted)


def direct(tree: Syntax) -> ir.Node:
    """The node of a pattern without assertions, of the same shape."""
    if type(tree) is ir.Chars or type(tree) is ir.Call:
        return tree
    if type(tree) is Cat:
        return sequence([part if type(part) is ir.Chars else direct(part) for part in tree.parts])
    if type(tree) is Or:
        return ir.alt(*[direct(part) for part in tree.parts])
    if type(tree) is Rep:
        if tree.high == 0:
            return ir.EMPTY
        body = direct(tree.body)
        return body if tree.low == tree.high == 1 else ir.Repeat(body, tree.low, tree.high)
    if type(tree) is But:
        return other_than(tree.words)
    raise AssertionError("assertions are resolved first, and words are barred only")


def other_than(words: tuple[str, ...]) -> ir.Node:
    """Any text but these words."""
    return ir.Unlisted(words, ir.ANY_CHAR, _REST, ir.NOTHING, ir.EMPTY)


_REST = ir.Call(ir.Rule("text", ir.star(ir.ANY_CHAR)))


_ASCII = [bytes((code,)) for code in range(128)]


def sequence(parts: Iterable[ir.Node]) -> ir.Node:
    """A sequence in which neighbouring single characters are one literal."""
    parts = tuple(parts)
    if JOINED.isdisjoint(map(type, parts)):
        return parts[0] if len(parts) == 1 else ir.Seq(parts)
    if ir.Seq in map(type, parts):
        parts = tuple([piece for part in parts for piece in (part.parts if type(part) is ir.Seq else (part,))])
    joined: list[ir.Node] = []
    data = b""
    for part in parts:
        if type(part) is ir.Chars:
            if len(part.ranges) == 1:
                low, high = part.ranges[0]
                if low == high:
                    data += _ASCII[low] if low < 128 else chr(low).encode()
                    continue
        elif type(part) is ir.Lit:
            data += part.data
            continue
        if data:
            joined.append(ir.Lit(data))
            data = b""
        joined.append(part)
    if data:
        joined.append(ir.Lit(data))
    return joined[0] if len(joined) == 1 else ir.Seq(tuple(joined))


def chars(pieces: list[tuple[int, int]]) -> ir.Node:
    """A class, or a literal where only one character is in it."""
    (low, high), *more = ranges = spans(pieces)
    return ir.lit(chr(low)) if low == high and not more else ir.Chars(ranges)


def spans(pieces: list[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The ranges of a class; the gap of the surrogates is closed."""
    if any(high == 0xD7FF for _, high in pieces) and any(low == 0xE000 for low, _ in pieces):
        pieces = [*pieces, (0xD800, 0xDFFF)]
    return ir.chars(pieces).ranges
