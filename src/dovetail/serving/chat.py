"""Chat Completions: the request as an Ask."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from dovetail.serving.errors import RequestError
from dovetail.serving.fields import MAX_CHOICES, MAX_TOP_LOGPROBS, Body, Effort, Extras, Stops
from dovetail.serving.requests import Ask, Tools, chat_message, check_count, common, continued, function, reasoning


class _StreamOptions(Body):
    include_usage: bool = False


class _Function(Body):
    name: Annotated[str, Field(min_length=1)]
    description: str | None = None
    parameters: dict[str, Any] | bool | None = None
    strict: bool | None = None


class _Tool(Body):
    type: Literal["function"] = "function"
    function: _Function


class _Chat(Extras):
    messages: list[Any]
    tools: list[_Tool] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    response_format: dict[str, Any] | None = None
    reasoning: Effort | None = None
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    stop: str | Stops | None = None
    n: Annotated[int, Field(ge=1, le=MAX_CHOICES)] | None = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MAX_TOP_LOGPROBS)] | None = None
    stream_options: _StreamOptions | None = None


def read_chat(body: dict[str, Any]) -> Ask:
    """The Ask of a Chat Completions request."""
    chat = _Chat.read(body)
    check_count(chat.messages, "/messages")
    messages = [chat_message(message, f"/messages/{i}") for i, message in enumerate(chat.messages)]
    if chat.continue_final_message:
        continued(messages, "/messages")
    if chat.top_logprobs and not chat.logprobs:
        raise RequestError("top_logprobs is given without logprobs", "/top_logprobs", "add logprobs: true")
    asked = chat.reasoning or Effort()
    mode, kwargs = reasoning(chat, asked.effort, asked.enabled)
    return Ask(
        messages=messages,
        tools=None if chat.tools is None else _tools(chat.tools),
        tool_choice=chat.tool_choice,
        parallel_tool_calls=chat.parallel_tool_calls is not False,
        reasoning=mode,
        template_kwargs=kwargs,
        continues=bool(chat.continue_final_message),
        max_tokens=chat.max_completion_tokens or chat.max_tokens,
        stops=stop_strings(chat.stop),
        choices=chat.n or 1,
        top_logprobs=(chat.top_logprobs or 0) if chat.logprobs else None,
        include_usage=bool(chat.stream_options and chat.stream_options.include_usage),
        **common(chat, chat.response_format),
    )


def _tools(tools: list[_Tool]) -> Tools:
    return tuple(
        function(it.name, it.description, it.parameters, it.strict, f"/tools/{index}/function/parameters")
        for index, it in enumerate(tool.function for tool in tools)
    )


def stop_strings(stop: str | list[str] | None) -> tuple[str, ...]:
    """Stop strings as a tuple; an empty one stops nothing."""
    return tuple(text for text in ([stop] if isinstance(stop, str) else stop or []) if text)
