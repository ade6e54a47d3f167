"""Models in this process, held by a grammar to their dialect, the tools and their schemas."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Literal

import jsonschema_rs

from dovetail.agent.providers.chat import chat_choice, chat_messages, chat_tool
from dovetail.agent.types import (
    STRUCTURED_OUTPUT,
    Delta,
    Finish,
    Named,
    ProviderError,
    ProviderOptions,
    Request,
    TextDelta,
    ThinkingDelta,
    ToolArguments,
    ToolEnd,
    ToolSpec,
    ToolStart,
    ToolTurn,
    Usage,
    UsageDelta,
)
from dovetail.dialects.requests import ReasoningMode
from dovetail.errors import DovetailError
from dovetail.formats import JsonSchemaFormat
from dovetail.messages import call_id, from_json, to_json
from dovetail.models import LocalTurn, Model, Note, Sampling, load, plan_turn
from dovetail.parsing.events import Event

_MAX_OUTPUT_TOKENS = 8192
_ATTEMPTS = 30
_NEXT_SEED = 1009  # more turns than a run has, so that no attempt repeats one of another turn
_REASONING: dict[Any, ReasoningMode] = {None: "enabled", True: "enabled", False: "disabled"}
_ASKED = "Answer with one JSON object that fits this schema, in place of a call of structured_output:\n{schema}"
_TOOL = re.compile(r"/tools/(\d+)/function/parameters")
_REASONS: dict[str, Literal["stop", "tool_use", "length"]] = {"tool_calls": "tool_use", "length": "length"}


class LocalProvider:
    """A local model; what it calls is valid by construction, wherever the schema can be held exactly."""

    forces_tools = True
    _temperature = 0.0  # unless one is asked for: at 1 small models talk nonsense

    def __init__(self, model: Model, options: ProviderOptions, name: str = "local") -> None:
        self.name = name
        self.model = model.name
        self._model = model
        self._seed = options.seed
        asked = options.extra.get("reasoning")
        self._reasoning = "auto" if asked is None and not model.shows_reasoning else _REASONING[asked]
        self._noted: set[str] = set()
        self._template_options = options.extra.get("chat_template_kwargs", {})
        self._timeout_s = options.timeout_s
        self._options = options

    def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """The reply while it is being generated."""
        return self._reply(request, 0)

    async def _reply(self, request: Request, attempt: int) -> AsyncGenerator[Delta, None]:
        try:
            turn = await asyncio.to_thread(self._plan, request)
            sampling = self._sampling(request, attempt)
            async with asyncio.timeout(self._timeout_s):
                async with aclosing(self._generate(sampling, turn)) as deltas:
                    async for delta in deltas:
                        yield delta
        except TimeoutError as error:
            raise ProviderError("the model took too long to answer", retryable=True) from error
        except DovetailError as error:
            if isinstance(error, ProviderError):
                raise
            raise ProviderError(f"the model cannot be asked this: {error}") from error

    async def close(self) -> None:
        """Let the model go."""
        await asyncio.to_thread(self._model.close)

    def _plan(self, request: Request) -> LocalTurn:
        """The turn that answers a request; what its tools lose in a grammar is told once.

        A model whose template knows no tools is held to the schema in its answer: that is all it has to know.
        """
        answer = self._answer(request)
        tools = tuple(tool for tool in request.tools if tool is not answer)
        messages = chat_messages(request, with_reasoning=True)
        choice = chat_choice(request.tool_choice) if tools else "none"
        if answer is not None:
            messages.append({"role": "user", "content": _ASKED.format(schema=to_json(answer.parameters))})
            choice = "auto" if tools and request.tool_choice == "auto" else "none"
        turn = plan_turn(
            self._model,
            messages,
            # A tool of somebody else whose schema makes no sense is no reason to end a run.
            tools=[_lenient(chat_tool(tool)) for tool in tools] or None,
            tool_choice=choice,
            response_format=None if answer is None else JsonSchemaFormat(json_schema=dict(answer.parameters)),
            reasoning=self._reasoning,
            options=self._template_options,
        )
        for note in turn.notes:
            self._tell(_line_of(note, tools))
        return turn

    def _answer(self, request: Request) -> ToolSpec | None:
        """The terminal tool, where the answer itself takes the place of its call."""
        wanted = request.tool_choice
        if not self._model.tools_in_prompt or wanted == "none":
            return None
        if isinstance(wanted, Named) and wanted.name != STRUCTURED_OUTPUT:
            return None
        return next((tool for tool in request.tools if tool.name == STRUCTURED_OUTPUT), None)

    def _tell(self, text: str) -> None:
        if text not in self._noted:
            self._noted.add(text)
            self._options.tell(text)

    async def _generate(self, sampling: Sampling, turn: LocalTurn) -> AsyncGenerator[Delta, None]:
        parser = turn.parser()
        deltas = _deltas if turn.response_format is None else _AnswerAsCall().deltas
        steps = turn.steps(sampling)
        count, finish, led = 0, "", False
        try:
            async for step in steps:
                count, led = count + 1, step.led
                for delta in deltas(parser.feed(step.data)):
                    yield delta
                finish = step.finish or finish
        finally:
            await steps.aclose()
        for delta in deltas(parser.close("length" if finish == "length" else "stop")):
            yield delta
        # The speaker has a limit of its own, which no flag moves.
        if led and count > (sampling.max_tokens or 0) // 2:
            self._tell(f"Note: a reply of {count} tokens was led to its end; --max-tokens allows longer ones")
        yield UsageDelta(Usage(len(turn.prompt_ids), count))
        reason = _REASONS.get(parser.finish_reason or "stop", "stop")
        yield Finish("tool_use" if turn.response_format is not None and reason == "stop" else reason)

    def _sampling(self, request: Request, attempt: int) -> Sampling:
        limit = request.max_output_tokens or self._options.max_output_tokens or _MAX_OUTPUT_TOKENS
        wanted = self._options.temperature if request.temperature is None else request.temperature
        temperature = self._temperature if wanted is None else wanted
        # Each turn has a seed of its own, so that a model that fails once does not fail the same way forever.
        seed = None if self._seed is None else self._seed + len(request.turns) + attempt * _NEXT_SEED
        # Text that goes on and on is ended, too: a reply that is cut off would end the run, and a word may help here.
        return Sampling(temperature, seed=seed, max_tokens=limit, soft_limit=max(1, limit * 3 // 4))


class SpeakerProvider(LocalProvider):
    """The embedded speaker: it gives the answer that is asked for, and calls no other tool unless it must."""

    _temperature = 1.0  # thinking again has to give something else

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """The reply: a call of the terminal tool where there is one, or else a few words."""
        if (example := _known_answer(request)) is not None:
            for recited in (ToolStart(0, "", STRUCTURED_OUTPUT), ToolArguments(0, example), ToolEnd(0)):
                yield recited
            yield Finish("tool_use")
            return
        if request.tool_choice == "auto":
            terminal = any(tool.name == STRUCTURED_OUTPUT for tool in request.tools)
            request = replace(request, tool_choice=Named(STRUCTURED_OUTPUT) if terminal else "none")
        # A schema may say more than a grammar can hold. The speaker has nothing to lose by thinking again.
        for attempt in range(_ATTEMPTS):
            deltas = [delta async for delta in self._reply(request, attempt)]
            if _is_valid(deltas, request.tools):
                break
        for delta in deltas:
            yield delta


class _AnswerAsCall:
    """Reads an answer that fits the schema as the call of the terminal tool that it stands for."""

    def __init__(self) -> None:
        self._index: int | None = None
        self._calls = 0

    def deltas(self, events: Sequence[Event]) -> Iterator[Delta]:
        """What the events say."""
        for delta in _deltas(events):
            if isinstance(delta, ToolStart):
                self._calls = delta.index + 1
            if not isinstance(delta, TextDelta):
                yield delta
                continue
            if self._index is None and delta.text.strip():
                self._index = self._calls
                yield ToolStart(self._index, "", STRUCTURED_OUTPUT)
            if self._index is not None:
                yield ToolArguments(self._index, delta.text)
        # The parser closes what it read at the end only.
        if self._index is not None and any(event.kind == "close" and event.region == "content" for event in events):
            yield ToolEnd(self._index)


def _known_answer(request: Request) -> str | None:
    """Arguments that fit for certain, once others were refused: no grammar holds to every schema exactly."""
    last = request.turns[-1] if request.turns else None
    refused = isinstance(last, ToolTurn) and any(
        result.name == STRUCTURED_OUTPUT and result.status == "invalid" for result in last.results
    )
    known = next((tool.example for tool in request.tools if tool.name == STRUCTURED_OUTPUT), None)
    return to_json(dict(known)) if refused and known is not None else None


def local_provider(options: ProviderOptions) -> LocalProvider:
    """The local model that `model` names: a file, a directory, a name; `extra` may name its dialect."""
    try:
        model = load(options.model, dialect=options.extra.get("dialect"), progress=options.progress)
    except DovetailError as error:
        raise ProviderError(f"the model cannot be loaded: {error}") from error
    return LocalProvider(model, options)


def speaker_provider(options: ProviderOptions) -> SpeakerProvider:
    """The speaker, which talks without reasoning: nobody would gain from it."""
    model = load("speaker", dialect=options.extra.get("dialect"), seed=options.seed or 0)
    return SpeakerProvider(model, replace(options, extra={"reasoning": False, **options.extra}), "speaker")


def _lenient(tool: dict[str, Any]) -> dict[str, Any]:
    return tool | {"function": tool["function"] | {"strict": False}}


def _line_of(note: Note, tools: Sequence[ToolSpec]) -> str:
    """A note as a line for people, who know tools by their names."""
    path = note.path
    if match := _TOOL.match(path):
        path = f"{tools[int(match[1])].name}{path[match.end() :]}"
    return f"Note: {path}: {note.text}"


def _is_valid(deltas: Iterable[Delta], tools: Iterable[ToolSpec]) -> bool:
    """Whether the calls of a reply fit the schemas of their tools."""
    names = {delta.index: delta.name for delta in deltas if isinstance(delta, ToolStart)}
    texts = dict.fromkeys(names, "")
    for delta in deltas:
        if isinstance(delta, ToolArguments):
            texts[delta.index] += delta.text
    schemas = {tool.name: tool.parameters for tool in tools}
    try:
        for index, text in texts.items():
            value = from_json(text)
            from_json(to_json(value))  # which fails for numbers that are too large for a float
            if not jsonschema_rs.validator_for(dict(schemas[names[index]]), validate_formats=True).is_valid(value):
                return False
    except ValueError:  # no JSON, or no schema that this validator knows
        return False
    return True


def _deltas(events: Iterable[Event]) -> Iterator[Delta]:
    for event in events:
        match event:
            case Event("open", "tool_call", call_index=index, call=call) if call is not None:
                yield ToolStart(index, call_id(call, index) if call.id else "", call.name)
            case Event("text", "tool_call", text=text, call_index=index) if text:
                yield ToolArguments(index, text)
            case Event("close", "tool_call", call_index=index, call=call) if call is not None and call.complete:
                yield ToolEnd(index)
            case Event("text", "content", text=text) if text:
                yield TextDelta(text)
            case Event("text", "reasoning", text=text) if text:
                yield ThinkingDelta(text)
