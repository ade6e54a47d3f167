"""Room in the model's context: the middle of a long history becomes a summary, the task and the latest turns stay."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dovetail.agent.loop.reply import CHARS_PER_TOKEN, turn_chars
from dovetail.agent.types import (
    STRUCTURED_OUTPUT,
    AssistantTurn,
    ProviderError,
    Request,
    Text,
    ToolResult,
    ToolTurn,
    ToolUse,
    Turn,
    UserTurn,
)

# The share of the context from which on room is made, and the share that the latest turns keep.
FULL = 0.75
KEPT = 0.25
_SUMMARY_SHARE = 0.5  # of the context may go to the turns that are to be summed up
_MAX_RESULT = 1500
_MAX_TASK = 40_000
_OVERFLOW = re.compile(
    r"context.{0,20}(length|window|size|limit)|(prompt|input|request).{0,20}too (long|large)|exceeds?.{0,40}tokens"
    r"|maximum.{0,40}tokens|too many (input )?tokens",
    re.IGNORECASE | re.DOTALL,
)
_ASK = (
    "Below is the record of work on a task, which is to go on with this summary instead of the record. Write down, in "
    "at most 800 words and without preamble: what was asked; what was found out, with paths, names, numbers and exact "
    "error messages; what was changed, file by file; what was tried and failed; what remains to be done.\n\n"
)


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a history is cut: `middle` is summed up, `tail` stays."""

    task: UserTurn
    middle: tuple[Turn, ...]
    tail: tuple[Turn, ...]

    def joined(self, summary: str) -> list[Turn]:
        """The history with the summary in place of the middle."""
        text = f"{self.task.text[:_MAX_TASK]}\n\n[Your earlier work on this, summed up:]\n{summary}"
        return [UserTurn(text, self.task.images), *self.tail]


def is_overflow(error: ProviderError) -> bool:
    """Whether a service refuses a request because it is longer than the model's context."""
    return error.status in (400, 413, 422) and _OVERFLOW.search(error.problem) is not None


def cut(history: Sequence[Turn], window: int) -> Cut | None:
    """The cut that leaves a quarter of the context to the latest turns; None where only the task lies before them."""
    room = window * KEPT * CHARS_PER_TOKEN
    start = len(history)
    for index in range(len(history) - 1, 0, -1):
        room -= turn_chars(history[index])
        if room < 0 and start < len(history):
            break
        if not isinstance(history[index], ToolTurn):  # results stay with their calls
            start = index
    first = history[0] if history else None
    task = first if isinstance(first, UserTurn) else UserTurn("")
    begin = 1 if isinstance(first, UserTurn) else 0
    if start <= begin:
        return None
    return Cut(task, tuple(history[begin:start]), tuple(history[start:]))


def summary_request(middle: Sequence[Turn], window: int) -> Request:
    """What a model is asked for the summary."""
    room = int(window * _SUMMARY_SHARE * CHARS_PER_TOKEN)
    record = "\n\n".join(filter(None, map(_line, middle)))
    if len(record) > room:
        record = f"{record[: room // 2]}\n[...]\n{record[-room // 2 :]}"
    return Request((UserTurn(_ASK + record),))


def digest(middle: Sequence[Turn]) -> str:
    """A summary that needs no model: the calls that were made, and how each began to answer."""
    lines = [line for turn in middle if (line := _line(turn, 120))]
    return "\n".join(lines)[-8000:]


def _line(turn: Turn, most: int = _MAX_RESULT) -> str:
    match turn:
        case UserTurn(text):
            return f"user: {_short(text, most)}"
        case AssistantTurn(blocks):
            return "\n".join(line for block in blocks if (line := _block(block, most)))
        case ToolTurn(results):
            return "\n".join(_result(result, most) for result in results)


def _block(block: object, most: int) -> str:
    match block:
        case Text(text):
            return f"assistant: {_short(text, most)}"
        case ToolUse(name=name) if name == STRUCTURED_OUTPUT:  # what it was given is kept nowhere
            return f"call: {name}"
        case ToolUse(name=name, arguments=arguments):
            return f"call: {name} {_short(arguments, most)}"
        case _:
            return ""


def _result(result: ToolResult, most: int) -> str:
    if result.name == STRUCTURED_OUTPUT:
        return f"result of {result.name}: not accepted"
    return f"{'error' if result.is_error else 'result'} of {result.name}: {_short(result.content, most)}"


def _short(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most // 2]} [...] {text[-most // 2 :]}"
