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

from dovetail import dialects
from dovetail.dialects import Dialect
from dovetail.engine import CompiledGrammar, Matcher, Vocabulary
from dovetail.engine.compiled import Source
from dovetail.engine.loaders import Loaded
from dovetail.grammar import ir
from dovetail.models.chat import render_plainly, settled
from dovetail.models.model import DEFAULT_SAMPLING, Constraint, Finish, Prompt, Sampling, Step, matcher_of
from dovetail.models.shortest import shortest
from dovetail.models.speaker_policy import Chances, Ids, Talker, Voice, exits_of, root_of
from dovetail.models.stops import StopStrings

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
    tools_in_prompt = False
    shows_reasoning = True

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
        self._voice = Voice(self.vocabulary)
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
        data, ids, everything = text.encode("utf-8", "replace"), list[int](), np.arange(len(self.tokens))
        longest = max(map(len, self.tokens), default=1)
        at = 0
        while at < len(data):
            token = self._voice.spelling(data[at : at + longest], everything)
            ids += [] if token is None else [token]
            at += 1 if token is None else len(self.tokens[token])
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
        soft_limit = min(_SOFT_LIMIT, sampling.soft_limit or _SOFT_LIMIT, (limit + 1) // 2)
        planner = _Planner(self, _FREE if constraint is None else constraint, random, prefix)
        plan = await asyncio.to_thread(planner.plan, limit, soft_limit, sampling.logprobs)
        stops = StopStrings(sampling.stop)
        for index, step in enumerate(plan.steps):
            await asyncio.sleep(self._pace_s)
            last = index == len(plan.steps) - 1
            data = stops.feed(step.data)
            if stops.matched is not None:
                yield step._replace(data=data, finish="stop", stopped_by=stops.matched)
                return
            if last:
                # Its own limit is how it talks; only one that was asked for leads it anywhere.
                led = plan.finish == "stop" and index >= (sampling.soft_limit or limit)
                yield step._replace(data=data + stops.flush(), finish=plan.finish, led=led)
            else:
                yield step._replace(data=data)

    def close(self) -> None:
        """There is nothing to let go of."""

    def _plan(self, source: Source, max_tokens: int, soft_limit: int) -> _Plan:
        return _Planner(self, source, self._random).plan(max_tokens, soft_limit)


@dataclass(frozen=True, slots=True)
class _Plan:
    steps: list[Step]
    finish: Finish


class _Planner:
    """Thinks one utterance through."""

    def __init__(
        self, speaker: Speaker, constraint: Constraint, random: np.random.Generator, prefix: str | bytes = b""
    ) -> None:
        self._voice = speaker._voice
        self._random = random
        self._start = matcher_of(constraint, speaker.vocabulary, prefix)
        self._exits = exits_of(constraint, speaker.dialect)
        self._prefix = prefix.encode() if isinstance(prefix, str) else prefix
        # The shortest output is only known for a grammar that can be looked into, and from its very beginning.
        self._source: Source | None = None
        if not self._prefix and not isinstance(constraint, CompiledGrammar | Matcher):
            self._source = constraint

    def plan(self, limit: int, soft_limit: int, logprobs: int | None = None) -> _Plan:
        """An utterance that ends, or one that the limit cuts off where none was found that ends at all."""
        first: list[Step] = []
        for attempt in range(_ATTEMPTS):
            matcher = self._start.fork()
            steps = list(self._draw(matcher, soft_limit if attempt == 0 else 0, max(limit, _LONGEST_PLAN), logprobs))
            if self._is_over(matcher, steps):
                return _cut(steps, limit)
            first = first or steps
        shortest = self._spell_shortest()
        return _cut(shortest, limit) if shortest is not None else _Plan(first[:limit], "length")

    def _draw(self, matcher: Matcher, soft_limit: int, limit: int, logprobs: int | None) -> Iterator[Step]:
        talker = Talker(self._voice, self._exits, self._random, self._prefix)
        for index in range(limit):
            allowed = self._voice.allowed(matcher)
            if not len(allowed):
                return
            chances = talker.chances(matcher, allowed, closing=index >= soft_limit)
            step = self._accept(matcher, int(self._random.choice(allowed, p=chances)))
            talker.say(step.token, step.data)
            yield step if logprobs is None else _with_logprobs(step, allowed, chances, logprobs)
            if self._is_over(matcher, [step]):
                return

    def _accept(self, matcher: Matcher, token: int) -> Step:
        before = matcher.position
        if not matcher.accept(token):
            raise AssertionError(f"the mask allowed token {token}, which the matcher refuses")
        # A stop token that ends the output is not part of it, unless the format spells it out.
        return Step(token, self._voice.tokens[token] if matcher.position > before else b"")

    def _is_over(self, matcher: Matcher, steps: list[Step]) -> bool:
        stops = self._voice.vocabulary.stop_token_ids
        return matcher.is_finished or bool(matcher.is_complete and steps and steps[-1].token in stops)

    def _spell_shortest(self) -> list[Step] | None:
        """The shortest output of the grammar in tokens; None where it is not known or the matcher does not agree."""
        if self._source is None:
            return None
        matcher, steps = self._start.fork(), list[Step]()
        for piece in shortest(root_of(self._source)):
            left = piece if isinstance(piece, bytes) else b""
            while left or not isinstance(piece, bytes):
                allowed = self._voice.allowed(matcher)
                is_text = isinstance(piece, bytes)
                place = self._voice.spelling(left, allowed) if is_text else self._one_of(piece, allowed)
                if place is None:
                    return None
                steps.append(self._accept(matcher, int(allowed[place])))
                if not is_text:
                    break
                left = left[len(self._voice.tokens[steps[-1].token]) :]
        if not self._is_over(matcher, steps):
            stops = self._voice.stops(self._voice.allowed(matcher))
            if not len(stops):
                return None
            steps.append(self._accept(matcher, int(stops[0])))
        return steps

    def _one_of(self, tokens: ir.Tokens | bytes, allowed: Ids) -> int | None:
        """The place of a token that is one of these, or none of them where they are excluded."""
        assert isinstance(tokens, ir.Tokens)
        ids = {self._voice.vocabulary.token_id(t) if isinstance(t, str) else t for t in tokens.tokens}
        return next((i for i, token in enumerate(allowed) if (int(token) in ids) != tokens.exclude), None)


def _cut(steps: list[Step], limit: int) -> _Plan:
    return _Plan(steps, "stop") if len(steps) <= limit else _Plan(steps[:limit], "length")


def _with_logprobs(step: Step, allowed: Ids, chances: Chances, count: int) -> Step:
    order = np.argsort(-chances, kind="stable")[:count]
    with np.errstate(divide="ignore"):
        logs = np.log(chances)
    own = float(logs[np.searchsorted(allowed, step.token)])
    top = tuple((int(allowed[i]), float(logs[i])) for i in order if chances[i] > 0)
    return step._replace(logprob=own, top=top)
