"""The embedded speaker: a model without weights that says anything its format allows.

It draws each token at random under the mask, so what it says is as varied as the format permits, and every step of it
exercises the real engine. A letter model makes words likelier than noise. After a soft limit it looks for the way out:
it stops where it may, closes what it can close, and spells the strings that end free text. An utterance is thought
through before its first token is said, so one that does not come to an end is dropped for another, and at last for the
shortest that the grammar has.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dovetail import dialects
from dovetail.dialects import Dialect
from dovetail.engine import CompiledGrammar, Matcher, Vocabulary
from dovetail.engine.compiled import Source
from dovetail.engine.loaders import Loaded
from dovetail.formats import load_format
from dovetail.grammar import ir
from dovetail.grammar.lower import lower
from dovetail.models.chat import render_plainly, settled
from dovetail.models.letters import Letters
from dovetail.models.model import DEFAULT_SAMPLING, Constraint, Finish, Prompt, Sampling, Step, matcher_of
from dovetail.models.shortest import shortest
from dovetail.models.stops import StopTexts

_STOP, _SPECIAL, _WORD, _PRINTABLE, _CLOSER, _BLANK, _ODD = range(7)

# How often each class of token is drawn, before and after the soft limit, in the order of the names above.
_TALKING = np.array([0.0, 0.0, 4.0, 1.0, 1.0, 0.2, 0.005])
_CLOSING = np.array([0.0, 0.0, 1.0, 1.0, 1000.0, 0.01, 0.0001])

# While talking, a way out of free text is taken this often at each step.
_LEAVE = 0.1
_MANY_LETTERS = 20  # where so many may come next, somebody is writing text
_SOFT_LIMIT = 60
_ATTEMPTS = 3
_LONGEST_PLAN = 2000  # tokens; a plan that is longer is dropped unless every plan is

_FREE = {"type": "any_text"}
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
_SPECIALS = ("<|end|>", "<|start|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<|call|>", "<|return|>")


@dataclass(frozen=True, slots=True)
class Utterance:
    """What a speaker said; complete unless the hard limit cut it off."""

    token_ids: tuple[int, ...]
    data: bytes
    complete: bool


def embedded_tokens(special_tokens: Sequence[str] = _SPECIALS) -> Loaded:
    """The speaker's own tokens: the 256 bytes, some words, pieces of JSON, and special tokens; the first one stops."""
    words = [form for word in _WORDS for form in (word, " " + word)]
    tokens = [bytes([byte]) for byte in range(256)]
    tokens += [text.encode() for text in dict.fromkeys([*words, *_FRAGMENTS]) if len(text) > 1]
    specials = {text: len(tokens) + i for i, text in enumerate(dict.fromkeys(special_tokens))}
    tokens += [text.encode() for text in specials]
    return Loaded(tokens, specials, [specials[special_tokens[0]]])


class Speaker:
    """Says random things under a format; the same seed says the same things.

    It has a tokenizer of its own, with the special tokens of its dialect where one is named, unless it is given what a
    loader reads from a real one. `pace_s` is the time that it takes for each token, as a real model would.
    """

    name = "speaker"

    def __init__(
        self,
        seed: int = 0,
        tokenizer: Loaded | None = None,
        *,
        dialect: Dialect | str | None = None,
        pace_s: float = 0.0,
    ) -> None:
        self.dialect = settled(dialect if isinstance(dialect, Dialect) else dialects.get(dialect or "hermes"))
        if tokenizer is None and dialect is not None:
            tokenizer = embedded_tokens((self.dialect.turn.end or "<|end|>", *self.dialect.special_tokens))
        self.tokens, special_tokens, stop_token_ids = tokenizer or embedded_tokens()
        self.vocabulary = Vocabulary(self.tokens, special_tokens, stop_token_ids)
        self._random = np.random.default_rng(seed)
        self._classes = _classify(self.tokens, self.vocabulary)
        self._kinds = tuple(
            np.array([_is(token) for token in self.tokens]) for _is in (_is_letter, _is_quote, _is_line)
        )
        self._letters = Letters(self.tokens)
        self._pace_s = pace_s

    def speak(self, source: Source, max_tokens: int = 400, soft_limit: int = _SOFT_LIMIT) -> Utterance:
        """One whole utterance."""
        plan = self._plan(source, max_tokens, soft_limit)
        ids = tuple(step.token for step in plan.steps)
        return Utterance(ids, b"".join(step.data for step in plan.steps), plan.finish == "stop")

    def stream(self, source: Source, max_tokens: int = 400, soft_limit: int = _SOFT_LIMIT) -> Iterator[int]:
        """The tokens of an utterance one by one, the stop token included."""
        return (step.token for step in self._plan(source, max_tokens, soft_limit).steps)

    def encode(self, text: str) -> list[int]:
        """The longest tokens from left to right, special ones included."""
        data, at, ids = text.encode("utf-8", "replace"), 0, []
        by_bytes = {token: index for index, token in enumerate(self.tokens) if token}
        longest = max(map(len, by_bytes), default=1)
        while at < len(data):
            size = next((n for n in range(longest, 0, -1) if data[at : at + n] in by_bytes), 0)
            if size:
                ids.append(by_bytes[data[at : at + size]])
            at += size or 1
        return ids

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        reasoning: bool = True,
        continue_final: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> Prompt:
        """The chat with the turn markers of the dialect."""
        return render_plainly(self.dialect, messages, tools, reasoning=reasoning, continue_final=continue_final)

    async def generate(
        self,
        prompt: str | Sequence[int],
        constraint: Constraint | None = None,
        sampling: Sampling = DEFAULT_SAMPLING,
        *,
        prefix: str | bytes = "",
    ) -> AsyncGenerator[Step, None]:
        """The steps of an utterance; the prompt changes nothing.

        The same seed says the same, and temperature 0 is a seed: there is no likeliest thing to say.
        """
        limit = sampling.max_tokens or _LONGEST_PLAN
        seed = 0 if sampling.temperature == 0 and sampling.seed is None else sampling.seed
        random = np.random.default_rng(int(self._random.integers(1 << 62)) if seed is None else abs(seed))
        soft_limit = min(_SOFT_LIMIT, (limit + 1) // 2)
        talk = _Talk(self, _FREE if constraint is None else constraint, random, prefix)
        plan = await asyncio.to_thread(talk.plan, limit, soft_limit, sampling.logprobs)
        stops = StopTexts(sampling.stop)
        for index, step in enumerate(plan.steps):
            await asyncio.sleep(self._pace_s)
            last = index == len(plan.steps) - 1
            data = stops.feed(step.data)
            if stops.found is not None:
                yield step._replace(data=data, finish="stop", stopped_by=stops.found)
                return
            yield step._replace(data=data + stops.flush(), finish=plan.finish) if last else step._replace(data=data)

    def close(self) -> None:
        """There is nothing to let go of."""

    def _plan(self, source: Source, max_tokens: int, soft_limit: int) -> _Plan:
        return _Talk(self, source, self._random).plan(max_tokens, soft_limit)


@dataclass(frozen=True, slots=True)
class _Plan:
    steps: list[Step]
    finish: Finish


class _Talk:
    """One utterance in the making."""

    def __init__(
        self, speaker: Speaker, constraint: Constraint, random: np.random.Generator, prefix: str | bytes = b""
    ) -> None:
        self._tokens, self._classes, self._letters = speaker.tokens, speaker._classes, speaker._letters
        self._is_letter, self._is_quote, self._is_line = speaker._kinds
        self._vocabulary = speaker.vocabulary
        self._random = random
        self._start = matcher_of(constraint, speaker.vocabulary, prefix)
        self._root = None if isinstance(constraint, CompiledGrammar | Matcher) else _root(constraint)
        self._exits = _exits(self._root) if self._root else _marks(speaker.dialect)
        self._prefix = prefix.encode() if isinstance(prefix, str) else prefix
        self._mask = np.zeros(speaker.vocabulary.mask_words, dtype=np.int32)

    def plan(self, limit: int, soft_limit: int, logprobs: int | None = None) -> _Plan:
        """An utterance that ends, or one that the limit cuts off where none was found that ends before."""
        far = max(limit, _LONGEST_PLAN) if limit < _LONGEST_PLAN else limit
        first: list[Step] | None = None
        for attempt in range(_ATTEMPTS):
            matcher = self._start.fork()
            steps = list(self._draw_all(matcher, soft_limit if attempt == 0 else 0, far, logprobs))
            if self._is_over(matcher, steps):
                return _cut(steps, limit)
            first = first or steps
        if self._root is not None and not self._prefix:
            spelled = self._spell_shortest()
            if spelled is not None:
                return _cut(spelled, limit)
        return _Plan((first or [])[:limit], "length")

    def _draw_all(self, matcher: Matcher, soft_limit: int, limit: int, logprobs: int | None) -> Iterator[Step]:
        script = b""  # the rest of an exit that is being spelled out
        said = self._prefix[-2:]
        for index in range(limit):
            allowed = self._allowed(matcher)
            if not len(allowed):
                return
            closing = index >= soft_limit
            if not script and (closing or self._random.random() < _LEAVE):
                script = self._choose_exit(matcher)
            chances = self._chances(allowed, closing, script, said, index == 0)
            token = int(self._random.choice(allowed, p=chances))
            script = script.removeprefix(self._tokens[token]) if script.startswith(self._tokens[token]) else b""
            step = self._accept(matcher, token)
            said = (said + step.data)[-2:]
            yield step if logprobs is None else _with_logprobs(step, allowed, chances, logprobs)
            if self._is_over(matcher, [step]):
                return

    def _accept(self, matcher: Matcher, token: int) -> Step:
        before = matcher.position
        if not matcher.accept(token):
            raise AssertionError(f"the mask allowed token {token}, which the matcher refuses")
        # A stop token that ends the output is not part of it, unless the format spells it out.
        return Step(token, self._tokens[token] if matcher.position > before else b"")

    def _is_over(self, matcher: Matcher, steps: list[Step]) -> bool:
        if matcher.is_finished or not steps:
            return matcher.is_finished
        return matcher.is_complete and steps[-1].token in self._vocabulary.stop_token_ids

    def _allowed(self, matcher: Matcher) -> NDArray[np.intp]:
        matcher.fill_mask(self._mask)
        bits = np.unpackbits(self._mask.view(np.uint8), bitorder="little", count=self._vocabulary.size)
        return np.flatnonzero(bits)

    def _choose_exit(self, matcher: Matcher) -> bytes:
        """An exit that can be spelled here, half of the time: inside a JSON string it would lead nowhere."""
        if not self._exits or self._random.random() < 0.5:
            return b""
        open_now = [text for text in self._exits if matcher.fork().accept_bytes(text)]
        return open_now[self._random.integers(len(open_now))] if open_now else b""

    def _chances(
        self, allowed: NDArray[np.intp], closing: bool, script: bytes, said: bytes, first: bool
    ) -> NDArray[np.float64]:
        """How likely each allowed token is to be said next."""
        classes = self._classes[allowed]
        chances = np.zeros(len(allowed))
        stops, specials = classes == _STOP, classes == _SPECIAL
        others = ~(stops | specials)
        left = 1.0
        if stops.any():
            share = 1.0 if closing or stops.all() else 0.0 if first else _LEAVE
            chances[stops] = share / stops.sum()
            left -= share
        spelling = _spelling(script, allowed, self._tokens) if script and left else None
        if spelling is not None:
            chances[spelling] += left
            return chances
        if specials.any():
            share = 1.0 if not others.any() else 0.5 if closing else _LEAVE
            chances[specials] = left * share / specials.sum()
            left *= 1 - share
        if left and others.any():
            chances[others] = left * self._weights(allowed[others], closing, said)
        return np.asarray(chances / chances.sum(), dtype=np.float64)

    def _weights(self, allowed: NDArray[np.intp], closing: bool, said: bytes) -> NDArray[np.float64]:
        """How likely each ordinary token is: by its letters in a text, and by its class where there is a structure."""
        classes = self._classes[allowed]
        if np.count_nonzero(self._is_letter[allowed]) < _MANY_LETTERS:
            weights = (_CLOSING if closing else _TALKING)[classes]
            return np.asarray(weights / weights.sum(), dtype=np.float64)
        weights = self._letters.weights(said, allowed)
        weights /= weights.sum()
        quotes = self._is_quote[allowed]
        if quotes.any() and not self._is_line[allowed].any():  # a string in quotes, as it cannot go over lines
            share = 0.95 if closing else _LEAVE
            weights = np.where(quotes, share / quotes.sum(), weights * (1 - share))
        elif closing:
            weights *= _CLOSING[classes]
        return np.asarray(weights / weights.sum(), dtype=np.float64)

    def _spell_shortest(self) -> list[Step] | None:
        """The shortest output of the grammar in tokens; None where the matcher does not agree."""
        assert self._root is not None
        matcher, steps = self._start.fork(), list[Step]()
        for piece in shortest(self._root):
            data = piece if isinstance(piece, bytes) else b""
            while data or not isinstance(piece, bytes):
                allowed = self._allowed(matcher)
                spelling = _spelling(data, allowed, self._tokens) if data else self._one_of(piece, allowed)
                if spelling is None:
                    return None
                steps.append(self._accept(matcher, int(allowed[spelling])))
                data = data.removeprefix(self._tokens[steps[-1].token])
                if not isinstance(piece, bytes):
                    break
        if not self._is_over(matcher, steps):
            stops = [token for token in self._allowed(matcher) if self._classes[token] == _STOP]
            if not stops:
                return None
            steps.append(self._accept(matcher, int(stops[0])))
        return steps

    def _one_of(self, tokens: ir.Tokens | bytes, allowed: NDArray[np.intp]) -> int | None:
        """The place of a token that is one of these, or none of them where they are excluded."""
        assert isinstance(tokens, ir.Tokens)
        ids = {self._vocabulary.token_id(t) if isinstance(t, str) else t for t in tokens.tokens}
        return next((i for i, token in enumerate(allowed) if (int(token) in ids) != tokens.exclude), None)


def _cut(steps: list[Step], limit: int) -> _Plan:
    return _Plan(steps, "stop") if len(steps) <= limit else _Plan(steps[:limit], "length")


def _with_logprobs(step: Step, allowed: NDArray[np.intp], chances: NDArray[np.float64], count: int) -> Step:
    order = np.argsort(-chances, kind="stable")[:count]
    with np.errstate(divide="ignore"):
        logs = np.log(chances)
    own = float(logs[np.searchsorted(allowed, step.token)])
    top = tuple((int(allowed[i]), float(logs[i])) for i in order if chances[i] > 0)
    return step._replace(logprob=own, top=top)


def _spelling(script: bytes, allowed: NDArray[np.intp], tokens: Sequence[bytes]) -> int | None:
    """The place of the longest allowed token that goes on with the script."""
    places = [i for i, token in enumerate(allowed) if (data := tokens[token]) and script.startswith(data)]
    return max(places, key=lambda i: len(tokens[int(allowed[i])])) if places else None


def _is_letter(token: bytes) -> bool:
    return len(token) == 1 and token.islower()


def _is_quote(token: bytes) -> bool:
    return token.startswith(b'"')


def _is_line(token: bytes) -> bool:
    return token.startswith(b"\n")


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


def _root(source: Source) -> ir.Rule:
    return source if isinstance(source, ir.Rule) else lower(load_format(source))


def _exits(root: ir.Rule) -> list[bytes]:
    """The strings at which some free text of the grammar ends."""
    texts = [node for rule in ir.reachable(root) for node in ir.walk(rule.body) if isinstance(node, ir.Text)]
    return list(dict.fromkeys(text for node in texts for text, _ in node.stops))


def _marks(dialect: Dialect) -> list[bytes]:
    """Where the free text of a dialect may end, for grammars that came compiled."""
    reasoning = [dialect.reasoning.end] if dialect.reasoning else []
    marks = [*reasoning, *(way.opens_with for way in dialect.calls), *dialect.content.ends]
    return [mark.encode() for mark in marks if mark]
