"""Headers of channels that are not written as the rows of a dialect have them.

Blocks that a family joins by a marker begin with a header: a channel, maybe the recipient of a call, in whatever order
and with whatever between them, up to the marker behind which the text begins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dovetail.parsing.signs import PLAIN
from dovetail.parsing.tape import Steps, Tape

MAX_HEADER = 256  # bytes

_RECIPIENT = re.compile(rb"(?:^|\s)(to=)([^\s<]+)")
_NO_HEADER = re.compile(rb"[\n{}]")


@dataclass(frozen=True, slots=True)
class Header:
    """What a header announces; a call has a name and the number of the way in which it is laid out."""

    kind: Literal["reasoning", "content", "call"]
    name: str = ""
    way: int = -1


class Channels:
    """The parts from which a dialect makes its headers, found in the markers that it gives for them."""

    __slots__ = ("_ending", "_own", "_reasoning", "_recipients", "start")

    def __init__(self, reasoning: bytes, contents: Sequence[bytes], recipients: Sequence[bytes]) -> None:
        markers = [reasoning, *contents]
        self.start = _common(markers)
        self._ending = _common([marker[::-1] for marker in markers])[::-1]
        self._reasoning = reasoning[len(self.start) : -len(self._ending)]
        named = [(way, recipient) for way, recipient in enumerate(recipients) if recipient]
        self._recipients = sorted(named, key=lambda pair: -len(pair[1]))
        self._own = b"assistant"  # a message to the speaker itself is no call

    def header(self, tape: Tape) -> Steps[Header | None]:
        """Look at the header that comes next, if one does."""
        while True:
            seen = bytes(tape.data[tape.look : tape.look + MAX_HEADER + len(self._ending)].translate(PLAIN))
            text, ending, _ = seen.partition(self._ending)
            if _NO_HEADER.search(text):
                return None
            if ending:
                tape.look += len(text) + len(self._ending)
                return self._read(text)
            if len(seen) == MAX_HEADER + len(self._ending):
                return None
            if tape.final:
                tape.starved = True
                return None
            yield

    def _read(self, text: bytes) -> Header | None:
        to = _RECIPIENT.search(text)
        if to and to[2] != self._own:
            for way, prefix in self._recipients:
                if (to[1] + to[2]).startswith(prefix):
                    return Header("call", (to[1] + to[2])[len(prefix) :].decode("utf-8", "replace"), way)
        *_, channel = text.split(self.start)
        is_reasoning = channel.split()[:1] == [self._reasoning]
        return Header("reasoning" if is_reasoning else "content") if self.start in text else None


def _common(words: Sequence[bytes]) -> bytes:
    """How all of the words begin."""
    first, last = min(words), max(words)
    size = next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))
    return first[:size]
