"""What has no place inside a call or between calls: it is left out, up to the marker behind which reading goes on."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from functools import lru_cache

from dovetail.parsing.signs import PLAIN, either
from dovetail.parsing.stops import Stops, marker_size
from dovetail.parsing.tape import Steps, Tape

MAX_NOISE = 1024  # bytes that are looked at for the marker behind them


@lru_cache(maxsize=1024)
def markers(words: frozenset[bytes]) -> Stops:
    """A search for these markers, spelled or as special tokens."""
    return Stops([("", word) for word in sorted(words)], either)


def telling(words: Iterable[bytes]) -> frozenset[bytes]:
    """The words that are markup wherever they stand; brackets alone are not."""
    return frozenset(word for word in words if re.search(rb"\w\w", word))


def marker_behind(tape: Tape, stops: Stops, broken: Container[bytes]) -> Steps[bytes]:
    """Look at what stands before the next marker, past one of `broken` that stands right here and begins nothing."""
    tape.look = tape.at
    marker = yield from marker_ahead(tape, stops)
    if marker in broken and tape.look == tape.at:
        tape.look += 1
        marker = yield from marker_ahead(tape, stops)
    return marker


def marker_ahead(tape: Tape, stops: Stops) -> Steps[bytes]:
    """Look at what stands before the next of these markers: the marker; nothing, and no look, where none is near."""
    start = tape.look - tape.at
    offset = start
    while True:
        marker = stops.find.search(tape.data, tape.at + offset)
        # A marker may still become a longer one that begins in the same way.
        offset = stops.held(tape.data, marker.start() if marker else tape.at + offset) - tape.at
        if marker and offset <= marker.start() - tape.at and not tape.over:
            yield
            continue
        if marker and marker.start() - tape.at - start <= MAX_NOISE:
            tape.look = marker.end() - marker_size(marker)
            return bytes(tape.data[tape.look : marker.end()].translate(PLAIN))
        if marker or tape.over or offset - start > MAX_NOISE:
            tape.look = tape.at + start
            return b""
        yield
