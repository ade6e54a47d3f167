"""The messages by which each feature is tried; none of them was used to analyze the template."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from dovetail.dialects import Dialect
from dovetail.dialects.format_builder import call_pieces
from dovetail.messages import Message, ToolCall
from dovetail.parsing.layouts import ID

_WEATHER = ToolCall.of("get_weather", {"city": "Paris", "days": 3})
_TIME = ToolCall.of("get_time", {"zone": "Europe/Paris"})
_NESTED = {
    "filter": {"tags": ["a", "b"], "range": {"min": 1.5, "max": 1e3}, "exact": True},
    "empty": {},
    "none": [],
    "rows": [[1, 2], [3]],
    "limit": -10,
}
_TEXTS = (
    {"text": "naïve 猫 🦊 — “quoted”", "other": "Ω"},
    {"text": "{brace} [x] (y) <b> a=b, c: d", "other": "100%"},
    {"text": 'say "hello"', "path": "C:\\new"},
    {"text": "it's", "other": "'"},
)
_KINDS = {"count": 7, "share": 2.5, "on": True, "code": "02134", "below": -3}
_QUOTES = {"code": 'print("it\'s")\\n', "tags": ['a"b']}
_BLANKS = {"code": "def f():\n    return 1\n\n\tx = y", "spaced": "two  spaces"}

PROBES: dict[str, tuple[Message, ...]] = {
    "reasoning": (
        Message("It is noon.", "Let me think.\n\nThe clock says 12."),
        Message("", "I have to look it up.", (_WEATHER,)),
        Message("One moment.", "I have to look it up.\n\nBoth.", (_WEATHER, ToolCall.of("ping", {}))),
    ),
    "content": (
        Message("The answer is 42."),
        Message("1. one\n2. two\n\n```python\nprint({'a': [1, 2]})\n```"),
    ),
    "call": (
        Message("", "", (_WEATHER,)),
        Message("I will look it up.", "", (_WEATHER,)),
        Message("", "", (ToolCall.of("ping", {}),)),
        Message("", "", (ToolCall.of("set", _KINDS),)),
    ),
    "parallel": (
        Message("", "", (_WEATHER, _TIME)),
        Message("", "", (_TIME, ToolCall.of("get_time", {"zone": "Asia/Tokyo"}), _WEATHER)),
    ),
    "nested": (
        Message("", "", (ToolCall.of("search", _NESTED),)),
        Message("", "", (ToolCall.of("search", {"query": "x", "after": None, "page": {"next": None}}),)),
    ),
    "unicode": (
        *(Message("", "", (ToolCall.of("translate", texts),)) for texts in (*_TEXTS, _QUOTES)),
        Message("Grüße, 世界 🌍!"),
    ),
    "whitespace": (
        Message("", "", (ToolCall.of("run", _BLANKS),)),
        Message("one\n\n\n  two\n\tthree"),
    ),
    "ids": (Message("", "", (_WEATHER, _TIME)), Message("", "", (_WEATHER,))),
}


def tools_of(message: Message) -> list[dict[str, Any]]:
    """The tools that a message calls, declared by the arguments that they are called with."""
    tools: dict[str, dict[str, Any]] = {}
    for call in message.tool_calls:
        function = {"name": call.name, "description": f"Calls {call.name}.", "parameters": schema_of(call.value)}
        tools[call.name] = {"type": "function", "function": function}
    return list(tools.values())


def schema_of(value: Any) -> dict[str, Any]:
    """A schema that says no more than the types in a value."""
    match value:
        case bool():
            return {"type": "boolean"}
        case int():
            return {"type": "integer"}
        case float():
            return {"type": "number"}
        case str():
            return {"type": "string"}
        case None:
            return {"anyOf": [{"type": "string"}, {"type": "null"}]}
        case list():
            kinds = [schema_of(item) for item in value]
            return {"type": "array", "items": kinds[0] if kinds and all(kind == kinds[0] for kind in kinds) else {}}
        case _:
            properties = {key: schema_of(item) | {"description": f"The {key}."} for key, item in value.items()}
            return {
                "type": "object",
                "properties": properties,
                "required": [key for key in value if value[key] is not None],
            }


def writes_ids(dialect: Dialect) -> bool:
    """Whether the calls of a dialect tell their ids."""
    return bool(dialect.calls) and ID in call_pieces(dialect.calls[0].call)


def with_ids(message: Message, dialect: Dialect) -> Message:
    """The message with an id for each call, such as the dialect can write."""
    calls = [replace(call, id=_id(dialect, call.name, index)) for index, call in enumerate(message.tool_calls)]
    return replace(message, tool_calls=tuple(calls))


def _id(dialect: Dialect, name: str, index: int) -> str:
    letters = f"abcdefg{index:02}"  # nine letters and digits, which some templates demand
    if not writes_ids(dialect):
        return letters
    way = dialect.calls[0]
    for own in (letters, f"call_{letters}", str(index + way.first_id)):
        if re.fullmatch(way.id_pattern, own):
            return way.id_template.format(name=name, id=own)
    return letters
