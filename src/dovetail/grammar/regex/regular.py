"""Operations on nodes that are regular: without captures, tokens and calls, unless a rule calls at its end only."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dovetail.errors import GrammarError, LimitError
from dovetail.grammar import ir
from dovetail.grammar.regex import syntax
from dovetail.grammar.regex.automaton import determinise, unfold
from dovetail.grammar.regex.lengths import narrow
from dovetail.grammar.regex.minimal import minimise
from dovetail.grammar.regex.product import product
from dovetail.grammar.regex.rules import direct, sequence, to_node
from dovetail.grammar.regex.syntax import ANYTHING, Or, Rep, Syntax
from dovetail.grammar.regex.words import sifted

Ranges = tuple[tuple[int, int], ...]
Limits = tuple[int, int | None]


def resolved(pattern: Syntax) -> ir.Node:
    """A node for the texts that `pattern` matches as a whole, its assertions worked into it."""
    if not syntax.asserts(pattern):
        return plain(pattern)
    try:
        return to_node(minimise(determinise(pattern, exits=True)))
    except LimitError:
        return to_node(unfold(pattern))


def plain(pattern: Syntax) -> ir.Node:
    """The node of a pattern without assertions."""
    node = direct(pattern)
    return ir.NOTHING if is_empty(node) else node


def intersect(*nodes: ir.Node, barred: Iterable[ir.Node] = (), low: int = 0, high: int | None = None) -> ir.Node:
    """The texts of low to high characters that all of `nodes` match and none of `barred`."""
    return _intersected(nodes, tuple(barred), (low, high))


# The same sets are asked for again and again where schemas are compared.
@lru_cache(maxsize=4096)
def _intersected(wanted: tuple[ir.Node, ...], barred: tuple[ir.Node, ...], limits: Limits) -> ir.Node:
    return combined([from_node(node) for node in wanted], [from_node(node) for node in barred], limits)


def combined(wanted: Sequence[Syntax], barred: Sequence[Syntax], limits: Limits = (0, None)) -> ir.Node:
    """The same for patterns without assertions."""
    wanted = [pattern for pattern in wanted if pattern != ANYTHING] or [ANYTHING]
    sorted_out = sifted(wanted, barred)
    if sorted_out is None:
        return ir.NOTHING
    wanted, barred = sorted_out
    if len(wanted) == 1 and not barred:
        narrowed = wanted[0] if limits == (0, None) else narrow(wanted[0], *limits)
        if narrowed is not None:
            return plain(narrowed)
    if limits == (0, None):
        try:
            return to_node(product(wanted, barred, from_node))
        except LimitError:
            pass  # a search for something long can be exponentially smaller when it is not deterministic
    return to_node(product(wanted, barred, from_node, limits, split=True))


def complement(node: ir.Node) -> ir.Node:
    """The texts that `node` does not match."""
    return intersect(barred=(node,))


def shortest(node: ir.Node) -> ir.Node:
    """The texts of `node` of which no beginning is one, as a lazy reader finds them."""
    automaton = minimise(product([from_node(node)], [], from_node, exits=False))
    for state in automaton.accepting:
        automaton.edges[state] = {}
    return to_node(minimise(automaton))


def without(body: ir.Node, excludes: Sequence[bytes]) -> ir.Node:
    """The texts of `body` that contain none of `excludes`."""
    words = tuple(syntax.from_text(decoded(data)) for data in excludes)
    return combined([from_node(body)], [syntax.cat(ANYTHING, Or(words), ANYTHING)])


def decoded(data: bytes) -> str:
    """The characters of `data`, which must be whole."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise GrammarError(f"{data!r} is not well-formed UTF-8", "", "use whole characters") from None


def from_node(node: ir.Node) -> Syntax:
    """A node without calls, captures and tokens as syntax."""
    match node:
        case ir.Lit(data):
            return syntax.from_text(decoded(data))
        case ir.Chars() | ir.Call():
            return node
        case ir.Bytes(ranges) if all(high < 0x80 for _, high in ranges):
            return ir.Chars(ranges)
        case ir.Seq(parts):
            return syntax.cat(*(from_node(part) for part in parts))
        case ir.Alt(parts):
            return Or(tuple([from_node(part) for part in parts]))
        case ir.Repeat(body, low, high):
            return Rep(from_node(body), low, high)
        case ir.Unlisted():
            return from_node(ir.unlisted_out(node))
        case ir.Without(body, excludes):
            return from_node(without(body, excludes))
        case ir.Text(excludes, (), after, (), most, None, least) if after is not None:
            text = ir.Repeat(ir.ANY_CHAR, least, most)
            return syntax.cat(from_node(without(text, excludes) if excludes else text), from_node(after))
        case _:
            raise GrammarError(f"{type(node).__name__} is not regular", "", "use literals, classes and repetition")


def restrict(node: ir.Node, allowed: ir.Chars) -> ir.Node:
    """The texts of `node` that consist of `allowed` characters only."""
    outside = ir.complement(allowed.ranges).ranges
    return mapped(node, Spelling.of(lambda ranges: ir.complement([*ir.complement(ranges).ranges, *outside])))


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
    return _Map(spelling).of(node)


def closed(node: ir.Node, spelling: Spelling, end: ir.Node, anything: ir.Node) -> ir.Node:
    """The same with `end` behind it; where any text may follow, `anything` stands for that text and `end`."""
    return _Closing(spelling, end, anything).of(node)


class _Map:
    # Nodes are told by their types: patterns are large, and a match of classes takes four times as long.

    def __init__(self, spelling: Spelling) -> None:
        self._spelling = spelling
        self._rules: dict[int, ir.Call] = {}
        self._pending: list[tuple[ir.Rule, ir.Rule]] = []

    def of(self, node: ir.Node) -> ir.Node:
        found = self._last(node)
        for rule, copy in self._pending:
            copy.body = self._last(rule.body)
        return found

    def _last(self, node: ir.Node) -> ir.Node:
        """A node that nothing follows."""
        return self._node(node)

    def _node(self, node: ir.Node) -> ir.Node:
        if type(node) is ir.Chars:
            return self._spelling.char(node.ranges)
        if type(node) is ir.Lit:
            return self._spelling.text(decoded(node.data))
        if type(node) is ir.Call:
            return self._call(node.rule)
        if type(node) is ir.Seq:
            return sequence([self._node(part) for part in node.parts])
        if type(node) is ir.Alt:
            return ir.Alt(tuple([self._node(part) for part in node.parts]))
        if type(node) is ir.Repeat:
            if node.low == 0 and node.high is None and node.body == ir.ANY_CHAR:
                # Text before what a pattern looks for has a frame of its own, whose tokens are allowed at once; inside
                # the pattern it would be another state with every beginning of a match.
                return ir.Call(ir.Rule("text", ir.star(self._spelling.char(ir.ANY_CHAR.ranges))))
            return ir.Repeat(self._node(node.body), node.low, node.high)
        if type(node) is ir.Unlisted:
            return self._node(ir.unlisted_out(node))
        raise GrammarError(f"{type(node).__name__} is not regular", "", "use literals, classes and repetition")

    def _call(self, rule: ir.Rule) -> ir.Call:
        found = self._rules.get(id(rule))
        if found is None:
            found = self._rules[id(rule)] = ir.Call(ir.Rule(rule.name, ir.NOTHING))
            self._pending.append((rule, found.rule))
        return found


class _Closing(_Map):
    """Writes the end wherever a text may end, so that no state waits for it beside a loop, and rules can share it."""

    def __init__(self, spelling: Spelling, end: ir.Node, anything: ir.Node) -> None:
        super().__init__(spelling)
        self._end = end
        self._anything = anything

    def _last(self, node: ir.Node) -> ir.Node:
        if type(node) is ir.Call:
            return self._call(node.rule)
        if type(node) is ir.Seq:
            parts = node.parts
            return sequence((*[self._node(part) for part in parts[:-1]], self._last(parts[-1]))) if parts else self._end
        if type(node) is ir.Alt:
            return ir.Alt(tuple([self._last(part) for part in node.parts]))
        if type(node) is ir.Repeat:
            if type(node.body) is ir.Chars and node.low < 2 and node.high is None:
                loop = self._last_loop(node.body.ranges)
                return sequence((self._spelling.char(node.body.ranges), loop)) if node.low else loop
            if node.low == 0 and node.high == 1:
                return ir.Alt((self._last(node.body), self._end))
        elif type(node) is ir.Unlisted:
            return self._last(ir.unlisted_out(node))
        return sequence((self._node(node), self._end))

    def _last_loop(self, ranges: Ranges) -> ir.Node:
        if ranges == ir.ANY_CHAR.ranges:
            return self._anything
        text = sequence((ir.star(self._spelling.char(ranges)), self._end))
        # A loop that takes most tokens is a rule of its own, so that all texts that end in it share its masks.
        return ir.Call(ir.Rule("text", text)) if sum(high - low + 1 for low, high in ranges) >= _WIDE else text


_WIDE = 0x10000


def is_empty(node: ir.Node) -> bool:
    """Whether nothing matches `node`, calls and free text taken as matching something."""
    if type(node) is ir.Chars or type(node) is ir.Bytes:
        return not node.ranges
    if type(node) is ir.Seq:
        return any(is_empty(part) for part in node.parts)
    if type(node) is ir.Alt:
        return all(is_empty(part) for part in node.parts)
    if type(node) is ir.Repeat:
        return node.low > 0 and is_empty(node.body)
    return type(node) is ir.Capture and is_empty(node.body)
