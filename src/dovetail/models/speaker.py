"""The embedded speaker: a model without weights that says anything its format allows.

It draws each token at random under the mask, so what it says is as varied as the format permits, and every step of it
exercises the real engine. Plain words are drawn more often than odd bytes. After a soft limit it looks for the way out:
it stops where it may, closes what it can close, and spells the strings that end free text.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.engine import Matcher, Vocabulary, compile
from dovetail.engine.compiled import Source
from dovetail.engine.loaders import Loaded
from dovetail.formats import load_format
from dovetail.grammar import ir
from dovetail.grammar.lower import lower

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


def embedded_tokens() -> Loaded:
    """The speaker's own tokens: the 256 bytes, some words, pieces of JSON, and a few special tokens."""
    words = [form for word in _WORDS for form in (word, " " + word)]
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [text.encode() for text in dict.fromkeys([*words, *_FRAGMENTS]) if len(text) > 1]
    specials = {text: len(tokens) + i for i, text in enumerate(_SPECIALS)}
    tokens += [text.encode() for text in _SPECIALS]
    return Loaded(tokens, specials, [specials["<|end|>"]])


class Speaker:
    """Says random things under a format; the same seed says the same things.

    It has a tokenizer of its own, unless it is given what a loader reads from a real one.
    """

    def __init__(self, seed: int = 0, tokenizer: Loaded | None = None) -> None:
        self.tokens, special_tokens, stop_token_ids = tokenizer or embedded_tokens()
        self.vocabulary = Vocabulary(self.tokens, special_tokens, stop_token_ids)
        self._random = np.random.default_rng(seed)
        self._mask = np.zeros(self.vocabulary.mask_words, dtype=np.int32)
        self._classes = _classify(self.tokens, self.vocabulary)

    def speak(self, source: Source, max_tokens: int = 400, soft_limit: int = 60) -> Utterance:
        """One whole utterance."""
        matcher = compile(source, self.vocabulary).matcher()
        ids = tuple(self._stream(source, matcher, max_tokens, soft_limit))
        data = b"".join(self.tokens[i] for i in ids if self._classes[i] != _STOP)
        return Utterance(ids, data, matcher.is_finished)

    def stream(self, source: Source, max_tokens: int = 400, soft_limit: int = 60) -> Iterator[int]:
        """The tokens of an utterance one by one, the stop token included."""
        return self._stream(source, compile(source, self.vocabulary).matcher(), max_tokens, soft_limit)

    def _stream(self, source: Source, matcher: Matcher, max_tokens: int, soft_limit: int) -> Iterator[int]:
        exits = _exits(source)
        script = b""  # the rest of an exit that is being spelled out
        for step in range(max_tokens):
            allowed = self._allowed(matcher)
            if not len(allowed):
                return
            closing = step >= soft_limit
            if not script and (closing or self._random.random() < _LEAVE):
                script = self._choose_exit(matcher, exits)
            token = self._draw(allowed, closing, script)
            script = script.removeprefix(self.tokens[token]) if script.startswith(self.tokens[token]) else b""
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
            spelling = [i for i in allowed if (data := self.tokens[i]) and script.startswith(data)]
            if spelling:
                return int(max(spelling, key=lambda i: len(self.tokens[i])))
        leave = 0.5 if closing else _LEAVE
        if len(specials) and (len(specials) + len(stops) == len(allowed) or self._random.random() < leave):
            return int(self._random.choice(specials))
        weights = (_CLOSING if closing else _TALKING)[classes]
        return int(self._random.choice(allowed, p=weights / weights.sum()))


def _classify(tokens: list[bytes], vocabulary: Vocabulary) -> NDArray[np.int8]:
    classes = np.array([_class_of(data) for data in tokens], dtype=np.int8)
    classes[list(vocabulary.special_tokens.values())] = _SPECIAL
    classes[list(vocabulary.stop_token_ids)] = _STOP
    return classes


def _class_of(data: bytes) -> int:
    # Escapes and carriage returns are allowed in many places where hardly anybody writes them.
    if data in (b"\\", b"\r", b"\t", b"\f", b"\v"):
        return _ODD
    if data and not data.strip():
        return _BLANK
    if data and not data.strip(b'"}])>'):
        return _CLOSER
    if len(data) > 1 and data.isascii() and data.strip().isalpha():
        return _WORD
    return _PRINTABLE if data.isascii() and data.decode().isprintable() else _ODD


def _exits(source: Source) -> list[bytes]:
    """The strings at which some free text of the grammar ends."""
    if isinstance(source, ir.Rule):
        root, ends = source, []
    else:
        format = load_format(source)
        # Where what ends a text overlaps with what it excludes, its rule has no stops of its own.
        root, ends = lower(format), list(_ends(format.model_dump(mode="json")))
    texts = [node for rule in ir.reachable(root) for node in ir.walk(rule.body) if isinstance(node, ir.Text)]
    return list(dict.fromkeys([*(text for node in texts for text, _ in node.stops), *ends]))


def _ends(format: Any) -> Iterator[bytes]:
    """The ends of tags that hold free text, wherever they are in a format."""
    if isinstance(format, dict):
        content = format.get("content")
        while isinstance(content, dict) and content.get("type") == "capture":
            content = content.get("content")
        if format.get("type") == "tag" and isinstance(content, dict) and content.get("type") == "any_text":
            ends = format["end"] if isinstance(format["end"], list) else [format["end"]]
            yield from (end.encode() for end in ends if end and isinstance(end, str))
        for part in format.values():
            yield from _ends(part)
    elif isinstance(format, list):
        for part in format:
            yield from _ends(part)
