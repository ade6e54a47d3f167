"""What a model said in one turn, and the shapes in which others write it.

Message --to_openai, to_hf, to_anthropic, to_responses--> the JSON of that interface, and from_* back.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

from dovetail.errors import MessageError

Wire = dict[str, Any]
FinishReason = Literal["stop", "length", "tool_calls"]

# The names under which servers and templates carry reasoning; the first one found with text is read.
REASONING_FIELDS = ("reasoning", "reasoning_content", "thinking")


def to_json(value: Any) -> str:
    """JSON text that UTF-8 can carry: characters as they are, halves of surrogate pairs escaped."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isascii() or _encodable(text) else json.dumps(value)


def from_json(text: str) -> Any:
    """The value of JSON text as the standard has it: NaN and Infinity are a ValueError like any other slip."""
    return json.loads(text, parse_constant=_refuse)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """Something that a reader could not take as it stood: what, and in which bytes of the output."""

    code: str
    problem: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call: `arguments` is JSON text as it was written, `value` what it says, as far as it says anything.

    `complete` is False where the call was cut off or its arguments are not JSON; `value` is then the best guess.
    """

    name: str
    arguments: str = "{}"
    value: Any = None
    id: str = ""
    complete: bool = True

    @classmethod
    def of(cls, name: str, value: Any = None, id: str = "") -> Self:
        """A call with the arguments given as a value; none at all mean the empty object."""
        value = {} if value is None else value
        return cls(name, to_json(value), value, id)

    @classmethod
    def written(cls, name: str, arguments: str, id: str = "") -> Self:
        """A call with the arguments given as JSON text, which need not be valid."""
        try:
            return cls(name, arguments, from_json(arguments) if arguments.strip() else {}, id)
        except (ValueError, RecursionError):
            return cls(name, arguments, None, id, complete=False)


@dataclass(frozen=True, slots=True)
class Message:
    """An assistant turn; what is absent is empty."""

    content: str = ""
    reasoning: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason | None = None
    diagnostics: tuple[Diagnostic, ...] = ()

    def to_openai(self, reasoning_fields: Sequence[str] = ("reasoning", "reasoning_content")) -> Wire:
        """A Chat Completions message; clients disagree on the name of reasoning, so it is written under several."""
        message: Wire = {"role": "assistant", "content": self.content or (None if self.tool_calls else "")}
        if self.reasoning:
            message |= dict.fromkeys(reasoning_fields, self.reasoning)
        if self.tool_calls:
            message["tool_calls"] = [
                {
                    "id": call_id(call, index),
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for index, call in enumerate(self.tool_calls)
            ]
        return message

    def to_hf(self, reasoning_field: str = "reasoning_content") -> Wire:
        """A message for a chat template: arguments are objects, and what is absent is left out."""
        message: Wire = {"role": "assistant", "content": self.content}
        if self.reasoning:
            message[reasoning_field] = self.reasoning
        if self.tool_calls:
            message["tool_calls"] = [
                {"type": "function", "function": {"name": call.name, "arguments": _object(call)}}
                | ({"id": call.id} if call.id else {})
                for call in self.tool_calls
            ]
        return message

    def to_anthropic(self) -> Wire:
        """A Messages turn: thinking, text and tool_use blocks."""
        blocks: list[Wire] = []
        if self.reasoning:
            blocks.append({"type": "thinking", "thinking": self.reasoning, "signature": ""})
        if self.content:
            blocks.append({"type": "text", "text": self.content})
        for index, call in enumerate(self.tool_calls):
            blocks.append({"type": "tool_use", "id": call_id(call, index), "name": call.name, "input": _object(call)})
        return {"role": "assistant", "content": blocks}

    def to_responses(self) -> list[Wire]:
        """The output items of the Responses interface."""
        items: list[Wire] = []
        if self.reasoning:
            part = {"type": "reasoning_text", "text": self.reasoning}
            items.append({"type": "reasoning", "id": "rs_0", "summary": [], "content": [part]})
        if self.content:
            text = {"type": "output_text", "text": self.content, "annotations": []}
            status = "incomplete" if self.finish_reason == "length" and not self.tool_calls else "completed"
            items.append({"type": "message", "id": "msg_0", "role": "assistant", "status": status, "content": [text]})
        for index, call in enumerate(self.tool_calls):
            items.append(
                {
                    "type": "function_call",
                    "id": f"fc_{index}",
                    "call_id": call_id(call, index),
                    "name": call.name,
                    "arguments": call.arguments,
                    "status": "completed" if call.complete else "incomplete",
                }
            )
        return items

    @classmethod
    def from_openai(cls, message: Mapping[str, Any]) -> Self:
        """A Chat Completions or Hugging Face message; arguments may be JSON text or an object."""
        message = _mapping(message, "")
        content, thinking = _texts(message.get("content"), "/content")
        reasoning = next((text for field in REASONING_FIELDS if (text := message.get(field))), thinking)
        calls = _list(message.get("tool_calls"), "/tool_calls")
        return cls(
            content,
            _text(reasoning, "/reasoning"),
            tuple(_call(call, f"/tool_calls/{index}") for index, call in enumerate(calls)),
        )

    from_hf = from_openai

    @classmethod
    def from_anthropic(cls, message: Mapping[str, Any]) -> Self:
        """A Messages turn; the order of its blocks is kept within each kind."""
        content = _mapping(message, "").get("content")
        text, thinking = _texts(content, "/content")
        blocks = content if isinstance(content, list) else []
        calls = [
            ToolCall.of(
                _text(block.get("name"), f"/content/{i}/name"),
                block.get("input"),
                _text(block.get("id"), f"/content/{i}/id"),
            )
            for i, block in enumerate(blocks)
            if block.get("type") == "tool_use"
        ]
        return cls(text, thinking, tuple(calls))

    @classmethod
    def from_responses(cls, items: Iterable[Mapping[str, Any]]) -> Self:
        """The output items of a Responses turn."""
        content, reasoning, calls = "", "", []
        for index, item in enumerate(items):
            path = f"/{index}"
            match _mapping(item, path).get("type"):
                case "message":
                    content += _texts(item.get("content"), f"{path}/content")[0]
                case "reasoning":
                    parts = item.get("content") or item.get("summary") or []
                    reasoning += _texts(parts, f"{path}/content")[0]
                case "function_call":
                    name = _text(item.get("name"), f"{path}/name")
                    arguments = _text(item.get("arguments"), f"{path}/arguments")
                    calls.append(ToolCall.written(name, arguments, _text(item.get("call_id"), f"{path}/call_id")))
        return cls(content, reasoning, tuple(calls))


def call_id(call: ToolCall, index: int) -> str:
    """The id of a call, or one made of its place: interfaces refuse calls without."""
    return call.id or f"call_{index}"


def _object(call: ToolCall) -> Any:
    return {} if call.value is None else call.value


def _mapping(value: Any, path: str) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return value
    raise MessageError(f"an object is expected here, not {type(value).__name__}", path, "pass the message as a dict")


def _list(value: Any, path: str) -> Sequence[Any]:
    if value is None:
        return ()
    if isinstance(value, list | tuple):
        return value
    raise MessageError(f"a list is expected here, not {type(value).__name__}", path, "pass a list or leave it out")


def _text(value: Any, path: str) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    raise MessageError(f"text is expected here, not {type(value).__name__}", path, "pass a string or leave it out")


def _texts(content: Any, path: str) -> tuple[str, str]:
    """The text and the thinking of content that is a string or a list of parts."""
    if content is None or isinstance(content, str):
        return content or "", ""
    text = thinking = ""
    for index, part in enumerate(_list(content, path)):
        where = f"{path}/{index}"
        if isinstance(part, str):
            text += part
        elif "thinking" in _mapping(part, where):
            thinking += _text(part["thinking"], f"{where}/thinking")
        else:
            text += _text(part.get("text"), f"{where}/text")
    return text, thinking


def _call(call: Any, path: str) -> ToolCall:
    call = _mapping(call, path)
    function = _mapping(call.get("function", call), f"{path}/function")
    name = _text(function.get("name"), f"{path}/function/name")
    if not name:
        raise MessageError("the call has no name", f"{path}/function/name", "name the tool that is called")
    id = _text(call.get("id"), f"{path}/id")
    arguments = function.get("arguments")
    return ToolCall.written(name, arguments, id) if isinstance(arguments, str) else ToolCall.of(name, arguments, id)
