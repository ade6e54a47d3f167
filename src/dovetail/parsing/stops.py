"""Where free text ends: one compiled search for a set of markers."""

from __future__ import annotations

import re
from collections.abc import Iterable


class Stops:
    """Markers that may end free text, each with white space that belongs to it when it stands right before.

    `find` finds the first marker, in its group 1; `held` tells how much of the end of the text may be the start of one.
    """

    __slots__ = ("_tail", "_window", "find", "markers", "quick", "spaced")

    def __init__(self, markers: Iterable[tuple[str, bytes]]) -> None:
        """Markers as pairs of the white space before them and themselves."""
        pairs = list(dict.fromkeys((pad.encode(), word) for pad, word in markers if word))
        # Longer words first, so that of two markers with one beginning the whole one is seen.
        pairs.sort(key=lambda pair: -len(pair[1]))
        pads = sorted({pad[i:] for pad, _ in pairs for i in range(len(pad))}, key=len, reverse=True)
        before = b"(?:" + b"|".join(map(re.escape, pads)) + b")?" if pads else b""
        self.markers = longest = tuple(dict.fromkeys(word for _, word in pairs))
        inner = b"|".join(map(re.escape, longest)) or rb"(?!)"
        self.find = re.compile(before + b"(" + inner + b")")
        self.spaced = re.compile(rb"[ \t\r\n]*+(" + inner + b")")
        starts = {pad[i:] + word for pad, word in pairs for i in range(len(pad) + 1)}
        self._window = max((len(start) for start in starts), default=1) - 1
        self._tail = re.compile(b"(?:" + (_prefixes(starts) or b"(?!)") + rb")\Z")
        firsts = "".join(sorted({start.decode("utf-8", "replace")[0] for start in starts}))
        # A chunk of text without any of these characters holds no part of a marker.
        self.quick = re.compile(f"[{re.escape(firsts)}]" if firsts else "(?!)")

    def held(self, data: bytearray, start: int) -> int:
        """Where the start of a marker may stand at the end of `data`, or its length."""
        found = self._tail.search(data, max(start, len(data) - self._window))
        return found.start() if found else len(data)


def _prefixes(texts: set[bytes]) -> bytes:
    """A pattern for every proper prefix of the texts."""
    found = sorted({text[:i] for text in texts for i in range(1, len(text))}, key=len, reverse=True)
    return b"|".join(map(re.escape, found))
