"""The Messages interface as it stands on the wire."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.agent.servers.script import Call, Reply, Say, Think, numbered

PATH = re.compile(r"/v1/messages$")
_FINISH = {"stop": "end_turn", "tool_use": "tool_use", "length": "max_tokens", "refusal": "refusal"}
GARBAGE = 'event: content_block_delta\ndata: {"type": "content_block_delta", "index"\n\n'


def events(reply: Reply, body: dict[str, Any], serial: int) -> Iterator[str]:
    """The lines of each server-sent event."""
    given, made, cached = reply.usage
    usage = {"input_tokens": given - cached, "cache_read_input_tokens": cached, "output_tokens": 1}
    message = {
        "id": f"msg_{serial}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    yield _event({"type": "message_start", "message": message})
    yield _event({"type": "ping"})
    for index, block in numbered(reply.blocks, f"toolu_{serial}_"):
        start, deltas = _block(reply, block)
        yield _event({"type": "content_block_start", "index": index, "content_block": start})
        for delta in deltas:
            yield _event({"type": "content_block_delta", "index": index, "delta": delta})
        yield _event({"type": "content_block_stop", "index": index})
    ending = {"stop_reason": _FINISH[reply.finish], "stop_sequence": None}
    yield _event({"type": "message_delta", "delta": ending, "usage": {"output_tokens": made}})
    yield _event({"type": "message_stop"})


def _block(reply: Reply, block: Say | Think | Call) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    match block:
        case Say(text):
            pieces = [{"type": "text_delta", "text": piece} for piece in reply.cut(text)]
            return {"type": "text", "text": ""}, pieces
        case Think(text, signature):
            pieces = [{"type": "thinking_delta", "thinking": piece} for piece in reply.cut(text)]
            signed = {"type": "signature_delta", "signature": signature}
            return {"type": "thinking", "thinking": "", "signature": ""}, [*pieces, signed]
        case Call():
            pieces = [{"type": "input_json_delta", "partial_json": piece} for piece in reply.cut(block.text)]
            return {"type": "tool_use", "id": block.id, "name": block.name, "input": {}}, pieces


def error_event() -> str:
    return _event({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}})


def error_body(status: int, message: str) -> dict[str, Any]:
    kinds = {
        400: "invalid_request_error",
        401: "authentication_error",
        429: "rate_limit_error",
        529: "overloaded_error",
    }
    return {"type": "error", "error": {"type": kinds.get(status, "api_error"), "message": message}, "request_id": "r"}


def problem(body: dict[str, Any]) -> str | None:
    """Why the real service would refuse this request."""
    if not isinstance(body.get("max_tokens"), int) or not isinstance(body.get("model"), str):
        return "max_tokens and model: Field required"
    if body.get("stream") is not True:
        return "this server only streams"
    for tool in body.get("tools", []):
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,128}", tool["name"]):
            return f"tools.0.custom.name: {tool['name']}"
        if tool["input_schema"].get("type") != "object":
            return "tools.0.custom.input_schema.type: Field required"
    thinking = (body.get("thinking") or {}).get("type") in ("enabled", "adaptive")
    choice = (body.get("tool_choice") or {}).get("type")
    if thinking and choice in ("any", "tool"):
        return "Thinking may not be enabled when tool_choice forces tool use."
    if thinking and body.get("temperature") not in (None, 1, 1.0):
        return "`temperature` may only be set to 1 when thinking is enabled."
    return _problem_of_turns(body["messages"])


def _problem_of_turns(messages: list[dict[str, Any]]) -> str | None:
    if not messages or messages[0]["role"] != "user":
        return "messages: first message must use the user role"
    waiting: list[str] = []
    for message in messages:
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks:
            return "messages: content must be non-empty"
        if any(block["type"] == "text" and not block["text"].strip() for block in blocks):
            return "messages: text content blocks must contain non-whitespace text"
        if any(block["type"] == "thinking" and not block.get("signature") for block in blocks):
            return "messages: thinking.signature: Field required"
        answers = [block["tool_use_id"] for block in blocks if block["type"] == "tool_result"]
        if sorted(answers) != sorted(waiting):
            return "messages: `tool_use` ids were found without `tool_result` blocks immediately after"
        waiting = [block["id"] for block in blocks if block["type"] == "tool_use"]
        if any(not isinstance(block["input"], dict) for block in blocks if block["type"] == "tool_use"):
            return "messages: tool_use.input: Input should be a valid dictionary"
    return "messages: tool_use without tool_result" if waiting else None


def _event(value: dict[str, Any]) -> str:
    return f"event: {value['type']}\ndata: {json.dumps(value)}\n\n"
