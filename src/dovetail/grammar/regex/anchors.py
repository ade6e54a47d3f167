"""What a pattern may match at the edges of a text, so that most anchors need no automaton."""

from __future__ import annotations

from dovetail.errors import GrammarError
from dovetail.grammar import ir
from dovetail.grammar.regex.syntax import ANYTHING, EDGES, END, START, Look, asserts, repeat, sequence, union


def containing(tree: ir.Node) -> ir.Node:
    """The texts that contain a match of a pattern; what it asserts but at the edges of the text is still in there."""
    options: list[ir.Node] = []
    for anchored, part in zip((True, False), _split(tree, START), strict=True):
        ending, free = (one if anchored else _absorbed(one, 0) for one in _split(part, END))
        before = () if anchored else (ANYTHING,)
        options += [sequence((*before, ending)), _first(*before, _absorbed(free, -1), ANYTHING)]
    return union(options)


def trimmed(tree: ir.Node) -> ir.Node:
    """The texts that a pattern matches from end to end, without the anchors that hold there."""
    return union(part for side in _split(tree, START) for part in _split(side, END)) if asserts(tree) else tree


def _split(node: ir.Node, edge: ir.Node) -> tuple[ir.Node, ir.Node]:
    """What of `node` holds only at that edge of the text, without its anchor, and the rest."""
    if not asserts(node):
        return ir.NOTHING, node
    if node == edge:
        return ir.EMPTY, ir.NOTHING
    if type(node) is ir.Alt:
        pairs = [_split(part, edge) for part in node.parts]
        return union(near for near, _ in pairs), union(free for _, free in pairs)
    if type(node) is ir.Repeat and node.low < 2 and node.high in (1, None):
        near, free = _split(node.body, edge)
        if node.high == 1:
            return near, free if node.low else union((free, ir.EMPTY))
        # Only the outermost time can stand at the edge.
        if ir.is_nothing(free):
            return near, ir.NOTHING if node.low else ir.EMPTY
        return _ordered((near, ir.star(free)), edge), ir.Repeat(free, node.low, None)
    if type(node) is ir.Seq:
        parts = node.parts[::-1] if edge is END else node.parts
        anchors = next((count for count, part in enumerate(parts) if part != edge), len(parts))
        if anchors:  # behind an anchor another one still stands at the edge
            return union(_split(_ordered(parts[anchors:], edge), edge)), ir.NOTHING
        near, free = _split(parts[0], edge)
        return _ordered((near, *parts[1:]), edge), _ordered((free, *parts[1:]), edge)
    return ir.NOTHING, node


def _ordered(parts: tuple[ir.Node, ...], edge: ir.Node) -> ir.Node:
    """A sequence of parts from an edge of the text inwards."""
    return sequence(parts[::-1] if edge is END else parts)


def _absorbed(node: ir.Node, at: int) -> ir.Node:
    """`node` without what it may repeat at its first (0) or last (-1) place, where any text stands beside it."""
    parts = list(node.parts) if type(node) is ir.Seq else [node]
    while parts and type(edge := parts[at]) is ir.Repeat and not asserts(edge):
        if edge.low:
            parts[at] = repeat(edge.body, edge.low, edge.low)
            break
        del parts[at]
    return sequence(parts)


def _first(*parts: ir.Node) -> ir.Node:
    """The parts one behind the other; a lone character is looked for where it first comes, which is only one place."""
    *before, node, after = parts
    if before and node == ir.EMPTY:
        return ANYTHING
    lone = (
        ir.Chars(((ord(char), ord(char)),)) if type(node) is ir.Lit and len(char := node.data.decode()) == 1 else node
    )
    if before and type(lone) is ir.Chars:
        others = ir.complement(lone.ranges)
        before = [ir.star(others)] if others.ranges else []
    return sequence((*before, node, after))


def refuse_outlook(node: ir.Node, before: bool = False, after: bool = False) -> None:
    """Refuse a lookaround that can only see what stands outside of the match.

    A pattern describes one chunk of the output and does not know its neighbors. `before` and `after` say whether the
    pattern itself puts text or an anchor on that side.
    """
    if type(node) is ir.Call and type(node.rule) is Look and node not in EDGES:
        look = node.rule
        if not (after if look.ahead else before):
            side, anchor = ("after", "$") if look.ahead else ("before", "^")
            problem = f"the {look.name} looks at what stands {side} the text that the pattern describes"
            raise GrammarError(problem, f"offset {look.offset}", f"drop it, or write {anchor} if the text ends there")
    elif type(node) is ir.Seq:
        solid = [index for index, part in enumerate(node.parts) if _is_solid(part)] or [len(node.parts), -1]
        for index, part in enumerate(node.parts):
            refuse_outlook(part, before or index > solid[0], after or index < solid[-1])
    elif type(node) is ir.Alt:
        for part in node.parts:
            refuse_outlook(part, before, after)
    elif type(node) is ir.Repeat:
        again = node.high != 1 and _is_solid(node.body)
        refuse_outlook(node.body, before or again, after or again)


def _is_solid(node: ir.Node) -> bool:
    """Whether `node` is more than lookarounds."""
    if type(node) is ir.Seq or type(node) is ir.Alt:
        return any(map(_is_solid, node.parts))
    return _is_solid(node.body) if type(node) is ir.Repeat else type(node) is not ir.Call or node in EDGES
