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

Known = dict[int, tuple[bytes, str, int]]  # bytes on the tape, text where they are whole characters, how many bytes

# What each token is on the tape, for each vocabulary with special tokens matched by id and without.
_known: WeakKeyDictionary[Vocabulary, tuple[Known, Known]] = WeakKeyDictionary()


class Tokens:
    """The tokens that were fed: their bytes on the tape, and where in the output each of them ends."""

    __slots__ = ("_end", "_ends", "_known", "_special", "_vocabulary")

    def __init__(self, vocabulary: Vocabulary, special: frozenset[int]) -> None:
        self._vocabulary = vocabulary
        self._special = special
        self._known = _known.setdefault(vocabulary, ({}, {}))[bool(special)]
        self._ends = array("Q")
        self._end = 0  # the last of them

    def take(self, ids: Sequence[int]) -> tuple[bytes, str]:
        """More tokens: their bytes as they stand on the tape, and their text where it is whole characters."""
        # One token at a time is what engines feed, so nothing is called for one that has been seen before.
        if len(ids) == 1:
            data, text, size = self._known.get(ids[0]) or self._learn(operator.index(ids[0]))
            self._end = end = self._end + size
            self._ends.append(end)
            return data, text
        data = b"".join([self.take((token,))[0] for token in ids])
        return data, as_text(data)

    def size(self, token: int) -> int:
        """How many bytes a token has."""
        return (self._known.get(token) or self._learn(token))[2]

    def _learn(self, token: int) -> tuple[bytes, str, int]:
        data = self._vocabulary.token_bytes(token)
        is_special = token in self._special
        known = (signed(data), "", len(data)) if is_special else (data.translate(CLEAN), as_text(data), len(data))
        self._known[token] = known
        return known

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The tokens that hold these bytes of the output, as the first and the one behind the last."""
        if not 0 <= start <= end <= self._end:
            raise InputError(f"{start} to {end} is no span of the tokens fed", "", "ask for a span of an event")
        first = bisect_right(self._ends, start)
        return first, max(first, bisect_left(self._ends, end) + 1) if end > start else first


def as_text(data: bytes) -> str:
    """Bytes as text, or nothing where a character is cut in two or is none."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return ""
