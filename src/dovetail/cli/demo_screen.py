"""How the demo shows a turn: the output in the colors of its regions, and the message that is read from it."""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from rich.console import Group, RenderableType
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from dovetail.cli.shapes import visible
from dovetail.messages import Message
from dovetail.parsing.events import Event

_STYLES = {
    "prompt": "bright_black",
    "end": "bright_black",
    "waiting": "bright_black",
    "markup": "yellow",
    "reasoning": "magenta",
    "content": "default",
    "arguments": "cyan",
}
_NAMES = {"": "markup", "tool_call": "arguments"}


def painted(region: str, text: str) -> Text:
    """A piece of output in the color of its region."""
    return Text(visible(text), _STYLES[region])


class Screen:
    """The output so far, cut into regions by the events of a parser."""

    def __init__(self) -> None:
        self._output = b""
        self._regions: list[tuple[str, bytes]] = []
        self._settled = 0

    def add(self, piece: bytes, events: Iterable[Event]) -> None:
        """Take a piece of output, and what it settled."""
        self._output += piece
        for event in events:
            name, data = _NAMES.get(event.region, event.region), self._output[max(event.start, 0) : max(event.end, 0)]
            if self._regions and self._regions[-1][0] == name:
                self._regions[-1] = (name, self._regions[-1][1] + data)
            elif data:
                self._regions.append((name, data))
            self._settled = max(self._settled, event.end)

    def side_by_side(self, message: Message) -> RenderableType:
        """The output on the left, the message on the right."""
        table = Table.grid(padding=(0, 1), expand=True)
        table.add_column(ratio=3)
        table.add_column(ratio=2)
        table.add_row(Panel(self._painted(), title="output", title_align="left"), _panel(message))
        return table

    def in_lines(self, message: Message) -> RenderableType:
        """The output in a line, the message in a line for each part."""
        lines = [Text("  output     ", "bright_black") + self._painted()]
        return Group(*lines, *(Text(f"  {name:<10} ", "bright_black") + text for name, text in _parts(message)))

    def _painted(self) -> Text:
        line = Text(overflow="fold")
        for name, data in self._regions:
            line += painted(name, data.decode("utf-8", "replace"))
        # What may yet become markup waits; the last character of it may be half there.
        waiting = codecs.getincrementaldecoder("utf-8")("replace").decode(self._output[self._settled :])
        return line + painted("waiting", waiting)


def _panel(message: Message) -> Panel:
    table = Table.grid(padding=(0, 1))
    table.add_column()
    table.add_column(overflow="fold")
    for name, text in _parts(message):
        table.add_row(Text(name, "bright_black"), text)
    return Panel(table, title="message", title_align="left")


def _parts(message: Message) -> list[tuple[str, Text]]:
    parts = [("reasoning", painted("reasoning", message.reasoning))] if message.reasoning else []
    parts += [("content", painted("content", message.content))] if message.content else []
    for call in message.tool_calls:
        parts.append(("call", Text(f"{call.name} ", "bold") + painted("arguments", call.arguments)))
    return parts
