"""Tools and messages that the tests of dialects share."""

from __future__ import annotations

from typing import Any

from dovetail.messages import Message, ToolCall

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "loud": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["city"],
}
TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "get_weather", "description": "Forecast.", "parameters": WEATHER}},
    {
        "type": "function",
        "function": {"name": "ping", "description": "Echo.", "parameters": {"type": "object", "properties": {}}},
    },
]
ANSWER: dict[str, Any] = {
    "type": "json_schema",
    "json_schema": {
        "name": "answer",
        "schema": {"type": "object", "properties": {"ok": {"enum": ["yes", "no"]}}, "required": ["ok"]},
    },
}
NAMED = {"type": "function", "function": {"name": "get_weather"}}

CALL = ToolCall.of("get_weather", {"city": "Rome"}, "000000001")
FULL = ToolCall.of("get_weather", {"city": "Oslo é", "days": 3, "loud": True, "tags": ["a", "b"]}, "000000002")
PING = ToolCall.of("ping", {}, "000000003")
MESSAGES = {
    "text": Message("Hello, world!\nHow are you?"),
    "reasoned text": Message("Hello.", "Let me think."),
    "call": Message(tool_calls=(CALL,)),
    "reasoned call": Message("", "I need the weather.", (CALL,)),
    "text and calls": Message("One moment.", "Two calls.", (FULL, PING)),
    "empty arguments": Message(tool_calls=(PING,)),
}
