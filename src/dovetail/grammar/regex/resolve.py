"""Syntax to nodes: anchors at the edges are dropped or decide what may surround a match, all else is automata."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from operator import is_

from dovetail.errors import GrammarError
from dovetail.grammar import ir
from dovetail.grammar.regex import looks, regular, syntax
from dovetail.grammar.regex.lengths import narrow
from dovetail.grammar.regex.measured import Limits, States
from dovetail.grammar.regex.measured import measured as measure
from dovetail.grammar.regex.parser import Flags, read
from dovetail.grammar.regex.regular import from_node
from dovetail.grammar.regex.syntax import Cat, Edge, Look, Or, Rep, Syntax, Words

_START, _END = Edge(end=False), Edge(end=True)  # of the text


def parse(pattern: str, *, flags: str = "", dotall: bool = True) -> ir.Node:
    """The texts that `pattern` matches from end to end; `.` matches line ends too unless `dotall` is off."""
    if "\0" in pattern:
        problem = "the pattern holds a null character"
        raise GrammarError(problem, f"offset {pattern.index(chr(0))}", "write \\0")
    tree = read(pattern, _flags(flags, dotall))
    _refuse_outlook(tree, before=False, after=False)
    node = regular.plain(_resolved(_trimmed(tree, left=True, right=True)))
    if node == ir.NOTHING:
        raise GrammarError("no text can match the pattern", "offset 0", "remove the part that contradicts the rest")
    return node


def search(pattern: str, *, flags: str = "", dotall: bool = False) -> ir.Node:
    """The texts in which `pattern` matches somewhere, as JSON Schema means it; `ir.NOTHING` where there are none."""
    return regular.plain(_found(pattern, flags, dotall))


def language(
    patterns: Iterable[str],
    barred: Iterable[str] = (),
    low: int = 0,
    high: int | None = None,
    words: Iterable[str] = (),
) -> ir.Node:
    """The texts of low to high characters but `words` in which all patterns match somewhere and none of `barred`."""
    never = [_found(one) for one in barred]
    if words:
        never.append(Words(tuple(words)))
    found = [_found(one) for one in patterns]
    if len(found) == 1 and not never and ((low, high) == (0, None) or narrow(found[0], low, high) is found[0]):
        return _whole(*patterns)
    return regular.combined(found, never, (low, high))


def measured(
    patterns: Iterable[str], barred: Iterable[str], low: int, high: int | None
) -> tuple[States, Limits] | None:
    """The same texts as an automaton to measure, see `measured.measured`; None where the pattern can do without."""
    never = [_found(one) for one in barred]
    found = [_found(one) for one in patterns]
    if (low, high) == (0, None):
        return None
    if len(found) == 1 and not never:
        narrowed = narrow(found[0], low, high)
        # The counts of a pattern would be written out as states.
        if narrowed is found[0] or (narrowed is not None and _counts(found[0])):
            return None
    return measure(found, never, (low, high), from_node)


def _counts(node: Syntax) -> bool:
    return any(isinstance(part, Rep) and (part.low > 1 or (part.high or 0) > 1) for part in syntax.walk(node))


@lru_cache(maxsize=1024)
def _whole(pattern: str) -> ir.Node:
    return regular.plain(_found(pattern))


# One pattern comes with several limits, and beside several others.
@lru_cache(maxsize=1024)
def _found(pattern: str, flags: str = "", dotall: bool = False) -> Syntax:
    tree = read(pattern, _flags(flags, dotall))
    if (whole := _between_edges(tree)) is not None:
        return whole
    options: list[Syntax] = []
    for anchored, part in zip((True, False), _split(tree, end=False), strict=True):
        ending, free = (one if anchored else _absorbed(one, end=False) for one in _split(part, end=True))
        before = () if anchored else (syntax.ANYTHING,)
        options += [syntax.cat(*before, ending), _first(*before, _absorbed(free, end=True), syntax.ANYTHING)]
    return _resolved(
        syntax.union(*(option for option in options if not _is_nothing(option))),
        syntax.cat(syntax.ANYTHING, tree, syntax.ANYTHING),
    )


def _between_edges(tree: Syntax) -> Syntax | None:
    """What most patterns are: the whole of a text, about which nothing else is asserted; None for the others."""
    if type(tree) is not Cat or len(tree.parts) < 3:
        return None
    first, *parts, last = tree.parts
    if first != _START or last != _END or any(syntax.asserts(part) for part in parts):
        return None
    return syntax.cat(*parts)


def _resolved(pattern: Syntax, otherwise: Syntax | None = None) -> Syntax:
    """`pattern`, or another way to write it, without assertions."""
    plain = looks.cut(pattern)
    return from_node(regular.resolved(otherwise or pattern)) if plain is None else plain


def _flags(letters: str, dotall: bool) -> Flags:
    for letter in letters:
        if letter not in "ims":
            raise GrammarError(f"the flag {letter} is not supported", "", "i, m and s are")
    return Flags(dotall=dotall).switched(letters, True)


def _refuse_outlook(node: Syntax, before: bool, after: bool) -> None:
    """Refuse a lookaround that can only see what stands outside of the match.

    A pattern describes one chunk of the output and does not know its neighbours. `before` and `after` say whether the
    pattern itself puts text or an anchor on that side.
    """
    match node:
        case Look(_, ahead, _, name, offset) if not (after if ahead else before):
            side, anchor = ("after", "$") if ahead else ("before", "^")
            problem = f"the {name} looks at what stands {side} the text that the pattern describes"
            raise GrammarError(problem, f"offset {offset}", f"drop it, or write {anchor} if the text ends there")
        case Cat(parts):
            solid = [_is_solid(part) for part in parts]
            for index, part in enumerate(parts):
                _refuse_outlook(part, before or any(solid[:index]), after or any(solid[index + 1 :]))
        case Or(parts):
            for part in parts:
                _refuse_outlook(part, before, after)
        case Rep(body, _, high):
            again = high != 1 and _is_solid(body)
            _refuse_outlook(body, before or again, after or again)
        case _:
            pass


def _is_solid(node: Syntax) -> bool:
    """Whether `node` is more than lookarounds."""
    match node:
        case ir.Chars() | Edge():
            return True
        case Cat(parts) | Or(parts):
            return any(_is_solid(part) for part in parts)
        case Rep(body):
            return _is_solid(body)
        case _:
            return False


def _trimmed(node: Syntax, left: bool, right: bool) -> Syntax:
    """`node` without the anchors that hold because it begins (`left`) or ends (`right`) the text."""
    match node:
        case Edge(end):
            return syntax.EMPTY if (right if end else left) else node
        case Or(parts):
            options = tuple([_trimmed(part, left, right) for part in parts])
            return node if all(map(is_, options, parts)) else Or(options)
        case Rep(body, low, 1):
            return Rep(_trimmed(body, left, right), low, 1)
        case Rep(_, 0 | 1, None) if syntax.asserts(node) and (left or right):
            split = _split(node, end=right)
            other = node if _is_nothing(split[0]) else syntax.union(*split)
            return _trimmed(other, left, False) if right and left else other
        case Cat(parts):
            trimmed = list(parts)
            for index in range(len(trimmed)):
                trimmed[index] = _trimmed(trimmed[index], left, False)
                if trimmed[index] != syntax.EMPTY:
                    break
            for index in reversed(range(len(trimmed))):
                trimmed[index] = _trimmed(trimmed[index], False, right)
                if trimmed[index] != syntax.EMPTY:
                    break
            return node if all(map(is_, trimmed, parts)) else syntax.cat(*trimmed)
        case _:
            return node


def _split(node: Syntax, end: bool) -> tuple[Syntax, Syntax]:
    """What of `node` holds only at the start (or `end`) of the text, without its anchor, and the rest."""
    if not syntax.asserts(node):
        return syntax.NOTHING, node
    match node:
        case Edge(end=which, line=False) if which == end:
            return syntax.EMPTY, syntax.NOTHING
        case Or(parts):
            pairs = [_split(part, end) for part in parts]
            return syntax.union(*(pair[0] for pair in pairs)), syntax.union(*(pair[1] for pair in pairs))
        case Rep(body, low, 1):
            anchored, free = _split(body, end)
            return anchored, free if low else syntax.union(free, syntax.EMPTY)
        case Rep(body, 0 | 1 as low, None) if syntax.asserts(body):
            # Only the outermost time can stand at the edge.
            anchored, free = _split(body, end)
            if _is_nothing(free):
                return anchored, syntax.NOTHING if low else syntax.EMPTY
            return _beside(anchored, Rep(free, 0, None), end), Rep(free, low, None)
        case Cat(parts) if parts:
            first, rest = (parts[-1], parts[:-1]) if end else (parts[0], parts[1:])
            anchored, free = _split(first, end)
            others = Cat(rest)
            # Behind an anchor that matched nothing, another one still stands at the edge.
            is_edge = anchored == syntax.EMPTY and syntax.asserts(others)
            near = _trimmed(others, left=not end, right=end) if is_edge else others
            return _beside(anchored, near, end), _beside(free, others, end)
        case _:
            return syntax.NOTHING, node


def _absorbed(node: Syntax, end: bool) -> Syntax:
    """`node` without what it may repeat at its start (or `end`), where any text stands beside it."""
    parts = list(node.parts) if isinstance(node, Cat) else [node]
    at = -1 if end else 0
    while parts and isinstance(edge := parts[at], Rep) and not syntax.asserts(edge):
        if edge.low:
            parts[at] = Rep(edge.body, edge.low, edge.low)
            break
        del parts[at]
    return syntax.cat(*parts)


def _first(*parts: Syntax) -> Syntax:
    """The parts one behind the other; a lone character is looked for where it first comes, which is only one place."""
    match parts:
        case (syntax.ANYTHING, ir.Chars(ranges) | Rep(ir.Chars(ranges), 1, 1), syntax.ANYTHING):
            others = ir.complement(ranges)
            before = (Rep(others, 0, None),) if others.ranges else ()
            return syntax.cat(*before, ir.Chars(ranges), syntax.ANYTHING)
        case (syntax.ANYTHING, Cat(()), syntax.ANYTHING):
            return syntax.ANYTHING
        case _:
            return syntax.cat(*parts)


def _beside(edge: Syntax, rest: Syntax, end: bool) -> Syntax:
    if _is_nothing(edge):
        return syntax.NOTHING
    return syntax.cat(rest, edge) if end else syntax.cat(edge, rest)


def _is_nothing(node: Syntax) -> bool:
    match node:
        case Or(parts):
            return all(_is_nothing(part) for part in parts)
        case Cat(parts):
            return any(_is_nothing(part) for part in parts)
        case _:
            return False
