"""The embedded speaker: a model without weights that says anything its format allows.

It draws each token at random under the mask, so what it says is as varied as the format permits, and every step of it
exercises the real engine. Plain words are drawn more often than odd bytes. After a soft limit it looks for the way out:
it stops where it may, closes what it can close, and spells the strings that end free text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dovetail.engine import CompiledGrammar, Matcher, Vocabulary
from dovetail.grammar import ir

_STOP, _SPECIAL, _WORD, _PRINTABLE, _CLOSER, _BLANK, _ODD = range(7)

# How often each class of token is drawn, before and after the soft limit, in the order of the names above.
_TALKING = np.array([0.0, 0.0, 4.0, 1.0, 1.0, 0.2, 0.005])
_CLOSING = np.array([0.0, 0.0, 1.0, 1.0, 1000.0, 0.01, 0.0001])

# While talking, a way out of free text is taken this often at each step; on average free text has ten tokens.
_LEAVE = 0.1

_WORDS = """the a to of and in is that for it on with as you this be are from at by not we can all will one about into
time model token tree river stone light garden answer question because perhaps weather city paper number name value
red green blue small large north south quick quiet true false null""".split()
_FRAGMENTS = [
    '{"',
    '"}',
    '":',
    '": ',
    '": "',
    '",',
    '", "',
    "[]",
    "{}",
    "},",
    "]}",
    "</",
    "=>",
    "()",
    "\n\n",
    ". ",
    ", ",
]
_SPECIALS = ["<|end|>", "<|start|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<|call|>", "<|return|>"]


@dataclass(frozen=True, slots=True)
class Utterance:
    """What a speaker said; complete unless the hard limit cut it off."""

    token_ids: tuple[int, ...]
    data: bytes
    complete: bool


def embedded_vocabulary() -> Vocabulary:
    """The speaker's own vocabulary: the 256 bytes, some words, pieces of JSON, and a few special tokens."""
    words = [form for word in _WORDS for form in (word, " " + word)]
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [text.encode() for text in dict.fromkeys([*words, *_FRAGMENTS]) if len(text) > 1]
    specials = {text: len(tokens) + i for i, text in enumerate(_SPECIALS)}
    tokens += [text.encode() for text in _SPECIALS]
    return Vocabulary(tokens, specials, [specials["<|end|>"]])


class Speaker:
    """Says random things under a format; the same seed says the same things."""

    def __init__(self, vocabulary: Vocabulary, seed: int = 0) -> None:
        self.vocabulary = vocabulary
        self._random = np.random.default_rng(seed)
        self._mask = np.zeros((vocabulary.size + 31) // 32, dtype=np.int32)
        self._classes = _classify(vocabulary)

    def speak(self, grammar: CompiledGrammar, max_tokens: int = 400, soft_limit: int = 60) -> Utterance:
        """One whole utterance."""
        matcher = grammar.matcher()
        ids = tuple(self._stream(grammar, matcher, max_tokens, soft_limit))
        data = b"".join(self.vocabulary.tokens[i] for i in ids if self._classes[i] != _STOP)
        return Utterance(ids, data, matcher.is_finished)

    def stream(self, grammar: CompiledGrammar, max_tokens: int = 400, soft_limit: int = 60) -> Iterator[int]:
        """The tokens of an utterance one by one, the stop token included."""
        return self._stream(grammar, grammar.matcher(), max_tokens, soft_limit)

    def _stream(self, grammar: CompiledGrammar, matcher: Matcher, max_tokens: int, soft_limit: int) -> Iterator[int]:
        exits = _exits(grammar)
        script = b""  # the rest of an exit that is being spelled out
        for step in range(max_tokens):
            allowed = self._allowed(matcher)
            if not len(allowed):
                return
            closing = step >= soft_limit
            if not script and (closing or self._random.random() < _LEAVE):
                script = self._choose_exit(matcher, exits)
            token = self._draw(allowed, closing, script)
            script = script.removeprefix(self.vocabulary.tokens[token]) if script else b""
            if not matcher.accept(token):
                raise AssertionError(f"the mask allowed token {token}, which the matcher refuses")
            yield token
            if matcher.is_finished:
                return

    def _allowed(self, matcher: Matcher) -> NDArray[np.intp]:
        matcher.fill_mask(self._mask)
        bits = np.unpackbits(self._mask.view(np.uint8), bitorder="little", count=self.vocabulary.size)
        return np.flatnonzero(bits)

    def _choose_exit(self, matcher: Matcher, exits: list[bytes]) -> bytes:
        """An exit that can be spelled here, half of the time: inside a JSON string it would lead nowhere."""
        if not exits or self._random.random() < 0.5:
            return b""
        open_now = [text for text in exits if matcher.fork().accept_bytes(text)]
        return open_now[self._random.integers(len(open_now))] if open_now else b""

    def _draw(self, allowed: NDArray[np.intp], closing: bool, script: bytes) -> int:
        classes = self._classes[allowed]
        stops, specials = allowed[classes == _STOP], allowed[classes == _SPECIAL]
        if len(stops) and (closing or len(stops) == len(allowed) or self._random.random() < _LEAVE):
            return int(self._random.choice(stops))
        if script:
            spelling = [i for i in allowed if (data := self.vocabulary.tokens[i]) and script.startswith(data)]
            if spelling:
                return int(max(spelling, key=lambda i: len(self.vocabulary.tokens[i])))
        leave = 0.5 if closing else _LEAVE
        if len(specials) and (len(specials) + len(stops) == len(allowed) or self._random.random() < leave):
            return int(self._random.choice(specials))
        weights = (_CLOSING if closing else _TALKING)[classes]
        return int(self._random.choice(allowed, p=weights / weights.sum()))


def _classify(vocabulary: Vocabulary) -> NDArray[np.int8]:
    classes = np.array([_class_of(data) for data in vocabulary.tokens], dtype=np.int8)
    classes[list(vocabulary.special_tokens.values())] = _SPECIAL
    classes[list(vocabulary.stop_token_ids)] = _STOP
    return classes


def _class_of(data: bytes) -> int:
    if data and not data.strip():
        return _BLANK
    if data and not data.strip(b'"}])>'):
        return _CLOSER
    if len(data) > 1 and data.isascii() and data.strip().isalpha():
        return _WORD
    return _PRINTABLE if data.isascii() and data.decode().isprintable() else _ODD


def _exits(grammar: CompiledGrammar) -> list[bytes]:
    """The strings at which some free text of the grammar ends."""
    found: dict[bytes, None] = {}
    for rule in ir.reachable(grammar.rule):
        for node in ir.walk(rule.body):
            if isinstance(node, ir.Text):
                found.update((text, None) for text, _ in node.stops)
    return list(found)
