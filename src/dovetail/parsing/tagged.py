"""Arguments marked up one by one, read as JSON: each byte of the JSON is told once, at a place that does not depend on
what follows.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from dovetail.layouts.styles import Layout, layout_of
from dovetail.messages import to_json
from dovetail.parsing import json_arguments, json_text
from dovetail.parsing.declared import Declared
from dovetail.parsing.noise import marker_behind, markers, telling
from dovetail.parsing.signs import PLAIN, either
from dovetail.parsing.stops import Stops, marker_size
from dovetail.parsing.tape import Steps, Tape, one_of, peek_behind_space, phrase, shared_start
from dovetail.parsing.teller import Teller
from dovetail.parsing.texts import before_half, escaped_text, look_for

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
_WRAPPERS = frozenset(("arguments", "parameters", "properties"))  # keys under which models put all arguments
_BRACE = 0x7B
_ESCAPED = re.compile(r'["\\\x00-\x1f]')

_CDATA = b"<![CDATA["
_CDATA_END = Stops([("", b"]]>")])

Phrase = tuple[bytes, ...]


class Tags:
    """The markup of one style, ready to be searched for."""

    __slots__ = ("begin", "cdata", "head", "item", "item_head", "kinds", "layout", "orphan", "pad", "python", "stops")

    def __init__(self, layout: Layout, pad: str, cdata: bool) -> None:
        self.layout = layout
        self.cdata = cdata
        self.pad = pad
        self.python = frozenset(layout.python)
        self.begin = tuple(layout.begin.encode().split())
        self.item = tuple(layout.item.encode().split())
        middles = sorted({tuple(middle) for middle in layout.middle.values()}, key=lambda middle: -len(middle[0]))
        self.kinds = [_kinds_with(layout, middle) for middle in middles]
        choices = b"|".join(b"(" + _spaced(middle) + b")" for middle in middles)
        words = b" ".join(part.encode() for part in middles[0]).split()
        # Where a key has an end of its own, one that stands before another member's begin has no value.
        has_end = len(middles) == 1 < len(words)
        letter = b"(?:(?!" + either(self.begin[0]) + rb")[^\n])" if has_end else rb"[^\n]"
        key = b"(" + b"(?!/)" * bool(layout.tail) + letter + b"{0,512}?)"
        self.orphan = re.compile(key + either(words[0])) if has_end else None
        lead = rb"\s*" if layout.begin[-1:].isspace() else b""
        self.head = re.compile(lead + key + either(layout.after_key.encode()) + rb"\s*(?:" + choices + b")")
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
    kinds = {kind for kind, own in layout.middle.items() if tuple(own) == middle}
    return frozenset("number" if kind == "integer" else kind for kind in kinds)


def _spaced(parts: tuple[str, ...]) -> bytes:
    return rb"\s*".join(either(word) for part in parts for word in part.encode().split())


@dataclass(frozen=True, slots=True)
class _Following:
    """The keys of the members that may follow: the declared ones, or any where none is, that have not come yet."""

    declared: frozenset[str] = frozenset()
    here: frozenset[str] | None = None  # None where nothing follows

    def __contains__(self, key: str) -> bool:
        return self.here is not None and key not in self.here and (not self.declared or key in self.declared)


_NOTHING_FOLLOWS = _Following()


@lru_cache(maxsize=256)
def _loose_stops(tags: Tags, ends: Phrase) -> Stops:
    """The end of a value, and what may come instead where it is missing: the next member or the end of the call."""
    stop = tags.stops.markers[0]
    others = [word for word in (tags.begin[0], *ends) if not stop.startswith(word) and not word.startswith(stop)]
    return Stops([(tags.pad, word) for word in (stop, *others)], either)


@lru_cache(maxsize=64)
def _stop_or_begin(tags: Tags) -> Stops:
    return Stops([("", word) for word in (tags.stops.markers[0], tags.begin[0])], either)


@lru_cache(maxsize=64)
def tags(style: str | Layout, pad: str, cdata: bool = False) -> Tags:
    """The tags of a style, by the name that formats know it by."""
    return Tags(layout_of(style), pad, cdata)


def arguments(
    teller: Teller,
    tags: Tags,
    declared: Declared,
    after: Phrase,
    ends: tuple[Phrase, ...],
    bars: Phrase | None = None,
    only_declared: bool = False,
) -> Steps[bool]:
    """Tell arguments up to one of `ends`, or to the words `after` them; False where they are cut off or malformed.

    Text between them is left out, unless one of the words `bars` stands in it, or these are None. So are arguments that
    the tool does not declare, where `only_declared`.
    """
    own = tuple((word,) for word in after)
    reader = _Reader(teller, tags, after, bars)
    reader.known = declared.keys if only_declared else frozenset()
    return (yield from reader.object(declared, (*own, *ends), 0))


class _Reader:
    def __init__(self, teller: Teller, tags: Tags, after: Phrase, bars: Phrase | None) -> None:
        self.teller = teller
        self.tape = teller.tape
        self.tags = tags
        self.after = after
        # What may come behind text that has no place here.
        self.around = frozenset[bytes]() if bars is None else telling((tags.begin[0], *after))
        self.noise = markers(self.around | telling(bars or ()))
        self.is_noisy = False  # such text has been left out
        self.known: frozenset[str] = frozenset()  # the only keys that count; any where there are none
        self.loose = tags.stops if tags.layout.tail or tags.item else _loose_stops(tags, after[:1])

    def object(self, declared: Declared, ends: tuple[Phrase, ...], depth: int) -> Steps[bool]:
        """Members up to one of `ends`, which is not taken."""
        teller, tape = self.teller, self.tape
        before = "{"
        keys: set[str] = set()
        while not (yield from self._at_end(ends)):
            head = yield from self._head(self.tags.begin, self.tags.head)
            if head is None and self.tags.orphan and (yield from self._orphan(self.tags.orphan, ends)):
                continue
            if head is None and not depth and (yield from self._noise()):
                continue
            if head is None:
                return self._no_member(before)
            key, kinds = head
            if not (depth or keys) and (yield from self._wraps(key, declared)):
                return (yield from self._unwrapped(declared))
            if self.known and not depth and key not in self.known:
                yield from self._left_out(key)
                continue
            keys.add(key)
            teller.json(f"{before}{to_json(key)}: ")
            before = ", "
            following = _Following(declared.keys, frozenset(keys))
            if not (yield from self._value(declared.property(key), kinds, key, depth, following)):
                return False
        tape.look = tape.at
        teller.json("{}" if before == "{" else "}")
        if self.is_noisy and not keys and teller.call is not None:
            teller.call.broken = True  # what should have been its arguments is lost
        return True

    def _noise(self) -> Steps[bool]:
        """Leave out text that is no member, before the next one or what closes the call."""
        tape = self.tape
        if not self.around:
            return False
        marker = yield from marker_behind(tape, self.noise, self.tags.begin[:1])
        if marker not in self.around or tape.look == tape.at:
            return False
        self.teller.diagnose("parameter", "there is text where a parameter should be; it is left out")
        self.teller.markup()
        self.is_noisy = True
        return True

    def _orphan(self, pattern: re.Pattern[bytes], ends: tuple[Phrase, ...]) -> Steps[bool]:
        """Leave out a key without a value, behind which the next member or one of the ends comes."""
        tape = self.tape
        tape.look = tape.at
        if not (yield from phrase(tape, self.tags.begin)):
            return False
        orphan = pattern.match(tape.data, tape.look)  # as much as a head may take has come already
        if orphan is None:
            return False
        tape.look = orphan.end()
        size = tape.look - tape.at
        is_orphan = (yield from one_of(tape, (self.tags.begin, *ends))) >= 0
        tape.look = tape.at + size
        if is_orphan:
            self.teller.diagnose("parameter", f"{self.tags.key(orphan[1])!r} has no value")
            self.teller.markup()
        return is_orphan

    def _left_out(self, key: str) -> Steps[None]:
        """Leave out a value whose key the tool does not declare."""
        yield from self._find_stop(_NOTHING_FOLLOWS)
        self.teller.diagnose("parameter", f"{key!r} is not declared")
        self.teller.markup()
        if self.tags.layout.tail and (yield from phrase(self.tape, self.tags.tail(key))):
            self.teller.markup()

    def _wraps(self, key: str, declared: Declared) -> Steps[bool]:
        """Whether an object that holds all of the arguments comes next, under a key that the tool does not have."""
        if key not in _WRAPPERS or not declared.keys or key in declared.keys:
            return False
        tape = self.tape
        offset = tape.look - tape.at
        is_object = (yield from peek_behind_space(tape)) == _BRACE
        tape.look = tape.at + offset
        return is_object

    def _unwrapped(self, declared: Declared) -> Steps[bool]:
        """The arguments as an object, and the end of the value that it is."""
        teller, tape = self.teller, self.tape
        teller.diagnose("style", "the arguments are one object, not marked up")
        yield from peek_behind_space(tape)
        teller.markup()
        ends = json_text.ends((*self.tags.stops.markers, *self.after[:1]))
        closed = yield from json_arguments.arguments(teller, declared, ends)
        if (yield from phrase(tape, self.tags.stops.markers[:1])):
            teller.markup()
        tape.look = tape.at
        return closed

    def _at_end(self, ends: tuple[Phrase, ...]) -> Steps[bool]:
        self.tape.starved = False
        return (yield from one_of(self.tape, ends)) >= 0

    def _no_member(self, before: str) -> bool:
        """What stands where a member or the end should: with members told before, the arguments end here."""
        tape = self.tape
        tape.look = tape.at
        if before == "{":
            return False
        self.teller.json("}")  # where the output ends here, what came is closed, though more may have been meant
        return not tape.starved

    def _array(self, declared: Declared, end: Phrase, depth: int) -> Steps[bool]:
        teller, tape = self.teller, self.tape
        index = 0
        while (yield from one_of(tape, (end,))) < 0:
            head = yield from self._head(self.tags.item, self.tags.item_head)
            if head is None:
                break
            teller.json(", " if index else "[")
            if not (yield from self._value(declared.item(index), head[1], "item", depth, _NOTHING_FOLLOWS)):
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
            head = pattern.match(tape.data, tape.look)
            if head:
                assert head.lastindex is not None
                tape.look = head.end()
                return self.tags.key(head[1]), self.tags.kinds[head.lastindex - 2]
            if tape.final or len(tape.data) - tape.look > MAX_HEAD:
                tape.starved |= tape.final
                return None
            yield

    def _value(
        self, declared: Declared, announced: frozenset[str], key: str, depth: int, following: _Following
    ) -> Steps[bool]:
        """One value up to and with its end; members that may follow tell where that end is missing."""
        kinds = announced & declared.kinds
        if not kinds and not self.tags.item:
            return (yield from self._otherwise(declared, announced, key, following))
        kinds = kinds or announced
        if self.tags.item and kinds & _COMPOSITE:
            end = self.tags.end(key)
            shape = yield from self._shape(kinds, end)
            if shape:
                return (yield from self._nested(shape, declared, end, depth))
            kinds = kinds - _COMPOSITE or _STRING
        quoted = self.tags.layout.quoted
        if kinds == _STRING and not quoted:
            closed = yield from self._text(following)
        elif "string" in kinds and not quoted:
            closed = yield from self._held(declared, kinds, following)
        else:
            closed = yield from self._json(declared, kinds, following)
        return closed and (yield from self._tail(key))

    def _tail(self, key: str) -> Steps[bool]:
        """What follows the stop of a value."""
        if not self.tags.layout.tail:
            return True
        closed = yield from phrase(self.tape, self.tags.tail(key))
        self.teller.markup()
        return closed

    def _otherwise(self, declared: Declared, announced: frozenset[str], key: str, following: _Following) -> Steps[bool]:
        """A value that the markup announces as another kind than the declared one, which counts."""
        tape, teller = self.tape, self.teller
        yield from shared_start(tape, self.tags.pad.encode())
        start = tape.look - tape.at
        end = yield from self._find_stop(following)
        if end is None:
            return self._tell_value(start, declared, announced, None)
        raw = teller.decode(tape.data[tape.at + start : tape.at + end[0]], tape.at + start)
        tape.look = tape.at + end[1]
        teller.diagnose("type", f"{raw[:40]!r} is announced otherwise than it is declared")
        teller.json(declared.converted(raw, announced))
        return (yield from self._tail(key))

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

    def _text(self, following: _Following) -> Steps[bool]:
        """Raw text, told as a JSON string while it comes."""
        teller, tape = self.teller, self.tape
        yield from shared_start(tape, self.tags.pad.encode())
        is_cdata = self.tags.cdata and (yield from self._begins_cdata())
        teller.json('"')
        if is_cdata and (yield from escaped_text(teller, _CDATA_END, _passes(_CDATA_END.quick.pattern))):
            teller.markup()
        while (yield from escaped_text(teller, self.loose, _passes(self.loose.quick.pattern))):
            if (yield from self._stops(tape.at, following)):
                teller.json('"')
                return True
            tape.look = tape.at + 1
            teller.escaped()
        return False

    def _stops(self, start: int, following: _Following) -> Steps[bool]:
        """Whether the marker from `start` to what has been looked at ends a value; one that is not its own stays."""
        tape = self.tape
        marker = self.loose.find.match(tape.data, start)
        assert marker is not None
        size = marker_size(marker)
        own = tape.data[marker.end() - size : marker.end()].translate(PLAIN) == self.tags.stops.markers[0]
        if own:
            return True
        ahead = marker.end() - size - tape.at
        tape.look = tape.at + ahead
        ends = yield from self._goes_on(following)
        tape.look = tape.at + ahead
        if ends:
            self.teller.diagnose("parameter", f"{self.tags.layout.stop} is missing")
        return ends

    def _goes_on(self, following: _Following) -> Steps[bool]:
        """Whether a member that is declared and has not come yet comes next, or the end of the call."""
        tape = self.tape
        offset = tape.look - tape.at
        head = yield from self._head(self.tags.begin, self.tags.head)
        if head is not None:
            return head[0] in following
        tape.look = tape.at + offset
        return bool(self.after) and (yield from phrase(tape, self.after)) and not (yield from self._stop_ahead())

    def _stop_ahead(self) -> Steps[bool]:
        """Whether the end of a value comes before any other begins: what looks like the end of the call is text."""
        tape = self.tape
        marks = _stop_or_begin(self.tags)
        offset = tape.look - tape.at
        while True:
            marker = marks.find.search(tape.data, tape.at + offset)
            if marker:
                return marker[0].translate(PLAIN) == self.tags.stops.markers[0]
            if tape.over:
                return False
            offset = marks.held(tape.data, tape.at + offset) - tape.at
            yield

    def _find_stop(self, following: _Following) -> Steps[tuple[int, int] | None]:
        """Where a value ends and where its markup does, by their distance from `at`; None where the output ends."""
        tape = self.tape
        offset = tape.look - tape.at
        while True:
            stop = self.loose.find.search(tape.data, tape.at + offset)
            if stop:
                offset = stop.start() - tape.at
                tape.look = stop.end()
                if (yield from self._stops(tape.at + offset, following)):
                    return offset, tape.look - tape.at
                offset += 1
            elif tape.final:
                return None
            else:
                offset = self.loose.held(tape.data, tape.at + offset) - tape.at
                yield

    def _tell_value(self, start: int, declared: Declared, kinds: frozenset[str], end: tuple[int, int] | None) -> bool:
        """Tell what stands from `start` on as a value of these kinds."""
        teller, tape = self.teller, self.tape
        tape.look = _whole_text(tape, self.loose) if end is None else tape.at + end[0]
        raw = teller.decode(tape.data[tape.at + start : tape.look], tape.at + start)
        if end is not None:
            tape.look = tape.at + end[1]
        elif not raw.strip():
            return False
        text, as_declared = declared.as_json(raw, kinds, self.tags.python)
        if not as_declared:
            teller.diagnose("type", f"{raw[:40]!r} is not a {' or '.join(sorted(kinds))}")
        teller.json(text if end is not None or not raw.startswith(("{", "[")) else raw)
        return end is not None

    def _held(self, declared: Declared, kinds: frozenset[str], following: _Following) -> Steps[bool]:
        """A value that may be text or JSON: it can be told only when all of it is known."""
        tape = self.tape
        yield from shared_start(tape, self.tags.pad.encode())
        if self.tags.cdata and (yield from self._begins_cdata()):
            return (yield from self._held_cdata(declared, kinds))
        start = tape.look - tape.at
        end = yield from self._find_stop(following)
        return self._tell_value(start, declared, kinds, end)

    def _begins_cdata(self) -> Steps[bool]:
        """Whether a value stands between the markers of character data; if so, the first is looked at."""
        offset = self.tape.look - self.tape.at
        begins = yield from phrase(self.tape, (_CDATA,))
        if not begins:
            self.tape.look = self.tape.at + offset
        return begins

    def _held_cdata(self, declared: Declared, kinds: frozenset[str]) -> Steps[bool]:
        start = self.tape.look - self.tape.at
        size = yield from look_for(self.tape, _CDATA_END)
        end = self.tape.look - self.tape.at - size
        closed = bool(size) and bool((yield from look_for(self.tape, self.tags.stops)))
        return self._tell_value(start, declared, kinds, (end, self.tape.look - self.tape.at) if closed else None)

    def _composite(self, declared: Declared, kinds: frozenset[str], following: _Following) -> Steps[bool]:
        """A value in brackets, whatever its strings hold; it may be JSON, or what Python spells for it."""
        start = self.tape.look - self.tape.at
        yield from brackets(self.tape, self.tags.stops)
        end = yield from self._find_stop(following)
        return self._tell_value(start, declared, kinds, end)

    def _json(self, declared: Declared, kinds: frozenset[str], following: _Following) -> Steps[bool]:
        teller, tape = self.teller, self.tape
        offset = tape.look - tape.at
        first = yield from peek_behind_space(tape)
        if first in _BRACKETS and kinds & _COMPOSITE:
            return (yield from self._composite(declared, kinds, following))
        if not (first == 0x22 and self.tags.layout.quoted and "string" in kinds):
            tape.look = tape.at + offset
            return (yield from self._held(declared, kinds, following))
        teller.markup()
        closed = yield from json_text.value(tape, json_text.ends(self.tags.stops.markers), teller)
        if closed and (yield from phrase(tape, self.tags.stops.markers)):
            teller.markup()
            return True
        tape.look = max(tape.look, tape.at)
        yield from look_for(tape, self.tags.stops)
        teller.markup()
        return False


def _whole_text(tape: Tape, stops: Stops) -> int:
    """Where text ends that the output ends in: before the end of the turn, and before half a stop."""
    return min(tape.before_turn_end(), before_half(tape, stops))


def brackets(tape: Tape, stops: Stops) -> Steps[bool]:
    """Look at a value in brackets, whatever its strings hold; False where a stop comes before it is closed."""
    depth, quote = 0, 0
    while True:
        pattern = _IN_QUOTES[quote] if quote else _OUTSIDE
        skipped = pattern.match(tape.data, tape.look)
        assert skipped is not None
        tape.look = skipped.end()
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
