"""Output read in the two steps of engines: one takes the reasoning away, the next reads content and calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from dovetail.dialects import Dialect
from dovetail.messages import Message, ToolCall
from dovetail.parsing.events import Event
from dovetail.parsing.layouts import Reasoning


class Parted(NamedTuple):
    """Output in two: its reasoning, and everything else as the model wrote it."""

    reasoning: str = ""
    rest: str = ""


def part(dialect: Dialect, output: str, prompt: str | None = None) -> Parted:
    """A whole output without its reasoning; what is left still has the markup of calls and content."""
    parser = dialect.parser(None, prompt)
    events = [*parser.feed(output), *parser.close()]
    data = output.encode("utf-8", "replace")
    rest = b"".join(data[event.start : event.end] for event in _without_reasoning(events, data, dialect.reasoning))
    return Parted(parser.message.reasoning, rest.decode())


class ReasoningReader:
    """Reads a stream up to the end of its reasoning; from there on `over` is True, and the stream is the rest."""

    def __init__(self, dialect: Dialect, prompt: str | None = None) -> None:
        self._parser = dialect.parser(None, prompt)
        self._marks = _marks(dialect.reasoning)
        self._data = b""  # what was fed and not told yet, and where it stands in the output
        self._start = 0
        self._inside = False
        self.over = False

    def feed(self, text: str) -> Parted:
        """More of the stream; what it adds to the reasoning, and the rest once that has begun."""
        self._data += text.encode("utf-8", "replace")
        return self._read(self._parser.feed(text))

    def close(self) -> Parted:
        """The end of the stream."""
        return self._read(self._parser.close())

    def _read(self, events: Iterable[Event]) -> Parted:
        reasoning = ""
        for event in events:
            written = self._data[event.start - self._start : event.end - self._start]
            if event.region == "reasoning":
                self._inside = event.kind != "close"
                reasoning += event.text
            elif not self._inside and (event.region or not _is_markup(written, self._marks)):
                self.over = True
                return Parted(reasoning, self._data[event.start - self._start :].decode())
            self._data, self._start = self._data[event.end - self._start :], event.end
        return Parted(reasoning)


class CallDelta(NamedTuple):
    """A piece of a call: its first has the name, and the id where the output has one."""

    number: int
    arguments: str = ""
    call: ToolCall | None = None


class Delta(NamedTuple):
    """What a piece of a stream adds to the message."""

    content: str = ""
    reasoning: str = ""
    calls: tuple[CallDelta, ...] = ()


class CallReader:
    """Reads a stream behind its reasoning: content and calls, and reasoning where it goes on between them."""

    def __init__(self, dialect: Dialect, tools: Sequence[Any]) -> None:
        self._parser = dialect.parser(list(tools), "")

    def feed(self, text: str) -> Delta:
        """More of the stream; what it adds to the message."""
        return _delta(self._parser.feed(text))

    def close(self) -> Delta:
        """The end of the stream; what it adds to the message."""
        return _delta(self._parser.close())


def read_calls(dialect: Dialect, output: str, tools: Sequence[Any]) -> Message:
    """A whole output behind its reasoning as a message; reasoning that is still there is content as it was written."""
    parser = dialect.parser(list(tools), "")
    events = [*parser.feed(output), *parser.close()]
    message = parser.message
    if not message.reasoning:
        return message
    data = output.encode("utf-8", "replace")
    content, in_call = b"", False
    for event in events:
        in_call = event.kind != "close" if event.region == "tool_call" else in_call and not event.region
        if not in_call:
            content += data[event.start : event.end]
    return Message(content.decode(), "", message.tool_calls, message.finish_reason, message.diagnostics)


def _delta(events: Iterable[Event]) -> Delta:
    content = reasoning = ""
    calls: list[CallDelta] = []
    for event in events:
        match event:
            case Event("open", "tool_call", call_index=index, call=call):
                calls.append(CallDelta(index, call=call))
            case Event("text", "tool_call", text=text, call_index=index) if text:
                calls.append(CallDelta(index, text))
            case Event("text", "content", text=text):
                content += text
            case Event("text", "reasoning", text=text):
                reasoning += text
    return Delta(content, reasoning, tuple(calls))


def _without_reasoning(events: Sequence[Event], data: bytes, layout: Reasoning | None) -> list[Event]:
    """The events that are neither reasoning nor the markup around it."""
    marks = _marks(layout)
    kept: list[Event] = []
    inside, beside = False, True  # in a block of reasoning, and only markup since the last one
    for event in events:
        if event.region == "reasoning":
            while event.kind == "open" and kept and not kept[-1].region:
                kept.pop()
            inside, beside = event.kind != "close", True
        elif (
            event.start < event.end
            and not inside
            and (event.region or not (beside and _is_markup(data[event.start : event.end], marks)))
        ):
            kept.append(event)
            beside = False
    return kept


def _marks(layout: Reasoning | None) -> frozenset[bytes]:
    """What begins and ends reasoning, without the space around it."""
    if layout is None:
        return frozenset((b"",))
    others = [mark for pair in layout.others for mark in pair]
    known = [layout.start, layout.end, layout.after, layout.skipped, layout.empty, *others]
    return frozenset(mark.strip().encode() for mark in ("", *known))


def _is_markup(written: bytes, marks: frozenset[bytes]) -> bool:
    return written.strip() in marks
