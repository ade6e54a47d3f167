"""Events of the Messages interface."""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.messages import Message, ToolCall, Wire, call_id
from dovetail.parsing.events import Event

_STOP_REASONS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


class AnthropicEvents:
    """Blocks of thinking, text and tool_use in the order in which they were said."""

    def __init__(self, id: str = "msg_0", model: str = "", input_tokens: int = 0) -> None:
        self._id = id
        self._model = model
        self._input_tokens = input_tokens
        self._index = 0

    def start(self) -> list[Wire]:
        """What is sent before the first event."""
        usage = {"input_tokens": self._input_tokens, "output_tokens": 0}
        message: Wire = {"id": self._id, "type": "message", "role": "assistant", "model": self._model, "content": []}
        message |= {"stop_reason": None, "stop_sequence": None, "usage": usage}
        return [{"type": "message_start", "message": message}]

    def feed(self, events: Iterable[Event]) -> list[Wire]:
        """What the events say; markup says nothing."""
        return [wire for event in events for wire in self._wire(event)]

    def finish(self, message: Message, output_tokens: int = 0) -> list[Wire]:
        """What is sent after the last event."""
        reason = _STOP_REASONS[message.finish_reason or "stop"]
        delta = {"stop_reason": reason, "stop_sequence": None}
        return [
            {"type": "message_delta", "delta": delta, "usage": {"output_tokens": output_tokens}},
            {"type": "message_stop"},
        ]

    def _wire(self, event: Event) -> list[Wire]:
        if not event.region:
            return []
        match event.kind:
            case "open":
                block = _block(event)
                return [{"type": "content_block_start", "index": self._index, "content_block": block}]
            case "close":
                self._index += 1
                return [{"type": "content_block_stop", "index": self._index - 1}]
            case _ if event.text:
                return [{"type": "content_block_delta", "index": self._index, "delta": _delta(event)}]
        return []


def _block(event: Event) -> Wire:
    match event.region:
        case "reasoning":
            return {"type": "thinking", "thinking": "", "signature": ""}
        case "content":
            return {"type": "text", "text": ""}
    call = event.call or ToolCall("")
    return {"type": "tool_use", "id": call_id(call, event.call_index), "name": call.name, "input": {}}


def _delta(event: Event) -> Wire:
    match event.region:
        case "reasoning":
            return {"type": "thinking_delta", "thinking": event.text}
        case "content":
            return {"type": "text_delta", "text": event.text}
    return {"type": "input_json_delta", "partial_json": event.text}
