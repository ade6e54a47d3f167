"""What a pattern says, before its assertions are resolved."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dovetail.grammar import ir

DIGIT = ir.chars([(48, 57)])
WORD = ir.chars([(48, 57), (65, 90), (95, 95), (97, 122)])
# ECMA-262 counts the vertical tab, the no-break spaces, the byte order mark and all of Zs as white space.
_LONE_SPACES = (0x20, 0xA0, 0x1680, 0x202F, 0x205F, 0x3000, 0xFEFF)
SPACE = ir.chars([(9, 13), (0x2000, 0x200A), (0x2028, 0x2029), *((code, code) for code in _LONE_SPACES)])
LINE_ENDS = ir.chars([(10, 10), (13, 13), (0x2028, 0x2029)])


@dataclass(frozen=True, slots=True)
class Cat:
    """The parts in order."""

    parts: tuple[Syntax, ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Any one of the parts."""

    parts: tuple[Syntax, ...]


@dataclass(frozen=True, slots=True)
class Rep:
    """`body` from `low` to `high` times; greedy and lazy are one language."""

    body: Syntax
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Edge:
    """The start or the end of the text, or of a line where `line`."""

    end: bool
    line: bool = False


@dataclass(frozen=True, slots=True)
class Look:
    """What follows (`ahead`) or precedes this place matches `body`, or does not; `name` and `offset` are for errors."""

    body: Syntax
    ahead: bool
    negative: bool
    name: str = ""
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Words:
    """Any one of some texts; only of patterns that are barred, which may be thousands of names."""

    words: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class But:
    """Any text but these; only where nothing else is left to match."""

    words: tuple[str, ...]


# A call is of a rule that is regular: it calls others at its end only.
Syntax = ir.Chars | ir.Call | Cat | Or | Rep | Edge | Look | Words | But

NOTHING = Or(())
EMPTY = Cat(())
ANYTHING = Rep(ir.ANY_CHAR, 0, None)


def cat(*parts: Syntax) -> Syntax:
    """A sequence without needless nesting."""
    if Cat not in map(type, parts):
        return parts[0] if len(parts) == 1 else Cat(parts)
    flat: list[Syntax] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Cat) else (part,))
    return flat[0] if len(flat) == 1 else Cat(tuple(flat))


def union(*parts: Syntax) -> Syntax:
    """A choice without needless nesting and without parts that match nothing."""
    flat: list[Syntax] = []
    for part in parts:
        flat.extend(part.parts if isinstance(part, Or) else (part,))
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def boundary(negative: bool, offset: int) -> Syntax:
    """A word boundary, or a place that is none."""

    def look(ahead: bool, without: bool) -> Look:
        return Look(WORD, ahead, without, "\\B" if negative else "\\b", offset)

    return Or((Cat((look(False, False), look(True, not negative))), Cat((look(False, True), look(True, negative)))))


def children(node: Syntax) -> tuple[Syntax, ...]:
    """The nodes directly inside `node`."""
    if type(node) is Cat or type(node) is Or:  # by type: asked of large patterns again and again
        return node.parts
    return (node.body,) if type(node) is Rep or type(node) is Look else ()


def walk(node: Syntax) -> Iterator[Syntax]:
    """`node` and everything inside it."""
    pending = [node]
    while pending:
        current = pending.pop()
        yield current
        pending.extend(children(current))


def asserts(node: Syntax) -> bool:
    """Whether anything in `node` looks at the text around it."""
    pending = [node]
    while pending:
        part = pending.pop()
        kind = type(part)
        if kind is Edge or kind is Look:
            return True
        if kind is not ir.Chars:
            pending += [one for one in children(part) if type(one) is not ir.Chars]
    return False


def from_text(text: str) -> Syntax:
    """Exactly `text`."""
    return cat(*[_LETTERS[ord(char)] if char < "\x80" else ir.Chars(((ord(char), ord(char)),)) for char in text])


_LETTERS = [ir.Chars(((code, code),)) for code in range(128)]
