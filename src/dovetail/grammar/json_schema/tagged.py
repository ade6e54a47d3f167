"""From facts to nodes: arguments in the markup of a model family.

Only an object can be a list of arguments, so the root of the schema is read as one. Strings are raw text up to the
markup that ends them; everything else is JSON with whitespace around it, unless the layout marks up nested values too.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from dovetail.errors import SchemaError
from dovetail.grammar.ir import EMPTY, NOTHING, Alt, Call, Lit, Node, Repeat, Rule, Seq, alt
from dovetail.layouts.styles import PYTHON_DICT, Layout, Middle

from . import strings, text
from .admission import type_of
from .arrays import Counting, items
from .facts import (
    ANY_TYPE,
    ARRAY,
    BOOLEAN,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    Facts,
    Located,
)
from .keys import NAME, marked_key, markup, other_keys
from .literals import literal_spelling
from .lowering import Lowering, Parts
from .members import Group, Member, any_order, counted, ordered
from .pointers import Where, located
from .scalars import described
from .shapes import Extra, Properties, properties, variants
from .text import concat

Kind = tuple[str, Node, bool]  # its name, its node, whether that is raw text with the stop inside

_KINDS = {STRING: "string", NUMBER: "number", BOOLEAN: "boolean", NULL: "null", OBJECT: "object", ARRAY: "array"}


class Tagged:
    """The rules of one schema in one layout."""

    def __init__(self, lowering: Lowering, layout: Layout, pad: bytes) -> None:
        self._json = lowering
        self._layout = layout
        self._ws = lowering.pieces.ws
        self._excludes = lowering.pieces.excludes
        self._spellings = [lowering]
        if layout.python:
            python = literal_spelling(PYTHON_DICT, self._excludes)
            self._spellings.append(Lowering(lowering.reader, python, lowering.free_order))
        self._stop = Lit(layout.stop.encode())
        self._pads = (b"", pad) if pad else (b"",)  # what may stand on both sides of raw text
        self._raw = strings.free(self._stop.data, self._excludes, 0, None)
        self._pending: list[tuple[Rule, list[Facts]]] = []
        self._done: dict[frozenset[int], list[Kind]] = {}
        self._rules: dict[tuple[int, ...], tuple[Facts, Rule]] = {}
        self._ways: dict[tuple[int, str], tuple[list[Kind], Node]] = {}  # the kinds keep their identity

    def arguments(self, nodes: Sequence[Located]) -> Node:
        """The arguments of a call that `nodes` apply to."""
        node = self._objects([facts for facts in self._json.reader.read(nodes) if facts.types & OBJECT])
        self._finish()
        while self._pending:
            rule, branches = self._pending.pop()
            objects = self._objects([facts for facts in branches if facts.types & OBJECT])
            rule.body = alt(*(way for way in (objects, self._arrays(branches)) if way != NOTHING))
            self._json.doubtful = self._json.doubtful or rule.body == NOTHING
            self._finish()
        return node

    def _finish(self) -> None:
        for lowering in self._spellings:
            lowering.finish()
            self._json.doubtful = self._json.doubtful or lowering.doubtful

    def _written(self, kind: str, write: Callable[[Lowering], Node]) -> Node:
        """A value as JSON, and as Python writes it where the layout has that for its kind."""
        ways = map(write, self._spellings if kind in self._layout.python else (self._json,))
        return alt(*dict.fromkeys(way for way in ways if way != NOTHING))

    def _objects(self, branches: list[Facts]) -> Node:
        ways: list[Node] = []
        for facts in branches:
            if facts.values is not None:
                ways += (self._literal(value) for value in self._json.admitted(facts) if isinstance(value, dict))
            else:
                ways.append(self._object(facts.objects))
        return alt(*(way for way in ways if way != NOTHING))

    def _object(self, parts: Parts) -> Node:
        where = parts[0][1] if parts else ()
        shapes = variants(properties(parts, self._json.reader), where)
        return alt(*(way for way in (self._arguments(shape, where) for shape in shapes) if way != NOTHING))

    def _arguments(self, shape: Properties, where: Where) -> Node:
        members: list[Member] = []
        for name, nodes, required in shape.declared:
            member = self._member(name, self._kinds(nodes), required)
            if member is not None:
                members.append(member)
            elif required:
                return NOTHING
        names = [name for name, _, _ in shape.declared]
        extra = self._extra(names, shape.extra) if shape.extra else ()
        witnesses = [self._extra(names, [witness]) for witness in shape.witnesses]
        if () in witnesses:
            return NOTHING
        group = counted(Group(members, extra, witnesses), shape.low, shape.high)
        if group is None:
            return NOTHING
        if self._json.free_order:
            return concat(*self._ws, located(where, any_order, group, (), EMPTY))
        return concat(*self._ws, *located(where, ordered, group, (), EMPTY))

    def _extra(self, names: list[str], groups: list[Extra]) -> tuple[Node, ...]:
        """An argument that is not declared."""
        layout = self._layout
        if layout.other_keys == "none":
            if not names and groups == [Extra(None, [])]:
                return ()  # nothing is known of the object, and only the empty one can be written
            problem = "this style cannot name properties that are not declared"
            raise SchemaError(problem, "", "set additionalProperties to false")
        ways: list[Node] = []
        for group in groups:
            value = self._value(layout.after_key, self._kinds(group.nodes), "")
            if value == NOTHING:
                continue
            alphabet = NAME if layout.other_keys == "names" else markup(layout.escapes)
            key = other_keys(names, alphabet) if group.keys is None else marked_key(group.keys, layout.escapes)
            ways.append(concat(Lit(layout.begin.encode()), key, value))
        return (alt(*ways), *self._ws) if ways else ()

    # One argument.

    def _member(self, name: str, kinds: list[Kind], required: bool) -> Member | None:
        layout = self._layout
        key = layout.key(name) if layout.escapes else name
        if layout.tail and (not name.strip() or name.startswith("/") or ">" in name):
            raise SchemaError(f"the key {name!r} cannot be the name of a tag", "", "use another key or another style")
        if self._excludes and any(word in key.encode() for word in self._excludes):
            return None
        value = self._value(f"{layout.begin}{key}{layout.after_key}", kinds, layout.tail.format(key))
        return None if value == NOTHING else Member((value, *self._ws), required)

    def _value(self, head: str, kinds: list[Kind], tail: str) -> Node:
        """`head`, the middle for each kind, the value, the end."""
        groups: dict[Middle, tuple[list[Node], list[Node]]] = {}
        for kind, node, is_raw in kinds:
            texts, others = groups.setdefault(self._layout.middle[kind], ([], []))
            (texts if is_raw else others).append(node)
        if len(groups) == 1:
            (middle, (texts, others)), *_ = groups.items()
            return self._ended(head, middle, texts, others, tail)
        if not groups:
            return NOTHING
        # Most arguments of a schema that says little have the same kinds.
        known = self._ways.get((id(kinds), tail))
        if known is None:
            ways = [self._ended("", middle, texts, others, tail) for middle, (texts, others) in groups.items()]
            known = self._ways[id(kinds), tail] = kinds, Alt(tuple(ways))
        return Seq((Lit(head.encode()), known[1]))

    def _ended(self, head: str, middle: Middle, texts: list[Node], others: list[Node], tail: str) -> Node:
        """The values of one group between its middle and the end."""
        end = Lit(tail.encode()) if tail else None
        ways = [Seq((node, end)) for node in texts] if end else list(texts)
        # Free text covers what JSON could say, and ends at the first stop whatever it is.
        if others and self._raw not in texts:
            stop = Lit(self._stop.data + end.data) if end else self._stop
            ways.append(Seq((*self._ws, alt(*others), *self._ws, stop)))
        between = [part for word in middle[1:] for part in (*self._ws, Lit(word.encode()))]
        return Seq((Lit((head + middle[0]).encode()), *between, alt(*ways)))

    def _kinds(self, nodes: Sequence[Located]) -> list[Kind]:
        """The kinds of a value with their nodes; raw text, marked by True, has the stop inside."""
        key = frozenset(id(schema) for schema, _ in nodes)
        if key not in self._done:
            self._done[key] = self._read_kinds(nodes)
        return self._done[key]

    def _read_kinds(self, nodes: Sequence[Located]) -> list[Kind]:
        found: list[Kind] = []
        for facts in self._json.reader.read(nodes):
            if facts.values is not None:
                found += (self._literal_kind(value) for value in self._json.admitted(facts))
                continue
            if facts.types & STRING and self._layout.quoted:
                found.append(("string", self._of_kind(facts, STRING), False))
            elif facts.types & STRING:
                found.append(("string", self._string(facts), True))
            if facts.types == ANY_TYPE and "integer" in self._layout.middle:
                found.append(("integer", text.INTEGER, False))
            for kind in (NUMBER, BOOLEAN, NULL):
                if facts.types & kind:
                    found.append((_KINDS[kind], self._of_kind(facts, kind), False))
            for kind in (OBJECT, ARRAY):
                if facts.types & kind:
                    found.append((_KINDS[kind], self._composite(facts, kind), False))
        return [entry for entry in found if entry[1] != NOTHING]

    def _of_kind(self, facts: Facts, kind: int) -> Node:
        only = _only(facts, kind)
        return self._written(_KINDS[kind], lambda one: one.union([only]))

    def _composite(self, facts: Facts, kind: int) -> Node:
        if not self._layout.item:
            return self._of_kind(facts, kind)
        facts = _only(facts, kind)
        # References to one definition are many, and each has its own place.
        key = (facts.types, *[id(schema) for schema, _ in (*facts.objects, *facts.arrays)])
        known = self._rules.get(key)
        if known is None:
            known = self._rules[key] = facts, Rule("value", EMPTY)  # the facts keep the identities
            self._pending.append((known[1], [facts]))
        return Call(known[1])

    def _string(self, facts: Facts) -> Node:
        """Raw text with its stop."""
        inside = None
        if facts.patterns or facts.barred or facts.banned_words():
            inside = described(facts, () if facts.patterns else self._excludes, self._json.reader)
        if inside == NOTHING or (facts.high is not None and facts.low > facts.high):
            return NOTHING
        if inside is None and not facts.low and facts.high is None:
            return self._raw  # which may begin and end with anything
        ways: list[Node] = []
        for pad in self._pads:
            # What stands between pads does not hold the stop without them.
            stop, bare = pad + self._stop.data, (self._stop.data,) if pad else ()
            if inside is not None:
                text = strings.raw(inside, stop, bare)
            else:
                text = strings.raw(strings.language((), facts.low, facts.high), stop, (*self._excludes, *bare))
            ways.append(concat(Lit(pad), text) if pad else text)
        return alt(*ways)

    # Arrays and single values in a layout that marks them up.

    def _arrays(self, branches: list[Facts]) -> Node:
        ways = [self._array(facts.arrays) for facts in branches if facts.types & ARRAY]
        return alt(*(way for way in ways if way != NOTHING))

    def _array(self, parts: Parts) -> Node:
        shape = items(parts)
        if shape.unique is not None and (shape.high is None or shape.high > 1):
            self._json.reader.widen(shape.unique, "uniqueItems", "this style cannot tell which items were there before")
        if shape.contains:
            counting = Counting(shape, self._json.reader, lambda nodes: self._item(self._kinds(nodes)))
            return concat(*self._ws, located(parts[0][1], counting.nodes, (), (), EMPTY))
        first = [self._item(self._kinds(nodes)) for nodes in shape.prefix]
        rest = self._item(self._kinds(shape.rest))
        high = shape.high
        if NOTHING in first or rest == NOTHING:
            most = first.index(NOTHING) if NOTHING in first else len(first)
            high = most if high is None else min(high, most)
        if high is not None and shape.low > high:
            return NOTHING
        node: Node = EMPTY
        if high is None or high > len(first):
            node = Repeat(rest, max(shape.low - len(first), 0), None if high is None else high - len(first))
        for index in range(len(first[:high]) - 1, -1, -1):
            node = concat(first[index], node)
            if index >= shape.low:
                node = Repeat(node, 0, 1)
        return concat(*self._ws, node)

    def _item(self, kinds: list[Kind]) -> Node:
        value = self._value(self._layout.item, kinds, self._layout.tail.format("item"))
        return NOTHING if value == NOTHING else Call(Rule("item", concat(value, *self._ws)))

    def _literal_kind(self, value: Any) -> Kind:
        kind = _KINDS[type_of(value)]
        if isinstance(value, str) and not self._layout.quoted:
            barred = any(word in value.encode() for word in (self._stop.data, *self._excludes))
            texts = [Lit(pad + value.encode() + pad + self._stop.data) for pad in self._pads]
            return kind, NOTHING if barred else alt(*texts), True
        if isinstance(value, (dict, list)) and self._layout.item:
            return kind, self._literal(value), False
        return kind, self._written(kind, lambda one: one.literal(value)), False

    def _literal(self, value: dict[str, Any] | list[Any]) -> Node:
        """An object as arguments in its own order, or an array as items."""
        if isinstance(value, list):
            nodes = [self._item([self._literal_kind(item)]) for item in value]
            return NOTHING if NOTHING in nodes else concat(*self._ws, *nodes)
        members = [self._member(key, [self._literal_kind(item)], True) for key, item in value.items()]
        if None in members:
            return NOTHING
        return concat(*self._ws, *ordered(Group([member for member in members if member]), (), EMPTY))


def _only(facts: Facts, kind: int) -> Facts:
    """The part of `facts` about values of one type."""
    part = copy.copy(facts)
    part.types = kind
    return part
