"""Gemini, through the generateContent interface."""

from __future__ import annotations

import asyncio
import base64
import gc
import json
import re
from collections.abc import AsyncGenerator, Iterator, Mapping
from contextlib import aclosing
from typing import Any, Literal, cast

from dovetail.agent.providers.catalog import Catalog
from dovetail.agent.providers.chat import alternating, arguments_of
from dovetail.agent.providers.retrying import Service, retry_after_s, status_error
from dovetail.agent.types import (
    AssistantTurn,
    AuthenticationError,
    Delta,
    Finish,
    Named,
    ProviderError,
    ProviderOptions,
    Request,
    Text,
    TextDelta,
    ThinkingDelta,
    ToolArguments,
    ToolEnd,
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
    import httpx2
    from google import genai
    from google.genai import errors, types
except ImportError as error:
    raise ProviderError(f"the client of Gemini is not installed: {install('agent')}") from error

_FINISH: dict[str, Literal["stop", "length"]] = {"STOP": "stop", "MAX_TOKENS": "length"}
# The model broke off because of what it wrote itself, which it may not write again.
_SLIPS = frozenset(("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE", "OTHER"))
# The client leaves a broken stream in a cycle of references. Once it is found, the event loop closes it, with a round
# for each of the generators inside each other; left until the loop ends, it would complain on stderr.
_CLOSING_ROUNDS = 20
_THINKING = {"low": 1024, "medium": 8192, "high": 24_576}  # tokens that the model may think
_DELAY = re.compile(r'"retryDelay": "(\d+(?:\.\d+)?)s"')
# A history that another model wrote has no signatures; this one makes the interface do without.
_NO_SIGNATURE = base64.b64encode(b"skip_thought_signature_validator").decode()


class GeminiProvider(Service):
    """A model of Google; `extra` holds further fields of its configuration, such as `thinking_config`."""

    name = "gemini"

    def __init__(self, options: ProviderOptions) -> None:
        if not options.api_key and not options.base_url:
            raise AuthenticationError("there is no key for Gemini: set GEMINI_API_KEY")
        super().__init__(options)
        if options.effort:
            budget = {"thinking_budget": _THINKING[options.effort]}
            by_level = Catalog().find(options.model).thinking == "level"
            thinking = {"thinking_level": options.effort.upper()} if by_level else budget
            self._extra.setdefault("thinking_config", thinking)
        self._broken = False
        http = types.HttpOptions(
            base_url=options.base_url or None,
            timeout=int(options.timeout_s * 1000),
            retry_options=types.HttpRetryOptions(attempts=1),
        )
        self._client = genai.Client(api_key=options.api_key or "none", http_options=http)

    async def close(self) -> None:
        """Let connections go."""
        if self._broken:
            gc.collect()
            for _ in range(_CLOSING_ROUNDS):
                await asyncio.sleep(0)
        await self._client.aio.aclose()
        self._client.close()

    async def _attempt(self, request: Request) -> AsyncGenerator[Delta, None]:
        reader = _Reader()
        contents: Any = alternating(request.turns, "model", "parts", _parts)
        try:
            stream = await self._client.aio.models.generate_content_stream(
                model=self.model, contents=contents, config=self._config(request)
            )
            async with aclosing(cast(AsyncGenerator[Any, None], stream)) as chunks:
                async for chunk in chunks:
                    for delta in reader.read(chunk):
                        yield delta
        except (errors.APIError, httpx2.HTTPError, ValueError) as error:
            self._broken = True
            raise _as_provider_error(error) from error
        for delta in reader.finish():
            yield delta

    def _config(self, request: Request) -> types.GenerateContentConfig:
        options = self._options
        fields: dict[str, Any] = {
            "automatic_function_calling": types.AutomaticFunctionCallingConfig(disable=True),
            "system_instruction": request.system or None,
            "max_output_tokens": request.max_output_tokens or options.max_output_tokens,
            "temperature": options.temperature if request.temperature is None else request.temperature,
            "seed": options.seed,
        }
        if request.tools:
            functions = [
                types.FunctionDeclaration(
                    name=tool.name, description=tool.description, parameters_json_schema=dict(tool.parameters)
                )
                for tool in request.tools
            ]
            fields["tools"] = [types.Tool(function_declarations=functions)]
            fields["tool_config"] = types.ToolConfig(function_calling_config=_calling(request))
        return types.GenerateContentConfig(**fields | self._extra)


def _calling(request: Request) -> types.FunctionCallingConfig:
    """How free the model is to call; with VALIDATED its calls are held to their schemas, as with ANY."""
    match request.tool_choice:
        case Named(name):
            return types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.ANY, allowed_function_names=[name])
        case "required":
            return types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.ANY)
        case "none":
            return types.FunctionCallingConfig(mode=types.FunctionCallingConfigMode.NONE)
        case _:
            strict = any(tool.strict for tool in request.tools)
            modes = types.FunctionCallingConfigMode
            return types.FunctionCallingConfig(mode=modes.VALIDATED if strict else modes.AUTO)


def _parts(turn: Turn) -> list[dict[str, Any]]:
    match turn:
        case UserTurn(text, images):
            pictures = [{"inline_data": {"mime_type": image.media_type, "data": image.data}} for image in images]
            return [*pictures, *([{"text": text}] if text else [])]
        case ToolTurn(results):
            return [
                {
                    "function_response": {
                        "id": result.tool_use_id,
                        "name": result.name,
                        "response": {"error" if result.is_error else "output": result.content},
                    }
                }
                for result in results
            ]
        case AssistantTurn(blocks):
            # Thoughts are summaries, which the interface does not want back.
            texts = [{"text": block.text} for block in blocks if isinstance(block, Text) and block.text]
            calls = [_call(block, first=block is turn.tool_uses[0]) for block in blocks if isinstance(block, ToolUse)]
            return texts + calls


def _call(use: ToolUse, first: bool) -> dict[str, Any]:
    part: dict[str, Any] = {"function_call": {"id": use.id, "name": use.name, "args": arguments_of(use)}}
    signature = use.signature or (_NO_SIGNATURE if first else "")
    return part | ({"thought_signature": signature} if signature else {})


class _Reader:
    """From chunks to deltas; a call comes whole."""

    def __init__(self) -> None:
        self._calls = 0
        self._reason = ""

    def read(self, chunk: Any) -> Iterator[Delta]:
        if chunk.usage_metadata:
            yield UsageDelta(_usage(chunk.usage_metadata))
        if chunk.prompt_feedback and chunk.prompt_feedback.block_reason:
            self._reason = "SAFETY"
        for candidate in (chunk.candidates or ())[:1]:
            for part in (candidate.content and candidate.content.parts) or ():
                yield from self._part(part)
            if candidate.finish_reason:
                self._reason = candidate.finish_reason.value

    def _part(self, part: Any) -> Iterator[Delta]:
        if part.function_call:
            call, index = part.function_call, self._calls
            self._calls += 1
            yield ToolStart(index, call.id or "", call.name or "")
            yield ToolArguments(index, json.dumps(call.args or {}, ensure_ascii=False))
            yield ToolEnd(index, base64.b64encode(part.thought_signature or b"").decode())
        elif part.text:
            yield ThinkingDelta(part.text) if part.thought else TextDelta(part.text)

    def finish(self) -> Iterator[Delta]:
        if not self._reason:
            raise ProviderError("the stream ended before the reply did", retryable=True)
        if self._reason in _SLIPS:
            raise ProviderError(f"the model broke off: {self._reason}", retryable=True)
        reason = _FINISH.get(self._reason)
        yield Finish("refusal" if reason is None else "tool_use" if reason == "stop" and self._calls else reason)


def _usage(usage: Any) -> Usage:
    made = (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
    return Usage(usage.prompt_token_count or 0, made, usage.cached_content_token_count or 0)


def _as_provider_error(error: Exception) -> ProviderError:
    """What went wrong, in our words."""
    match error:
        case errors.APIError():
            return _of_status(error)
        case httpx2.TimeoutException():
            return ProviderError("the model took too long to answer", retryable=True)
        case httpx2.HTTPError():
            return ProviderError(f"the connection broke: {error}", retryable=True)
        case json.JSONDecodeError() | errors.UnknownApiResponseError():
            return ProviderError("the server sent an event that is not JSON", retryable=True)
        case _:
            return ProviderError(f"the request cannot be made: {error}")


def _of_status(error: errors.APIError) -> ProviderError:
    status = error.code if isinstance(error.code, int) else 500
    headers: Mapping[str, str] = getattr(error.response, "headers", None) or {}
    problem = status_error(f"HTTP {status}: {error.message or error.status or 'no reason given'}", status, headers)
    if problem.retryable and retry_after_s(headers) is None:
        # The interface names the pause in the body: {"@type": ".../RetryInfo", "retryDelay": "17s"}.
        delay = _DELAY.search(json.dumps(error.details, default=str))
        problem.retry_after_s = float(delay[1]) if delay else None
    return problem
