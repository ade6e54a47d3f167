"""Stop texts, found in bytes that come in pieces."""

from __future__ import annotations

from collections.abc import Sequence


class StopTexts:
    """Passes bytes on up to the first stop text, and holds back what may be the beginning of one."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = {text.encode("utf-8", "replace"): text for text in texts}
        self._held = b""
        self.found: str | None = None

    def feed(self, data: bytes) -> bytes:
        """The bytes that are settled; nothing comes after a stop text, which `found` then names."""
        if not self._texts:
            return data
        self._held += data
        found = [(at, text) for text in self._texts if (at := self._held.find(text)) >= 0]
        if found:
            at, text = min(found)
            self.found = self._texts[text]
            ready, self._held = self._held[:at], b""
            return ready
        keep = max(_overlap(self._held, text) for text in self._texts)
        at = len(self._held) - keep
        ready, self._held = self._held[:at], self._held[at:]
        return ready

    def flush(self) -> bytes:
        """What was held back and turned out to be no stop text."""
        rest, self._held = self._held, b""
        return rest


def _overlap(data: bytes, text: bytes) -> int:
    """How many bytes at the end of `data` are the beginning of `text`."""
    longest = min(len(data), len(text) - 1)
    return next((n for n in range(longest, 0, -1) if data.endswith(text[:n])), 0)
