"""Stop strings, found in bytes that come in pieces; the server, runs and scripts all look for them here."""

from __future__ import annotations

from collections.abc import Sequence


class StopStrings:
    """Passes bytes on up to the first stop string, and holds back what may be the beginning of one.

    The first is the one that is complete first, so that nothing depends on how the output is cut into pieces.
    """

    def __init__(self, stops: Sequence[str]) -> None:
        self._stops = {stop.encode("utf-8", "replace"): stop for stop in stops}
        self._held = b""
        self.matched: str | None = None

    def feed(self, data: bytes) -> bytes:
        """The bytes that are settled; nothing comes after a stop string, which `matched` then names."""
        if not self._stops:
            return data
        self._held += data
        ends = [(at + len(stop), at, stop) for stop in self._stops if (at := self._held.find(stop)) >= 0]
        if ends:
            _, at, stop = min(ends)
            self.matched = self._stops[stop]
            ready, self._held = self._held[:at], b""
            return ready
        keep = max(_overlap(self._held, stop) for stop in self._stops)
        at = len(self._held) - keep
        ready, self._held = self._held[:at], self._held[at:]
        return ready

    def flush(self) -> bytes:
        """What was held back and turned out to be no stop string."""
        rest, self._held = self._held, b""
        return rest


def _overlap(data: bytes, stop: bytes) -> int:
    """How many bytes at the end of `data` are the beginning of `stop`."""
    longest = min(len(data), len(stop) - 1)
    return next((n for n in range(longest, 0, -1) if data.endswith(stop[:n])), 0)
