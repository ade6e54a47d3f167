"""Several ways to write one object: those that another one covers go, and those that differ in one key become one.

A generation follows all ways at once, and inside of each member those of its value. So a choice that lies between the
values of one key is made there, and not between objects.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import replace
from typing import Any, NamedTuple, NoReturn

from dovetail.errors import LimitError
from dovetail.grammar.ir import Alt, AnyOrder, Rule, Seq

from .facts import Located
from .own import EITHER, MADE, Negated
from .pointers import Where, render
from .prune import composed
from .reading import Reader
from .shapes import Extra, Properties
from .values import content

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
    """A shape with what it says of its keys, and where that is the same for all others, of those."""

    def __init__(
        self, shape: Properties, entries: dict[str, _Entry], other: _Entry | None, beside: tuple[Hashable, ...]
    ) -> None:
        self.shape = shape
        self.entries = entries
        self.other = other
        self.beside = beside  # what it says of all other keys, nothing where there are none, and how many there are
        self.required = frozenset(name for name, entry in entries.items() if entry.required)
        # Only what differs from the other keys counts, so that ways that declare different keys can be compared.
        usual = None if other is None else (other.said, other.required)
        said = ((name, (entry.said, entry.required)) for name, entry in entries.items())
        self.hashes = {name: hash((name, one)) for name, one in said if one != usual}
        self.hash = hash(beside)
        for one in self.hashes.values():
            self.hash ^= one

    def entry(self, name: str) -> _Entry | None:
        return self.entries.get(name, self.other)

    def without(self, name: str) -> int:
        """The same for ways that are equal but for one key."""
        return self.hash ^ self.hashes.get(name, 0)

    def equals_but_for(self, other: _Way, name: str) -> bool:
        names = (self.hashes.keys() | other.hashes.keys()) - {name}
        return self.beside == other.beside and all(_alike(self.entry(one), other.entry(one)) for one in names)

    def covers(self, other: _Way) -> bool:
        """Whether every object of the other way is one of this way, as far as that is plain to see."""
        if not self.required <= other.required:
            return False
        (others, *mine), (closed, *theirs) = self.beside, other.beside
        if mine != theirs or (others != closed and closed):
            return False
        free = self.other is not None and not self.other.said and self.other.said is not None
        for name in self.hashes if free else self.entries.keys() | other.entries.keys():
            one, two = self.entry(name), other.entry(name)
            if one is None or two is None or not one.covers(two):
                return False
        return True


def _alike(left: _Entry | None, right: _Entry | None) -> bool:
    return left is not None and right is not None and left[:2] == right[:2]


def simplified(shapes: list[Properties], reader: Reader, free_order: bool) -> list[Properties]:
    """Fewer shapes that admit the same objects together, and in their declared order unless that is free."""
    if len(shapes) < 2:
        return shapes
    ways = [_way(shape, reader, free_order) for shape in shapes]
    ways = [way for way in ways if not any(one.required and one.said is None for one in way.entries.values())]
    while names := _telling(ways):
        count = len(ways)
        for name in names:
            ways = _merged(ways, name)
        if len(ways) == count:
            break  # the hashes were equal by chance
    if len(ways) <= MAX_COMPARED:
        ways = _uncovered(ways)
    return [way.shape for way in ways]


def _telling(ways: list[_Way]) -> list[str]:
    """The keys of which each alone tells some ways apart."""
    whole = {way.hash for way in ways}
    found: dict[str, None] = {}
    seen: set[tuple[str, int]] = set()
    for way in ways:
        for name in way.hashes:
            rest = way.without(name)
            if rest in whole or (name, rest) in seen:
                found[name] = None
            seen.add((name, rest))
    if len(whole) < len(ways):
        found |= dict.fromkeys(name for way in ways for name in list(way.entries)[:1])  # some are equal
    return list(found)


def _way(shape: Properties, reader: Reader, free_order: bool) -> _Way:
    entries = {name: _entry(nodes, required, reader) for name, nodes, required in shape.declared}
    extra = tuple([_extra(extra, reader) for extra in shape.extra])
    witnesses = tuple([_extra(extra, reader) for extra in shape.witnesses])
    # A key that is not declared is one of the others; not where these are told by patterns, counted or must be there.
    plain = not witnesses and not shape.low and shape.high is None and all(one.keys is None for one in shape.extra)
    if not free_order or not plain:
        return _Way(shape, entries, None, (extra, witnesses, shape.low, shape.high, tuple(entries)))
    other = _entry(shape.extra[0].nodes if shape.extra else [(False, ())], False, reader)
    return _Way(shape, entries, other, (extra, witnesses, shape.low, shape.high, None))


def _entry(nodes: list[Located], required: bool, reader: Reader) -> _Entry:
    known = reader.said.get(id(nodes))
    if known is None:
        said = frozenset([_said(schema, reader) for schema, _ in nodes]) - {True}
        known = reader.said[id(nodes)] = nodes, None if False in said else said  # which keeps its identity
    return _Entry(known[1], required, nodes)


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
    known = content(schema)[0] if reader.references.is_simple else None
    return known or id(schema)


def _merged(ways: list[_Way], name: str) -> list[_Way]:
    """The ways with one instead of several that differ in what they say of one key."""
    alike: dict[int, list[_Way]] = {}
    found: list[_Way] = []
    for way in ways:
        group = alike.setdefault(way.without(name), [])
        if way.entry(name) is None or (group and not group[0].equals_but_for(way, name)):
            found.append(way)
        else:
            group.append(way)
    groups = (group for group in alike.values() if group)
    return [*found, *(group[0] if len(group) == 1 else _joined(group, name) for group in groups)]


def _joined(group: list[_Way], name: str) -> _Way:
    """One way for several that are equal but for one key."""
    found = [entry for way in group if (entry := way.entry(name)) is not None]
    present = {entry.said: entry for entry in found if entry.said is not None}
    most = max(map(len, present), default=0)
    smaller = [said for said in present if len(said) < most]  # none where all say as much
    widest = [entry for said, entry in present.items() if not any(other < said for other in smaller)]
    entry = _either(widest) if len(widest) > 1 else widest[0] if widest else found[0]
    first = group[0]
    entries = {key: one for way in group for key, one in way.entries.items()} | first.entries
    entries[name] = entry._replace(required=all(one.required for one in found))
    declared = [(key, one.nodes, one.required) for key, one in entries.items()]
    return _Way(replace(first.shape, declared=declared), entries, first.other, first.beside)


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
        if self.shapes <= MAX_WAYS and not isinstance(rule.body, Alt):
            return  # as nearly all
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
