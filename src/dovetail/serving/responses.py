"""Responses: the request as an Ask."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from dovetail.messages import Message, ToolCall, Wire
from dovetail.serving.chat import stop_strings
from dovetail.serving.errors import RequestError
from dovetail.serving.fields import MAX_TOP_LOGPROBS, Body, Effort, Extras, Stops
from dovetail.serving.requests import (
    Ask,
    Tools,
    chat_message,
    check_count,
    common,
    continued,
    function,
    join_parts,
    reasoning,
)

_LOGPROBS = "message.output_text.logprobs"


class _Text(Body):
    format: dict[str, Any] | None = None


class _Tool(Body):
    name: Annotated[str, Field(min_length=1)]
    description: str | None = None
    parameters: dict[str, Any] | bool | None = None
    strict: bool | None = None


class _Responses(Extras):
    input: str | list[Any]
    instructions: str | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: Any = None
    parallel_tool_calls: bool | None = None
    text: _Text | None = None
    reasoning: Effort | None = None
    max_output_tokens: Annotated[int, Field(ge=1)] | None = None
    stop: str | Stops | None = None
    include: list[str] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=MAX_TOP_LOGPROBS)] | None = None


def read_responses(body: dict[str, Any]) -> Ask:
    """The Ask of a Responses request."""
    asked = _Responses.read(body)
    messages = _history(asked.input)
    if asked.instructions:
        messages.insert(0, {"role": "system", "content": asked.instructions})
    check_count(messages, "/input")
    if asked.continue_final_message:
        continued(messages, "/input")
    effort = asked.reasoning or Effort()
    mode, kwargs = reasoning(asked, effort.effort, effort.enabled)
    logprobs = _LOGPROBS in (asked.include or ()) or asked.top_logprobs is not None
    return Ask(
        messages=messages,
        tools=_tools(asked.tools),
        tool_choice=asked.tool_choice,
        parallel_tool_calls=asked.parallel_tool_calls is not False,
        reasoning=mode,
        template_kwargs=kwargs,
        continues=bool(asked.continue_final_message),
        max_tokens=asked.max_output_tokens,
        stops=stop_strings(asked.stop),
        top_logprobs=(asked.top_logprobs or 0) if logprobs else None,
        **common(asked, asked.text.format if asked.text else None, "/text/format"),
    )


def _history(items: str | list[Any]) -> list[Wire]:
    """Items as messages: what the model said in one turn, in several items, is one message."""
    if isinstance(items, str):
        return [{"role": "user", "content": items}]
    messages: list[Wire] = []
    turn = Message()
    for index, item in enumerate(items):
        path = f"/input/{index}"
        if not isinstance(item, dict):
            raise RequestError("an item is an object", path, 'write {"role": "user", "content": ...}')
        added = _added(item, path)
        if added is not None:
            turn = Message(
                turn.content + added.content, turn.reasoning + added.reasoning, turn.tool_calls + added.tool_calls
            )
            continue
        if turn != Message():
            messages.append(turn.to_hf())
            turn = Message()
        messages.append(_heard(item, path))
    return messages if turn == Message() else [*messages, turn.to_hf()]


def _added(item: dict[str, Any], path: str) -> Message | None:
    """What an item adds to the model's turn; None where somebody else speaks."""
    match item.get("type", "message"):
        case "reasoning":
            parts = item.get("content") or item.get("summary") or []
            return Message(reasoning=join_parts(parts, f"{path}/content"))
        case "function_call":
            name, arguments, id = (item.get(key) for key in ("name", "arguments", "call_id"))
            if not isinstance(name, str) or not name or not isinstance(arguments, str) or not isinstance(id, str):
                raise RequestError("a call has a name, arguments and a call_id", path, "send all three as texts")
            return Message(tool_calls=(ToolCall.written(name, arguments, id),))
        case "message" if item.get("role") == "assistant":
            content = item.get("content")
            return Message(content if isinstance(content, str) else join_parts(content, f"{path}/content"))
    return None


def _heard(item: dict[str, Any], path: str) -> Wire:
    kind = item.get("type", "message")
    if kind == "function_call_output":
        output, id = item.get("output"), item.get("call_id")
        if not isinstance(id, str):
            raise RequestError("the output of which call?", f"{path}/call_id", "send the call_id")
        text = output if isinstance(output, str) else join_parts(output, f"{path}/output")
        return {"role": "tool", "tool_call_id": id, "content": text}
    if kind != "message":
        raise RequestError(f"items of type {kind!r:.40} are not known here", f"{path}/type", "send messages and calls")
    return chat_message(item, path)


def _tools(tools: list[dict[str, Any]] | None) -> Tools | None:
    """Functions; tools that the interface's own host would run cannot be run here and are left out."""
    if tools is None:
        return None
    made = []
    for index, tool in enumerate(tools):
        if tool.get("type", "function") == "function":
            read = _Tool.at(tool, f"/tools/{index}")
            made.append(
                function(read.name, read.description, read.parameters, read.strict, f"/tools/{index}/parameters")
            )
    return tuple(made)
