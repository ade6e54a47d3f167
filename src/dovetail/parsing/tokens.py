"""Token ids as they stand on the tape, and the way back from bytes of the output to tokens."""

from __future__ import annotations

import operator
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from weakref import WeakKeyDictionary

from dovetail.engine import Vocabulary
from dovetail.errors import InputError
from dovetail.parsing.signs import CLEAN, signed

Known = dict[int, tuple[bytes, str]]

# What each token is on the tape, for each vocabulary with special tokens matched by id and without.
_known: WeakKeyDictionary[Vocabulary, tuple[Known, Known]] = WeakKeyDictionary()


class Tokens:
    """The tokens that were fed: their bytes on the tape, and where in the output each of them ends."""

    __slots__ = ("_ends", "_known", "_special", "_vocabulary")

    def __init__(self, vocabulary: Vocabulary, special: frozenset[int]) -> None:
        self._vocabulary = vocabulary
        self._special = special
        self._known = _known.setdefault(vocabulary, ({}, {}))[bool(special)]
        self._ends = array("Q")

    def take(self, token: int) -> tuple[bytes, str]:
        """One more token: its bytes as they stand on the tape, and its text where it is whole characters."""
        known = self._known.get(token) or self._learn(operator.index(token))
        ends = self._ends
        ends.append(len(known[0]) + (ends[-1] if ends else 0))
        return known

    def chunk(self, ids: Sequence[int]) -> tuple[bytes, str]:
        """Several tokens as one chunk, taken."""
        if len(ids) == 1:
            return self.take(ids[0])
        data = b"".join([self.take(token)[0] for token in ids])
        return data, as_text(data)

    def size(self, token: int) -> int:
        """How many bytes a token has."""
        return len((self._known.get(token) or self._learn(token))[0])

    def _learn(self, token: int) -> tuple[bytes, str]:
        data = self._vocabulary.token_bytes(token)
        known = (signed(data), "") if token in self._special else (data.translate(CLEAN), as_text(data))
        self._known[token] = known
        return known

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The tokens that hold these bytes of the output, as the first and the one behind the last."""
        if not 0 <= start <= end <= (self._ends[-1] if self._ends else 0):
            raise InputError(f"{start} to {end} is no span of the tokens fed", "", "ask for a span of an event")
        first = bisect_right(self._ends, start)
        return first, max(first, bisect_left(self._ends, end) + 1) if end > start else first


def as_text(data: bytes) -> str:
    """Bytes as text, or nothing where a character is cut in two or is none."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return ""
