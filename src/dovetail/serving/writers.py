"""What was said, in the shape of each interface: the wire objects of a stream, or one object for all of it."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from typing import Any, Protocol

from dovetail.messages import Wire
from dovetail.models import Note
from dovetail.parsing.adapters import AnthropicEvents, ChatDeltas, ResponseEvents
from dovetail.serving.errors import Interface, Refusal
from dovetail.serving.requests import Ask
from dovetail.serving.turns import Delta, Odds, Turn


class Writer(Protocol):
    """Writes the answer to one request; a stream is `start`, any number of `said`, `ended` per choice, `end`."""

    interface: Interface
    named: bool  # whether an event of the stream has its type beside it
    closing: str  # what closes a stream behind its last object

    def start(self) -> list[Wire]:
        """What comes before the first event."""

    def added(self, index: int, delta: Delta) -> list[Wire]:
        """What a choice says."""

    def ended(self, index: int, turn: Turn) -> list[Wire]:
        """The end of a choice."""

    def end(self) -> list[Wire]:
        """What comes behind the last choice."""

    def failed(self, refusal: Refusal) -> list[Wire]:
        """An error in the middle of a stream."""

    def whole(self) -> Wire:
        """All of it as one object, once every choice has ended."""


class ChatWriter:
    """Chat completions, and chunks of them."""

    interface: Interface = "openai"
    named = False
    closing = "data: [DONE]\n\n"

    def __init__(self, ask: Ask, model: str, prompt_tokens: int, notes: Sequence[Note] = ()) -> None:
        self._ask = ask
        self._prompt_tokens = prompt_tokens
        self._head: Wire = {"id": new_id("chatcmpl-"), "created": int(time.time()), "model": model}
        self._deltas = [ChatDeltas(**self._head) for _ in range(ask.choices)]
        self._notes = _notes(notes)
        self._turns: dict[int, Turn] = {}
        self._odds: list[list[Odds]] = [[] for _ in range(ask.choices)]
        self._sent = [0] * ask.choices  # how many of the odds a chunk has carried

    def start(self) -> list[Wire]:
        """What comes before the first event."""
        chunks = [chunk for index, wire in enumerate(self._deltas) for chunk in self._placed(index, wire.start())]
        chunks[0] |= self._notes
        return chunks

    def added(self, index: int, delta: Delta) -> list[Wire]:
        """What a choice says."""
        chunks = self._placed(index, self._deltas[index].feed(delta.events))
        if self._ask.top_logprobs is not None:
            self._odds[index] += delta.odds
            for chunk in chunks:
                if "content" in chunk["choices"][0]["delta"]:
                    self._add_logprobs(index, chunk)
        return chunks

    def ended(self, index: int, turn: Turn) -> list[Wire]:
        """The end of a choice."""
        self._turns[index] = turn
        chunks = self._placed(index, self._deltas[index].finish(turn.message))
        chunks[0]["choices"][0]["led_to_end"] = turn.led
        if turn.stop is not None:
            chunks[0]["choices"][0]["stop_reason"] = turn.stop
        if self._sent[index] < len(self._odds[index]):
            self._add_logprobs(index, chunks[0])
        return chunks

    def end(self) -> list[Wire]:
        """What comes behind the last choice."""
        if not self._ask.include_usage:
            return []
        return [self._head | {"object": "chat.completion.chunk", "choices": [], "usage": self._usage()}]

    def failed(self, refusal: Refusal) -> list[Wire]:
        """An error in the middle of a stream."""
        return [refusal.body(self.interface)]

    def whole(self) -> Wire:
        """All of it as one object, once every choice has ended."""
        choices = []
        for index, turn in sorted(self._turns.items()):
            message = turn.message.to_openai() | {"refusal": None}
            odds = None if self._ask.top_logprobs is None else _logprobs(self._odds[index], self._ask.top_logprobs)
            choice: Wire = {"index": index, "message": message, "logprobs": odds}
            ended = {"finish_reason": turn.finish_reason, "stop_reason": turn.stop, "led_to_end": turn.led}
            choices.append(choice | ended)
        whole = {"object": "chat.completion", "choices": choices, "usage": self._usage()}
        return self._head | whole | self._notes

    def _add_logprobs(self, index: int, chunk: Wire) -> None:
        """Give a chunk the odds that no chunk had yet."""
        odds = self._odds[index]
        chunk["choices"][0]["logprobs"] = _logprobs(odds[self._sent[index] :], self._ask.top_logprobs or 0)
        self._sent[index] = len(odds)

    def _placed(self, index: int, chunks: list[Wire]) -> list[Wire]:
        for chunk in chunks:
            chunk["choices"][0]["index"] = index
            if self._ask.include_usage:
                chunk["usage"] = None
        return chunks

    def _usage(self) -> Wire:
        completion, thought = _totals(self._turns.values())
        return {
            "prompt_tokens": self._prompt_tokens,
            "completion_tokens": completion,
            "total_tokens": self._prompt_tokens + completion,
            "completion_tokens_details": {"reasoning_tokens": thought},
        }


class ResponsesWriter:
    """Responses, and the events of one."""

    interface: Interface = "openai"
    named = True
    closing = ""

    def __init__(self, ask: Ask, model: str, prompt_tokens: int, notes: Sequence[Note] = ()) -> None:
        self._ask = ask
        self._prompt_tokens = prompt_tokens
        self._id = new_id("resp_")
        self._events = ResponseEvents(self._id, model, int(time.time()), key=f"{self._id[5:]}_")
        self._notes = _notes(notes)
        self._last: list[Wire] = []
        self._odds: list[Odds] = []  # of the item that is being written
        self._sent = 0

    def start(self) -> list[Wire]:
        """What comes before the first event."""
        return self._filled(self._events.start(), {"usage": None})

    def added(self, index: int, delta: Delta) -> list[Wire]:
        """What the answer says."""
        wires = self._events.feed(delta.events)
        if self._ask.top_logprobs is not None:
            self._odds += delta.odds
            for wire in wires:
                self._with_logprobs(wire)
        return wires

    def ended(self, index: int, turn: Turn) -> list[Wire]:
        """The end of the answer."""
        completion, thought = _totals([turn])
        usage: Wire = {"input_tokens": self._prompt_tokens, "input_tokens_details": {"cached_tokens": 0}}
        usage |= {"output_tokens": completion, "output_tokens_details": {"reasoning_tokens": thought}}
        usage["total_tokens"] = self._prompt_tokens + completion
        self._last = self._filled(self._events.finish(turn.message), {"usage": usage, "led_to_end": turn.led})
        return self._last

    def end(self) -> list[Wire]:
        """Nothing comes behind the only choice."""
        return []

    def failed(self, refusal: Refusal) -> list[Wire]:
        """An error in the middle of a stream."""
        return [{"type": "error", "code": refusal.code, "message": refusal.message, "param": refusal.param}]

    def whole(self) -> Wire:
        """All of it as one object, once the answer has ended."""
        response: Wire = self._last[0]["response"]
        return response

    def _filled(self, wires: list[Wire], more: Wire) -> list[Wire]:
        """What a response says beside its output."""
        ask = self._ask
        fields: Wire = {"error": None, "incomplete_details": None, "instructions": None, "metadata": {}}
        fields |= {"temperature": ask.temperature, "top_p": ask.top_p, "max_output_tokens": ask.max_tokens}
        fields |= {"parallel_tool_calls": ask.parallel_tool_calls, "previous_response_id": None}
        fields |= {"tool_choice": ask.tool_choice or "auto", "store": False, "truncation": "disabled"}
        fields["tools"] = [
            {"type": "function", "parameters": None, "strict": None} | tool.wire["function"] for tool in ask.tools or ()
        ]
        for wire in wires:
            wire["response"] = fields | {key: value for key, value in wire["response"].items() if key not in _ECHOED}
            wire["response"] |= more | self._notes
        return wires

    def _with_logprobs(self, wire: Wire) -> None:
        """Put the odds to the texts that they belong to: each once in a delta, and all of them in the whole text."""
        match wire:
            case {"type": "response.output_text.delta"}:
                wire["logprobs"] = _tokens(self._odds[self._sent :], self._ask.top_logprobs or 0)
                self._sent = len(self._odds)
            case {"type": "response.output_text.done"}:
                wire["logprobs"] = _tokens(self._odds, self._ask.top_logprobs or 0)
            case {"type": "response.content_part.done", "part": {"type": "output_text"} as part}:
                part["logprobs"] = _tokens(self._odds, self._ask.top_logprobs or 0)
            case {"type": "response.output_item.done", "item": {"type": "message"} as item}:
                item["content"][0]["logprobs"] = _tokens(self._odds, self._ask.top_logprobs or 0)
                self._odds, self._sent = [], 0


_ECHOED = ("parallel_tool_calls", "tool_choice", "tools")


class AnthropicWriter:
    """Messages, and the events of one."""

    interface: Interface = "anthropic"
    named = True
    closing = ""

    def __init__(self, ask: Ask, model: str, prompt_tokens: int, notes: Sequence[Note] = ()) -> None:
        self._events = AnthropicEvents(new_id("msg_"), model, prompt_tokens)
        self._notes = _notes(notes)
        self._message: Wire = self._events.start()[0]["message"] | self._notes
        self._prompt_tokens = prompt_tokens
        self._turns: list[Turn] = []
        self._blocks = _Blocks()

    def start(self) -> list[Wire]:
        """What comes before the first event."""
        started = self._events.start()
        started[0]["message"] |= self._notes
        return started

    def added(self, index: int, delta: Delta) -> list[Wire]:
        """What the answer says."""
        wires = self._events.feed(delta.events)
        self._blocks.add(wires, delta)
        return wires

    def ended(self, index: int, turn: Turn) -> list[Wire]:
        """The end of the answer."""
        self._turns.append(turn)
        wires = self._events.finish(turn.message, turn.counts.completion)
        wires[0]["usage"] = self._usage()
        if turn.stop is not None:
            wires[0]["delta"] = {"stop_reason": "stop_sequence", "stop_sequence": turn.stop}
        wires[0]["delta"]["led_to_end"] = turn.led
        self._message = self._message | wires[0]["delta"] | {"usage": self._usage()}
        return wires

    def end(self) -> list[Wire]:
        """Nothing comes behind the only choice."""
        return []

    def failed(self, refusal: Refusal) -> list[Wire]:
        """An error in the middle of a stream."""
        return [refusal.body(self.interface)]

    def whole(self) -> Wire:
        """All of it as one object, once the answer has ended."""
        return self._message | {"content": self._blocks.all}

    def _usage(self) -> Wire:
        return {"input_tokens": self._prompt_tokens, "output_tokens": _totals(self._turns)[0]}


class _Blocks:
    """The blocks of a message, added up from its events."""

    def __init__(self) -> None:
        self.all: list[Wire] = []
        self._parts: list[str] = []

    def add(self, wires: list[Wire], delta: Delta) -> None:
        calls = iter([event.call for event in delta.events if event.kind == "close" and event.call is not None])
        for wire in wires:
            match wire["type"]:
                case "content_block_start":
                    self.all.append(dict(wire["content_block"]))
                    self._parts = []
                case "content_block_delta":
                    self._parts.append(next(text for key, text in wire["delta"].items() if key != "type"))
                case "content_block_stop":
                    block = self.all[-1]
                    if block["type"] == "tool_use":
                        value = next(calls).value
                        block["input"] = {} if value is None else value
                    else:
                        block[block["type"]] = "".join(self._parts)


def new_id(prefix: str) -> str:
    """An id that no other answer has."""
    return prefix + secrets.token_hex(12)


def _notes(notes: Sequence[Note]) -> Wire:
    """What differs from what was asked, as a field of an answer; where nothing does, there is none."""
    wires = [{"code": note.code, "param": note.path, "message": note.text} for note in notes]
    return {"notes": wires} if wires else {}


def _totals(turns: Any) -> tuple[int, int]:
    turns = list(turns)
    return sum(turn.counts.completion for turn in turns), sum(turn.counts.reasoning for turn in turns)


def _logprobs(odds: Sequence[Odds], top: int) -> Wire:
    return {"content": _tokens(odds, top), "refusal": None}


def _tokens(odds: Sequence[Odds], top: int) -> list[Wire]:
    return [
        _token(one.data, one.logprob) | {"top_logprobs": [_token(data, logprob) for data, logprob in one.top[:top]]}
        for one in odds
    ]


def _token(data: bytes, logprob: float) -> Wire:
    return {"token": data.decode("utf-8", "replace"), "bytes": list(data), "logprob": max(logprob, -9999.0)}
