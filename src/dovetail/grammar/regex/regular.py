"""Operations on nodes without calls: they are regular languages, and stay so."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dovetail.errors import GrammarError, LimitError
from dovetail.grammar import ir
from dovetail.grammar.regex import syntax
from dovetail.grammar.regex.automaton import determinise, unfold
from dovetail.grammar.regex.elimination import direct, to_node
from dovetail.grammar.regex.minimal import minimise
from dovetail.grammar.regex.syntax import Edge, Look, Or, Rep, Syntax, asserts


def resolved(pattern: Syntax) -> ir.Node:
    """A node for the texts that `pattern` matches as a whole, its assertions worked into it."""
    if not asserts(pattern):
        node = direct(pattern)
        return ir.NOTHING if is_empty(node) else node
    try:
        node = to_node(minimise(determinise(pattern, exits=True)))
    except LimitError:
        node = to_node(unfold(pattern))
    return ir.NOTHING if is_empty(node) else node


def intersect(*nodes: ir.Node, barred: Iterable[ir.Node] = ()) -> ir.Node:
    """The texts that all of `nodes` match and none of `barred`."""
    *others, last = (from_node(node) for node in nodes) if nodes else (syntax.ANYTHING,)
    looks = [Look(syntax.cat(other, Edge(end=True)), ahead=True, negative=False) for other in others]
    looks += [Look(syntax.cat(from_node(node), Edge(end=True)), ahead=True, negative=True) for node in barred]
    return resolved(syntax.cat(*looks, last))


def complement(node: ir.Node) -> ir.Node:
    """The texts that `node` does not match."""
    return intersect(barred=(node,))


def shortest(node: ir.Node) -> ir.Node:
    """The texts of `node` of which no beginning is one, as a lazy reader finds them."""
    automaton = minimise(determinise(from_node(node)))
    for state in automaton.accepting:
        automaton.edges[state] = []
    return to_node(minimise(automaton))


def without(body: Syntax, excludes: Sequence[bytes]) -> Syntax:
    """The texts of `body` that contain none of `excludes`; good for a whole text only."""
    words = tuple(syntax.from_text(decoded(data)) for data in excludes)
    return syntax.cat(Look(syntax.cat(syntax.ANYTHING, Or(words)), ahead=True, negative=True), body)


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
        case ir.Chars():
            return node
        case ir.Bytes(ranges) if all(high < 0x80 for _, high in ranges):
            return ir.Chars(ranges)
        case ir.Seq(parts):
            return syntax.cat(*(from_node(part) for part in parts))
        case ir.Alt(parts):
            return Or(tuple(from_node(part) for part in parts))
        case ir.Repeat(body, low, high):
            return Rep(from_node(body), low, high)
        case ir.Without(body, excludes):
            return from_node(resolved(without(from_node(body), excludes)))
        case ir.Text(excludes, (), after, (), max_chars, None) if after is not None:
            text = Rep(ir.ANY_CHAR, 0, max_chars)
            return syntax.cat(from_node(resolved(without(text, excludes))) if excludes else text, from_node(after))
        case _:
            raise GrammarError(f"{type(node).__name__} is not regular", "", "use literals, classes and repetition")


def restrict(node: ir.Node, allowed: ir.Chars) -> ir.Node:
    """The texts of `node` that consist of `allowed` characters only."""
    match node:
        case ir.Lit(data):
            inside = all(low <= ord(char) <= high for char in decoded(data) for low, high in [_span(allowed, char)])
            return node if inside else ir.NOTHING
        case ir.Chars(ranges):
            outside = ir.complement(allowed.ranges).ranges
            return ir.complement([*ir.complement(ranges).ranges, *outside])
        case ir.Seq(parts):
            return ir.Seq(tuple(restrict(part, allowed) for part in parts))
        case ir.Alt(parts):
            return ir.Alt(tuple(restrict(part, allowed) for part in parts))
        case ir.Repeat(body, low, high):
            return ir.Repeat(restrict(body, allowed), low, high)
        case _:
            raise GrammarError(f"{type(node).__name__} is not regular", "", "use literals, classes and repetition")


def _span(allowed: ir.Chars, char: str) -> tuple[int, int]:
    return next((span for span in allowed.ranges if span[0] <= ord(char) <= span[1]), (1, 0))


def is_empty(node: ir.Node) -> bool:
    """Whether nothing matches `node`, calls and free text taken as matching something."""
    match node:
        case ir.Chars(ranges) | ir.Bytes(ranges):
            return not ranges
        case ir.Seq(parts):
            return any(is_empty(part) for part in parts)
        case ir.Alt(parts):
            return all(is_empty(part) for part in parts)
        case ir.Repeat(body, low):
            return low > 0 and is_empty(body)
        case ir.Capture(_, body):
            return is_empty(body)
        case _:
            return False
