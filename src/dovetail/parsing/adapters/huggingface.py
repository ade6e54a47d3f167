"""Region events as Hugging Face response parsers emit them."""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.messages import Wire
from dovetail.parsing.events import Event


class RegionEvents:
    """Regions with their fields; the arguments of a call are JSON text that is not parsed before its region closes."""

    def __init__(self, reasoning_field: str = "thinking") -> None:
        self._fields = {"reasoning": reasoning_field, "content": "content", "tool_call": "tool_calls"}
        self._parts: list[str] = []

    def feed(self, events: Iterable[Event]) -> list[Wire]:
        """What the events say; markup says nothing."""
        return [wire for event in events if event.region for wire in self._wire(event)]

    def _wire(self, event: Event) -> list[Wire]:
        field = self._fields[event.region]
        match event.kind:
            case "open":
                self._parts = []
                return [{"type": "region_open", "field": field}]
            case "text":
                self._parts.append(event.text)
                chunk: Wire = {"type": "region_chunk", "field": field, "text": event.text}
                return [chunk | {"dirty": event.region == "tool_call"}] if event.text else []
        value: str | Wire = "".join(self._parts)
        if event.call is not None:
            value = {"type": "function", "function": {"name": event.call.name, "arguments": event.call.value}}
        return [{"type": "region_close", "field": field, "value": value}]
