"""OpenAI, and the many servers that speak Chat Completions: vLLM, SGLang, llama.cpp, Ollama."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import urlsplit

from dovetail.agent.providers.chat import chat_choice, chat_messages, chat_tool
from dovetail.agent.providers.retrying import Service, status_error
from dovetail.agent.providers.strict import fits
from dovetail.agent.types import (
    AuthenticationError,
    Delta,
    Finish,
    ProviderError,
    ProviderOptions,
    Request,
    TextDelta,
    ThinkingDelta,
    ToolArguments,
    ToolEnd,
    ToolStart,
    Usage,
    UsageDelta,
)
from dovetail.extras import install
from dovetail.messages import to_json

try:
    import httpx2
    import openai
except ImportError as error:
    raise ProviderError(f"the client of OpenAI is not installed: {install('agent')}") from error

_FINISH: dict[str, Literal["stop", "tool_use", "length", "refusal"]] = {
    "tool_calls": "tool_use",
    "function_call": "tool_use",
    "length": "length",
    "content_filter": "refusal",
}


class OpenAIProvider(Service):
    """A model behind Chat Completions."""

    name = "openai"

    def __init__(self, options: ProviderOptions) -> None:
        super().__init__(options)
        self._is_openai = not options.base_url or urlsplit(options.base_url).hostname == "api.openai.com"
        if self._is_openai and not options.api_key:
            raise AuthenticationError("there is no key for OpenAI: set OPENAI_API_KEY")
        self._client = openai.AsyncOpenAI(
            api_key=options.api_key or "none",  # servers of one's own mostly want no key, but the client does
            base_url=options.base_url or None,
            timeout=options.timeout_s,
            max_retries=0,
        )

    async def close(self) -> None:
        """Let connections go."""
        await self._client.close()

    async def _attempt(self, request: Request) -> AsyncGenerator[Delta, None]:
        reader = _Reader()
        try:
            stream = await self._client.chat.completions.create(**self._body(request))
            async with stream:
                async for chunk in stream:
                    for delta in reader.read(chunk):
                        yield delta
        except (openai.OpenAIError, httpx2.HTTPError, ValueError) as error:
            raise _as_provider_error(error) from error
        for delta in reader.finish():
            yield delta

    def _body(self, request: Request) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "messages": chat_messages(request, with_reasoning=not self._is_openai),
            "stream": True,
            "stream_options": {"include_usage": True},
            "extra_body": self._extra or None,
        }
        if request.tools:
            body["tools"] = [
                chat_tool(tool, strict=tool.strict and fits(tool.parameters, "openai")) for tool in request.tools
            ]
            body["tool_choice"] = chat_choice(request.tool_choice)
        options = self._options
        asked: dict[str, Any] = {
            "max_completion_tokens" if self._is_openai else "max_tokens": _first(
                request.max_output_tokens, options.max_output_tokens
            ),
            "temperature": _first(request.temperature, options.temperature),
            "reasoning_effort": options.effort,
            "seed": options.seed,
        }
        return body | {name: value for name, value in asked.items() if value is not None}


def _first(*values: float | None) -> float | None:
    return next((value for value in values if value is not None), None)


@dataclass(slots=True)
class _Call:
    """A call as its pieces come; it begins once its name is known."""

    index: int | None  # as the server counts
    id: str
    name: str = ""
    text: str = ""
    place: int = -1  # among the calls that have begun

    @property
    def is_whole(self) -> bool:
        """Whether the arguments so far are an object: what comes with a name then is another call."""
        try:
            return self.text.rstrip().endswith("}") and isinstance(json.loads(self.text), dict)
        except (ValueError, RecursionError):
            return False

    def continues(self, index: int | None, id: str, names: str) -> bool:
        """Whether a piece with this index, id and name belongs to the call: servers leave out or repeat any of them."""
        if id and self.id and id != self.id:
            return False
        if index is not None and self.index is not None and index != self.index:
            return False
        return not (names and self.name and (names != self.name or self.is_whole))


class _Reader:
    """From chunks to deltas."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._begun = 0
        self._reason = ""
        self._refused = False

    def read(self, chunk: Any) -> Iterator[Delta]:
        if chunk.usage is not None:
            yield UsageDelta(_usage(chunk.usage))
        for choice in chunk.choices or ():
            delta = choice.delta
            extra = delta.model_extra or {}
            # The first name that has text: some servers send it under both.
            thought = extra.get("reasoning_content") or extra.get("reasoning")
            if isinstance(thought, str) and thought:
                yield ThinkingDelta(thought)
            if delta.refusal:
                self._refused = True
                yield TextDelta(delta.refusal)
            if delta.content:
                yield TextDelta(delta.content)
            for piece in delta.tool_calls or ():
                yield from self._piece(piece)
            self._reason = choice.finish_reason or self._reason

    def _piece(self, piece: Any) -> Iterator[Delta]:
        function = piece.function
        name = (function and function.name) or ""
        arguments = (function and function.arguments) or ""
        text = arguments if isinstance(arguments, str) else to_json(arguments)  # an object, as some gateways send it
        call = self._call_of(piece.index, piece.id or "", name)
        if not call.name and name:
            call.name, call.place = name, self._begun
            self._begun += 1
            yield ToolStart(call.place, call.id, name)
            text = call.text + text
            call.text = ""
        call.text += text
        if text and call.name:
            yield ToolArguments(call.place, text)

    def _call_of(self, index: int | None, id: str, name: str) -> _Call:
        """The newest call that a piece continues, else a new one."""
        for call in reversed(self._calls):
            if call.continues(index, id, name):
                call.id = call.id or id
                return call
        self._calls.append(_Call(index, id))
        return self._calls[-1]

    def finish(self) -> Iterator[Delta]:
        if not self._reason:
            raise ProviderError("the stream ended before the reply did", retryable=True)
        for call in self._calls:
            # Of calls that the token limit cut, only those are complete whose arguments are.
            if call.name and (self._reason != "length" or call.is_whole):
                yield ToolEnd(call.place)
        reason = _FINISH.get(self._reason, "tool_use" if self._begun else "stop")
        yield Finish("refusal" if self._refused else reason)


def _usage(usage: Any) -> Usage:
    cached = usage.prompt_tokens_details.cached_tokens if usage.prompt_tokens_details else 0
    return Usage(usage.prompt_tokens or 0, usage.completion_tokens or 0, cached or 0)


def _as_provider_error(error: Exception) -> ProviderError:
    """What went wrong, in our words."""
    match error:
        case openai.APIStatusError():
            return status_error(_message(error), error.status_code, error.response.headers)
        case openai.APITimeoutError() | httpx2.TimeoutException():
            return ProviderError("the model took too long to answer", retryable=True)
        case openai.APIConnectionError() | httpx2.HTTPError():
            return ProviderError(f"the connection broke: {error.__cause__ or error}", retryable=True)
        case openai.APIError():  # an error event inside the stream
            return ProviderError(f"the model's server failed: {error.message}", retryable=True)
        case json.JSONDecodeError():
            return ProviderError("the server sent an event that is not JSON", retryable=True)
        case _:
            return ProviderError(f"the request cannot be made: {error}")


def _message(error: openai.APIStatusError) -> str:
    body = error.body
    message = body.get("message") if isinstance(body, dict) else None
    return f"HTTP {error.status_code}: {message or error.message}"
