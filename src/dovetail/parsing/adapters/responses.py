"""Events of the Responses interface."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dovetail.messages import Message, ToolCall, Wire, call_id
from dovetail.parsing.events import Event

_KINDS = {"reasoning": ("reasoning", "rs"), "content": ("message", "msg"), "tool_call": ("function_call", "fc")}
_TEXT_EVENTS = {"reasoning": "response.reasoning_text", "content": "response.output_text"}


class ResponseEvents:
    """Output items in the order in which they were said, each added, filled and done, and the response around them.

    `key` stands in the id of every item, so that items of different responses can be told apart.
    """

    def __init__(self, id: str = "resp_0", model: str = "", created_at: int = 0, key: str = "") -> None:
        self._response: Wire = {"id": id, "object": "response", "created_at": created_at, "model": model}
        self._response |= {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
        self._key = key
        self._sequence = 0
        self._items: list[Wire] = []
        self._parts: list[str] = []

    def start(self) -> list[Wire]:
        """What is sent before the first event."""
        response = self._response | {"status": "in_progress", "output": []}
        return [
            self._event("response.created", response=response),
            self._event("response.in_progress", response=response),
        ]

    def feed(self, events: Iterable[Event]) -> list[Wire]:
        """What the events say; markup says nothing."""
        return [wire for event in events if event.region for wire in self._wire(event)]

    def finish(self, message: Message) -> list[Wire]:
        """What is sent after the last event."""
        cut = message.finish_reason == "length"
        response = self._response | {"status": "incomplete" if cut else "completed", "output": self._items}
        if cut:
            response["incomplete_details"] = {"reason": "max_output_tokens"}
        return [self._event("response.incomplete" if cut else "response.completed", response=response)]

    def _wire(self, event: Event) -> list[Wire]:
        match event.kind:
            case "open":
                return self._open(event)
            case "text" if event.text:
                self._parts.append(event.text)
                name = _TEXT_EVENTS.get(event.region, "response.function_call_arguments")
                return [self._event(f"{name}.delta", **self._place(event), **_extra(event), delta=event.text)]
            case "close":
                return self._close(event)
        return []

    def _open(self, event: Event) -> list[Wire]:
        kind, prefix = _KINDS[event.region]
        self._parts = []
        item: Wire = {"id": f"{prefix}_{self._key}{len(self._items)}", "type": kind, "status": "in_progress"}
        item |= _fields(event, "", "in_progress")
        self._items.append(item)
        added = [self._event("response.output_item.added", output_index=len(self._items) - 1, item=item)]
        if event.region == "tool_call":
            return added
        return [*added, self._event("response.content_part.added", **self._place(event), part=_part(event, ""))]

    def _close(self, event: Event) -> list[Wire]:
        text = "".join(self._parts)
        status = "completed" if event.call is None or event.call.complete else "incomplete"
        item = self._items[-1] | _fields(event, text, status) | {"status": status}
        self._items[-1] = item
        place = self._place(event)
        if event.region == "tool_call":
            name = item["name"]
            done = [self._event("response.function_call_arguments.done", **place, name=name, arguments=text)]
        else:
            kind = f"{_TEXT_EVENTS[event.region]}.done"
            done = [
                self._event(kind, **place, **_extra(event), text=text),
                self._event("response.content_part.done", **place, part=_part(event, text)),
            ]
        return [*done, self._event("response.output_item.done", output_index=len(self._items) - 1, item=item)]

    def _place(self, event: Event) -> dict[str, Any]:
        place = {"item_id": self._items[-1]["id"], "output_index": len(self._items) - 1}
        return place if event.region == "tool_call" else place | {"content_index": 0}

    def _event(self, type: str, **fields: Any) -> Wire:
        self._sequence += 1
        return {"type": type, "sequence_number": self._sequence - 1, **fields}


def _extra(event: Event) -> dict[str, Any]:
    return {"logprobs": []} if event.region == "content" else {}


def _part(event: Event, text: str) -> Wire:
    if event.region == "reasoning":
        return {"type": "reasoning_text", "text": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _fields(event: Event, text: str, status: str) -> Wire:
    """What an item says beside its id and status; an item that was just added has no parts yet."""
    parts = [] if status == "in_progress" else [_part(event, text)]
    match event.region:
        case "reasoning":
            return {"summary": [], "content": parts}
        case "content":
            return {"role": "assistant", "content": parts}
    call = event.call or ToolCall("")
    return {"call_id": call_id(call, event.call_index), "name": call.name, "arguments": text}
