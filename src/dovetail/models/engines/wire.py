"""What engines are sent and what they answer: one class for each of vLLM, SGLang and llama.cpp's server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from dovetail.models.engines.failures import RefusedError, ReplicaError
from dovetail.models.model import Finish, Sampling

Kind = Literal["vllm", "sglang", "llama"]

# How each says that an answer has ended.
_FINISHES: dict[Any, Finish] = {
    "stop": "stop",
    "length": "length",
    "eos": "stop",
    "word": "stop",
    "limit": "length",
    "none": "length",  # of llama.cpp
}
_SEEDS = 1 << 32  # llama.cpp has as many
# The status of what a caller has to mend; others are those of servers in trouble.
REFUSALS = (400, 413, 422)
MAX_WORDS = 2000  # characters of what an engine says is wrong
MAX_TOKENS = 1 << 24  # of one answer; beyond it a number of tokens makes no sense
_WORD = 1  # a trigger that is a text, as llama.cpp numbers its kinds of triggers


class Ask(NamedTuple):
    """What is asked of an engine; `markers` are the special tokens that its answer has to show as text."""

    prompt: Sequence[int]
    sampling: Sampling
    max_tokens: int
    markers: tuple[str, ...]


class Chunk(NamedTuple):
    """Text that an engine says, how many tokens it has said by now, and why it has ended once it has."""

    text: str
    total: int | None
    finish: Finish | None = None


class Tokens(NamedTuple):
    """A text as tokens, and how many of them the context of the model takes, where the engine tells."""

    ids: list[int]
    context: int | None


class Wire(Protocol):
    """How one kind of engine is spoken to."""

    kind: Kind
    path: str  # of the stream

    def body(self, ask: Ask, constraint: Mapping[str, Any]) -> dict[str, Any]:
        """What asks for a stream; `constraint` is in the language of the engine."""

    def read(self, event: Mapping[str, Any]) -> Chunk | None:
        """What an event of the stream says; None for one that says nothing."""

    def text(self, text: str) -> dict[str, Any]:
        """What asks for the tokens of a text, at /tokenize."""


class _Completions:
    """The completions interface as vLLM has it, and SGLang after it."""

    path = "/v1/completions"

    def __init__(self, kind: Kind) -> None:
        self.kind: Kind = kind

    def body(self, ask: Ask, constraint: Mapping[str, Any]) -> dict[str, Any]:
        """A request; markers of reasoning and calls are special tokens, and have to come as text."""
        return {
            "prompt": list(ask.prompt),
            "max_tokens": ask.max_tokens,
            "stream": True,
            "stream_options": {"include_usage": True, "continuous_usage_stats": True},
            "seed": ask.sampling.seed,
            "skip_special_tokens": False,
            "spaces_between_special_tokens": False,
            **_drawn(ask.sampling),
            **constraint,
        }

    def read(self, event: Mapping[str, Any]) -> Chunk | None:
        """A chunk of a completion; the last one has no choices."""
        choices = event["choices"]
        if not choices:
            return None
        choice = choices[0]
        usage = event.get("usage") or {}
        count = _count(usage.get("completion_tokens"))
        return Chunk(_text(choice["text"]), count, _finish(choice.get("finish_reason")))

    def text(self, text: str) -> dict[str, Any]:
        """A request of the tokenizer."""
        return {"prompt": text, "add_special_tokens": False}


class _Llama:
    kind: Kind = "llama"
    path = "/completion"

    def body(self, ask: Ask, constraint: Mapping[str, Any]) -> dict[str, Any]:
        """A request of its own interface; special tokens that are markers have to come as text."""
        sampling = ask.sampling
        drawn = _drawn(sampling)
        drawn["repeat_penalty"] = drawn.pop("repetition_penalty")
        drawn["logit_bias"] = [[token, bias] for token, bias in sampling.logit_bias.items()]
        drawn["top_k"] = sampling.top_k
        triggers = [{"type": _WORD, "value": text} for text in constraint.get("grammar_triggers", ())]
        return {
            "prompt": list(ask.prompt),
            "n_predict": ask.max_tokens,
            "stream": True,
            "cache_prompt": True,
            "seed": -1 if sampling.seed is None else sampling.seed % _SEEDS,
            "preserved_tokens": list(dict.fromkeys((*ask.markers, *constraint.get("preserved_tokens", ())))),
            **drawn,
            **({"grammar": constraint["grammar"]} if constraint else {}),
            **({"grammar_lazy": True, "grammar_triggers": triggers} if triggers else {}),
        }

    def read(self, event: Mapping[str, Any]) -> Chunk | None:
        """A piece of the text, or behind all of it the reason for which it has ended."""
        ended = event.get("stop_type", "") if event.get("stop") else None
        return Chunk(_text(event["content"]), _count(event.get("tokens_predicted")), _finish(ended))

    def text(self, text: str) -> dict[str, Any]:
        """A request of its tokenizer."""
        return {"content": text, "add_special": False, "parse_special": True}


WIRES: dict[str, Wire] = {wire.kind: wire for wire in (_Completions("vllm"), _Completions("sglang"), _Llama())}


def tokens_of(reply: Any) -> Tokens:
    """The tokens in what an engine answers at /tokenize."""
    ids = reply.get("tokens") if isinstance(reply, dict) else None
    if not isinstance(ids, list) or not all(type(token) is int for token in ids):
        raise ReplicaError("what /tokenize answers is no list of tokens")
    context = reply.get("max_model_len")
    return Tokens(ids, context if type(context) is int and context > 0 else None)


def wrong(event: Any) -> RefusedError | ReplicaError | None:
    """The error that an event tells of, in the shapes in which engines send one; None where there is none."""
    error = event.get("error") if isinstance(event, dict) else "the event is no object"
    if isinstance(event, dict) and error is None and event.get("object") == "error":
        error = event
    if not error:
        return None
    details = error if isinstance(error, dict) else {"message": error}
    words = str(details.get("message") or details)[:MAX_WORDS]
    return RefusedError(words) if details.get("code") in REFUSALS else ReplicaError(words)


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise TypeError(f"{value!r:.100} is no text")


def _count(value: Any) -> int | None:
    if value is None or (type(value) is int and 0 <= value < MAX_TOKENS):
        return value
    raise TypeError(f"{value!r:.100} is no number of tokens")


def _drawn(sampling: Sampling) -> dict[str, Any]:
    """How tokens are drawn, in the words that vLLM and SGLang share."""
    drawn: dict[str, Any] = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k or -1,
        "min_p": sampling.min_p,
        "repetition_penalty": sampling.repetition_penalty,
        "frequency_penalty": sampling.frequency_penalty,
        "presence_penalty": sampling.presence_penalty,
    }
    if sampling.logit_bias:
        drawn["logit_bias"] = {str(token): bias for token, bias in sampling.logit_bias.items()}
    return drawn


def _finish(reason: Any) -> Finish | None:
    """Why an answer has ended, or None while it goes on."""
    if reason is None:
        return None
    if reason not in _FINISHES:
        raise ReplicaError(f"the engine gave up: {reason!r:.100}")
    return _FINISHES[reason]
