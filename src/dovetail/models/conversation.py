"""A conversation with a local model that calls Python functions: `Conversation`, and `call` as its one line.

messages + functions --plan_turn--> turn --steps--> events --calls--> functions --results--> the next turn
"""

from __future__ import annotations

import asyncio
import inspect
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

from dovetail.dialects.requests import ReasoningMode
from dovetail.errors import InputError
from dovetail.formats.python_types import Signature, result_text, signature_of
from dovetail.messages import Message, ToolCall
from dovetail.models import blocking
from dovetail.models.answers import Chat, GenerateOptions, check_options, messages_of, named, sampling_of
from dovetail.models.model import Finish, Model
from dovetail.models.turn import Note, plan_turn
from dovetail.parsing.events import Event
from dovetail.typing import ToolChoice

MAX_ROUNDS = 8
Functions = Sequence[Callable[..., Any]]


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call that was made: its arguments as JSON values, what the function returned, or the error that it raised."""

    name: str
    arguments: Mapping[str, Any]
    value: Any = None
    error: str = ""

    @property
    def told(self) -> str:
        """What the model reads of it."""
        return f"Error: {self.error}" if self.error else result_text(self.value)


@dataclass(frozen=True, slots=True)
class TurnEnd:
    """The end of one turn: the tokens of its prompt and of what was said, the seconds that took, and why it ended.

    `led` tells whether a soft limit led it to its end.
    """

    message: Message
    prompt_tokens: int
    tokens: int
    seconds: float
    finish: Finish
    notes: tuple[Note, ...] = ()
    led: bool = False


@dataclass(frozen=True, slots=True)
class CallResult:
    """How a conversation with functions ended.

    `text` is the last answer, `calls` all that were made on the way, and `messages` the whole chat, to go on with.
    """

    text: str
    calls: tuple[FunctionCall, ...]
    messages: list[dict[str, Any]]


class Conversation:
    """A chat with one model, which remembers what was said in `messages`."""

    def __init__(
        self,
        model: Model,
        functions: Functions = (),
        *,
        tools: Sequence[Mapping[str, Any]] = (),
        response_format: Any = None,
        options: GenerateOptions | None = None,
    ) -> None:
        self.model = model
        self.messages: list[dict[str, Any]] = []
        self._options = options or {}
        self._functions = {one.name: (one, function) for function in functions for one in (signature_of(function),)}
        if len(self._functions) < len(functions):
            raise InputError("two functions have the same name", "/functions", "rename one of them")
        self._others = frozenset(tool.get("function", tool).get("name") for tool in tools)
        self._tools = [*(signature.tool for signature, _ in self._functions.values()), *tools]
        self._response_format = response_format
        self._count = 0  # of calls

    async def reply(
        self, messages: Chat, tool_choice: ToolChoice = "auto", max_rounds: int = MAX_ROUNDS
    ) -> AsyncGenerator[Event | FunctionCall | TurnEnd, None]:
        """What is said after these messages as it comes, turn after turn until one calls nothing.

        A call of one of `tools`, which are no functions, ends it too: its result belongs into the next messages. The
        first turn has the `tool_choice`; after `max_rounds` turns with calls, none may be made. Where the generator
        is closed early or fails, all of it is forgotten, so that the chat can go on from where it was.
        """
        before = len(self.messages)
        self.messages += [dict(message) for message in messages]
        try:
            async with aclosing(self._rounds(tool_choice, max_rounds)) as events:
                async for event in events:
                    yield event
        except BaseException:
            del self.messages[before:]
            raise

    async def _rounds(
        self, tool_choice: ToolChoice, max_rounds: int
    ) -> AsyncGenerator[Event | FunctionCall | TurnEnd, None]:
        for done in range(max_rounds + 1):
            choice = tool_choice if done == 0 else "auto" if done < max_rounds else "none"
            calls: tuple[ToolCall, ...] = ()
            async with aclosing(self._turn(choice)) as events:
                async for event in events:
                    if isinstance(event, TurnEnd):
                        calls = event.message.tool_calls
                    yield event
            if not calls:
                return
            ours = [call for call in calls if call.name not in self._others]
            for call, made in zip(ours, await asyncio.gather(*map(self._made, ours)), strict=True):
                self.messages.append(tool_message(call, made.told))
                yield made
            if len(ours) < len(calls):
                return

    async def _turn(self, choice: ToolChoice) -> AsyncGenerator[Event | TurnEnd, None]:
        """One turn of the model, which joins the messages at its end."""
        mode: ReasoningMode = "auto" if self._options.get("reasoning", False) else "disabled"
        turn = await asyncio.to_thread(
            plan_turn,
            self.model,
            self.messages,
            tools=self._tools or None,
            tool_choice=choice if self._tools else "auto",
            response_format=self._response_format,
            reasoning=mode,
        )
        parser = turn.parser()
        finish: Finish = "length"
        tokens, started, led = 0, time.perf_counter(), False
        async with aclosing(turn.steps(sampling_of(self._options))) as steps:
            async for step in steps:
                tokens += 1
                finish, led = step.finish or finish, step.led
                for event in parser.feed(step.data):
                    yield event
        for event in parser.close("stop" if finish == "stop" else "length"):
            yield event
        message = self._numbered(parser.message)
        self.messages.append(message.to_openai())
        seconds = time.perf_counter() - started
        yield TurnEnd(message, len(turn.prompt_ids), tokens, seconds, finish, turn.notes, led)

    def _numbered(self, message: Message) -> Message:
        """The message with an id for each call, of nine letters and digits, which all templates take."""
        calls = []
        for call in message.tool_calls:
            self._count += 1
            calls.append(replace(call, id=call.id or f"call{self._count:05}"))
        return replace(message, tool_calls=tuple(calls))

    async def _made(self, call: ToolCall) -> FunctionCall:
        """The call after it was made; whatever goes wrong with it is told to the model, which may do better."""
        arguments = call.value if isinstance(call.value, Mapping) else {}
        if not call.complete:
            return FunctionCall(call.name, arguments, error="the call was cut off")
        known = self._functions.get(call.name)
        try:
            if known is not None:
                return FunctionCall(call.name, arguments, await _run(*known, arguments))
        except ValueError as error:
            return FunctionCall(call.name, arguments, error=str(error))
        except Exception as error:
            return FunctionCall(call.name, arguments, error=f"{type(error).__name__}: {error}")
        return FunctionCall(call.name, arguments, error="there is no such tool")


def tool_message(call: ToolCall, result: str) -> dict[str, Any]:
    """The message that tells the model what came of a call."""
    return {"role": "tool", "tool_call_id": call.id, "name": call.name, "content": result}


async def _run(signature: Signature, function: Callable[..., Any], arguments: Mapping[str, Any]) -> Any:
    given = signature.read(arguments)
    if inspect.iscoroutinefunction(function):
        return await function(**given)
    return await asyncio.to_thread(lambda: function(**given))


def call(
    model: Model | str | Path,
    messages: str | Chat,
    functions: Functions,
    *,
    tool_choice: ToolChoice = "auto",
    max_rounds: int = MAX_ROUNDS,
    **options: Unpack[GenerateOptions],
) -> CallResult:
    """Let a local model call typed Python functions, and return its last answer with all calls that were made.

    The schema of each function comes from its signature and docstring. A call is held to it, made, and its result told
    to the model, until it answers without calls, or has called in `max_rounds` turns. An exception of a function is
    told to the model, too. `tool_choice` is "auto", "required", "none" or one tool, for the first turn; the other
    options are those of `generate`.
    """
    return blocking.run(
        call_async(model, messages, functions, tool_choice=tool_choice, max_rounds=max_rounds, **options)
    )


async def call_async(
    model: Model | str | Path,
    messages: str | Chat,
    functions: Functions,
    *,
    tool_choice: ToolChoice = "auto",
    max_rounds: int = MAX_ROUNDS,
    **options: Unpack[GenerateOptions],
) -> CallResult:
    """Let a model call functions as `call` does, inside a coroutine."""
    check_options(options)
    loaded = model if not isinstance(model, str | Path) else await asyncio.to_thread(named, model)
    chat = Conversation(loaded, functions, options=options)
    text, made = "", []
    turns = messages_of(messages, options.get("system", ""))
    async with aclosing(chat.reply(turns, tool_choice, max_rounds)) as events:
        async for event in events:
            if isinstance(event, TurnEnd):
                text = event.message.content
            elif isinstance(event, FunctionCall):
                made.append(event)
    return CallResult(text, tuple(made), chat.messages)
