"""Messages: the request as an Ask."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from dovetail.messages import Message, ToolCall, Wire
from dovetail.serving.errors import RequestError
from dovetail.serving.fields import Body, Extras, Stops, Thinking
from dovetail.serving.requests import Ask, Tools, check_count, common, function, join_parts, reasoning


class _ToolChoice(Body):
    type: Literal["auto", "any", "tool", "none"]
    name: str | None = None
    disable_parallel_tool_use: bool = False


class _OutputConfig(Body):
    effort: str | None = None
    format: dict[str, Any] | None = None


class _Tool(Body):
    name: str
    description: str | None = None
    input_schema: dict[str, Any]
    strict: bool | None = None


class _Messages(Extras):
    messages: list[Any]
    max_tokens: Annotated[int, Field(ge=1)] | None = None
    system: str | list[Any] | None = None
    tools: list[dict[str, Any]] | None = None
    tool_choice: _ToolChoice | None = None
    thinking: Thinking | None = None
    output_config: _OutputConfig | None = None
    output_format: dict[str, Any] | None = None
    stop_sequences: Stops | None = None


_THOUGHTS = ("thinking", "redacted_thinking")


def read_messages(body: dict[str, Any]) -> Ask:
    """The Ask of a Messages request."""
    asked = _Messages.read(body)
    check_count(asked.messages, "/messages")
    messages = _system(asked.system)
    for index, message in enumerate(asked.messages):
        messages += _message(message, f"/messages/{index}")
    config = asked.output_config or _OutputConfig()
    # Thinking is off in this interface unless it is asked for.
    enabled = asked.thinking is not None and asked.thinking.type != "disabled"
    mode, kwargs = reasoning(asked, config.effort if enabled else None, enabled)
    choice = asked.tool_choice or _ToolChoice(type="auto")
    where = "/output_config/format" if config.format is not None else "/output_format"
    return Ask(
        messages=messages,
        tools=_tools(asked.tools),
        tool_choice=_choice(choice),
        parallel_tool_calls=not choice.disable_parallel_tool_use,
        reasoning=mode,
        template_kwargs=kwargs,
        continues=messages[-1]["role"] == "assistant" and not messages[-1].get("tool_calls"),
        max_tokens=asked.max_tokens,
        stops=tuple(text for text in asked.stop_sequences or () if text),
        **common(asked, config.format if config.format is not None else asked.output_format, where),
    )


def _system(system: str | list[Any] | None) -> list[Wire]:
    text = system if isinstance(system, str) or system is None else join_parts(system, "/system")
    return [{"role": "system", "content": text}] if text else []


def _message(message: Any, path: str) -> list[Wire]:
    """One message as several: the results of tools come before what the user says."""
    if not isinstance(message, dict) or message.get("role") not in ("user", "assistant", "system"):
        raise RequestError("a message has the role user or assistant", f"{path}/role", "send it as one of them")
    content = message.get("content")
    role = message["role"]
    if isinstance(content, str):
        return [{"role": role, "content": content}]
    if not isinstance(content, list):
        raise RequestError("content is a text or a list of blocks", f"{path}/content", "write it as a string")
    blocks = [_block(block, f"{path}/content/{index}") for index, block in enumerate(content)]
    if role == "assistant":
        return [_assistant(blocks, path)]
    results = [
        _result(block, f"{path}/content/{i}") for i, block in enumerate(blocks) if block["type"] == "tool_result"
    ]
    rest = [block for block in blocks if block["type"] != "tool_result"]
    turns: list[Wire] = [{"role": role, "content": join_parts(rest, f"{path}/content")}] if rest or not results else []
    return results + turns


def _block(block: Any, path: str) -> dict[str, Any]:
    if isinstance(block, dict) and isinstance(block.get("type"), str):
        return block
    raise RequestError("a block is an object with a type", path, 'write {"type": "text", "text": ...}')


def _assistant(blocks: list[dict[str, Any]], path: str) -> Wire:
    text, thinking = "", ""
    calls: list[ToolCall] = []
    for index, block in enumerate(blocks):
        where = f"{path}/content/{index}"
        match block["type"]:
            case "thinking":
                thinking += _text(block, "thinking", where)
            case "redacted_thinking":
                pass  # nobody but its author can read it
            case "tool_use":
                calls.append(_call(block, where))
            case _:
                text += join_parts([block], f"{path}/content")
    return Message(text, thinking, tuple(calls)).to_hf()


def _call(block: dict[str, Any], path: str) -> ToolCall:
    given = block.get("input")
    if given is not None and not isinstance(given, dict):
        raise RequestError("the input of a call is an object", f"{path}/input", "send an object")
    return ToolCall.of(_text(block, "name", path), given, _text(block, "id", path))


def _text(block: dict[str, Any], key: str, path: str) -> str:
    if isinstance(block.get(key), str):
        return str(block[key])
    raise RequestError(f"`{key}` has to be a text", f"{path}/{key}", "write it as a string")


def _result(block: dict[str, Any], path: str) -> Wire:
    content = block.get("content")
    if content is None:
        text = ""
    elif isinstance(content, str):
        text = content
    else:
        text = join_parts(content, f"{path}/content")
    return {"role": "tool", "tool_call_id": _text(block, "tool_use_id", path), "content": text}


def _tools(tools: list[dict[str, Any]] | None) -> Tools | None:
    """Tools as functions; those that the interface's own host would run cannot be run here and are left out."""
    if tools is None:
        return None
    made = []
    for index, tool in enumerate(tools):
        if "input_schema" in tool or tool.get("type", "custom") == "custom":
            read = _Tool.at(tool, f"/tools/{index}")
            place = f"/tools/{index}/input_schema"
            made.append(function(read.name, read.description, read.input_schema, read.strict, place))
    return tuple(made)


def _choice(choice: _ToolChoice) -> Any:
    match choice.type:
        case "any":
            return "required"
        case "tool":
            return {"type": "function", "function": {"name": choice.name or ""}}
    return choice.type
