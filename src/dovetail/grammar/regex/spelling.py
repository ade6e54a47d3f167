"""Regular nodes in another spelling: each character as some other nodes write it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dovetail.errors import GrammarError
from dovetail.grammar import ir
from dovetail.grammar.regex.charset import Ranges
from dovetail.grammar.regex.syntax import ANYTHING, decoded, sequence

_WIDE = 0x10000


@dataclass(frozen=True, slots=True)
class Spelling:
    """How one character out of a class and a literal are written."""

    char: Callable[[Ranges], ir.Node]
    text: Callable[[str], ir.Node]

    @classmethod
    def of(cls, char: Callable[[Ranges], ir.Node]) -> Spelling:
        """The spelling that writes character by character."""
        return cls(char, lambda word: sequence(char(((ord(one), ord(one)),)) for one in word))


def mapped(node: ir.Node, spelling: Spelling) -> ir.Node:
    """`node` in another spelling, with the rules that it calls."""
    return closed(node, spelling, ir.EMPTY, ir.Call(ir.Rule("text", ir.star(spelling.char(ir.ANY_CHAR.ranges)))))


def closed(node: ir.Node, spelling: Spelling, end: ir.Node, anything: ir.Node) -> ir.Node:
    """`node` in another spelling and `end`; where any text may follow, `anything` stands for that text and `end`."""
    return _Copy(spelling, end, anything).of(node)


def restrict(node: ir.Node, allowed: ir.Chars) -> ir.Node:
    """The texts of `node` that consist of `allowed` characters only."""
    outside = ir.complement(allowed.ranges).ranges
    return mapped(node, Spelling.of(lambda ranges: ir.complement([*ir.complement(ranges).ranges, *outside])))


class _Copy:
    """Writes the end wherever a text may end, so that no state waits for it beside a loop, and rules can share it.

    Nodes are told by their types: patterns are large, and a match of classes takes four times as long.
    """

    def __init__(self, spelling: Spelling, end: ir.Node, anything: ir.Node) -> None:
        self._spelling = spelling
        self._end = end
        self._anything = anything
        self._text: ir.Node | None = None
        self._rules: dict[ir.Rule, ir.Call] = {}
        self._pending: list[ir.Rule] = []

    def of(self, node: ir.Node) -> ir.Node:
        """The copy of a node, with the rules that it calls."""
        copy = self._last(node)
        for rule in self._pending:
            self._rules[rule].rule.body = self._last(rule.body)
        return copy

    def _last(self, node: ir.Node) -> ir.Node:
        """A node that nothing follows, with the end behind it."""
        if type(node) is ir.Call:
            if node.rule not in self._rules:
                self._rules[node.rule] = ir.Call(ir.Rule(node.rule.name, ir.NOTHING))
                self._pending.append(node.rule)
            return self._rules[node.rule]
        if type(node) is ir.Seq and node.parts:
            return sequence((*[self._node(part) for part in node.parts[:-1]], self._last(node.parts[-1])))
        if type(node) is ir.Alt:
            return ir.Alt(tuple([self._last(part) for part in node.parts]))
        if type(node) is ir.Repeat:
            if type(node.body) is ir.Chars and node.low < 2 and node.high is None:
                loop = self._loop(node.body.ranges)
                return sequence((self._spelling.char(node.body.ranges), loop)) if node.low else loop
            if node.low == 0 and node.high == 1:
                return ir.Alt((self._last(node.body), self._end))
        if type(node) is ir.Unlisted:
            return self._last(ir.unlisted_out(node))
        return sequence((self._node(node), self._end))

    def _loop(self, ranges: Ranges) -> ir.Node:
        if ranges == ir.ANY_CHAR.ranges:
            return self._anything
        text = sequence((ir.star(self._spelling.char(ranges)), self._end))
        # A loop that takes most tokens is a rule of its own, so that all texts that end in it share its masks.
        return ir.Call(ir.Rule("text", text)) if sum(high - low + 1 for low, high in ranges) >= _WIDE else text

    def _node(self, node: ir.Node) -> ir.Node:
        """A node that others follow."""
        if type(node) is ir.Chars:
            return self._spelling.char(node.ranges)
        if type(node) is ir.Lit:
            return self._spelling.text(decoded(node.data))
        if type(node) is ir.Seq:
            return sequence([self._node(part) for part in node.parts])
        if type(node) is ir.Alt:
            return ir.Alt(tuple([self._node(part) for part in node.parts]))
        if type(node) is ir.Repeat:
            if node != ANYTHING:
                return ir.Repeat(self._node(node.body), node.low, node.high)
            # Text before what a pattern looks for has a frame of its own, whose tokens are allowed at once; inside the
            # pattern it would be another state with every beginning of a match.
            if self._text is None:
                self._text = ir.Call(ir.Rule("text", ir.star(self._spelling.char(ir.ANY_CHAR.ranges))))
            return self._text
        if type(node) is ir.Unlisted:
            return self._node(ir.unlisted_out(node))
        raise GrammarError(f"{type(node).__name__} is not regular", "", "use literals, classes and repetition")
