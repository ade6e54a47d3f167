"""Reading JSON on the tape: where a value ends, told as it comes or only looked at."""

from __future__ import annotations

import json
import re
from functools import lru_cache

from dovetail.parsing.events import Region
from dovetail.parsing.signs import PLAIN, SIGN_CLASS, either
from dovetail.parsing.stops import Stops
from dovetail.parsing.tape import Steps, Tape, peek, run
from dovetail.parsing.teller import Teller

# Single bytes repeat possessively, groups do not: early releases of Python 3.11 match such groups wrongly.
_INSIDE = rb'[^"\\]*+(?:\\.[^"\\]*+)*'
_STRING_BODY = re.compile(_INSIDE, re.DOTALL)
_NOTHING = re.compile("")
_IN_STRING = re.compile(r'["\\]')
_SCALAR = re.compile(rb"[0-9a-zA-Z.+\-]*+")
_SCALAR_STARTS = frozenset(b"-0123456789tfn")
_OPENING, _CLOSING, _QUOTE, _BACKSLASH = frozenset(b"{["), frozenset(b"}]"), 0x22, 0x5C
MAX_SCALAR = 4096  # bytes of a bare number; Python itself reads no longer ones


def _around_strings(outside: bytes) -> re.Pattern[bytes]:
    """Bytes of a class, and whole strings among them."""
    return re.compile(outside + rb'*+(?:"' + _INSIDE + rb'"' + outside + rb"*+)*", re.DOTALL)


# What JSON has between brackets and strings. Where nothing is told yet, only this is looked over: a reader that was
# wrong starts again behind the marker that misled it, and must not have gone over the next ones.
_JSON_OUTSIDE = _around_strings(rb"[\s,:0-9+\-.eEtrufalsn]")

_JSON_BYTES = frozenset(b'"{}[],:') | _SCALAR_STARTS


class JsonEnds:
    """The markers at which JSON that never closes must end; inside strings they are text."""

    __slots__ = ("in_torn_string", "outside", "passes", "stops", "torn")

    def __init__(self, markers: tuple[bytes, ...] = ()) -> None:
        # A marker that starts like JSON cannot be told from it.
        usable = [marker for marker in markers if marker and marker[0] not in _JSON_BYTES]
        self.stops = Stops([("", marker) for marker in usable], either)
        firsts = re.escape(bytes({marker[0] for marker in usable})) + SIGN_CLASS
        self.outside = _around_strings(rb'[^"{}\[\]' + firsts + rb"]")
        # Where quotes may be missing, a string ends with its line, and before a marker.
        self.torn = re.compile(rb'[^"{}\[\]' + firsts + rb"]*+")
        self.in_torn_string = Stops([("", word) for word in (b'\\"', b'"', b"\n", *usable)], either)
        # Non-ASCII bytes among the firsts never occur outside strings of JSON, so text need not be searched for them.
        ascii_firsts = re.escape("".join(chr(marker[0]) for marker in usable if marker[0] < 0x80))
        self.passes = re.compile(r'["{}\[\]' + ascii_firsts + r"]|[^\x00-\x7f]")


ANYWHERE = JsonEnds()
ends = lru_cache(maxsize=256)(JsonEnds)


def value(
    tape: Tape, closers: JsonEnds = ANYWHERE, teller: Teller | None = None, region: Region = "tool_call"
) -> Steps[bool]:
    """Look at one JSON value, and tell it as it comes where a teller is given; False where it does not end."""
    first = yield from peek(tape)
    if first == _QUOTE:
        tape.look += 1
        closed = yield from _string(tape, teller, region)
    elif first in _OPENING:
        closed = yield from _composite(tape, closers, teller, region)
    else:
        closed = first in _SCALAR_STARTS and bool((yield from run(tape, _SCALAR, MAX_SCALAR)))
    if teller:
        teller.text(region)
    return closed


def rest(tape: Tape, closers: JsonEnds, teller: Teller, depth: int) -> Steps[bool]:
    """Tell what is left of an object that makes no sense, as it is written; False where it does not end.

    In such an object quotes may be missing: a string ends with its line, and markers that end the object count in it.
    """
    closed = yield from _composite(tape, closers, teller, "tool_call", depth, is_torn=True)
    teller.text("tool_call")
    return closed


def string(tape: Tape) -> Steps[str | None]:
    """Look at one JSON string: what it says, or None where there is none."""
    start = tape.look - tape.at
    if (yield from peek(tape)) != _QUOTE or not (yield from value(tape)):
        return None
    try:
        text = json.loads(tape.data[tape.at + start : tape.look].translate(PLAIN), strict=False)
    except ValueError:
        return None
    return text if isinstance(text, str) else None


def _composite(
    tape: Tape, closers: JsonEnds, teller: Teller | None, region: Region, depth: int = 0, is_torn: bool = False
) -> Steps[bool]:
    """An object or an array: brackets are counted, strings are jumped over unless it is torn."""
    outside = closers.torn if is_torn else closers.outside if teller else _JSON_OUTSIDE
    while True:
        skipped = outside.match(tape.data, tape.look)
        assert skipped is not None
        tape.look = skipped.end()
        if tape.look == len(tape.data):
            if tape.final:
                return False
            yield from _wait(teller, region, closers.passes)
            continue
        byte = tape.data[tape.look]
        if byte in _OPENING and (yield from _at_turn_end(tape, teller, region)):
            return False
        if byte in _OPENING:
            depth += 1
        elif byte in _CLOSING:
            depth -= 1
            if depth == 0:
                tape.look += 1
                return True
        elif byte != _QUOTE and (teller is None or (yield from _at_stop(tape, closers.stops, teller, region))):
            return False
        tape.look += 1
        if byte == _QUOTE and is_torn and teller:
            yield from _torn_string(tape, closers.in_torn_string, teller, region)
        elif byte == _QUOTE and not (yield from _string(tape, teller, region)):
            return False


def _torn_string(tape: Tape, stops: Stops, teller: Teller, region: Region) -> Steps[None]:
    """The rest of a string behind its quote, or of its line where no quote closes it, or what comes before a marker."""
    while True:
        stop = stops.find.search(tape.data, tape.look)
        if stop and stop[0][0] != _BACKSLASH:
            tape.look = stop.end() if stop[0][0] == _QUOTE else stop.start()
            return
        if stop:
            tape.look = stop.end()
            continue
        tape.look = min(stops.held(tape.data, tape.look), tape.before_turn_end())
        if tape.final:
            return
        teller.text(region)
        yield


def _string(tape: Tape, teller: Teller | None, region: Region) -> Steps[bool]:
    """The rest of a string behind its quote."""
    while True:
        body = _STRING_BODY.match(tape.data, tape.look)
        assert body is not None
        tape.look = body.end()
        if tape.look < len(tape.data) and tape.data[tape.look] == _QUOTE:
            tape.look += 1
            return True
        tape.look = min(body.end(), tape.before_turn_end()) if teller else body.end()
        if tape.final:
            tape.starved = True
            return False
        yield from _wait(teller, region, _IN_STRING)


def _wait(teller: Teller | None, region: Region, passes: re.Pattern[str]) -> Steps[None]:
    if teller is None:
        yield
        return
    teller.text(region)
    teller.let_pass(passes, region)
    yield
    teller.passes = None


def _at_turn_end(tape: Tape, teller: Teller | None, region: Region) -> Steps[bool]:
    """Whether what looks like a bracket is the first byte of what ends the turn."""
    while (is_end := tape.turn_ends.at(tape.data, tape.look)) is None and not tape.final:
        yield from _wait(teller, region, _NOTHING)
    return bool(is_end)


def _at_stop(tape: Tape, stops: Stops, teller: Teller, region: Region) -> Steps[bool]:
    while not stops.find.match(tape.data, tape.look):
        if tape.final or stops.held(tape.data, tape.look) != tape.look:
            return False
        teller.text(region)
        yield
    return True
