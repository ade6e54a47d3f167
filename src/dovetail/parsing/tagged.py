"""Arguments marked up one by one, read as JSON: each byte of the JSON is told once, at a place that does not depend on
what follows.
"""

from __future__ import annotations

import re
from functools import lru_cache

from dovetail.layouts.styles import Layout, layout_of
from dovetail.messages import to_json
from dovetail.parsing import json_text
from dovetail.parsing.declared import Declared
from dovetail.parsing.signs import PLAIN, either
from dovetail.parsing.stops import Stops
from dovetail.parsing.tape import Steps, Tape, one_of, peek, phrase, shared_start, space
from dovetail.parsing.teller import Teller
from dovetail.parsing.texts import escaped_text, look_for

MAX_HEAD = 1024  # bytes of the markup before a value, its key included
MAX_DEPTH = 64  # of values that are marked up inside values

_STRING = frozenset(("string",))
_COMPOSITE = frozenset(("object", "array"))
_BRACKETS = frozenset(b"{[")
_OUTSIDE = re.compile(rb"[\s\w,:.+-]*+")
_IN_QUOTES = {
    0x27: re.compile(rb"[^'\\]*+(?:\\.[^'\\]*+)*", re.DOTALL),
    0x22: re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*', re.DOTALL),
}
_ESCAPED = re.compile(r'["\\\x00-\x1f]')

Phrase = tuple[bytes, ...]


class Tags:
    """The markup of one style, ready to be searched for."""

    __slots__ = ("begin", "head", "item", "item_head", "kinds", "layout", "pad", "python", "stops")

    def __init__(self, layout: Layout, pad: str) -> None:
        self.layout = layout
        self.pad = pad
        self.python = frozenset(layout.python)
        self.begin = tuple(layout.begin.encode().split())
        self.item = tuple(layout.item.encode().split())
        middles = sorted({tuple(middle) for middle in layout.middle.values()}, key=lambda middle: -len(middle[0]))
        self.kinds = [_kinds_with(layout, middle) for middle in middles]
        choices = b"|".join(b"(" + _spaced(middle) + b")" for middle in middles)
        key = rb"((?!/)[^\n]{0,512}?)" if layout.tail else rb"([^\n]{0,512}?)"
        self.head = re.compile(key + either(layout.after_key.encode()) + rb"\s*(?:" + choices + b")")
        self.item_head = re.compile(rb"()\s*(?:" + choices + b")")
        self.stops = Stops([(pad, layout.stop.encode())], either)

    def end(self, key: str) -> Phrase:
        """What closes the value of a key."""
        return tuple((self.layout.stop + self.layout.tail.format(key)).encode().split())

    def tail(self, key: str) -> Phrase:
        """What follows the stop of the value of a key."""
        return tuple(self.layout.tail.format(key).encode().split())

    def key(self, written: bytes) -> str:
        """A key as it was before it was put into markup."""
        name = written.translate(PLAIN).decode("utf-8", "replace")
        for char, escape in reversed(self.layout.escapes):
            name = name.replace(escape, char)
        return name


def _kinds_with(layout: Layout, middle: tuple[str, ...]) -> frozenset[str]:
    found = {kind for kind, own in layout.middle.items() if tuple(own) == middle}
    return frozenset("number" if kind == "integer" else kind for kind in found)


def _spaced(parts: tuple[str, ...]) -> bytes:
    return rb"\s*".join(either(word) for part in parts for word in part.encode().split())


@lru_cache(maxsize=64)
def tags(style: str | Layout, pad: str) -> Tags:
    """The tags of a style, by the name that formats know it by."""
    return Tags(layout_of(style), pad)


def arguments(teller: Teller, tags: Tags, declared: Declared, ends: tuple[Phrase, ...]) -> Steps[bool]:
    """Tell arguments up to one of `ends`; False where they are cut off or malformed."""
    return (yield from _Reader(teller, tags).object(declared, ends, 0))


class _Reader:
    def __init__(self, teller: Teller, tags: Tags) -> None:
        self.teller = teller
        self.tape = teller.tape
        self.tags = tags

    def object(self, declared: Declared, ends: tuple[Phrase, ...], depth: int) -> Steps[bool]:
        """Members up to one of `ends`, which is not taken."""
        teller, tape = self.teller, self.tape
        before = "{"
        while (yield from one_of(tape, ends)) < 0:
            head = yield from self._head(self.tags.begin, self.tags.head)
            if head is None:
                break
            key, kinds = head
            teller.json(f"{before}{to_json(key)}: ")
            before = ", "
            if not (yield from self._value(declared.property(key), kinds, key, depth)):
                return False
        tape.look = tape.at
        if tape.final and tape.blank():
            return False
        teller.json("{}" if before == "{" else "}")
        return True

    def _array(self, declared: Declared, end: Phrase, depth: int) -> Steps[bool]:
        teller, tape = self.teller, self.tape
        index = 0
        while (yield from one_of(tape, (end,))) < 0:
            head = yield from self._head(self.tags.item, self.tags.item_head)
            if head is None:
                break
            teller.json(", " if index else "[")
            if not (yield from self._value(declared.item(index), head[1], "item", depth)):
                return False
            index += 1
        tape.look = tape.at
        if tape.final and tape.blank():
            return False
        teller.json("]" if index else "[]")
        return True

    def _head(self, begin: Phrase, pattern: re.Pattern[bytes]) -> Steps[tuple[str, frozenset[str]] | None]:
        """The markup before a value: its key and the kinds of value that it announces."""
        tape = self.tape
        if not (yield from phrase(tape, begin)):
            return None
        while True:
            found = pattern.match(tape.data, tape.look)
            if found:
                assert found.lastindex is not None
                tape.look = found.end()
                return self.tags.key(found[1]), self.tags.kinds[found.lastindex - 2]
            if tape.final or len(tape.data) - tape.look > MAX_HEAD:
                return None
            yield

    def _value(self, declared: Declared, announced: frozenset[str], key: str, depth: int) -> Steps[bool]:
        kinds = announced & declared.kinds or announced
        if self.tags.item and kinds & _COMPOSITE:
            end = self.tags.end(key)
            shape = yield from self._shape(kinds, end)
            if shape:
                return (yield from self._nested(shape, declared, end, depth))
            kinds = kinds - _COMPOSITE or _STRING
        quoted = self.tags.layout.quoted
        if kinds == _STRING and not quoted:
            closed = yield from self._text()
        elif "string" in kinds and not quoted:
            closed = yield from self._held(declared, kinds)
        else:
            closed = yield from self._json(declared, kinds)
        if closed and self.tags.layout.tail:
            closed = yield from phrase(self.tape, self.tags.tail(key))
            self.teller.markup()
        return closed

    def _shape(self, kinds: frozenset[str], end: Phrase) -> Steps[str]:
        """Whether a marked-up value is an object or an array, or neither."""
        composite = kinds & _COMPOSITE
        if len(kinds) == 1:
            return next(iter(composite))
        tape = self.tape
        offset = tape.look - tape.at
        if (yield from one_of(tape, (end,))) >= 0:
            tape.look = tape.at + offset
            return ""
        is_item = bool(self.tags.item) and (yield from self._head(self.tags.item, self.tags.item_head)) is not None
        tape.look = tape.at + offset
        if is_item and "array" in kinds:
            return "array"
        is_member = (yield from phrase(tape, self.tags.begin)) and "object" in kinds
        tape.look = tape.at + offset
        return "object" if is_member else ""

    def _nested(self, shape: str, declared: Declared, end: Phrase, depth: int) -> Steps[bool]:
        if depth >= MAX_DEPTH:
            return False
        inner = self.object(declared, (end,), depth + 1) if shape == "object" else self._array(declared, end, depth + 1)
        closed = yield from inner
        if closed:
            closed = yield from phrase(self.tape, end)
            self.teller.markup()
        return closed

    def _text(self) -> Steps[bool]:
        """Raw text, told as a JSON string while it comes."""
        teller, tape = self.teller, self.tape
        yield from shared_start(tape, self.tags.pad.encode())
        teller.json('"')
        closed = yield from escaped_text(teller, self.tags.stops, _passes(self.tags.stops.quick.pattern))
        if closed:
            teller.json('"')
        return closed

    def _python(self, declared: Declared, kinds: frozenset[str]) -> Steps[bool]:
        """A value in brackets that may be spelled as Python spells it: told when all of it is known."""
        teller, tape = self.teller, self.tape
        start = tape.look - tape.at
        closed = yield from brackets(tape, self.tags.stops)
        raw = teller.decode(tape.data[tape.at + start : tape.look])
        told, as_declared = declared.as_json(raw, kinds, self.tags.python)
        if not as_declared or not closed:
            teller.diagnose("type", f"{raw[:40]!r} is not a {' or '.join(sorted(kinds))}")
        teller.json(told)
        size = yield from look_for(tape, self.tags.stops)
        teller.markup()
        return closed and size > 0

    def _held(self, declared: Declared, kinds: frozenset[str]) -> Steps[bool]:
        """A value that may be text or JSON: it can be told only when all of it is known."""
        teller, tape = self.teller, self.tape
        yield from shared_start(tape, self.tags.pad.encode())
        start = tape.look - tape.at
        size = yield from look_for(tape, self.tags.stops)
        raw = teller.decode(tape.data[tape.at + start : tape.look - size])
        told, as_declared = declared.as_json(raw, kinds, self.tags.python)
        if not as_declared:
            teller.diagnose("type", f"{raw[:40]!r} is not a {' or '.join(sorted(kinds))}")
        teller.json(told)
        return size > 0

    def _json(self, declared: Declared, kinds: frozenset[str]) -> Steps[bool]:
        teller, tape = self.teller, self.tape
        offset = tape.look - tape.at
        yield from space(tape)
        first = yield from peek(tape)
        nested = first in _BRACKETS and kinds & _COMPOSITE and not self.tags.python & _COMPOSITE
        if first in _BRACKETS and kinds & _COMPOSITE & self.tags.python:
            return (yield from self._python(declared, kinds))
        if not nested and not (first == 0x22 and self.tags.layout.quoted and "string" in kinds):
            tape.look = tape.at + offset
            return (yield from self._held(declared, kinds))
        teller.markup()
        closed = yield from json_text.value(tape, json_text.ends(self.tags.stops.markers), teller)
        if closed and (yield from phrase(tape, self.tags.stops.markers)):
            teller.markup()
            return True
        tape.look = max(tape.look, tape.at)
        yield from look_for(tape, self.tags.stops)
        teller.markup()
        return False


def brackets(tape: Tape, stops: Stops) -> Steps[bool]:
    """Look at a value in brackets, whatever its strings hold; False where a stop comes before it is closed."""
    depth, quote = 0, 0
    while True:
        pattern = _IN_QUOTES[quote] if quote else _OUTSIDE
        found = pattern.match(tape.data, tape.look)
        assert found is not None
        tape.look = found.end()
        if tape.look == len(tape.data):
            if tape.final:
                return False
            yield
            continue
        byte = tape.data[tape.look]
        if quote and byte == 0x5C:
            if tape.final:
                return False
            yield  # half of an escape
            continue
        if not quote and stops.find.match(tape.data, tape.look):
            return False
        if not quote and not tape.final and stops.held(tape.data, tape.look) == tape.look:
            yield  # half of a stop
            continue
        tape.look += 1
        if byte in _IN_QUOTES:
            quote = 0 if quote else byte
        elif byte in b"{[":
            depth += 1
        elif byte in b"}]":
            depth -= 1
            if depth == 0:
                return True


@lru_cache(maxsize=64)
def _passes(quick: str) -> re.Pattern[str]:
    return re.compile(f"{_ESCAPED.pattern}|{quick}")
