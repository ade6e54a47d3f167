"""Where free text ends: one compiled search for a set of markers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from dovetail.parsing.signs import either

_LAST_WINDOW = 256  # bytes at the end of text in which the end of the turn is looked for


class Stops:
    """Markers that may end free text, each with white space that belongs to it when it stands right before.

    `find` finds the first marker, in its last group; `held` tells how much of the end of the text may be the start of
    one.
    """

    __slots__ = ("_tail", "_window", "find", "markers", "quick")

    def __init__(self, markers: Iterable[tuple[str, bytes]], spell: Callable[[bytes], bytes] = re.escape) -> None:
        """Markers as pairs of the white space before them and themselves; `spell` makes patterns of them."""
        by_pad: dict[str, list[bytes]] = {}
        for pad, word in markers:
            if word and word not in by_pad.setdefault(pad, []):
                by_pad[pad].append(word)
        self.markers = tuple(dict.fromkeys(word for words in by_pad.values() for word in words))
        ways = [_optional(pad.encode()) + b"(" + _any(words, spell) + b")" for pad, words in by_pad.items()]
        self.find = re.compile(b"|".join(ways) or b"(?!)")
        starts = {
            pad.encode()[i:] + word for pad, words in by_pad.items() for word in words for i in range(len(pad) + 1)
        }
        self._window = max(map(len, starts), default=1) - 1
        prefixes = {start[:i] for start in starts for i in range(1, len(start))}
        self._tail = re.compile(b"(?:" + _any(prefixes, spell) + rb")\Z")
        # A chunk of text in which this finds nothing holds no part of a marker.
        self.quick = re.compile(_beginnings({start.decode("utf-8", "replace")[:2] for start in starts}))

    def held(self, data: bytearray, start: int) -> int:
        """Where the start of a marker may stand at the end of `data`, or its length."""
        tail = self._tail.search(data, max(start, len(data) - self._window))
        return tail.start() if tail else len(data)


class TurnEnds:
    """The markers that end a turn, where they stand at the very end of text that may hold them."""

    __slots__ = ("_last", "_quick", "_stops")

    def __init__(self, markers: Iterable[bytes] = ()) -> None:
        words = [word for word in markers if word]
        self._stops = Stops([("", word) for word in words], either)
        self._last = re.compile(b"(?:" + _any(words, either) + rb")\s*\Z") if words else None
        self._quick: dict[re.Pattern[str], re.Pattern[str]] = {}

    def before(self, data: bytearray, start: int, final: bool) -> int:
        """Where text ends that a turn end may follow: at that end, or at half of one while more is to come."""
        if self._last is None:
            return len(data)
        end = self._last.search(data, max(start, len(data) - _LAST_WINDOW))
        if end:
            return end.start()
        return len(data) if final else self._stops.held(data, start)

    def at(self, data: bytearray, at: int) -> bool | None:
        """Whether the end of the turn stands at this place; None where only more output can tell."""
        if self._last is None:
            return False
        if self._stops.find.match(data, at):
            return True
        return None if self._stops.held(data, at) == at else False

    def beside(self, quick: re.Pattern[str]) -> re.Pattern[str]:
        """A search for what `quick` finds, and for whatever may begin a turn end."""
        if self._last is None:
            return quick
        if quick not in self._quick:
            self._quick[quick] = re.compile(f"{quick.pattern}|{self._stops.quick.pattern}")
        return self._quick[quick]


def marker_size(marker: re.Match[bytes]) -> int:
    """How long a marker is without the space before it."""
    assert marker.lastindex is not None
    return marker.end() - marker.start(marker.lastindex)


def _beginnings(pairs: set[str]) -> str:
    """A pattern for the first two characters of a marker, or for the first one at the end."""
    seconds: dict[str, set[str]] = {}
    for pair in pairs:
        seconds.setdefault(pair[0], set()).add(pair[1:])
    alone = [first for first, behind in seconds.items() if "" in behind]
    ways = [f"[{re.escape(''.join(sorted(alone)))}]"] if alone else []
    for first, behind in sorted(seconds.items()):
        if first not in alone:
            ways.append(f"{re.escape(first)}(?:[{re.escape(''.join(sorted(behind)))}]|\\Z)")
    return "|".join(ways) or "(?!)"


def _any(words: Iterable[bytes], spell: Callable[[bytes], bytes] = re.escape) -> bytes:
    """A pattern for any of the words, the longest that fits."""
    return b"|".join(map(spell, sorted(words, key=len, reverse=True))) or b"(?!)"


def _optional(pad: bytes) -> bytes:
    """A pattern for as much of `pad` as there is."""
    return b"(?:" + _any(pad[i:] for i in range(len(pad))) + b")?" if pad else b""
