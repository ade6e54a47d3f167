"""Claude, through the Messages interface."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from dataclasses import replace
from typing import Any, Literal

from dovetail.agent.providers.catalog import Catalog
from dovetail.agent.providers.chat import alternating, arguments_of
from dovetail.agent.providers.retrying import Service, status_error
from dovetail.agent.providers.strict import fits
from dovetail.agent.types import (
    AssistantTurn,
    AuthenticationError,
    Block,
    Delta,
    Finish,
    Named,
    ProviderError,
    ProviderOptions,
    Request,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolArguments,
    ToolEnd,
    ToolSpec,
    ToolStart,
    ToolTurn,
    ToolUse,
    Turn,
    Usage,
    UsageDelta,
    UserTurn,
)
from dovetail.extras import install

try:
    import anthropic
    import httpx2
except ImportError as error:
    raise ProviderError(f"the client of Anthropic is not installed: {install('agent')}") from error

_MAX_OUTPUT_TOKENS = 16_384  # of models that nobody knows: the interface wants to be told
_THINKING = {"low": 2048, "medium": 8192, "high": 24_576}  # tokens that the model may think
_REDACTED = "redacted:"  # the signature of thoughts that come encrypted
_CHOICES = {"auto": "auto", "required": "any", "none": "none"}
_FINISH: dict[str, Literal["stop", "tool_use", "length", "refusal"]] = {
    "tool_use": "tool_use",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


class AnthropicProvider(Service):
    """A model of Anthropic; `extra` holds further fields of the request, such as `thinking`."""

    name = "anthropic"

    def __init__(self, options: ProviderOptions) -> None:
        if not options.api_key and not options.base_url:
            raise AuthenticationError("there is no key for Anthropic: set ANTHROPIC_API_KEY")
        super().__init__(options)
        known = Catalog().find(options.model)
        self._max_tokens = options.max_output_tokens or known.output or _MAX_OUTPUT_TOKENS
        self._temperature = options.temperature
        if options.effort and known.thinking == "level":
            self._extra.setdefault("output_config", {"effort": options.effort})
        elif options.effort:
            budget = min(_THINKING[options.effort], self._max_tokens - 1024)
            self._extra.setdefault("thinking", {"type": "enabled", "budget_tokens": max(1024, budget)})
        self._client = anthropic.AsyncAnthropic(
            api_key=options.api_key or "none",
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
            stream = await self._client.messages.create(**self._body(request))
            async with stream:
                async for event in stream:
                    for delta in reader.read(event):
                        yield delta
        except (anthropic.AnthropicError, httpx2.HTTPError, ValueError) as error:
            raise _as_provider_error(error) from error

    def _body(self, request: Request) -> dict[str, Any]:
        extra = dict(self._extra)
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": request.max_output_tokens or extra.pop("max_tokens", self._max_tokens),
            "messages": alternating(request.turns, "assistant", "content", _blocks),
            "stream": True,
        }
        # Each mark lets the service reuse everything before it: tools, instructions, and the conversation so far.
        _marked(body["messages"][-1]["content"] if body["messages"] else [])
        if request.system:
            body["system"] = _marked([{"type": "text", "text": request.system}])
        if request.tools:
            body["tools"] = _marked([_tool(tool) for tool in request.tools])
            body["tool_choice"] = (
                {"type": "tool", "name": request.tool_choice.name}
                if isinstance(request.tool_choice, Named)
                else {"type": _CHOICES[request.tool_choice]}
            )
            if request.tool_choice not in ("auto", "none"):
                extra.pop("thinking", None)  # who is told what to call may not think first
        temperature = self._temperature if request.temperature is None else request.temperature
        if temperature is not None and "thinking" not in extra:
            extra["temperature"] = temperature  # which the client does not know, as new models do without
        return body | ({"extra_body": extra} if extra else {})


def _marked(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The blocks, the last of them with the mark up to which the service keeps what it has read."""
    markable = [block for block in blocks if block.get("type") not in ("thinking", "redacted_thinking")]
    if markable:
        markable[-1]["cache_control"] = {"type": "ephemeral"}
    return blocks


def _tool(tool: ToolSpec) -> dict[str, Any]:
    schema = dict(tool.parameters)
    # The interface wants the type at the root said aloud; a tool's arguments are an object anyway.
    made: dict[str, Any] = {"name": tool.name, "input_schema": schema | {"type": "object"}}
    if tool.description:
        made["description"] = tool.description
    return made | ({"strict": True} if tool.strict and fits(schema, "anthropic") else {})


def _blocks(turn: Turn) -> list[dict[str, Any]]:
    match turn:
        case UserTurn(text, images):
            sources = ({"type": "base64", "media_type": i.media_type, "data": i.base64} for i in images)
            pictures = [{"type": "image", "source": source} for source in sources]
            return [*pictures, *([{"type": "text", "text": text}] if text.strip() else [])]
        case ToolTurn(results):
            return [
                {
                    "type": "tool_result",
                    "tool_use_id": result.tool_use_id,
                    "content": result.content,
                    "is_error": result.is_error,
                }
                for result in results
            ]
        case AssistantTurn(blocks):
            made = [wire for block in blocks if (wire := _block(block))]
            # A turn may not consist of thoughts alone.
            return made if any(wire["type"] in ("text", "tool_use") for wire in made) else []


def _block(block: Block) -> dict[str, Any] | None:
    match block:
        case Text(text):
            return {"type": "text", "text": text} if text.strip() else None
        case Thinking(_, signature) if signature.startswith(_REDACTED):
            return {"type": "redacted_thinking", "data": signature.removeprefix(_REDACTED)}
        case Thinking(text, signature):
            return {"type": "thinking", "thinking": text, "signature": signature} if signature else None
        case ToolUse(id, name):
            return {"type": "tool_use", "id": id, "name": name, "input": arguments_of(block)}


class _Reader:
    """From events to deltas."""

    def __init__(self) -> None:
        self._calls: dict[int, int] = {}  # the number of a call by that of its block, which gateways use again
        self._begun = 0
        self._usage = Usage()
        self._reason = ""

    def read(self, event: Any) -> Iterator[Delta]:
        match event.type:
            case "message_start":
                self._usage = _usage(event.message.usage)
                yield UsageDelta(self._usage)
            case "content_block_start":
                yield from self._start(event.index, event.content_block)
            case "content_block_delta":
                yield from self._delta(event.index, event.delta)
            case "content_block_stop" if event.index in self._calls:
                yield ToolEnd(self._calls[event.index])
            case "message_delta":
                self._reason = event.delta.stop_reason or self._reason
                written = event.usage.output_tokens if event.usage else None
                self._usage = replace(self._usage, output_tokens=written or 0)
                yield UsageDelta(self._usage)
            case "message_stop":
                yield Finish(_FINISH.get(self._reason, "stop"))

    def _start(self, index: int, block: Any) -> Iterator[Delta]:
        match block.type:
            case "tool_use":
                self._calls[index] = self._begun
                self._begun += 1
                yield ToolStart(self._calls[index], block.id, block.name)
                if block.input:  # whole at once, as some gateways send it
                    yield ToolArguments(self._calls[index], json.dumps(block.input, ensure_ascii=False))
            case "text" if block.text:
                yield TextDelta(block.text)
            case "thinking" if block.thinking:
                yield ThinkingDelta(block.thinking)
            case "redacted_thinking":
                yield ThinkingDelta(signature=_REDACTED + block.data)

    def _delta(self, index: int, delta: Any) -> Iterator[Delta]:
        match delta.type:
            case "text_delta" if delta.text:
                yield TextDelta(delta.text)
            case "thinking_delta" if delta.thinking:
                yield ThinkingDelta(delta.thinking)
            case "signature_delta":
                yield ThinkingDelta(signature=delta.signature)
            case "input_json_delta" if delta.partial_json and index in self._calls:
                yield ToolArguments(self._calls[index], delta.partial_json)


def _usage(usage: Any) -> Usage:
    cached, written = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    return Usage((usage.input_tokens or 0) + cached + written, usage.output_tokens or 0, cached, written)


def _as_provider_error(error: Exception) -> ProviderError:
    """What went wrong, in our words."""
    match error:
        case anthropic.APIStatusError(status_code=200):  # an error event inside the stream
            return ProviderError(f"the model's server failed: {_message(error)}", retryable=True)
        case anthropic.APIStatusError(status_code=status):
            return status_error(f"HTTP {status}: {_message(error)}", status, error.response.headers)
        case anthropic.APITimeoutError() | httpx2.TimeoutException():
            return ProviderError("the model took too long to answer", retryable=True)
        case anthropic.APIConnectionError() | httpx2.HTTPError():
            return ProviderError(f"the connection broke: {error.__cause__ or error}", retryable=True)
        case anthropic.APIError():
            return ProviderError(f"the model's server failed: {error.message}", retryable=True)
        case json.JSONDecodeError():
            return ProviderError("the server sent an event that is not JSON", retryable=True)
        case _:
            return ProviderError(f"the request cannot be made: {error}")


def _message(error: anthropic.APIStatusError) -> str:
    body = error.body.get("error") if isinstance(error.body, dict) else None
    return str((body.get("message") if isinstance(body, dict) else None) or error.message)
