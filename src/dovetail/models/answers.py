"""Answers in the type that a caller asks for: as they grow, and whole.

prompt + type --render, format--> a turn under a mask --parser--> its content --> a value of the type
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator, Mapping, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Any, Generic, Self, TypedDict, TypeVar

from dovetail.dialects.requests import ReasoningMode
from dovetail.errors import AnswerError, InputError
from dovetail.models import blocking
from dovetail.models.answer_types import AnswerType
from dovetail.models.model import Model, Sampling
from dovetail.models.turn import LocalTurn, plan_turn

T = TypeVar("T")

Chat = Sequence[Mapping[str, Any]]
MAX_TOKENS = 1024


class GenerateOptions(TypedDict, total=False):
    """How to answer: the fields of Sampling, and what is said before the prompt.

    With `reasoning` a model that can may think first, which is no part of the value. An answer has at most 1,024 tokens
    and is drawn at temperature 0, unless told otherwise.
    """

    system: str
    reasoning: bool
    temperature: float
    top_p: float
    top_k: int
    min_p: float
    repetition_penalty: float
    frequency_penalty: float
    presence_penalty: float
    logit_bias: Mapping[int, float]
    seed: int | None
    max_tokens: int
    soft_limit: int | None
    stop: tuple[str, ...]


class Answer(Generic[T]):
    """One question on its way through a model; `text` is what was said when it has ended."""

    def __init__(
        self, model: Model | str | Path, prompt: str | Chat, kind: AnswerType[T], options: GenerateOptions
    ) -> None:
        self._model = model
        self._messages = messages_of(prompt, options.get("system", ""))
        self._kind = kind
        self._reasoning = options.get("reasoning", False)
        self._sampling = sampling_of(options)
        self._is_cut = False
        self.text: str | None = None

    @property
    def value(self) -> T:
        """The value that the answer says; an AnswerError where it says none."""
        text = self._checked()
        try:
            return self._kind.read(text)
        except ValueError as error:
            problem = f"the answer does not pass the checks of its type: {error}"
            raise AnswerError(problem, "invalid", text) from error

    def _checked(self) -> str:
        """The text of an answer that has come to its end; free text has one wherever it stops."""
        if self.text is None:
            raise InputError("the answer has not ended", "", "read the stream to its end")
        if self._is_cut and self._kind.format is not None:
            raise AnswerError("the answer was cut off", "length", self.text)
        return self.text

    async def whole(self) -> T:
        """The value, when the answer has ended."""
        async with aclosing(self._pieces()) as pieces:
            async for _ in pieces:
                pass
        return self.value

    async def parts(self) -> AsyncGenerator[Any, None]:
        """What the answer says for certain, whenever that has become more; at last all that it says."""
        text, known = "", None
        async with aclosing(self._pieces()) as pieces:
            async for piece in pieces:
                text += piece
                begun = self._kind.begun(text)
                if begun is not None and begun != known:
                    known = begun
                    yield known
        whole = self._kind.plain(self._checked())
        if whole != known or type(whole) is not type(known):
            yield whole

    async def _pieces(self) -> AsyncGenerator[str, None]:
        """The pieces of the content as the model says them."""
        model = self._model if not isinstance(self._model, str | Path) else await asyncio.to_thread(named, self._model)
        turn = await asyncio.to_thread(self._planned, model)
        parser = turn.parser()
        finish = None
        steps = turn.steps(self._sampling)
        async with aclosing(steps):
            async for step in steps:
                finish = step.finish or finish
                for event in parser.feed(step.data):
                    if event.kind == "text" and event.region == "content":
                        yield event.text
        self._is_cut = finish != "stop"
        for event in parser.close("length" if self._is_cut else "stop"):
            if event.kind == "text" and event.region == "content":
                yield event.text
        self.text = parser.message.content

    def _planned(self, model: Model) -> LocalTurn:
        mode: ReasoningMode = "auto" if self._reasoning else "disabled"
        return plan_turn(model, self._messages, response_format=self._kind.format, reasoning=mode)


class AnswerStream(Generic[T]):
    """An answer that grows: iterating yields what it says so far, each part with all of the one before in it.

    Parts are plain values, as JSON or the text has them; `value` is the whole answer in the caller's type. Leaving a
    `with` block ends the generation.
    """

    def __init__(self, answer: Answer[T]) -> None:
        self._answer = answer
        self._parts = blocking.iterate(answer.parts())

    def __iter__(self) -> Iterator[Any]:
        return self._parts

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def value(self) -> T:
        """The whole answer, waiting for it where it has not ended."""
        for _ in self._parts:
            pass
        return self._answer.value

    def close(self) -> None:
        """End the generation."""
        self._parts.close()


class AsyncAnswerStream(Generic[T]):
    """AnswerStream for coroutines: read it with `async for`; `await stream.value()` is the whole answer."""

    def __init__(self, answer: Answer[T]) -> None:
        self._answer = answer
        self._parts = answer.parts()

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._parts

    def __await__(self) -> Generator[None, None, Self]:
        """The stream itself, so that it may be awaited like an answer without `stream`."""
        yield from ()
        return self

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def value(self) -> T:
        """The whole answer, waiting for it where it has not ended."""
        async for _ in self._parts:
            pass
        return self._answer.value

    async def aclose(self) -> None:
        """End the generation."""
        await self._parts.aclose()


def sampling_of(options: Mapping[str, Any]) -> Sampling:
    """How tokens are drawn under these options."""
    given = {name: value for name, value in options.items() if name in Sampling.__dataclass_fields__}
    return Sampling(**{"temperature": 0.0, "max_tokens": MAX_TOKENS, **given})


def nth(options: GenerateOptions, index: int) -> GenerateOptions:
    """The options of one of several prompts: the same question twice, with a seed, has two answers."""
    seed = options.get("seed")
    return options if seed is None else {**options, "seed": seed + index}


def check_options(options: Mapping[str, Any]) -> None:
    """Raise where there is no such option."""
    for name in options:
        if name not in GenerateOptions.__annotations__:
            fix = f"use one of {', '.join(GenerateOptions.__annotations__)}"
            raise InputError(f"there is no option {name!r}", f"/{name}", fix)


_named: dict[str, Model] = {}
_naming = threading.Lock()


def named(name: str | Path) -> Model:
    """The model of this name, which is loaded when it is first asked for, and stays."""
    from dovetail.models import load

    with _naming:
        key = str(name)
        if key not in _named:
            _named[key] = load(name)
        return _named[key]


def messages_of(prompt: str | Chat, system: str = "") -> list[dict[str, Any]]:
    """The messages that a prompt stands for."""
    turns = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else [dict(message) for message in prompt]
    return [{"role": "system", "content": system}, *turns] if system else turns
