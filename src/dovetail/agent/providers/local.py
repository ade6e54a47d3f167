"""Models in this process, held by a grammar to their dialect, the tools and their schemas."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator
from dataclasses import replace
from typing import Any, Literal

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
    ToolStart,
    ToolTurn,
    Usage,
    UsageDelta,
)
from dovetail.engine import compile
from dovetail.errors import DovetailError, InputError, LimitError, SchemaError
from dovetail.formats import StructuralTag
from dovetail.messages import call_id, to_json
from dovetail.models import Model, Prompt, Sampling, load
from dovetail.parsing.events import Event

_MAX_OUTPUT_TOKENS = 8192
_REASONS: dict[str, Literal["stop", "tool_use", "length"]] = {"tool_calls": "tool_use", "length": "length"}


class LocalProvider:
    """A local model; what it calls is valid by construction, wherever the schema can be held exactly."""

    forces_tools = True

    def __init__(self, model: Model, options: ProviderOptions, name: str = "local") -> None:
        self.name = name
        self.model = model.name
        self._model = model
        self._seed = options.seed
        self._reasoning = bool(options.extra.get("reasoning", True))
        self._template_options = options.extra.get("chat_template_kwargs", {})
        self._timeout_s = options.timeout_s

    async def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """The reply while it is being generated."""
        try:
            prompt, tag, tools = await asyncio.to_thread(self._prepare, request)
            async with asyncio.timeout(self._timeout_s):
                async for delta in self._generate(request, prompt, tag, tools):
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

    def _prepare(self, request: Request) -> tuple[Prompt, StructuralTag, list[dict[str, Any]]]:
        tools = [chat_tool(tool) for tool in request.tools]
        prompt = self._model.render(
            chat_messages(request, with_reasoning=True),
            tools,
            reasoning=self._reasoning,
            options=self._template_options,
        )
        try:
            return prompt, self._format(request, tools), tools
        except (SchemaError, LimitError):
            tools = [self._held(tool) for tool in tools]
            return prompt, self._format(request, tools), tools

    def _format(self, request: Request, tools: list[dict[str, Any]]) -> StructuralTag:
        choice = chat_choice(request.tool_choice) if tools else "none"
        tag = self._model.dialect.format(tools or None, choice, reasoning=self._reasoning)
        compile(tag.format, self._model.vocabulary)  # here, in a thread, where its errors can still be cured
        return tag

    def _held(self, tool: dict[str, Any]) -> dict[str, Any]:
        """The tool, or where no grammar holds to its schema, the tool with arguments of any kind."""
        try:
            compile(self._model.dialect.format([tool], "required").format, self._model.vocabulary)
        except InputError:
            return tool | {"function": tool["function"] | {"strict": False}}
        return tool

    async def _generate(
        self, request: Request, prompt: Prompt, tag: StructuralTag, tools: list[dict[str, Any]]
    ) -> AsyncGenerator[Delta, None]:
        ids = self._model.encode(prompt.text)
        parser = self._model.dialect.parser(tools or None, prompt.text, reasoning=self._reasoning)
        limit = request.max_output_tokens or _MAX_OUTPUT_TOKENS
        steps = self._model.generate(ids, tag.format, self._sampling(request, limit), prefix=prompt.prefix)
        count, finish = 0, ""
        try:
            async for step in steps:
                count += 1
                for delta in _deltas(parser.feed(step.data)):
                    yield delta
                finish = step.finish or finish
        finally:
            await steps.aclose()
        for delta in _deltas(parser.close("length" if finish == "length" else "stop")):
            yield delta
        yield UsageDelta(Usage(len(ids), count))
        yield Finish(_REASONS.get(parser.finish_reason or "stop", "stop"))

    def _sampling(self, request: Request, limit: int) -> Sampling:
        temperature = 1.0 if request.temperature is None else request.temperature
        # Each turn has a seed of its own, so that a model that fails once does not fail the same way for ever.
        seed = None if self._seed is None else self._seed + len(request.turns)
        # Some of the tokens are kept for the way to the end, because an answer that is cut off is none.
        kept = max(limit // 4, min(256, limit // 2))
        return Sampling(temperature, seed=seed, max_tokens=limit, soft_limit=max(1, limit - kept))


class SpeakerProvider(LocalProvider):
    """The embedded speaker: it gives the answer that is asked for, and calls no other tool unless it must."""

    def stream(self, request: Request) -> AsyncGenerator[Delta, None]:
        """The reply: a call of the terminal tool where there is one, or else a few words."""
        example = _known_answer(request)
        if example is not None:
            return _recited(example)
        if request.tool_choice == "auto":
            terminal = any(tool.name == STRUCTURED_OUTPUT for tool in request.tools)
            request = replace(request, tool_choice=Named(STRUCTURED_OUTPUT) if terminal else "none")
        return super().stream(request)


def _known_answer(request: Request) -> str | None:
    """Arguments that fit for certain, once others were refused: no grammar holds to every schema exactly."""
    last = request.turns[-1] if request.turns else None
    refused = isinstance(last, ToolTurn) and any(
        result.name == STRUCTURED_OUTPUT and result.status == "invalid" for result in last.results
    )
    known = next((tool.example for tool in request.tools if tool.name == STRUCTURED_OUTPUT), None)
    return to_json(dict(known)) if refused and known is not None else None


async def _recited(arguments: str) -> AsyncGenerator[Delta, None]:
    yield ToolStart(0, "", STRUCTURED_OUTPUT)
    yield ToolArguments(0, arguments)
    yield ToolEnd(0)
    yield Finish("tool_use")


def local_provider(options: ProviderOptions) -> LocalProvider:
    """The Transformers model in the directory that `model` names; `extra` may name its dialect."""
    try:
        model = load(options.model, dialect=options.extra.get("dialect"))
    except DovetailError as error:
        raise ProviderError(f"the model cannot be loaded: {error}") from error
    return LocalProvider(model, options)


def speaker_provider(options: ProviderOptions) -> SpeakerProvider:
    """The speaker, which talks without reasoning: nobody would gain from it."""
    model = load("speaker", dialect=options.extra.get("dialect"), seed=options.seed or 0)
    return SpeakerProvider(model, replace(options, extra={"reasoning": False, **options.extra}), "speaker")


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
