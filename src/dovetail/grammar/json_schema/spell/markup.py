"""From constraints to nodes: arguments in the markup of a model family.

Only an object can be a list of arguments, so the root of the schema is read as one. Strings are raw text up to the
markup that ends them; everything else is JSON with whitespace around it, unless the layout marks up nested values too.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

from dovetail.errors import SchemaError
from dovetail.grammar.ir import EMPTY, NOTHING, Alt, Lit, Node, Parts, Seq, alt, seq
from dovetail.grammar.json_schema.admission import type_of
from dovetail.grammar.json_schema.lowering import ANY_PARTS, Lowering, described
from dovetail.grammar.json_schema.read.constraints import (
    ANY_TYPE,
    ARRAY,
    BOOLEAN,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    Constraints,
    Located,
)
from dovetail.grammar.json_schema.values import characters, strings
from dovetail.layouts.styles import PYTHON_DICT, Layout, Middle

from .json import Frame
from .literals import literal_spelling

Kind = tuple[str, Node, bool]  # its name, its node, whether that is raw text with the stop inside

_KINDS = {STRING: "string", NUMBER: "number", BOOLEAN: "boolean", NULL: "null", OBJECT: "object", ARRAY: "array"}


class Tagged(Frame):
    """Objects and arrays in one layout; a value is the kinds that it may have."""

    open = close = first = last = EMPTY

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
        self._done: dict[frozenset[int], list[Kind]] = {}

    def arguments(self, nodes: Sequence[Located]) -> Node:
        """The arguments of a call that `nodes` apply to."""
        node = self._json.arguments(nodes, self)
        for lowering in self._spellings:
            lowering.finish()
            self._json.doubtful = self._json.doubtful or lowering.doubtful
        return node

    def _written(self, kind: str, write: Callable[[Lowering], Node]) -> Node:
        """A value as JSON, and as Python writes it where the layout has that for its kind."""
        ways = map(write, self._spellings if kind in self._layout.python else (self._json,))
        return alt(*dict.fromkeys(way for way in ways if way != NOTHING))

    # One argument.

    def declared(self, name: str, value: list[Kind]) -> Parts:
        """A declared argument."""
        layout = self._layout
        key = layout.key(name) if layout.escapes else name
        if layout.tail and (not name.strip() or name.startswith("/") or ">" in name):
            raise SchemaError(f"the key {name!r} cannot be the name of a tag", "", "use another key or another style")
        if not value or any(word in key.encode() for word in self._excludes):
            return ()
        return self._value(f"{layout.begin}{key}{layout.after_key}", value, layout.tail.format(key)), *self._ws

    def other(self, names: Sequence[str], keys: Node | None, value: list[Kind]) -> Node:
        """An argument that is not declared."""
        layout = self._layout
        if layout.other_keys == "none":
            if keys is None and not names and value is self._done.get(frozenset()):
                return NOTHING  # nothing is known of the object, and only the empty one can be written
            raise SchemaError(
                "this style cannot name properties that are not declared", "", "set additionalProperties to false"
            )
        if not value:
            return NOTHING
        key = strings.marked_key(names, keys, layout.other_keys == "names", layout.escapes)
        return seq(Lit(layout.begin.encode()), key, self._value(layout.after_key, value, ""), *self._ws)

    def item(self, value: list[Kind]) -> Node:
        """An item of an array."""
        return self._value(self._layout.item, value, self._layout.tail.format("item")) if value else NOTHING

    def _value(self, head: str, kinds: list[Kind], tail: str) -> Node:
        """`head`, the middle for each kind, the value, the end."""
        groups: dict[Middle, tuple[list[Node], list[Node]]] = {}
        for kind, node, is_raw in kinds:
            texts, others = groups.setdefault(self._layout.middle[kind], ([], []))
            (texts if is_raw else others).append(node)
        if len(groups) == 1:
            (middle, (texts, others)), *_ = groups.items()
            return self._ended(head, middle, texts, others, tail)
        ways = [self._ended("", middle, texts, others, tail) for middle, (texts, others) in groups.items()]
        return Seq((Lit(head.encode()), Alt(tuple(ways))))

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

    def value(self, nodes: Sequence[Located], write: Callable[[Sequence[Located]], Node]) -> list[Kind]:
        """The kinds of a value with their nodes; raw text, marked by True, has the stop inside."""
        key = frozenset(id(schema) for schema, _ in nodes)
        if key not in self._done:
            self._done[key] = self._read_kinds(nodes)
        return self._done[key]

    def _read_kinds(self, nodes: Sequence[Located]) -> list[Kind]:
        kinds: list[Kind] = []
        for known in self._json.reader.read(nodes):
            if known.values is not None:
                kinds += (self._literal_kind(value) for value in self._json.admitted(known))
                continue
            if known.types & STRING and self._layout.quoted:
                kinds.append(("string", self._of_kind(known, STRING), False))
            elif known.types & STRING:
                kinds.append(("string", self._string(known), True))
            if known.types == ANY_TYPE and "integer" in self._layout.middle:
                kinds.append(("integer", characters.INTEGER, False))
            for kind in (NUMBER, BOOLEAN, NULL):
                if known.types & kind:
                    kinds.append((_KINDS[kind], self._of_kind(known, kind), False))
            for kind in (OBJECT, ARRAY):
                if known.types & kind:
                    kinds.append((_KINDS[kind], self._composite(known, kind), False))
        return [entry for entry in kinds if entry[1] != NOTHING]

    def _of_kind(self, known: Constraints, kind: int) -> Node:
        only = _only(known, kind)
        return self._written(_KINDS[kind], lambda one: one.union([only]))

    def _composite(self, known: Constraints, kind: int) -> Node:
        if not self._layout.item:
            return self._of_kind(known, kind)
        return self._json.composite([(kind, (known.objects if kind == OBJECT else known.arrays) or ANY_PARTS)], self)

    def _string(self, known: Constraints) -> Node:
        """Raw text with its stop."""
        inside = None
        if known.patterns or known.barred or known.banned_words():
            inside = described(known, () if known.patterns else self._excludes, self._json.reader)
        if inside == NOTHING or (known.high is not None and known.low > known.high):
            return NOTHING
        if inside is None and not known.low and known.high is None:
            return self._raw  # which may begin and end with anything
        ways: list[Node] = []
        for pad in self._pads:
            # What stands between pads does not hold the stop without them.
            stop, bare = pad + self._stop.data, (self._stop.data,) if pad else ()
            if inside is not None:
                text = strings.raw(inside, stop, bare)
            else:
                text = strings.raw(strings.language((), known.low, known.high), stop, (*self._excludes, *bare))
            ways.append(seq(Lit(pad), text) if pad else text)
        return alt(*ways)

    def literal(self, value: Any, write: Callable[[Any], Node]) -> list[Kind]:
        """The kind of one value; none where it cannot be written."""
        kind = self._literal_kind(value)
        return [] if kind[1] == NOTHING else [kind]

    def _literal_kind(self, value: Any) -> Kind:
        kind = _KINDS[type_of(value)]
        if isinstance(value, str) and not self._layout.quoted:
            barred = any(word in value.encode() for word in (self._stop.data, *self._excludes))
            texts = [Lit(pad + value.encode() + pad + self._stop.data) for pad in self._pads]
            return kind, NOTHING if barred else alt(*texts), True
        if isinstance(value, (dict, list)) and self._layout.item:
            return kind, self._json.composite_literal(value, self), False
        return kind, self._written(kind, lambda one: one.literal(value)), False


def _only(known: Constraints, kind: int) -> Constraints:
    """The part of `constraints` about values of one type."""
    part = copy.copy(known)
    part.types = kind
    return part
