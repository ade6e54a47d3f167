"""Several ways to write one object: those that another one covers go, and those that differ in one key become one.

A generation follows all ways at once, and inside of each member those of its value. So a choice that lies between the
values of one key is made there, and not between objects.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

from dovetail._core import fingerprint
from dovetail.errors import LimitError
from dovetail.grammar.ir import Alt, AnyOrder, Rule, Seq

from .facts import Located
from .own import EITHER, MADE, Negated
from .pointers import Where, render
from .prune import composed
from .reading import Reader
from .shapes import Extra, Properties

MAX_WAYS = 20
MAX_JOINED = 10  # rules that had more of them at first
MAX_COMPARED = 100  # ways of which each is held against all others


class _Entry(NamedTuple):
    """What is said of one key: the schemas by what tells them apart, None where it must be absent."""

    said: frozenset[Hashable] | None
    required: bool
    nodes: list[Located]

    def covers(self, other: _Entry) -> bool:
        if other.said is None:
            return not self.required
        return self.said is not None and self.said <= other.said and other.required >= self.required


class _Way:
    """A shape with what it says of every key that one of the ways speaks of."""

    def __init__(self, shape: Properties, entries: dict[str, _Entry], beside: tuple[Hashable, ...]) -> None:
        self.shape = shape
        self.entries = entries
        self.beside = beside  # what it says of all other keys, nothing where there are none, and how many there are
        self.hashes = {name: hash((name, entry.said, entry.required)) for name, entry in entries.items()}
        self.required = frozenset(name for name, entry in entries.items() if entry.required)
        self.hash = hash(beside)
        for one in self.hashes.values():
            self.hash ^= one

    def equals_but_for(self, other: _Way, name: str) -> bool:
        return self.beside == other.beside and all(
            key == name or (entry.said, entry.required) == (other.entries[key].said, other.entries[key].required)
            for key, entry in self.entries.items()
        )

    def covers(self, other: _Way) -> bool:
        """Whether every object of the other way is one of this way, as far as that is plain to see."""
        if not self.required <= other.required:
            return False
        (others, *mine), (closed, *theirs) = self.beside, other.beside
        alike = mine == theirs and (others == closed or not closed)
        return alike and all(entry.covers(other.entries[name]) for name, entry in self.entries.items())


def simplified(shapes: list[Properties], reader: Reader, free_order: bool) -> list[Properties]:
    """Fewer shapes that admit the same objects together, and in their declared order unless that is free."""
    if len(shapes) < 2:
        return shapes
    names = dict.fromkeys(name for shape in shapes for name, _, _ in shape.declared)
    ways = [_way(shape, list(names) if free_order else None, reader) for shape in shapes]
    ways = [way for way in ways if not any(one.required and one.said is None for one in way.entries.values())]
    count = 0
    while count != len(ways):
        count = len(ways)
        for name in names:
            ways = _merged(ways, name)
    if len(ways) <= MAX_COMPARED:
        ways = _uncovered(ways)
    return [way.shape for way in ways]


def _way(shape: Properties, names: list[str] | None, reader: Reader) -> _Way:
    entries = {name: _entry(nodes, required, reader) for name, nodes, required in shape.declared}
    beside = (
        tuple([_extra(extra, reader) for extra in shape.extra]),
        tuple([_extra(extra, reader) for extra in shape.witnesses]),
        shape.low,
        shape.high,
    )
    # A key that is not declared is one of the others; not where these are told by patterns, counted or must be there.
    plain = (
        not shape.witnesses and not shape.low and shape.high is None and all(one.keys is None for one in shape.extra)
    )
    if names is None or not plain:
        return _Way(shape, entries, (*beside, tuple(entries)))
    other = _entry(shape.extra[0].nodes if shape.extra else [(False, ())], False, reader)
    return _Way(shape, {name: entries.get(name, other) for name in names}, (*beside, None))


def _entry(nodes: list[Located], required: bool, reader: Reader) -> _Entry:
    said = frozenset(_said(schema, reader) for schema, _ in nodes) - {True}
    return _Entry(None if False in said else said, required, nodes)


def _extra(extra: Extra, reader: Reader) -> Hashable:
    return id(extra.keys), frozenset(_said(schema, reader) for schema, _ in extra.nodes) - {True}


def _said(schema: Any, reader: Reader) -> Hashable:
    """The same for schemas that say the same, as far as that is plain to see."""
    if isinstance(schema, bool):
        return schema
    if isinstance(schema, Negated):
        return "not", _said(schema.schema, reader)
    if not schema:
        return True
    known = reader.contents.get(id(schema))
    if known is None:
        known = reader.contents[id(schema)] = schema, _content(schema, reader)  # which keeps its identity
    found: Hashable = known[1]
    return found


def _content(schema: Any, reader: Reader) -> Hashable:
    if reader.references.is_simple:
        try:
            return fingerprint(schema)[0]
        except (LimitError, TypeError):
            pass  # nested deeply, or of our own making
    return id(schema)


def _merged(ways: list[_Way], name: str) -> list[_Way]:
    """The ways with one instead of several that differ in what they say of one key."""
    alike: dict[int, list[_Way]] = {}
    found: list[_Way] = []
    for way in ways:
        if name not in way.entries:
            found.append(way)
            continue
        group = alike.setdefault(way.hash ^ way.hashes[name], [])
        if group and not group[0].equals_but_for(way, name):
            found.append(way)
        else:
            group.append(way)
    return [*found, *(group[0] if len(group) == 1 else _joined(group, name) for group in alike.values())]


def _joined(group: list[_Way], name: str) -> _Way:
    """One way for several that are equal but for one key."""
    found = [way.entries[name] for way in group]
    present = {entry.said: entry for entry in found if entry.said is not None}
    widest = [entry for said, entry in present.items() if not any(other < said for other in present)]
    entry = _either(widest) if len(widest) > 1 else widest[0] if widest else found[0]
    entries = group[0].entries | {name: entry._replace(required=all(one.required for one in found))}
    declared = [(key, one.nodes, one.required) for key, one in entries.items()]
    return _Way(replace(group[0].shape, declared=declared), entries, group[0].beside)


def _either(entries: Iterable[_Entry]) -> _Entry:
    arms = [entry.nodes for entry in entries]
    schema = {EITHER: arms, MADE: True}
    return _Entry(frozenset((id(schema),)), False, [(schema, arms[0][0][1] if arms[0] else ())])


def _uncovered(ways: list[_Way]) -> list[_Way]:
    kept: list[_Way] = []
    for way in ways:
        if not any(other.covers(way) for other in kept):
            kept = [other for other in kept if not way.covers(other)]
            kept.append(way)
    return kept


class Ambiguity:
    """Refuses rules with too many ways in any order: these are told apart late, and a generation follows them all."""

    def __init__(self) -> None:
        self.shapes = 0  # of the rule at hand, before some of them became one
        self._joined: list[tuple[Rule, int, Where]] = []

    def check(self, rule: Rule, where: Where) -> None:
        """Look at the ways of a rule that was just made."""
        parts = rule.body.parts if isinstance(rule.body, Alt) else (rule.body,)
        ways = [way for part in parts for way in (part.parts if isinstance(part, Alt) else (part,))]
        count = sum(isinstance(way, Seq) and isinstance(way.parts[-1], AnyOrder) for way in ways)
        if count > MAX_WAYS:
            _refuse(count, where)
        if self.shapes > MAX_WAYS:
            self._joined.append((rule, self.shapes, where))

    def check_recursion(self) -> None:
        """Look again at what became few ways: inside of each other their values multiply as before."""
        for rule, count, where in self._joined:
            if len(self._joined) > MAX_JOINED or any(one is rule for one in composed(rule.body)):
                _refuse(count, where)
        self._joined.clear()


def _refuse(count: int, where: Where) -> NoReturn:
    problem = f"there are {count} ways to meet this schema with keys in any order"
    raise LimitError(problem, render(where), "leave any_order out, or use branches that a constant tells apart")
