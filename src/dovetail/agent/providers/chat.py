"""A run's turns in the shape of Chat Completions, which chat templates read too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from dovetail.agent.types import (
    AssistantTurn,
    Image,
    Named,
    Request,
    Text,
    Thinking,
    ToolChoice,
    ToolSpec,
    ToolTurn,
    ToolUse,
    Turn,
    UserTurn,
)
from dovetail.messages import to_json

# Services and templates take only objects for arguments, so what is none is shown to the model inside of one.
INVALID = "_invalid_json"


def arguments_of(use: ToolUse) -> dict[str, Any]:
    """The arguments of a call as an object, whatever the model wrote."""
    return dict(use.value) if use.value is not None else {INVALID: use.arguments}


def alternating(
    turns: Sequence[Turn], assistant: str, key: str, parts_of: Callable[[Turn], list[dict[str, Any]]]
) -> list[dict[str, Any]]:
    """Turns as messages with their parts under `key`, for services whose roles alternate: neighbors become one."""
    messages: list[dict[str, Any]] = []
    for turn in turns:
        role = assistant if isinstance(turn, AssistantTurn) else "user"
        parts = parts_of(turn)
        if parts and messages and messages[-1]["role"] == role:
            messages[-1][key] += parts
        elif parts:
            messages.append({"role": role, key: parts})
    return messages


def chat_messages(request: Request, with_reasoning: bool) -> list[dict[str, Any]]:
    """System prompt and turns as messages; reasoning under the name that open servers know it by."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": request.system}] if request.system else []
    for turn in request.turns:
        match turn:
            case UserTurn(text, images):
                messages.append({"role": "user", "content": _content(text, images)})
            case AssistantTurn():
                messages += _assistant(turn, with_reasoning)
            case ToolTurn(results):
                messages += [
                    {"role": "tool", "tool_call_id": result.tool_use_id, "name": result.name, "content": result.content}
                    for result in results
                ]
    return messages


def _content(text: str, images: Sequence[Image]) -> str | list[dict[str, Any]]:
    """What the user said, as a plain string where there are no pictures."""
    if not images:
        return text
    urls = [f"data:{image.media_type};base64,{image.base64}" for image in images]
    return [{"type": "text", "text": text}, *({"type": "image_url", "image_url": {"url": url}} for url in urls)]


def _assistant(turn: AssistantTurn, with_reasoning: bool) -> list[dict[str, Any]]:
    text = "".join(block.text for block in turn.blocks if isinstance(block, Text))
    if not text and not turn.tool_uses:
        return []  # a turn of nothing but thoughts; services refuse empty messages
    message: dict[str, Any] = {"role": "assistant", "content": text or None}
    reasoning = "".join(block.text for block in turn.blocks if isinstance(block, Thinking))
    if reasoning and with_reasoning:
        message["reasoning_content"] = reasoning
    if turn.tool_uses:
        message["tool_calls"] = [
            {
                "id": use.id,
                "type": "function",
                "function": {"name": use.name, "arguments": to_json(arguments_of(use))},
            }
            for use in turn.tool_uses
        ]
    return [message]


def chat_tool(tool: ToolSpec, parameters: Mapping[str, Any] | None = None, strict: bool = False) -> dict[str, Any]:
    """A tool as a function."""
    function = {"name": tool.name, "description": tool.description, "parameters": dict(parameters or tool.parameters)}
    return {"type": "function", "function": function | ({"strict": True} if strict else {})}


def chat_choice(choice: ToolChoice) -> Literal["auto", "required", "none"] | dict[str, Any]:
    """The tool choice."""
    return {"type": "function", "function": {"name": choice.name}} if isinstance(choice, Named) else choice
