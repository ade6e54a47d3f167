"""What a reader tells while output streams in."""

from __future__ import annotations

from typing import Literal, NamedTuple

from dovetail.messages import ToolCall

Region = Literal["content", "reasoning", "tool_call", ""]


class Event(NamedTuple):
    """A region opens, a piece of output stands in it, or it closes; `start` and `end` are byte offsets in the output.

    The spans of all events tile the output. `text` is what the piece adds to its region: text, or JSON for the
    arguments of a call. Markup stands in the region "" and adds nothing. `call` tells the name and id of a call that
    opens, and all of a call that closes; `call_index` counts the calls.
    """

    kind: Literal["open", "text", "close"]
    region: Region
    start: int
    end: int
    text: str = ""
    call_index: int = -1
    call: ToolCall | None = None
