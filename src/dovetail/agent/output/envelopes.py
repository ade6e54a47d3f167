"""The messages of json and stream-json output, each a JSON object."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from dovetail.agent.types import AssistantTurn, Block, Text, Thinking, ToolResult, ToolUse, Usage
from dovetail.messages import to_json

Wire = dict[str, Any]

MAX_RESULT_BYTES = 65_536
_MARKER = "\n[... truncated for Headless transport ...]\n"


class Envelopes:
    """Makes the messages of one session."""

    def __init__(self, session_id: str, model: str) -> None:
        self.session_id = session_id
        self.model = model

    def init(self, data: Mapping[str, Any]) -> Wire:
        """The first message; its uuid is that of the session."""
        head = {"type": "system", "subtype": "init", "uuid": self.session_id, "session_id": self.session_id}
        return {**head, **data}

    def system(self, subtype: str, data: Mapping[str, Any], parent: str | None = None) -> Wire:
        """Something that happened beside the conversation."""
        return self._head("system", parent) | {"subtype": subtype, "data": dict(data)}

    def assistant(self, turn: AssistantTurn, usage: Usage, parent: str | None = None) -> list[Wire]:
        """A reply: one message for each run of blocks of one type, the usage on the last."""
        groups = [list(blocks) for _, blocks in groupby(turn.blocks, type)]
        last = len(groups) - 1
        return [self._reply(blocks, usage if index == last else Usage(), parent) for index, blocks in enumerate(groups)]

    def _reply(self, blocks: Sequence[Block], usage: Usage, parent: str | None) -> Wire:
        head = self._head("assistant", parent)
        calls = all(isinstance(block, ToolUse) for block in blocks)
        message = {
            "id": head["uuid"],
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [_block(block) for block in blocks],
            "stop_reason": "tool_use" if calls else None,
            "usage": usage_of(usage),
        }
        return head | {"message": message}

    def tool_result(self, result: ToolResult, parent: str | None = None) -> Wire:
        """The answer to one call, bounded in size."""
        shown = result.content if result.is_error or not (result.display or "").strip() else result.display
        block: Wire = {"type": "tool_result", "tool_use_id": result.tool_use_id, "is_error": result.is_error}
        if shown:
            block["content"] = bounded(shown)
        return self._head("user", parent) | {"message": {"role": "user", "content": [block]}}

    def user(self, text: str, parent: str | None = None) -> Wire:
        """Something said in the user's place."""
        content = [{"type": "text", "text": text}]
        return self._head("user", parent) | {"message": {"role": "user", "content": content}}

    def partial(self, event: Mapping[str, Any], parent: str | None = None) -> Wire:
        """A piece of a reply that is still coming."""
        return self._head("stream_event", parent) | {"event": dict(event)}

    def _head(self, kind: str, parent: str | None) -> Wire:
        return {
            "type": kind,
            "uuid": str(uuid.uuid4()),
            "session_id": self.session_id,
            "parent_tool_use_id": parent,
        }


def usage_of(usage: Usage) -> Wire:
    """Token counts; a total only where there is one."""
    wire: Wire = {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens}
    if usage.total:
        wire |= {"cache_read_input_tokens": usage.cached_tokens, "total_tokens": usage.total}
    if usage.cache_written_tokens:
        wire["cache_creation_input_tokens"] = usage.cache_written_tokens
    return wire


def bounded(text: str, limit: int = MAX_RESULT_BYTES) -> str:
    """The text, or its first fifth and last four fifths where its JSON form is longer than `limit` bytes."""
    if len(text) * 6 + 2 <= limit or _weight(text) <= limit:
        return text
    room = limit - _weight(_MARKER)
    return _fitting(text, room // 5) + _MARKER + _fitting(text[::-1], room - room // 5)[::-1]


def _weight(text: str) -> int:
    return len(to_json(text).encode())


def _fitting(text: str, room: int) -> str:
    """The longest beginning whose JSON form, without the quotes, has at most `room` bytes."""
    used = 0
    for index, char in enumerate(text):
        used += _weight(char) - 2
        if used > room:
            return text[:index]
    return text


def _block(block: Block) -> Wire:
    match block:
        case Text(text):
            return {"type": "text", "text": text}
        case Thinking(text, signature):
            return {"type": "thinking", "thinking": text, "signature": signature}
        case ToolUse():
            given: Any = block.value
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": _input(block.arguments, given)}


def _input(arguments: str, value: Any) -> Any:
    """Arguments as an object; what is none stands as the text that the model wrote."""
    return dict(value) if isinstance(value, Mapping) else arguments


def compact(messages: Iterable[Any]) -> str:
    """All messages as one JSON array on one line."""
    return "[" + ",".join(line(message) for message in messages) + "]"


def line(value: Any) -> str:
    """Compact JSON that UTF-8 can carry."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"))
    return text
