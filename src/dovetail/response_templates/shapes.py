"""Delimiters as something to write: the shape of an expression, one way to spell it, and what announces it.

Only what can be spelled in one sensible way is read here: literals, white space, groups, choices, repetitions, named
groups that stand for a tool's name, and lookaheads for a text somewhere behind. `Unwritable` names anything else.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

MAX_DEPTH = 50

_SPACE, _FREE = "space", "free"
_ANYTHING = (".", r"[\s\S]", r"[\S\s]", r"[\w\W]", r"[\W\w]")
_LETTERS = {"n": "\n", "t": "\t", "r": "\r"}
_COUNT = re.compile(r"([*+?]|\{(\d*)(,?)(\d*)\})[?+]?")
_CLASS = re.compile(r"\[\^?\]?(?:[^\]\\]|\\.)*\]")
_NAMED = re.compile(r"\(\?P?<(\w+)>")


class Unwritable(Exception):  # noqa: N818 - it never leaves this package
    """A construct that says what may stand somewhere, but not what to write."""


@dataclass(frozen=True, slots=True)
class Chars:
    """White space or other characters of some kind, at least `low` of them."""

    kind: str
    source: str
    low: int = 1


@dataclass(frozen=True, slots=True)
class Group:
    """One of several sequences; `name` where it is a named group; `low` 0 where it may be left out."""

    choices: tuple[tuple[Node, ...], ...]
    name: str | None = None
    low: int = 1


@dataclass(frozen=True, slots=True)
class Assertion:
    """What looks at the text around it and takes none."""

    source: str


@dataclass(frozen=True, slots=True)
class Ahead:
    """A lookahead for a text anywhere behind: nothing is written, and the text follows somewhere."""

    text: str


Node = str | Chars | Group | Assertion | Ahead


@dataclass(frozen=True, slots=True)
class Name:
    """Where the text of a named group is written."""

    group: str


@dataclass(frozen=True, slots=True)
class Gap:
    """White space, `low` or more of it; where there is a `filler`, nothing, unless only the filler makes a match."""

    low: int
    filler: str = ""


Part = str | Name | Gap | Ahead


def read(source: str) -> Group:
    """The shape of an expression that the `regex` module takes."""
    reader = _Reader(source)
    return Group(reader.choices(0))


class _Reader:
    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0

    def choices(self, depth: int) -> tuple[tuple[Node, ...], ...]:
        """Sequences separated by "|", up to the end of the group."""
        if depth > MAX_DEPTH:
            raise Unwritable(f"groups nested more than {MAX_DEPTH} deep")
        choices: list[list[Node]] = [[]]
        while self._at < len(self._source) and self._source[self._at] != ")":
            if self._source[self._at] == "|":
                self._at += 1
                choices.append([])
            else:
                choices[-1].extend(self._counted(self._item(depth)))
        return tuple(map(tuple, choices))

    def _item(self, depth: int) -> Node:
        source, at = self._source, self._at
        char = source[at]
        if char == "(":
            return self._group(depth)
        if match := _CLASS.match(source, at):
            self._at = match.end()
            return Chars(_FREE, match[0])
        self._at += 2 if char == "\\" else 1
        if char == "\\":
            return _escape(source[at + 1 : at + 2])
        if char in "^$":
            return Assertion(char)
        return Chars(_FREE, char) if char == "." else char

    def _group(self, depth: int) -> Node:
        start = self._at
        named = _NAMED.match(self._source, start)
        looks = self._source.startswith("(?=", start)
        if named:
            self._at = named.end()
        elif looks or self._source.startswith("(?:", start):
            self._at += 3
        elif self._source.startswith("(?", start) or self._source.startswith("(*", start):
            raise Unwritable(self._source[start : start + 12])
        else:
            self._at += 1
        choices = self.choices(depth + 1)
        self._at += 1
        if looks:
            return _ahead(choices, self._source[start : self._at])
        return Group(choices, named[1] if named else None)

    def _counted(self, node: Node) -> Iterator[Node]:
        match = _COUNT.match(self._source, self._at)
        if match is None:
            yield node
            return
        self._at = match.end()
        low = {"*": 0, "?": 0, "+": 1}.get(match[1][0])
        if low is None:
            low = int(match[2] or 0)
        if isinstance(node, Chars):
            yield replace(node, low=low)
        elif low == 0:
            yield Group(((node,),), None, 0) if not isinstance(node, Group) else replace(node, low=0)
        else:
            yield from itertools.repeat(node, min(low, 100))


def _ahead(choices: tuple[tuple[Node, ...], ...], source: str) -> Ahead:
    match choices:
        case [(Chars(_, anything, 0), *rest)] if anything in _ANYTHING and rest:
            if all(isinstance(char, str) for char in rest):
                return Ahead("".join(map(str, rest)))
    raise Unwritable(source)


def _escape(letter: str) -> Node:
    if letter == "s":
        return Chars(_SPACE, "\\s")
    if letter in _LETTERS:
        return _LETTERS[letter]
    if letter in ("b", "B", "A", "Z"):
        return Assertion(f"\\{letter}")
    if letter.isalnum() or not letter:
        if letter in "wWdDSp":
            return Chars(_FREE, f"\\{letter}")
        raise Unwritable(f"\\{letter}")
    return letter


def spelling(nodes: Sequence[Node]) -> list[Part]:
    """One way to write it: choices take their first branch that can be written, optional parts are left out."""
    parts: list[Part] = []
    for node in nodes:
        match node:
            case str() | Ahead():
                parts.append(node)
            case Chars("space", _, low):
                parts.append(Gap(low))
            case Chars(_, source, low):
                if low:
                    raise Unwritable(source)
                parts.append(Gap(0, " "))
            case Assertion(source):
                # A word boundary is checked on what is written in the end.
                if source not in ("\\b", "\\B"):
                    raise Unwritable(source)
            case Group(_, str() as name):
                parts.append(Name(name))
            case Group(choices, None, 1):
                parts += _first(choices)
            case Group(choices):
                parts += _left_out(choices)
    return _joined(parts)


def _first(choices: Sequence[Sequence[Node]]) -> list[Part]:
    problem = Unwritable("")
    for choice in choices:
        try:
            return spelling(choice)
        except Unwritable as error:
            problem = error
    raise problem


def _left_out(choices: Sequence[Sequence[Node]]) -> list[Part]:
    try:
        match _first(choices):
            case [str() as text]:
                return [Gap(0, text)]
    except Unwritable:
        pass
    return []


def _joined(parts: list[Part]) -> list[Part]:
    out: list[Part] = []
    for part in parts:
        if out and isinstance(part, str) and isinstance(last := out[-1], str):
            out[-1] = last + part
        else:
            out.append(part)
    return out


def heads(nodes: Sequence[Node]) -> list[str]:
    """Texts of which one stands in every match, as near to its start as can be."""
    run = ""
    for node in nodes:
        if isinstance(node, str):
            run += node
        elif run:
            break
        elif isinstance(node, Ahead):
            return [node.text]
        elif isinstance(node, Group) and node.low and node.name is None:
            by_choice = [heads(choice) for choice in node.choices]
            if all(by_choice):
                return list(itertools.chain.from_iterable(by_choice))
    return [run] if run else []
