"""How often letters follow each other in English, so that what is drawn at random looks like words."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# Letters stand for themselves; everything else is one of these kinds.
_SPACE, _COMMA, _STOP, _LINE, _DIGIT, _CAPITAL, _OTHER, _ODD, _NONE = range(26, 35)
_KINDS = 35

SAMPLE = """
a small stream ran down from the hill and past the old stone house, where two children used to sit and count the boats
that came in with the evening tide. they knew each of them by its sail, and when a new one came around the point they
gave it a name and wrote the name on the wall with a piece of chalk. in the winter the wind took most of the names away.
the elder of the two later became a printer in the city. he said that setting type was not so different: you look for
the next letter among those that are there, you put it in its place, and after a while there is a line, and nobody who
reads the line thinks of the many letters that you did not take. the younger one stayed, mended nets, told stories, and
had an answer to most questions, though seldom the answer that people had hoped for. when she was asked how long a rope
should be she would say that it should reach from one end to the other, and then she would laugh and cut a good one.
every summer the printer came back with paper under his arm and read to her what he had printed, a page about the moon,
a list of plants, a short history of the harbour, and she would tell him which of the words were true. there is a table
in the house that still shows the marks of their work: letters on the left side, knots on the right, and between them
a great many rings that were left by cups of tea.
"""


class Letters:
    """Weights of tokens after a text: how likely the letters of each are, by its two predecessors."""

    def __init__(self, tokens: Sequence[bytes]) -> None:
        kinds = _kind_of_byte()
        spelled = [kinds[np.frombuffer(token[:24], dtype=np.uint8)] for token in tokens]
        self._first = np.array([s[0] if len(s) else _ODD for s in spelled], dtype=np.int8)
        self._second = np.array([s[1] if len(s) > 1 else _NONE for s in spelled], dtype=np.int8)
        chances = _chances()
        self._rest = np.array([float(chances[s[:-2], s[1:-1], s[2:]].sum()) if len(s) > 2 else 0.0 for s in spelled])
        self._further = np.array([max(1, len(s) - 1) for s in spelled])

    def weights(self, written: bytes, tokens: NDArray[np.intp]) -> NDArray[np.float64]:
        """How likely each of these tokens is after what was written; letters behind the first count on average."""
        kinds, chances = _kind_of_byte(), _chances()
        before, last = ([_SPACE, _SPACE] + [_context(int(kinds[byte])) for byte in written[-2:]])[-2:]
        first, second = self._first[tokens], self._second[tokens]
        further = (chances[last, first, second] + self._rest[tokens]) / self._further[tokens]
        return np.asarray(np.exp(chances[before, last, first] + further), dtype=np.float64)


def _context(kind: int) -> int:
    """What stands before a letter as far as the letter is concerned: a word begins behind everything but letters."""
    return kind if kind <= _STOP else _SPACE


@functools.cache
def _kind_of_byte() -> NDArray[np.int8]:
    kinds = np.full(256, _ODD, dtype=np.int8)
    kinds[32:127] = _OTHER
    kinds[ord("a") : ord("z") + 1] = range(26)
    kinds[ord("A") : ord("Z") + 1] = _CAPITAL
    kinds[ord("0") : ord("9") + 1] = _DIGIT
    # An escape may stand in many places where hardly anybody writes one.
    for letter, kind in (" ", _SPACE), (",", _COMMA), (".", _STOP), ("\n", _LINE), ("\\", _ODD):
        kinds[ord(letter)] = kind
    return kinds


@functools.cache
def _chances() -> NDArray[np.float64]:
    """The logarithm of the chance of each kind of byte after two others, counted in the sample."""
    text = _kind_of_byte()[np.frombuffer(" ".join(SAMPLE.split()).encode(), dtype=np.uint8)]
    one = np.full(_KINDS, 0.02)
    one[[_DIGIT, _CAPITAL]] = 0.05
    one[_ODD] = 0.0002
    np.add.at(one, text, 0.01)
    two = np.tile(0.5 * one / one.sum(), (_KINDS, 1))
    np.add.at(two, (text[:-1], text[1:]), 1.0)
    two /= two.sum(axis=1, keepdims=True)
    three = np.tile(0.5 * two, (_KINDS, 1, 1))
    np.add.at(three, (text[:-2], text[1:-1], text[2:]), 1.0)
    three /= three.sum(axis=2, keepdims=True)
    sizes = np.ones(_KINDS)
    sizes[[_DIGIT, _CAPITAL, _OTHER, _ODD]] = 10, 26, 30, 140
    logs = np.log(three / sizes)
    logs[:, :, _NONE] = 0.0  # a token of one letter has no second
    return np.asarray(logs)
