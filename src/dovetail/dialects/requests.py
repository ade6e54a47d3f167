"""What a request says about tools and reasoning, in every form that servers take, as one small value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, cast

from dovetail.errors import DialectError

Choice = Literal["auto", "required", "forced"]
ReasoningMode = Literal["enabled", "disabled", "auto"]
_MODES = ("auto", "required")


@dataclass(frozen=True, slots=True)
class Tool:
    """A tool that may be called: the name that the model writes, and the schema of its arguments."""

    name: str
    parameters: dict[str, Any] | bool = True
    builtin: str = ""  # the type of a hosted tool; functions have none


@dataclass(frozen=True, slots=True)
class Request:
    """The tools that may be called, and what is asked of the turn."""

    tools: tuple[Tool, ...] = ()
    choice: Choice = "auto"
    reasoning: ReasoningMode = "enabled"
    parallel: bool = True


def read_request(tools: Any, tool_choice: Any, reasoning: Any, parallel_tool_calls: Any) -> Request:
    """The request behind these arguments; a DialectError tells which of them makes no sense."""
    chosen, choice = _chosen(_tools(tools), tool_choice)
    if choice != "auto" and not chosen:
        problem = f"tool_choice is {choice!r}, but there is no tool to call"
        raise DialectError(problem, "/tools", 'list the tools, or say "auto"')
    if isinstance(reasoning, bool):
        reasoning = "enabled" if reasoning else "disabled"
    if reasoning not in ("enabled", "disabled", "auto"):
        problem = f"reasoning is {reasoning!r}"
        raise DialectError(problem, "/reasoning", 'use true, false, "enabled", "disabled" or "auto"')
    if not isinstance(parallel_tool_calls, bool):
        problem = f"parallel_tool_calls is {parallel_tool_calls!r}"
        raise DialectError(problem, "/parallel_tool_calls", "use true or false")
    return Request(chosen, choice, cast(ReasoningMode, reasoning), parallel_tool_calls)


def parameters(tools: Any) -> dict[str, Any] | None:
    """The schema of each tool's arguments by its name, also where no format has to hold to it."""
    if tools is None:
        return None
    mappings = [_as_mapping(tool) for tool in tools] if isinstance(tools, list | tuple) else tools
    known = _tools(mappings)
    return {tool.name: _given(raw) for tool, raw in zip(known, mappings, strict=True)}


def _given(tool: Mapping[str, Any]) -> Any:
    inner = tool.get("function")
    return (inner if isinstance(inner, Mapping) else tool).get("parameters")


def _tools(tools: Any) -> tuple[Tool, ...]:
    if tools is None:
        return ()
    if not isinstance(tools, list | tuple):
        raise DialectError(f"tools must be a list, not {type(tools).__name__}", "/tools", "pass a list of tools")
    return tuple(_tool(_as_mapping(tool), f"/tools/{index}") for index, tool in enumerate(tools))


def _as_mapping(value: Any) -> Any:
    """Client libraries pass their own models, which know how to become a dict."""
    dump = getattr(value, "model_dump", None)
    return dump(exclude_none=True) if callable(dump) and not isinstance(value, type) else value


def _tool(tool: Any, path: str) -> Tool:
    if (
        isinstance(tool, Mapping)
        and isinstance(tool.get("function"), Mapping)
        and tool.get("type", "function") == "function"
    ):
        return _function(tool["function"], path + "/function")
    if isinstance(tool, Mapping) and tool.get("type") == "function" and "name" in tool:
        return _function(tool, path)  # the flat form of the Responses interface
    if isinstance(tool, Mapping) and isinstance(tool.get("type"), str) and tool["type"] not in ("", "function"):
        name = _text(tool.get("name", tool["type"]), path + "/name")
        return Tool(name, _parameters(tool.get("parameters"), path + "/parameters"), tool["type"])
    fix = 'write {"type": "function", "function": {"name": ..., "parameters": {...}}}'
    raise DialectError("this is neither a function nor a hosted tool", path, fix)


def _function(function: Mapping[str, Any], path: str) -> Tool:
    name = _text(function.get("name"), path + "/name")
    parameters = _parameters(function.get("parameters"), path + "/parameters")
    return Tool(name, True if function.get("strict") is False else parameters)


def _parameters(parameters: Any, path: str) -> dict[str, Any] | bool:
    if parameters is None:
        return True
    if isinstance(parameters, dict | bool):
        return parameters
    problem = f"the parameters are {type(parameters).__name__}, not a JSON Schema"
    raise DialectError(problem, path, "pass a schema object, true, or nothing")


def _text(value: Any, path: str) -> str:
    if isinstance(value, str) and value:
        return value
    raise DialectError(f"a tool needs a name, not {value!r}", path, "name the tool")


def _chosen(tools: tuple[Tool, ...], choice: Any) -> tuple[tuple[Tool, ...], Choice]:
    """The tools that `tool_choice` leaves, and how many of them have to be called."""
    choice = _as_mapping(choice)
    if choice == "none":
        return (), "auto"
    if choice is None or choice == "auto":
        return tools, "auto"
    if choice == "required":
        return tools, "required"
    if not isinstance(choice, Mapping) or not isinstance(choice.get("type"), str):
        fix = 'use "auto", "none", "required", or an object that names a tool'
        raise DialectError(f"tool_choice is {choice!r}", "/tool_choice", fix)
    if choice["type"] == "allowed_tools":
        return _allowed(tools, choice)
    named = [tool for tool in tools if _refers(choice, tool, "/tool_choice")]
    if len(named) == 1:
        return tuple(named), "forced"
    what = "is not in the list of tools" if not named else f"fits {len(named)} tools"
    fix = f"choose one of {', '.join(tool.builtin or tool.name for tool in tools) or 'the tools that you list'}"
    raise DialectError(f"tool_choice asks for {_referred(choice)!r}, which {what}", "/tool_choice", fix)


def _allowed(tools: tuple[Tool, ...], choice: Mapping[str, Any]) -> tuple[tuple[Tool, ...], Choice]:
    allowed = choice.get("allowed_tools", choice)  # the Responses interface has no envelope
    path = "/tool_choice/allowed_tools"
    mode = allowed.get("mode", "auto") if isinstance(allowed, Mapping) else None
    refs = allowed.get("tools") if isinstance(allowed, Mapping) else None
    if mode not in _MODES or not isinstance(refs, list | tuple):
        fix = 'write {"mode": "auto" or "required", "tools": [...]}'
        raise DialectError("allowed_tools needs a mode and a list of tools", path, fix)
    kept: set[Tool | int] = set()
    for index, ref in enumerate(refs):
        where = f"{path}/tools/{index}"
        ref = _as_mapping(ref)
        if not isinstance(ref, Mapping) or not isinstance(ref.get("type", "function"), str):
            raise DialectError("this names no tool", where, 'write {"type": "function", "function": {"name": ...}}')
        places = [place for place, tool in enumerate(tools) if _refers(ref, tool, where)]
        if not places:
            raise DialectError(
                f"{_referred(ref)!r} is not in the list of tools", where, "add it there, or drop it here"
            )
        kept.update(places)
    return tuple(tool for place, tool in enumerate(tools) if place in kept), cast(Choice, mode)


def _refers(ref: Mapping[str, Any], tool: Tool, path: str) -> bool:
    """Functions are known by name and hosted tools by type."""
    if ref.get("type", "function") == "function":
        return not tool.builtin and tool.name == _text(_referred(ref), path + "/function/name")
    return bool(tool.builtin == ref["type"])


def _referred(ref: Mapping[str, Any]) -> Any:
    if ref.get("type", "function") != "function":
        return ref["type"]
    inner = ref.get("function", ref)
    return inner.get("name") if isinstance(inner, Mapping) else None
