"""`generate`: one line from a question to a value."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from pathlib import Path
from re import Pattern
from typing import Any, Literal, TypeVar, Unpack, overload

from dovetail.errors import AnswerError, InputError
from dovetail.models import blocking
from dovetail.models.answer_types import AnswerType, answer_type
from dovetail.models.answers import (
    Answer,
    AnswerStream,
    AsyncAnswerStream,
    Chat,
    GenerateOptions,
    check_options,
    nth,
)
from dovetail.models.model import Model

T = TypeVar("T")

AnyModel = Model | str | Path
Prompts = list[str] | tuple[str, ...] | Sequence[Chat]
TextAnswer = str | Pattern[str] | Sequence[str] | None
No = Literal[False]
Yes = Literal[True]


@overload
def generate(
    model: AnyModel, prompt: str | Chat, answer: type[T], *, stream: No = False, **options: Unpack[GenerateOptions]
) -> T: ...


@overload
def generate(
    model: AnyModel, prompt: Prompts, answer: type[T], *, stream: No = False, **options: Unpack[GenerateOptions]
) -> list[T]: ...


@overload
def generate(
    model: AnyModel, prompt: str | Chat, answer: type[T], *, stream: Yes, **options: Unpack[GenerateOptions]
) -> AnswerStream[T]: ...


@overload
def generate(
    model: AnyModel,
    prompt: str | Chat,
    answer: TextAnswer = None,
    *,
    stream: No = False,
    **options: Unpack[GenerateOptions],
) -> str: ...


@overload
def generate(
    model: AnyModel,
    prompt: Prompts,
    answer: TextAnswer = None,
    *,
    stream: No = False,
    **options: Unpack[GenerateOptions],
) -> list[str]: ...


@overload
def generate(
    model: AnyModel, prompt: str | Chat, answer: TextAnswer = None, *, stream: Yes, **options: Unpack[GenerateOptions]
) -> AnswerStream[str]: ...


@overload
def generate(
    model: AnyModel, prompt: str | Chat, answer: Any, *, stream: No = False, **options: Unpack[GenerateOptions]
) -> Any: ...


@overload
def generate(
    model: AnyModel, prompt: Prompts, answer: Any, *, stream: No = False, **options: Unpack[GenerateOptions]
) -> list[Any]: ...


@overload
def generate(
    model: AnyModel, prompt: str | Chat, answer: Any, *, stream: Yes, **options: Unpack[GenerateOptions]
) -> AnswerStream[Any]: ...


def generate(
    model: AnyModel, prompt: Any, answer: Any = None, *, stream: bool = False, **options: Unpack[GenerateOptions]
) -> Any:
    """What a local model answers, as a value of the type that `answer` names.

    `model` is a loaded model or its name, `prompt` a text, the messages of a chat, or a list of either, which makes one
    batch and a list of values. `answer` is a Pydantic model, dataclass, TypedDict, enum or any other type that Pydantic
    describes, a JSON Schema, a regular expression, a list of strings to choose from, a format, or None for free text.

    With `stream` it gives an AnswerStream, whose parts only grow. An answer that is cut off, or that a validator of the
    type refuses, is an AnswerError. The other options are those of GenerateOptions.
    """
    check_options(options)
    kind = answer_type(answer)
    if _is_batch(prompt):
        _refuse_stream(stream)
        return blocking.run(_batch(model, prompt, kind, options))
    asked = Answer(model, prompt, kind, options)
    return AnswerStream(asked) if stream else blocking.run(asked.whole())


@overload
def generate_async(
    model: AnyModel, prompt: str | Chat, answer: type[T], *, stream: No = False, **options: Unpack[GenerateOptions]
) -> Awaitable[T]: ...


@overload
def generate_async(
    model: AnyModel, prompt: Prompts, answer: type[T], *, stream: No = False, **options: Unpack[GenerateOptions]
) -> Awaitable[list[T]]: ...


@overload
def generate_async(
    model: AnyModel, prompt: str | Chat, answer: type[T], *, stream: Yes, **options: Unpack[GenerateOptions]
) -> AsyncAnswerStream[T]: ...


@overload
def generate_async(
    model: AnyModel,
    prompt: str | Chat,
    answer: TextAnswer = None,
    *,
    stream: No = False,
    **options: Unpack[GenerateOptions],
) -> Awaitable[str]: ...


@overload
def generate_async(
    model: AnyModel,
    prompt: Prompts,
    answer: TextAnswer = None,
    *,
    stream: No = False,
    **options: Unpack[GenerateOptions],
) -> Awaitable[list[str]]: ...


@overload
def generate_async(
    model: AnyModel, prompt: str | Chat, answer: TextAnswer = None, *, stream: Yes, **options: Unpack[GenerateOptions]
) -> AsyncAnswerStream[str]: ...


@overload
def generate_async(
    model: AnyModel, prompt: str | Chat, answer: Any, *, stream: No = False, **options: Unpack[GenerateOptions]
) -> Awaitable[Any]: ...


@overload
def generate_async(
    model: AnyModel, prompt: Prompts, answer: Any, *, stream: No = False, **options: Unpack[GenerateOptions]
) -> Awaitable[list[Any]]: ...


@overload
def generate_async(
    model: AnyModel, prompt: str | Chat, answer: Any, *, stream: Yes, **options: Unpack[GenerateOptions]
) -> AsyncAnswerStream[Any]: ...


def generate_async(
    model: AnyModel, prompt: Any, answer: Any = None, *, stream: bool = False, **options: Unpack[GenerateOptions]
) -> Any:
    """Generate as `generate` does, for coroutines: an awaitable, or with `stream` what `async for` reads."""
    check_options(options)
    kind = answer_type(answer)
    if _is_batch(prompt):
        _refuse_stream(stream)
        return _batch(model, prompt, kind, options)
    asked = Answer(model, prompt, kind, options)
    return AsyncAnswerStream(asked) if stream else asked.whole()


def _is_batch(prompt: object) -> bool:
    """Whether these are several prompts; messages are objects, and a text is one prompt."""
    if isinstance(prompt, str):
        return False
    if not isinstance(prompt, Sequence) or isinstance(prompt, bytes | bytearray):
        raise InputError(f"a prompt cannot be {prompt!r}", "/prompt", "give a text, messages, or a list of either")
    return not prompt or not isinstance(prompt[0], Mapping)


def _refuse_stream(stream: bool) -> None:
    if stream:
        raise InputError("several prompts cannot be one stream", "/stream", "make a stream for each prompt")


async def _batch(model: AnyModel, prompts: Sequence[Any], kind: AnswerType[T], options: GenerateOptions) -> list[T]:
    """The values for all prompts, generated side by side; the first that fails tells its place among them."""
    answers = [Answer(model, prompt, kind, nth(options, index)) for index, prompt in enumerate(prompts)]
    tasks = [asyncio.ensure_future(answer.whole()) for answer in answers]
    try:
        done = await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        for task in tasks:
            task.cancel()
    for index, value in enumerate(done):
        if isinstance(value, AnswerError):
            raise AnswerError(f"prompt {index}: {value.problem}", value.reason, value.text, index, tuple(done))
        if isinstance(value, BaseException):
            raise value
    return [value for value in done if not isinstance(value, BaseException)]
