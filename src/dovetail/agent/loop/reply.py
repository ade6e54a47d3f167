"""One reply of the model: deltas in, a turn out, and its pieces shown while they come."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, assert_never

from dovetail.agent.contract.validation import from_json
from dovetail.agent.protocols import Provider
from dovetail.agent.types import (
    AssistantTurn,
    Block,
    Delta,
    Finish,
    ProviderError,
    Request,
    Restarted,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolArguments,
    ToolEnd,
    ToolStart,
    ToolTurn,
    ToolUse,
    Turn,
    Usage,
    UsageDelta,
    UserTurn,
)
from dovetail.messages import to_json

Show = Callable[[Mapping[str, Any]], None]
MAX_REPLY_CHARS = 64 << 20
# Of English and of code about so many make a token.
CHARS_PER_TOKEN = 3.5
IMAGE_CHARS = 5000  # an image counts about as much as so many


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole reply; `provider_ids` has the ids as the provider gave them, which may repeat."""

    turn: AssistantTurn
    usage: Usage
    finish: str
    provider_ids: tuple[str, ...] = ()


@dataclass(slots=True)
class _Open:
    """A block that is still growing."""

    kind: str
    parts: list[str] = field(default_factory=list)
    signature: str = ""
    id: str = ""  # unique within the run
    given_id: str = ""  # as the provider says
    name: str = ""
    ended: bool = False


async def read_reply(
    provider: Provider,
    request: Request,
    show: Show,
    taken: set[str],
    restarted: Callable[[Restarted], None],
    spent: Callable[[Usage, bool], None] = lambda _usage, _is_estimated: None,
) -> Reply:
    """Call the model once; the pieces that are shown are balanced on every way out.

    `taken` has the ids of all calls of the run so far, and gets those of this reply. `spent` is told the tokens of each
    attempt, also of those that failed or were broken off, and whether they are estimated.
    """
    collector = _Collector(show, provider.model, taken)
    stream = provider.stream(request)
    try:
        async for delta in stream:
            if isinstance(delta, Restarted):
                collector.close()
                spent(*collector.spent(request))
                restarted(delta)
                collector = _Collector(show, provider.model, taken)
            else:
                collector.take(delta)
        if not collector.finish:
            raise ProviderError("the stream ended before the reply did", retryable=True)
        return collector.reply()
    finally:
        collector.close()
        spent(*collector.spent(request))
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


class _Collector:
    def __init__(self, show: Show, model: str, taken: set[str]) -> None:
        self._show = show
        self._taken = taken
        self._blocks: list[_Open] = []
        self._calls: dict[int, _Open] = {}
        self._shown_index: int | None = None
        self._size = 0
        self._closed = False
        self.usage = Usage()
        self.finish = ""
        message = {"id": str(uuid.uuid4()), "role": "assistant", "model": model, "content": []}
        show({"type": "message_start", "message": message})

    def take(self, delta: Delta) -> None:
        match delta:
            case TextDelta(text):
                self._grow(self._last("text"), text, {"type": "text_delta", "text": text})
            case ThinkingDelta(text, signature):
                block = self._last("thinking")
                block.signature += signature
                self._grow(block, text, {"type": "thinking_delta", "thinking": text})
            case ToolStart(index, id, name):
                unique = _unique(id, self._taken)
                self._calls[index] = self._begin(_Open("tool_use", id=unique, given_id=id, name=name))
            case ToolArguments(index, text):
                if index in self._calls:
                    self._grow(self._calls[index], text, {"type": "input_json_delta", "partial_json": text})
            case ToolEnd(index, signature):
                if index in self._calls:
                    call = self._calls[index]
                    call.signature, call.ended = signature, True
                    if self._shown_index is not None and self._blocks[self._shown_index] is call:
                        self._stop()
            case UsageDelta(usage):
                self.usage = usage
            case Finish(reason):
                self.finish = reason
            case Restarted():
                raise AssertionError("a restart makes a new collector")
            case _:
                assert_never(delta)

    def close(self) -> None:
        """End what is shown."""
        if not self._closed:
            self._stop()
            self._show({"type": "message_stop"})
            self._closed = True

    def reply(self) -> Reply:
        blocks: list[Block] = []
        ids: list[str] = []
        for block in self._blocks:
            text = "".join(block.parts)
            if block.kind == "text" and text:
                blocks.append(Text(text))
            elif block.kind == "thinking" and (text or block.signature):
                blocks.append(Thinking(text, block.signature))
            elif block.kind == "tool_use":
                ids.append(block.given_id)
                # What the token limit cut says nothing, even where its beginning happens to be an object.
                is_whole = self.finish != "length" or (block.ended and text.strip())
                value = _object(text) if is_whole else None
                blocks.append(ToolUse(block.id, block.name, text, value, block.signature))
        return Reply(AssistantTurn(tuple(blocks)), self.usage, self.finish, tuple(ids))

    def spent(self, request: Request) -> tuple[Usage, bool]:
        """The tokens of the attempt, and whether they are estimated because the provider does not tell them."""
        usage = self.usage
        made = round(self._size / CHARS_PER_TOKEN)
        if self.finish and usage.total:
            return usage, False
        if not (self._size or self.finish):  # nothing came: most likely nothing was charged
            return usage, False
        given = usage.input_tokens or round(chars_of(request) / CHARS_PER_TOKEN)
        return replace(usage, input_tokens=given, output_tokens=max(usage.output_tokens, made)), True

    def _last(self, kind: str) -> _Open:
        if self._blocks and self._blocks[-1].kind == kind and not (kind == "thinking" and self._blocks[-1].signature):
            return self._blocks[-1]
        return self._begin(_Open(kind))

    def _begin(self, block: _Open) -> _Open:
        self._stop()
        self._blocks.append(block)
        self._shown_index = len(self._blocks) - 1
        start: dict[str, Any] = {"type": block.kind}
        match block.kind:
            case "text":
                start["text"] = ""
            case "thinking":
                start["thinking"] = ""
            case _:
                start |= {"id": block.id, "name": block.name, "input": {}}
        self._show({"type": "content_block_start", "index": self._shown_index, "content_block": start})
        return block

    def _grow(self, block: _Open, text: str, delta: Mapping[str, Any]) -> None:
        if not text:
            return
        self._size += len(text)
        if self._size > MAX_REPLY_CHARS:
            raise ProviderError(f"the reply is longer than {MAX_REPLY_CHARS} characters")
        block.parts.append(text)
        index = next(index for index in range(len(self._blocks) - 1, -1, -1) if self._blocks[index] is block)
        if index == self._shown_index:  # pieces of calls that arrive interleaved show only in the whole message
            self._show({"type": "content_block_delta", "index": index, "delta": delta})

    def _stop(self) -> None:
        if self._shown_index is not None:
            self._show({"type": "content_block_stop", "index": self._shown_index})
            self._shown_index = None


def chars_of(request: Request) -> int:
    """How many characters a request is made of, without the frame of its protocol."""
    tools = sum(len(tool.name) + len(tool.description) + len(to_json(dict(tool.parameters))) for tool in request.tools)
    return len(request.system) + tools + sum(map(turn_chars, request.turns))


def turn_chars(turn: Turn) -> int:
    """How many characters a turn is made of."""
    match turn:
        case UserTurn(text, images):
            return len(text) + IMAGE_CHARS * len(images)
        case ToolTurn(results):
            return sum(len(result.content) for result in results)
        case AssistantTurn(blocks):
            return sum(len(block.arguments if isinstance(block, ToolUse) else block.text) for block in blocks)


def _unique(id: str, taken: set[str]) -> str:
    """The provider's id; results are matched by it, so a missing or repeated one is replaced."""
    if not id or id in taken:
        id = f"{id[:40] or 'call'}_{uuid.uuid4().hex[:8]}"
    taken.add(id)
    return id


def _object(text: str) -> Mapping[str, Any] | None:
    """The object that the arguments say; nothing at all is the empty one."""
    if not text.strip():
        return {}
    try:
        value = from_json(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
