"""What a response says in the shape that all readers share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from dovetail.messages import REASONING_FIELDS, Diagnostic, Message, ToolCall, to_json


def to_message(fields: Mapping[str, Any], diagnostics: Iterable[Diagnostic]) -> Message:
    """The message with these fields; a call that could not be read keeps its text, without a name."""
    reasoning = next((_text(fields[name]) for name in REASONING_FIELDS if fields.get(name)), "")
    calls = tuple(map(_call, _flat(fields.get("tool_calls"))))
    return Message(_text(fields.get("content")), reasoning, calls, diagnostics=tuple(diagnostics))


def _text(value: Any) -> str:
    """Texts of a field that repeats follow one another; a value that is no text is written as JSON."""
    if isinstance(value, list) and all(isinstance(item, str) for item in value):
        return "".join(value)
    return value if isinstance(value, str) else "" if value is None else to_json(value)


def _flat(value: Any) -> Iterator[Any]:
    """The calls in one call, a list, or a list of the lists that one region each held."""
    for item in value if isinstance(value, list) else () if value is None else (value,):
        if isinstance(item, list):
            yield from item
        else:
            yield item


def _call(value: Any) -> ToolCall:
    call = value if isinstance(value, dict) else {}
    function = call.get("function", call)
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str):
        return ToolCall("", _text(value), complete=False)
    id = call.get("id")
    arguments = function.get("arguments")
    make = ToolCall.written if isinstance(arguments, str) else ToolCall.of
    return make(name, arguments, id if isinstance(id, str) else "")
