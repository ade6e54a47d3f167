"""Tools for models whose chat templates have no place for them: told in the system prompt, called in one layout.

Where the dialect of the model has a layout of calls, as one that was named by hand may, it is that one; otherwise a
call is written as Hermes writes it. A result is told by the user between <tool_response> and </tool_response>.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dovetail import dialects
from dovetail.dialects import Dialect
from dovetail.errors import InputError
from dovetail.messages import Message, ToolCall, to_json

NOTE = "the chat template has no place for tools: they are told in the system prompt, in a layout that is not its own"
_TOLD = ("name", "description", "parameters")
_EXAMPLE = (ToolCall.of("NAME", {"ARGUMENT": "VALUE"}),)

Turns = list[dict[str, Any]]


def with_calls(dialect: Dialect) -> Dialect:
    """The dialect with a layout of calls."""
    return dialect if dialect.calls else replace(dialect, calls=dialects.get("hermes").calls[:1])


def tell_tools(dialect: Dialect, turns: Turns, tools: Sequence[Mapping[str, Any]], *, has_system: bool) -> Turns:
    """The chat with its tools in the system prompt, or in front of the first message where there is none.

    Earlier calls and results are text, also where there are no tools any more.
    """
    merged: Turns = []
    for place, turn in enumerate(turns):
        flat = _as_text(dialect, turn)
        if turn["role"] == "tool" and place and turns[place - 1]["role"] == "tool":
            merged[-1]["content"] += "\n" + flat["content"]  # some templates refuse two turns of the user in a row
        else:
            merged.append(flat)
    if not tools:
        return merged
    text = _listed(dialect, tools)
    first = next((turn for turn in merged if turn["role"] == ("system" if has_system else "user")), None)
    if first is None:
        return [{"role": "system" if has_system else "user", "content": text}, *merged]
    both = (first["content"], text) if has_system else (text, first["content"])
    first["content"] = "\n\n".join(filter(None, both))
    return merged


def _listed(dialect: Dialect, tools: Sequence[Mapping[str, Any]]) -> str:
    functions = [tool["function"] for tool in tools]
    listed = "\n".join(to_json({key: one[key] for key in _TOLD if one.get(key)}) for one in functions)
    example = dialect.render(Message(tool_calls=_EXAMPLE))
    return f"You can call these tools:\n{listed}\n\nTo call one, answer with its name and its arguments:\n{example}"


def _as_text(dialect: Dialect, turn: Mapping[str, Any]) -> dict[str, Any]:
    if turn["role"] == "tool":
        return {"role": "user", "content": f"<tool_response>\n{turn['content']}\n</tool_response>"}
    if turn["role"] != "assistant" or not turn.get("tool_calls"):
        return dict(turn)
    message = Message.from_openai(turn)
    # A history is what it is: the text beside the calls may look like markup, which the dialect would refuse to write.
    content = "\n".join(filter(None, (message.content, _written(dialect, message.tool_calls))))
    return {key: value for key, value in turn.items() if key != "tool_calls"} | {"content": content}


def _written(dialect: Dialect, calls: tuple[ToolCall, ...]) -> str:
    try:
        return dialect.render(Message(tool_calls=calls))
    except InputError:
        return "\n".join(to_json({"name": call.name, "arguments": call.value}) for call in calls)
