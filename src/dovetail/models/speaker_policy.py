"""What the speaker would say next, and how it finds the end of an output.

While talking it draws words by a letter model and structure by classes of tokens. When it is time to end it stops where
it may, closes what it can close, and spells the strings that end free text. Other models borrow the second half when
they have talked for long enough.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail.dialects import Dialect
from dovetail.engine import CompiledGrammar, Matcher, Vocabulary
from dovetail.engine.compiled import Source
from dovetail.formats import load_format
from dovetail.grammar import ir
from dovetail.grammar.lower import lower
from dovetail.models.letter_model import Letters
from dovetail.models.model import Constraint

_STOP, _SPECIAL, _WORD, _PRINTABLE, _CLOSER, _BLANK, _ODD = range(7)

# How often each class of token is drawn, while talking and while closing, in the order of the names above.
_TALKING = np.array([0.0, 0.0, 4.0, 1.0, 1.0, 0.2, 0.005])
_CLOSING = np.array([0.0, 0.0, 1.0, 1.0, 1000.0, 0.01, 0.0001])

# While talking, a way out of free text is taken this often at each step.
_LEAVE = 0.1
_MANY_LETTERS = 20  # where so many may come next, somebody is writing text
_SELDOM = 0.02  # an exponent behind a number, which soon makes it too large for most readers
_MANY_DIGITS = 6  # a number that is longer means nothing to people, and is no longer exact to machines
_BLANKS = 4  # tokens of white space that are looked behind
_PATIENCE = 6  # steps in one place while closing, as in the user of an address, before it is led on

Ids = NDArray[np.intp]
Chances = NDArray[np.float64]


class Voice:
    """What there is to know about the tokens of a vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.vocabulary = vocabulary
        self.tokens = [vocabulary.token_bytes(token) for token in range(vocabulary.size)]
        self.classes = np.array([_class_of(data) for data in self.tokens], dtype=np.int8)
        self.classes[list(vocabulary.special_tokens.values())] = _SPECIAL
        self.classes[list(vocabulary.stop_token_ids)] = _STOP
        self.is_letter = np.array([len(data) == 1 and data.islower() for data in self.tokens])
        self.is_quote = np.array([data.startswith(b'"') for data in self.tokens])
        self.is_line = np.array([data.startswith(b"\n") for data in self.tokens])
        self.closes = np.array([data[:1] in (b"}", b"]", b")", b">") for data in self.tokens])
        self.opens = np.array([data.lstrip()[:1] in (b"{", b"[", b"(") for data in self.tokens])
        self.is_spaced = np.array([data[:1].isspace() for data in self.tokens])
        self.lengths = np.array([len(data) for data in self.tokens])
        self.heads = np.array([data[0] if data else -1 for data in self.tokens], dtype=np.int16)
        self.is_exponent = np.array([data in (b"e", b"E") for data in self.tokens])
        self.by_bytes = {data: token for token, data in enumerate(self.tokens) if data}

    @functools.cached_property
    def letters(self) -> Letters:
        """The letter model, which only those need who talk."""
        return Letters(self.tokens)

    def allowed(self, matcher: Matcher) -> Ids:
        """The tokens that may come next."""
        mask = np.zeros(self.vocabulary.mask_words, dtype=np.int32)
        matcher.fill_mask(mask)
        bits = np.unpackbits(mask.view(np.uint8), bitorder="little", count=self.vocabulary.size)
        return np.flatnonzero(bits)

    def stops(self, allowed: Ids) -> Ids:
        """Those that end the output."""
        stops: Ids = allowed[self.classes[allowed] == _STOP]
        return stops

    def spelling(self, text: bytes, allowed: Ids) -> int | None:
        """The place of the longest allowed token with which `text` begins."""
        for end in range(len(text), 0, -1):
            token = self.by_bytes.get(text[:end])
            if token is not None:
                place = int(np.searchsorted(allowed, token))
                if place < len(allowed) and allowed[place] == token:
                    return place
        return None


class Talker:
    """One output in the making: it tells how likely each token is, and remembers what it was about to say."""

    def __init__(self, voice: Voice, exits: Sequence[bytes], random: np.random.Generator, written: bytes = b"") -> None:
        self._voice = voice
        self._exits = exits
        self._random = random
        self._written = written[-2:]
        self._script = b""  # the rest of an exit that is being spelled out
        self._first = True
        self._digits = 0  # of the number that is being written
        self._been: Counter[int] = Counter()  # places met while closing, known by what they allow

    def chances(self, matcher: Matcher, allowed: Ids, closing: bool) -> Chances:
        """How likely each allowed token is to be said next."""
        closing = closing or self._digits >= _MANY_DIGITS
        if not self._script and (closing or self._random.random() < _LEAVE):
            self._script = self._choose_exit(matcher)
        return self._chances(allowed, closing)

    def _chances(self, allowed: Ids, closing: bool) -> Chances:
        classes = self._voice.classes[allowed]
        stops, specials = classes == _STOP, classes == _SPECIAL
        others = ~(stops | specials)
        chances, left = np.zeros(len(allowed)), 1.0
        if stops.any():
            share = 1.0 if closing or stops.all() else 0.0 if self._first else _LEAVE
            chances[stops] = share / stops.sum()
            left -= share
        spelling = self._voice.spelling(self._script, allowed) if left else None
        if spelling is not None:
            chances[spelling] += left
            return chances
        if specials.any():
            share = 1.0 if not others.any() else 0.5 if closing else _LEAVE
            chances[specials] = left * share / specials.sum()
            left *= 1 - share
        if left and others.any():
            chances[others] = left * self._weights(allowed[others], closing)
        return np.asarray(chances / chances.sum(), dtype=np.float64)

    def ways_out(self, matcher: Matcher, allowed: Ids, room: int) -> Ids:
        """The tokens that lead to the end about equally fast, among which a model may choose; `room` are left."""
        # Where there is no choice, a model that was led here would spell "children" in six tokens.
        if (place := self._voice.spelling(matcher.forced(), allowed)) is not None:
            return allowed[place : place + 1]
        self._script = self._script or self._narrowest_exit(matcher, len(allowed))
        chances = self._chances(allowed, closing=True)
        left: Ids = allowed[chances >= chances.max() / 10]
        # To close a bracket is shorter than another member, and to open one is longer than null. Tokens that begin with
        # a space are left out, too: a model that was led off its usual tokens would write them at odd places.
        for wanted in (self._voice.closes, ~self._voice.opens, ~self._voice.is_spaced):
            if wanted[left].any():
                left = left[wanted[left]]
        brackets = left[self._voice.classes[left] == _CLOSER]
        if len(brackets):
            left = brackets[self._voice.lengths[brackets] == self._voice.lengths[brackets].max()]
        elif (blank := self._led_to_bracket(matcher, allowed)) is not None:
            return blank
        return self._leaving(matcher, allowed, left, min(_PATIENCE, room // 4))

    def _led_to_bracket(self, matcher: Matcher, allowed: Ids) -> Ids | None:
        """White space behind which a bracket must close, as some families write the end of a list of calls."""
        blanks = allowed[self._voice.classes[allowed] == _BLANK]
        for place in np.argsort(self._voice.lengths[blanks], kind="stable")[:_BLANKS]:
            ahead = matcher.fork()
            ahead.accept(int(blanks[place]))
            if ahead.forced().lstrip()[:1] in (b"}", b"]", b")"):
                blank: Ids = blanks[place : place + 1]
                return blank
        return None

    def _leaving(self, matcher: Matcher, allowed: Ids, left: Ids, patience: int) -> Ids:
        """Those of the tokens that lead on from a place that was met too often: no bracket ends [a-z.]+@[a-z]+."""
        here = _place(allowed)
        self._been[here] += 1
        if self._been[here] <= max(1, patience) or (self._voice.closes | self._voice.is_quote)[left].all():
            return left
        heads, times = self._voice.heads[allowed], {}
        for head in np.unique(heads[heads >= 0]).tolist():
            ahead = matcher.fork()
            if ahead.accept_bytes(bytes([head])):
                times[head] = self._been[_place(self._voice.allowed(ahead))]
        fewest = min(times.values(), default=self._been[here])
        new: Ids = allowed[np.isin(heads, [head for head, count in times.items() if count == fewest])]
        return new if len(new) and fewest < self._been[here] else left

    def way_length(self, matcher: Matcher, most: int) -> int:
        """About how many tokens lead to the end from here, as far as `most`."""
        ahead, walker = matcher.fork(), Talker(self._voice, self._exits, np.random.default_rng(0), self._written)
        for made in range(most):
            allowed = self._voice.allowed(ahead)
            if not len(allowed):
                return made
            left = walker.ways_out(ahead, allowed, 0)
            token = int(left[self._voice.lengths[left].argmax()])  # a model cuts its words like the tokenizer
            ahead.accept(token)
            if ahead.is_finished or token in self._voice.vocabulary.stop_token_ids:
                return made + 1
            walker.say(token, self._voice.tokens[token])
        return most

    def say(self, token: int, data: bytes) -> None:
        """Take note of a token that was said."""
        spelled = self._voice.tokens[token]
        self._script = self._script[len(spelled) :] if self._script.startswith(spelled) else b""
        self._written = (self._written + data)[-2:]
        self._digits = self._digits + len(data) if data.isdigit() else 0
        self._first = False

    def _choose_exit(self, matcher: Matcher) -> bytes:
        """An exit that can be spelled here, half of the time: inside a JSON string it would lead nowhere."""
        if not self._exits or self._random.random() < 0.5:
            return b""
        open_now = [text for text in self._exits if matcher.fork().accept_bytes(text)]
        return open_now[self._random.integers(len(open_now))] if open_now else b""

    def _narrowest_exit(self, matcher: Matcher, allowed: int) -> bytes:
        """The exit behind which the output may end, or else fewest tokens are allowed, at most half as many as here."""
        narrowest, fewest = b"", allowed // 2
        for text in self._exits:
            ahead = matcher.fork()
            if not ahead.accept_bytes(text):
                continue
            if ahead.is_complete and not matcher.is_complete:
                return text
            if (count := len(self._voice.allowed(ahead))) < fewest:
                narrowest, fewest = text, count
        return narrowest

    def _weights(self, allowed: Ids, closing: bool) -> Chances:
        """How likely each ordinary token is: by its letters in a text, and by its class where there is a structure."""
        voice = self._voice
        classes = voice.classes[allowed]
        weights: Chances = (_CLOSING if closing else _TALKING)[classes]
        if np.count_nonzero(voice.is_letter[allowed]) >= _MANY_LETTERS:
            quotes = voice.is_quote[allowed]
            talk = np.ones(len(allowed)) if closing else voice.letters.weights(self._written, allowed)
            if quotes.any() and not voice.is_line[allowed].any():  # a string in quotes, as it cannot go over lines
                share = 0.95 if closing else _LEAVE
                weights = np.where(quotes, share / quotes.sum(), talk / talk.sum() * (1 - share))
            else:
                weights = talk * weights if closing else talk
        elif self._digits:
            weights = np.where(voice.is_exponent[allowed], _SELDOM * weights, weights)
        return np.asarray(weights / weights.sum(), dtype=np.float64)


def exits_of(constraint: Constraint, dialect: Dialect) -> list[bytes]:
    """The strings at which some free text of a grammar ends; for one that came compiled, those of the dialect."""
    if isinstance(constraint, CompiledGrammar | Matcher):
        reasoning = [dialect.reasoning.end] if dialect.reasoning else []
        marks = [*reasoning, *(way.opens_with for way in dialect.calls), *dialect.content.ends]
        return [mark.encode() for mark in marks if mark]
    rules = ir.reachable(root_of(constraint))
    texts = [node for rule in rules for node in ir.walk(rule.body) if isinstance(node, ir.Text)]
    # Where what ends a text overlaps with what it excludes, its rule has no stops of its own.
    ends = [] if isinstance(constraint, ir.Rule) else _tag_ends(load_format(constraint).model_dump(mode="json"))
    return list(dict.fromkeys([*(text for node in texts for text, _ in node.stops), *ends]))


def _tag_ends(format: Any) -> Iterator[bytes]:
    """The ends of tags, wherever they are in a format."""
    if isinstance(format, dict):
        ends = format.get("end") if format.get("type") == "tag" else None
        for end in ends if isinstance(ends, list) else [ends]:
            if end and isinstance(end, str):
                yield end.encode()
    parts = format.values() if isinstance(format, dict) else format if isinstance(format, list) else ()
    for part in parts:
        yield from _tag_ends(part)


def root_of(source: Source) -> ir.Rule:
    """The grammar of a format."""
    return source if isinstance(source, ir.Rule) else lower(load_format(source))


def _place(allowed: Ids) -> int:
    """What tells one place in a grammar from another, as far as the next token goes."""
    return hash(allowed.tobytes())


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
