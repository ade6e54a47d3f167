"""The generateContent interface of Gemini as it stands on the wire."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from tests.agent.servers.script import Call, Reply, Say, Think, numbered

PATH = re.compile(r"/v1(beta|alpha)?/models/(?P<model>[^/:]+):streamGenerateContent\?alt=sse$")
_FINISH = {"stop": "STOP", "tool_use": "STOP", "length": "MAX_TOKENS", "refusal": "SAFETY"}
_STATUS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 429: "RESOURCE_EXHAUSTED"}
GARBAGE = 'data: {"candidates": [{"content"\r\n\r\n'


def events(reply: Reply, body: dict[str, Any], serial: int) -> Iterator[str]:
    """The lines of each server-sent event; a call comes whole, as Gemini sends it."""
    given, made, cached = reply.usage
    usage = {
        "promptTokenCount": given,
        "candidatesTokenCount": made,
        "cachedContentTokenCount": cached,
        "totalTokenCount": given + made,
    }
    parts = [part for _, block in numbered(reply.blocks, f"g{serial}_") for part in _parts(reply, block)]
    for index, part in enumerate(parts or [{"text": ""}]):
        candidate: dict[str, Any] = {"content": {"parts": [part], "role": "model"}, "index": 0}
        if index >= len(parts) - 1:
            candidate["finishReason"] = _FINISH[reply.finish]
        yield _data({"candidates": [candidate], "usageMetadata": usage, "modelVersion": "m", "responseId": str(serial)})


def _parts(reply: Reply, block: Say | Think | Call) -> list[dict[str, Any]]:
    match block:
        case Say(text):
            return [{"text": piece} for piece in reply.cut(text)]
        case Think(text):
            return [{"text": piece, "thought": True} for piece in reply.cut(text)]
        case Call():
            call = {"id": block.id, "name": block.name, "args": block.value}
            return [{"functionCall": call, "thoughtSignature": "c2lnbmVk"}]


def error_event() -> str:
    return _data(error_body(503, "The model is overloaded."))


def error_body(status: int, message: str) -> dict[str, Any]:
    return {"error": {"code": status, "message": message, "status": _STATUS.get(status, "UNAVAILABLE")}}


def problem(body: dict[str, Any]) -> str | None:
    """Why the real service would refuse this request."""
    contents = body.get("contents")
    if not contents or contents[0]["role"] != "user":
        return "contents must begin with a user turn"
    for tool in body.get("tools", []):
        for function in tool.get("functionDeclarations", []):
            if not re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}", function["name"]):
                return f"Invalid function name: {function['name']}"
    waiting: list[str] = []
    for content in contents:
        if not content["parts"] or any(part == {} or part.get("text") == "" for part in content["parts"]):
            return "contents.parts must not be empty"
        answers = [part["functionResponse"]["name"] for part in content["parts"] if "functionResponse" in part]
        if answers != waiting:
            return "the number of function response parts must equal that of the function call parts"
        waiting = [part["functionCall"]["name"] for part in content["parts"] if "functionCall" in part]
        if waiting and not any(part.get("thoughtSignature") for part in content["parts"]):
            return "Function call is missing a thought_signature in functionCall parts."
    return "function calls without function responses" if waiting else None


def _data(value: Any) -> str:
    return f"data: {json.dumps(value)}\r\n\r\n"
