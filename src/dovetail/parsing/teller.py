"""From what a reader has understood to events and a message."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from dovetail.messages import Diagnostic, FinishReason, Message, ToolCall, from_json, to_json
from dovetail.parsing.codes import Code
from dovetail.parsing.events import Event, Region
from dovetail.parsing.partial_json import best_effort
from dovetail.parsing.signs import PLAIN
from dovetail.parsing.tape import Tape

MAX_DIAGNOSTICS = 100  # of hostile output; the first ones tell what went wrong


class OpenCall:
    """A call that is being read."""

    __slots__ = ("broken", "id", "is_left_out", "name", "parts", "start", "whole")

    def __init__(self, name: str, id: str, start: int, is_left_out: bool = False) -> None:
        self.name = name
        self.id = id
        self.start = start
        self.is_left_out = is_left_out  # what is read of it is markup
        self.parts: list[str] = []
        self.whole = False  # the arguments came to their end
        self.broken = False  # and what was written is not what they should look like

    def tool_call(self) -> ToolCall:
        """The call as far as it goes."""
        text = "".join(self.parts)
        if self.whole and not self.broken:
            try:
                return ToolCall(self.name, text, _decoded(from_json(text)), self.id)
            except (ValueError, RecursionError):
                pass
        return ToolCall(self.name, text, best_effort(text) if text else {}, self.id, complete=False)


class Teller:
    """Tells the bytes of a tape, in order and each once, as text of a region or as markup."""

    __slots__ = (
        "_calls",
        "_content",
        "_diagnostics",
        "_is_garbled",
        "_pass_on",
        "_pass_region",
        "_reasoning",
        "_region",
        "call",
        "events",
        "passes",
        "tape",
    )

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.events: list[Event] = []
        self.call: OpenCall | None = None
        # A chunk in which this search finds nothing goes straight into the open region; None while no text is free.
        self.passes: Callable[[str], object] | None = None
        self._pass_region: Region = ""
        self._pass_on: Callable[[str], None] = list[str]().append
        self._region: Region = ""
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[ToolCall] = []
        self._diagnostics: list[Diagnostic] = []
        self._is_garbled = False

    # Telling.

    def markup(self) -> None:
        """What has been looked at is markup."""
        tape = self.tape
        if tape.look > tape.at:
            base = tape.base
            self.events.append(Event("text", "", base + tape.at, base + tape.look))
            tape.at = tape.look

    def text(self, region: Region) -> None:
        """What has been looked at is text of this region; half of a character at its end waits for the other half."""
        tape = self.tape
        text = self._taken()
        if text:
            self._tell(region, text, tape.look - tape.at)
            tape.at = tape.look

    def escaped(self) -> None:
        """What has been looked at is text inside a JSON string of the open call."""
        text = self._taken()
        if text:
            self.json(to_json(text)[1:-1])

    def _taken(self) -> str:
        tape = self.tape
        if not tape.final and tape.look == len(tape.data):
            tape.look = _whole_characters(tape.data, tape.at)
        return self.decode(tape.data[tape.at : tape.look], tape.at)

    def decode(self, data: bytearray, at: int) -> str:
        """Bytes that stand at this place of the tape as text; what is not UTF-8 becomes replacement characters."""
        plain = data.translate(PLAIN)
        try:
            return plain.decode()
        except UnicodeDecodeError as error:
            if not self._is_garbled:
                # Only the first one is noted: how many there are depends on how the output was cut.
                self._is_garbled = True
                here = self.tape.base + at + error.start
                self.diagnose("encoding", "these bytes are not UTF-8", here, here + 1)
            return plain.decode("utf-8", "replace")

    def json(self, text: str) -> None:
        """What has been looked at says this in the arguments of the open call."""
        tape = self.tape
        self._tell("tool_call", text, tape.look - tape.at)
        tape.at = tape.look

    def let_pass(self, pattern: re.Pattern[str], region: Region) -> None:
        """Until the reader is asked again, chunks in which the pattern is not found are text of this region."""
        if self.tape.at == len(self.tape.data) and not (self.call and self.call.is_left_out):
            self.passes = self.tape.turn_ends.beside(pattern).search
            self._pass_region = region
            self._pass_on = self._parts(region).append

    def straight(self, text: str) -> list[Event]:
        """Tell a chunk that passes: nothing waits on the tape, and nothing in it needs a look."""
        if text.isascii():
            size = len(text)
        else:
            data = text.encode("utf-8", "replace")
            text, size = data.decode(), len(data)
        region = self._pass_region
        if region != self._region:
            self.enter(region)
        tape = self.tape
        start = tape.base
        tape.base = end = start + size
        self._pass_on(text)
        index = -1 if self.call is None else len(self._calls)
        # The constructor of a named tuple would take half of the time that a chunk costs.
        event: Event = tuple.__new__(Event, ("text", region, start, end, text, index, None))
        if not self.events:
            return [event]
        events, self.events = self.events, []
        return [*events, event]

    def _parts(self, region: Region) -> list[str]:
        if self.call is not None:
            return self.call.parts
        return self._content if region == "content" else self._reasoning

    def _tell(self, region: Region, text: str, size: int) -> None:
        if self.call is not None and self.call.is_left_out:
            self.call.parts.append(text)
            start = self.tape.base + self.tape.at
            self.events.append(Event("text", "", start, start + size))
            return
        if region != self._region:
            self.enter(region)
        start = self.tape.base + self.tape.at
        self._parts(region).append(text)
        index = -1 if self.call is None else len(self._calls)
        self.events.append(Event("text", region, start, start + size, text, index))

    # Regions.

    def enter(self, region: Region) -> None:
        """Close the region that is open, and open this one, unless it is open already."""
        if region == self._region:
            return
        here = self.tape.base + self.tape.at
        if self._region in ("content", "reasoning"):
            self.events.append(Event("close", self._region, here, here))
        if region in ("content", "reasoning"):
            self.events.append(Event("open", region, here, here))
        self._region = region

    def open_call(self, name: str, id: str) -> None:
        """A call begins; what has been looked at is its head."""
        self.enter("tool_call")
        start = self.tape.base + self.tape.at
        self.call = OpenCall(name, id, start)
        opened = ToolCall(name, "", None, id, complete=False)
        self.events.append(Event("open", "tool_call", start, start, "", len(self._calls), opened))
        self.markup()

    def leave_out_call(self, name: str) -> None:
        """A call begins of which nothing is told; what has been looked at is its head."""
        self.enter("")
        self.call = OpenCall(name, "", self.tape.base + self.tape.at, is_left_out=True)
        self.markup()

    def close_call(self) -> None:
        """The open call ends here, whole or not."""
        call = self.call
        assert call is not None
        if call.is_left_out:
            self.call = None
            return
        closed = call.tool_call()
        here = self.tape.base + self.tape.at
        if not closed.complete:
            missing = "are missing" if closed.arguments == "{}" else "are not JSON"
            problem = missing if call.whole else "were cut off"
            self.diagnose("arguments", f"the arguments of {call.name!r} {problem}", call.start, here)
        self.events.append(Event("close", "tool_call", here, here, "", len(self._calls), closed))
        self._calls.append(closed)
        self.call = None
        self._region = ""

    def diagnose(self, code: Code, problem: str, start: int | None = None, end: int | None = None) -> None:
        """Note a problem, by default with what has been looked at."""
        tape = self.tape
        if len(self._diagnostics) < MAX_DIAGNOSTICS:
            start = tape.base + tape.at if start is None else start
            self._diagnostics.append(Diagnostic(code, problem, start, tape.base + tape.look if end is None else end))

    # The message.

    def message(self, finish_reason: FinishReason | None) -> Message:
        """All that was told so far, with the open call as far as it goes."""
        calls = [*self._calls, self.call.tool_call()] if self.call and not self.call.is_left_out else self._calls
        return Message(
            "".join(self._content),
            "".join(self._reasoning),
            tuple(calls),
            finish_reason,
            tuple(self._diagnostics),
        )

    @property
    def diagnostics(self) -> Sequence[Diagnostic]:
        """What was noted so far."""
        return self._diagnostics

    @property
    def closed_calls(self) -> int:
        """How many calls were told to their end."""
        return len(self._calls)

    @property
    def has_calls(self) -> bool:
        """Whether a call was told."""
        return bool(self._calls) or (self.call is not None and not self.call.is_left_out)

    @property
    def has_content(self) -> bool:
        """Whether text of the content was told that is no white space."""
        return any(not text.isspace() for text in self._content)

    @property
    def last_is_complete(self) -> bool:
        """Whether the last call was read to its end."""
        return self.call is None and (not self._calls or self._calls[-1].complete)


def _decoded(value: Any) -> Any:
    """Arguments that were encoded twice, as some models do, mean what the inner text says."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            inner = from_json(value)
        except (ValueError, RecursionError):
            return value
        return inner if isinstance(inner, dict) else value
    return value


def _whole_characters(data: bytearray, start: int) -> int:
    """Where to cut `data` so that no UTF-8 sequence at its end is split."""
    end = len(data)
    for at in range(end - 1, max(start, end - 3) - 1, -1):
        byte = data[at]
        if byte < 0x80:
            return end
        if byte >= 0xC0:
            length = 2 if byte < 0xE0 else 3 if byte < 0xF0 else 4
            return at if end - at < length else end
    return end
