"""What every local model offers: a prompt goes in, and steps come out, under a mask or without one."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Protocol, runtime_checkable

from dovetail.dialects import Dialect
from dovetail.engine import CompiledGrammar, Matcher, Vocabulary, compile
from dovetail.engine.compiled import Source
from dovetail.errors import ModelError
from dovetail.formats import Format

Constraint = Source | CompiledGrammar | Matcher
Finish = Literal["stop", "length"]
MAX_BIASES = 1024


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn and when to end; `logprobs` is how many alternatives each step reports, None for nothing.

    `top_k`, `min_p` and `top_p` leave out what is unlikely; 0 and 1 leave out nothing. `repetition_penalty` divides the
    scores of all tokens so far, `frequency_penalty` and `presence_penalty` lower those of the answer, for each time and
    once; `logit_bias` adds to the scores of tokens. None of them allows what a grammar refuses.

    After `soft_limit` tokens an output under a grammar is led to its end, so that no hard limit cuts it off. Without
    `ends_text`, free text that may end anywhere goes on all the same; what is open around it is closed.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    frequency_penalty: float = 0.0
    presence_penalty: float = 0.0
    logit_bias: Mapping[int, float] = field(default_factory=dict)
    seed: int | None = None
    max_tokens: int | None = None
    soft_limit: int | None = None
    ends_text: bool = True
    stop: tuple[str, ...] = ()
    logprobs: int | None = None

    def __post_init__(self) -> None:
        for name, ok, fix in (
            ("temperature", 0 <= self.temperature <= 100, "use a number from 0 to 100"),
            ("top_p", 0 < self.top_p <= 1, "use a number above 0, up to 1"),
            ("top_k", self.top_k >= 0, "use the number of tokens to choose from, or 0 for all"),
            ("min_p", 0 <= self.min_p <= 1, "use a number from 0 to 1"),
            ("repetition_penalty", 0 < self.repetition_penalty <= 10, "use a number above 0, up to 10; 1 for none"),
            ("frequency_penalty", abs(self.frequency_penalty) <= 10, "use a number from -10 to 10"),
            ("presence_penalty", abs(self.presence_penalty) <= 10, "use a number from -10 to 10"),
            ("logit_bias", _are_biases(self.logit_bias), "give token ids, each with a number from -100 to 100"),
            ("max_tokens", self.max_tokens is None or self.max_tokens > 0, "use at least 1, or leave it out"),
            ("soft_limit", self.soft_limit is None or self.soft_limit > 0, "use at least 1, or leave it out"),
            ("stop", all(self.stop) and not isinstance(self.stop, str), "give a tuple of texts that are not empty"),
            ("logprobs", self.logprobs is None or 0 <= self.logprobs <= 1000, "use a number from 0 to 1000"),
        ):
            if not ok:
                raise ModelError(f"{name} is {getattr(self, name)!r}", f"/{name}", fix)

    @property
    def adjusts(self) -> bool:
        """Whether it changes the scores of single tokens."""
        penalized = self.repetition_penalty != 1 or self.frequency_penalty or self.presence_penalty
        return bool(penalized or self.logit_bias)

    @property
    def narrows(self) -> bool:
        """Whether it leaves out what is unlikely."""
        return self.top_p < 1 or self.top_k > 0 or self.min_p > 0


def _are_biases(biases: object) -> bool:
    if not isinstance(biases, Mapping) or len(biases) > MAX_BIASES:
        return False
    return all(type(token) is int and token >= 0 and abs(bias) <= 100 for token, bias in biases.items())


DEFAULT_SAMPLING = Sampling()


class Step(NamedTuple):
    """One token, and the bytes that it settles.

    Bytes that may be the beginning of a stop text wait for the next step, so `data` need not be what the token stands
    for; the stop text itself never comes. `top` holds the likeliest tokens with their logprobs. The last step, and no
    other, has a `finish`; `stopped_by` is the stop text that ended the output, if one did, and `led` tells whether a
    soft limit has left the model only ways to the end.
    """

    token: int
    data: bytes
    logprob: float = 0.0
    top: tuple[tuple[int, float], ...] = ()
    finish: Finish | None = None
    stopped_by: str | None = None
    led: bool = False


class Prompt(NamedTuple):
    """A rendered chat; `prefix` is the beginning of the answer that it holds already, which a grammar has to know."""

    text: str
    prefix: str = ""


class Model(Protocol):
    """A model in this process; any number of generations may run side by side.

    A generation ends early when its stream is closed (`aclose`) or its task is cancelled.
    """

    @property
    def name(self) -> str:
        """What clients call it."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The tokens that grammars are compiled for."""

    @property
    def dialect(self) -> Dialect:
        """How it talks."""

    @property
    def tools_in_prompt(self) -> bool:
        """Whether tools are told in the system prompt, because its chat template has no place for them."""

    @property
    def shows_reasoning(self) -> bool:
        """Whether its chat template knows the reasoning of its dialect; where not, it reasons only when asked to."""

    def encode(self, text: str) -> list[int]:
        """The tokens of a text; special tokens are recognized in it, and none are added."""

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        reasoning: bool = True,
        continue_final: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> Prompt:
        """A chat in the shapes of OpenAI or Hugging Face as the prompt of the next turn.

        Where `continue_final`, the last message is one of the assistant, and the model goes on with it. `options` are
        further variables of the chat template.
        """

    def generate(
        self,
        prompt: str | Sequence[int],
        constraint: Constraint | None = None,
        sampling: Sampling = DEFAULT_SAMPLING,
        *,
        prefix: str | bytes = "",
    ) -> AsyncGenerator[Step, None]:
        """The steps of one answer; `prefix` is the part of the constrained output that the prompt holds already."""

    def close(self) -> None:
        """Let go of threads and memory; generations still under way end with a ModelError."""


@runtime_checkable
class RemoteModel(Protocol):
    """A model that an engine elsewhere runs, which makes masks in its own way, and none for free text."""

    def unheld(self, made: Format, prefix: str) -> Sequence[tuple[Any, str]]:
        """What the engine does not hold: a schema, or None for the whole format, and why."""


def matcher_of(constraint: Constraint, vocabulary: Vocabulary, prefix: str | bytes = b"") -> Matcher:
    """A matcher that has read `prefix`; one that the caller made is used as it stands, in a copy."""
    if isinstance(constraint, Matcher):
        matcher = constraint.fork()
    else:
        grammar = constraint if isinstance(constraint, CompiledGrammar) else compile(constraint, vocabulary)
        matcher = grammar.matcher()
    if prefix and not matcher.accept_bytes(prefix):
        problem = "the format does not allow the beginning of the answer that the prompt holds"
        raise ModelError(problem, "", "change the text that is to be continued, or the format")
    return matcher
