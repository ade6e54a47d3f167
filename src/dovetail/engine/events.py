"""Captures as events whose spans tile the output."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple


class CaptureEvent(NamedTuple):
    """A capture opens, a piece of output stands in it, or it closes; `start` and `end` are byte offsets.

    Text outside every capture has the name "". A capture that matched no bytes gives no events.
    """

    kind: Literal["open", "text", "close"]
    name: str
    start: int
    end: int


def tile(marks: Iterable[tuple[bool, str, int]], position: int) -> list[CaptureEvent]:
    """Events for `position` bytes of output from marks of (opens, name, offset) in order."""
    events: list[CaptureEvent] = []
    names: list[str] = []
    at = 0

    def text_until(end: int) -> None:
        nonlocal at
        if end > at:
            events.append(CaptureEvent("text", names[-1] if names else "", at, end))
            at = end

    for opens, name, offset in marks:
        text_until(offset)
        if opens:
            names.append(name)
            events.append(CaptureEvent("open", name, offset, offset))
        else:
            names.pop()
            events.append(CaptureEvent("close", name, offset, offset))
    text_until(position)
    return events
