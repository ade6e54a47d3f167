"""One answer as it grows: tokens in; events, probabilities and counts out, ready for any interface."""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from dovetail.messages import FinishReason, Message, ToolCall
from dovetail.models.stops import StopStrings
from dovetail.parsing import Event, StreamParser
from dovetail.parsing.events import Region


class Odds(NamedTuple):
    """A token, how likely it was, and what else was likely: natural logarithms under the mask."""

    data: bytes
    logprob: float
    top: tuple[tuple[bytes, float], ...] = ()


class Delta(NamedTuple):
    """What a step of the model adds to the answer, and the odds of the content tokens that it settles."""

    events: list[Event]
    odds: list[Odds]


@dataclass(slots=True)
class Counts:
    """Tokens that a turn used."""

    completion: int = 0
    reasoning: int = 0


@dataclass(slots=True)
class _Written:
    """The message as it was told, without what the prompt had said already."""

    content: list[str] = field(default_factory=list)
    reasoning: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)

    def add(self, event: Event) -> None:
        match event:
            case Event("text", "content", text=text):
                self.content.append(text)
            case Event("text", "reasoning", text=text):
                self.reasoning.append(text)
            case Event("close", "tool_call", call=ToolCall() as call):
                self.calls.append(call)


class Turn:
    """Reads one answer; `stop` tells which stop string ended it, and `done` that no more is wanted.

    `led` tells whether a soft limit led it to its end.
    """

    def __init__(
        self,
        parser: StreamParser,
        stops: Sequence[str] = (),
        show_reasoning: bool = True,
    ) -> None:
        self._parser = parser
        self._stops = StopStrings(stops) if stops else None
        self._show_reasoning = show_reasoning
        self._written = _Written()
        self._opening: Event | None = None
        self._ids: set[str] = set()
        self._id = ""  # of the last call
        self._pending: deque[tuple[int, Odds | None]] = deque()
        self._position = 0
        self.counts = Counts()
        self.finish_reason: FinishReason | None = None
        self.stop: str | None = None
        self.led = False

    @property
    def done(self) -> bool:
        """Whether a stop string was found."""
        return self.stop is not None

    def start(self) -> list[Event]:
        """The region that the prompt has opened, opened once more for clients that have not seen the prompt."""
        region: Region = ""
        for event in self._parser.initial_events:
            if event.kind == "text" and not event.region:
                continue
            region = "" if event.kind == "close" else event.region
        if not region or (region == "reasoning" and not self._show_reasoning):
            return []
        return [Event("open", region, 0, 0)]

    def feed(self, data: bytes, odds: Odds | None = None) -> Delta:
        """Take the bytes of one more token."""
        self.counts.completion += 1
        self._pending.append((self._position, odds))
        self._position += len(data)
        return self._say(self._parser.feed(data))

    def skip(self) -> Delta:
        """Take a token that says nothing, as the one that ends an answer."""
        self.counts.completion += 1
        return Delta([], [])

    def close(self, reason: Literal["stop", "length"], led: bool = False) -> Delta:
        """The end of the answer."""
        self.led = led and not self.done
        if self.done:
            delta = Delta([Event("close", "content", self._position, self._position)], [])
            self.finish_reason = "stop"
            return delta
        delta = self._say(self._parser.close(reason))
        self.finish_reason = "stop" if self.done else self._parser.finish_reason
        return delta

    @property
    def message(self) -> Message:
        """What was said."""
        written = self._written
        return Message("".join(written.content), "".join(written.reasoning), tuple(written.calls), self.finish_reason)

    def _say(self, events: list[Event]) -> Delta:
        odds = self._settle(events)
        shown = []
        for event in events:
            for one in self._filtered(event):
                self._written.add(one)
                shown.append(one)
            if self.done:
                break
        return Delta(shown, odds)

    def _filtered(self, event: Event) -> list[Event]:
        if not event.region or (event.region == "reasoning" and not self._show_reasoning):
            return []
        if event.region == "tool_call":
            return self._called(event)
        if event.region != "content" or self._stops is None:
            return [event]
        return self._stopped(event, self._stops)

    def _stopped(self, event: Event, stops: StopStrings) -> list[Event]:
        match event.kind:
            case "text":
                # Stop strings and texts are whole characters, so no cut goes through one.
                text = stops.feed(event.text.encode()).decode()
                self.stop = stops.matched
                return [event._replace(text=text)] if text else []
            case "close" if held := stops.flush():
                return [Event("text", "content", event.start, event.start, held.decode()), event]
        return [event]

    def _called(self, event: Event) -> list[Event]:
        """The events of a call; its opening waits for the next one: some families write the id behind the name."""
        if event.kind == "open":
            self._opening = event
            return []
        opening, self._opening = self._opening, None
        ready: list[Event] = []
        if opening is not None and opening.call is not None:
            call = event.call or self._parser.message.tool_calls[event.call_index]
            self._id = call.id if call.id and call.id not in self._ids else f"call_{secrets.token_hex(12)}"
            self._ids.add(self._id)
            ready.append(opening._replace(call=replace(opening.call, id=self._id)))
        if event.call is not None:
            event = event._replace(call=replace(event.call, id=self._id))
        return [*ready, event]

    def _settle(self, events: list[Event]) -> list[Odds]:
        """Tell in which region each token begins, now that events cover it; the odds of those in the content."""
        settled = []
        for event in events:
            while event.kind == "text" and self._pending and self._pending[0][0] < event.end:
                _, odds = self._pending.popleft()
                if event.region == "reasoning":
                    self.counts.reasoning += 1
                elif event.region == "content" and odds is not None:
                    settled.append(odds)
        return settled
