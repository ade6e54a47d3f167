"""The laws that one output must keep; each function gives the problem, or an empty string."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from dovetail.dialects import Dialect
from dovetail.engine import accepts
from dovetail.messages import Message
from dovetail.parsing import Event
from dovetail.templates.analysis.verify import Rendered

_CHUNKS = (1, 3, 7)  # bytes
_FRAGMENTS = 8  # places at which an output is cut short or damaged


def read_back(dialect: Dialect, tools: Any, turn: Rendered, message: Message) -> str:
    """Law 7 (agreement): the parser reads what the template wrote, and remarks on nothing."""
    got = dialect.parse(turn.output, tools, turn.prompt)
    for what, wanted, read in (
        ("reasoning", message.reasoning.strip(), got.reasoning.strip()),
        ("content", message.content.strip(), got.content.strip()),
        ("calls", [(call.name, call.value) for call in message.tool_calls], _calls(got)),
    ):
        if wanted != read:
            return f"the {what} {wanted!r} is read as {read!r}"
    return f"the reader remarks: {got.diagnostics[0].problem}" if got.diagnostics else ""


def accepted(dialect: Dialect, tools: Any, turn: Rendered) -> str:
    """Law 7 (agreement): the format that constrains the model allows what the template wrote."""
    if accepts(dialect.format(tools, reasoning=turn.reasoning).format, turn.output):
        return ""
    return "the format refuses what the template writes"


def forced(dialect: Dialect, tools: Any, turn: Rendered, message: Message) -> str:
    """Law 7 (agreement) where a call is asked for: `required` and a named choice allow the turn, and no other tool."""
    if not message.tool_calls or message.content:
        return ""
    made = dialect.format(tools, "required", turn.reasoning).format
    name = message.tool_calls[0].name
    if not accepts(made, turn.output):
        return "the format of `required` refuses what the template writes"
    if accepts(made, turn.output.replace(name, name[:-1] + "Q")):
        return "the format of `required` allows a tool that is not there"
    choice = {"type": "function", "function": {"name": name}}
    if len(message.tool_calls) == 1 and not accepts(dialect.format(tools, choice, turn.reasoning).format, turn.output):
        return "the format of a named choice refuses what the template writes"
    return ""


def stopped(eos_token: str, turn: Rendered) -> str:
    """Law 7 (agreement) where generation stops: the end-of-sequence token stands nowhere inside of a turn."""
    return (
        f"{eos_token} stands inside of the turn, and generation stops there"
        if eos_token and eos_token in turn.output
        else ""
    )


def streams(dialect: Dialect, tools: Any, turn: Rendered) -> str:
    """No byte is lost or told twice, cuts do not matter, and damage does not stop the reader.

    Law 2 (conservation), law 3 (chunk invariance), law 8 (totality).
    """
    data = turn.output.encode()
    whole, events = _fed(dialect, tools, turn.prompt, [data])
    if not _tiles(events, len(data)):
        return "the events do not cover the output"
    for size in _CHUNKS:
        pieces = [data[at : at + size] for at in range(0, len(data), size)]
        message, cut = _fed(dialect, tools, turn.prompt, pieces)
        if message != whole or _texts(cut) != _texts(events):
            return f"in chunks of {size} bytes it is read as {message}, at once as {whole}"
        if not _tiles(cut, len(data)):
            return f"in chunks of {size} bytes the events do not cover the output"
    for damaged in _damaged(data):
        _, events = _fed(dialect, tools, turn.prompt, [damaged], "length")
        if not _tiles(events, len(damaged)):
            return f"of the damaged output {damaged!r} the events do not tell all"
    return ""


def _calls(message: Message) -> list[tuple[str, Any]]:
    return [(call.name, call.value) for call in message.tool_calls]


def _fed(
    dialect: Dialect, tools: Any, prompt: str | None, chunks: Iterable[bytes], finish: Any = "stop"
) -> tuple[Message, list[Event]]:
    parser = dialect.parser(tools, prompt)
    events = list(parser.initial_events)
    for chunk in chunks:
        events += parser.feed(chunk)
    events += parser.close(finish)
    return parser.message, events


def _tiles(events: list[Event], size: int) -> bool:
    """Whether the spans of the events tile prompt and output."""
    at = min([0, *(event.start for event in events[:1])])
    for event in events:
        if event.start != at or event.end < at:
            return False
        at = event.end
    return at == size


def _texts(events: list[Event]) -> list[tuple[tuple[str, int], str]]:
    """The text of each region, however it was cut."""
    pieces = [event for event in events if event.text]
    groups = groupby(pieces, key=lambda event: (event.region, event.call_index))
    return [(key, "".join(event.text for event in group)) for key, group in groups]


def _damaged(data: bytes) -> Iterator[bytes]:
    """The output cut short, and with a piece missing, at places spread over it."""
    for place in range(0, len(data), max(1, len(data) // _FRAGMENTS)):
        yield data[:place]
        yield data[:place] + data[place + 3 :]
