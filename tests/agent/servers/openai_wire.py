"""Chat Completions as they stand on the wire."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.agent.servers.script import Call, Reply, Say, numbered

PATH = re.compile(r"/v1/chat/completions$")
_FINISH = {"stop": "stop", "tool_use": "tool_calls", "length": "length", "refusal": "content_filter"}
GARBAGE = 'data: {"choices": [{"delta"'


def events(reply: Reply, body: dict[str, Any], serial: int) -> Iterator[str]:
    """The lines of each server-sent event."""

    def chunk(delta: dict[str, Any], finish: str | None = None) -> str:
        return _data(head | {"choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]})

    head: dict[str, Any] = {
        "id": f"chatcmpl-{serial}",
        "object": "chat.completion.chunk",
        "created": 1_700_000_000,
        "model": body["model"],
    }
    yield chunk({"role": "assistant", "content": ""})
    call_index = -1
    for _, block in numbered(reply.blocks, f"call_{serial}_"):
        if isinstance(block, Call):
            call_index += 1
            function = {"name": block.name, "arguments": ""}
            entry = {"index": call_index, "id": block.id, "type": "function", "function": function}
            yield chunk({"tool_calls": [entry]})
            for piece in reply.cut(block.text):
                yield chunk({"tool_calls": [{"index": call_index, "function": {"arguments": piece}}]})
        else:
            # Reasoning goes by this name at DeepSeek, vLLM, SGLang and llama.cpp.
            name = "content" if isinstance(block, Say) else "reasoning_content"
            for piece in reply.cut(block.text):
                yield chunk({name: piece})
    for pieces in reply.call_deltas:
        yield chunk({"tool_calls": list(pieces)})
    yield chunk({}, _FINISH[reply.finish])
    if (body.get("stream_options") or {}).get("include_usage"):
        given, made, cached = reply.usage
        usage = {
            "prompt_tokens": given,
            "completion_tokens": made,
            "total_tokens": given + made,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        yield _data(head | {"choices": [], "usage": usage})
    yield "data: [DONE]\n\n"


def error_event() -> str:
    return _data({"error": {"message": "the engine broke down", "type": "server_error", "code": 500}})


def error_body(status: int, message: str) -> dict[str, Any]:
    kind = "invalid_request_error" if status < 500 else "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": None}}


def problem(body: dict[str, Any]) -> str | None:
    """Why the real service would refuse this request."""
    if not isinstance(body.get("model"), str) or not body.get("messages"):
        return "model and messages are required"
    if body.get("stream") is not True:
        return "this server only streams"
    for tool in body.get("tools", []):
        function = tool["function"]
        if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", function["name"]):
            return f"Invalid 'tools[].function.name': {function['name']}"
        if function.get("strict") and (why := _not_strict(function["parameters"], "")):
            return f"Invalid schema for function '{function['name']}': {why}"
    if body.get("tool_choice") is not None and not body.get("tools"):
        return "'tool_choice' is only allowed when 'tools' are specified"
    waiting: list[str] = []
    for message in body["messages"]:
        if message["role"] == "tool":
            if message.get("tool_call_id") not in waiting:
                return "messages with role 'tool' must be a response to a preceeding message with 'tool_calls'"
            waiting.remove(message["tool_call_id"])
        elif waiting:
            return f"tool_call_ids did not have response messages: {waiting}"
        for call in message.get("tool_calls") or []:
            if not isinstance(call["function"]["arguments"], str):
                return "arguments must be a string"
            waiting.append(call["id"])
    return f"tool_call_ids did not have response messages: {waiting}" if waiting else None


def _not_strict(schema: Any, path: str) -> str | None:
    """Why a schema is outside the subset of strict functions."""
    if not isinstance(schema, dict):
        return f"at {path}: a schema must be an object"
    for keyword in ("allOf", "not", "if", "then", "else", "oneOf", "dependentRequired", "patternProperties"):
        if keyword in schema:
            return f"at {path}: '{keyword}' is not permitted"
    if path == "" and schema.get("type") != "object":
        return "schema must be of type object"
    if schema.get("type") == "object" or "properties" in schema:
        if schema.get("additionalProperties") is not False:
            return f"at {path}: 'additionalProperties' is required to be supplied and to be false"
        if set(schema.get("required", [])) != set(schema.get("properties", {})):
            return f"at {path}: 'required' must include every key in properties"
    inner = [(f"{path}/properties/{key}", value) for key, value in schema.get("properties", {}).items()]
    inner += [(f"{path}/anyOf/{i}", value) for i, value in enumerate(schema.get("anyOf", []))]
    inner += [(f"{path}/$defs/{key}", value) for key, value in schema.get("$defs", {}).items()]
    inner += [(f"{path}/items", schema["items"])] if "items" in schema else []
    return next((why for where, value in inner if (why := _not_strict(value, where))), None)


def _data(value: Any) -> str:
    return f"data: {json.dumps(value)}\n\n"
