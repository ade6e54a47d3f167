"""Chat Completions chunks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dovetail.messages import Message, Wire, call_id
from dovetail.parsing.events import Event


class ChatDeltas:
    """Chunks as clients add them up: id and name of a call once, its index by order, one call after the other.

    Clients disagree on the name of reasoning, so it is sent under each of `reasoning_fields`.
    """

    def __init__(
        self,
        id: str = "chatcmpl-0",
        model: str = "",
        created: int = 0,
        reasoning_fields: Sequence[str] = ("reasoning", "reasoning_content"),
    ) -> None:
        self._envelope: Wire = {"id": id, "object": "chat.completion.chunk", "created": created, "model": model}
        self._reasoning_fields = reasoning_fields

    def start(self) -> list[Wire]:
        """What is sent before the first event."""
        return [self._chunk({"role": "assistant", "content": ""})]

    def feed(self, events: Iterable[Event]) -> list[Wire]:
        """What the events say; markup says nothing."""
        deltas = (self._delta(event) for event in events)
        return [self._chunk(delta) for delta in deltas if delta]

    def finish(self, message: Message) -> list[Wire]:
        """What is sent after the last event."""
        return [self._chunk({}, message.finish_reason or "stop")]

    def _delta(self, event: Event) -> Wire:
        match event:
            case Event("open", "tool_call", call_index=index, call=call) if call is not None:
                function: Wire = {"name": call.name, "arguments": ""}
                opened = {"index": index, "id": call_id(call, index), "type": "function", "function": function}
                return {"tool_calls": [opened]}
            case Event("text", "tool_call", text=text, call_index=index) if text:
                return {"tool_calls": [{"index": index, "function": {"arguments": text}}]}
            case Event("text", "content", text=text) if text:
                return {"content": text}
            case Event("text", "reasoning", text=text) if text:
                return dict.fromkeys(self._reasoning_fields, text)
        return {}

    def _chunk(self, delta: Wire, finish_reason: str | None = None) -> Wire:
        choice: dict[str, Any] = {"index": 0, "delta": delta, "finish_reason": finish_reason}
        return self._envelope | {"choices": [choice]}
