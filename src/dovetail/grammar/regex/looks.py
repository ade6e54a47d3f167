"""Lookarounds outside of repetition, as sets: what follows a lookahead is in its language as well, or is not.

In a text that a pattern matches as a whole, `a(?=b)c` is `a` and then what both `b.*` and `c` match.
"""

from __future__ import annotations

from dovetail.grammar import ir
from dovetail.grammar.regex import syntax
from dovetail.grammar.regex.lengths import span
from dovetail.grammar.regex.regular import combined, from_node
from dovetail.grammar.regex.syntax import ANYTHING, EMPTY, Cat, Edge, Look, Or, Rep, Syntax, asserts

MAX_COPIES = 16


def cut(pattern: Syntax, *, whole: bool = True) -> Syntax | None:
    """`pattern` without assertions, or None where they stand in a repetition; `whole` where the text begins with it."""
    parts = pattern.parts if isinstance(pattern, Cat) else (pattern,)
    at = next((index for index, part in enumerate(parts) if asserts(part)), None)
    if at is None:
        return pattern
    head, node, tail = Cat(parts[:at]), parts[at], parts[at + 1 :]
    match node:
        case Look(ahead=True):
            rest = _ahead(parts[at:], whole and at == 0)
            return None if rest is None else syntax.cat(head, rest)
        case Look(body, False, negative):
            return _behind(head, body, negative, tail, whole)
        case Edge(end=True, line=False):
            return cut(syntax.cat(head, Look(ir.ANY_CHAR, ahead=True, negative=True), *tail), whole=whole)
        case Edge(end=False, line=False) if whole:
            return cut(syntax.cat(head, Look(ir.ANY_CHAR, ahead=False, negative=True), *tail))
        case Or(options) if len(options) * len(tail) <= MAX_COPIES:
            return _each([syntax.cat(head, option, *tail) for option in options], whole)
        case Rep(body, low, 1):
            return cut(syntax.cat(head, Or((body,) if low else (body, EMPTY)), *tail), whole=whole)
        case _:
            return None


def _each(options: list[Syntax], whole: bool) -> Syntax | None:
    found: list[Syntax] = []
    for option in options:
        plain = cut(option, whole=whole)
        if plain is None:
            return None
        found.append(plain)
    return syntax.union(*found)


def _ahead(parts: tuple[Syntax, ...], whole: bool) -> Syntax | None:
    """Lookaheads and what follows them."""
    sets: dict[bool, list[Syntax]] = {True: [], False: []}
    at = 0
    while at < len(parts) and isinstance(look := parts[at], Look) and look.ahead:
        inside = cut(syntax.cat(look.body, ANYTHING), whole=whole)
        if inside is None:
            return None
        sets[look.negative].append(inside)
        at += 1
    rest = cut(Cat(parts[at:]), whole=whole)
    return None if rest is None else from_node(combined([rest, *sets[False]], sets[True]))


def _behind(head: Syntax, body: Syntax, negative: bool, tail: tuple[Syntax, ...], whole: bool) -> Syntax | None:
    """A lookbehind at the end of `head`, which holds all that it can see."""
    most = span(body)[1]
    if asserts(body) or not (whole or (most is not None and most <= span(head)[0])):
        return None
    inside = syntax.cat(ANYTHING, body)
    both = combined([head], [inside]) if negative else combined([head, inside], [])
    return cut(syntax.cat(from_node(both), *tail), whole=whole)
