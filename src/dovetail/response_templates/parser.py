"""The streaming parser: text in, events out, and the message at the end.

The meaning of an output is that of the whole of it: from the left, the first delimiter that can come next ends what
was before it (of several at one place the longest, an opening before a close, then by name). The parser says something
only when no further text can change it, so that the message is the same however the output was cut.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dovetail import messages
from dovetail.errors import InputError, ResponseError
from dovetail.response_templates.content import UNTYPED, pointer
from dovetail.response_templates.delimiters import Delimiter, Match, Watch
from dovetail.response_templates.outcome import to_message
from dovetail.response_templates.template import Field, Kind, ResponseTemplate, Watched
from dovetail.response_templates.tools import Tool, Tools

Event = dict[str, Any]
Step = tuple[Kind, Field, Match]

TIME_LIMIT = 1.0
MAX_HELD = 1 << 24
# Undecided text longer than this is looked at again only when it has grown by a quarter, so that its cost stays linear.
_PATIENCE = 4096


_BLIND: Watched = (Watch([]), [])
_UNKNOWN: Match = (-1, -1, {})


@dataclass(frozen=True, slots=True)
class Diagnostic(messages.Diagnostic):
    """What did not fit, in which characters of the output, and its text; the prefix lies before 0."""

    field: str | None = None
    raw: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the output; positions count characters from the start of what was fed, the prefix lies before 0."""

    start: int
    end: int
    text: str


class ResponseParser:
    """Reads one generation: `initial_events`, then `feed` for each chunk, then `finalize` for the message.

    `prefix` is the prompt; what it says after the last start anchor is part of the message. With `on_malformed="keep"`
    nothing raises: text that does not fit stands in place of the value, and `diagnostics` says why. With `spans=True`
    events also carry `start` and `end`, and openings their `captures`.
    """

    def __init__(
        self,
        template: Mapping[str, Any] | str | ResponseTemplate,
        prefix: str | None = None,
        *,
        tools: Sequence[Tool] | None = None,
        on_malformed: Literal["raise", "keep"] = "raise",
        spans: bool = False,
        time_limit: float = TIME_LIMIT,
        max_held: int = MAX_HELD,
    ) -> None:
        self.template = ResponseTemplate.load(template, strict=False)
        if prefix is None:
            raise InputError(
                "a response is read together with the prompt, which may have begun the message",
                "/prefix",
                'pass the prompt as prefix=, or prefix="" where the output holds the whole message',
            )
        if on_malformed not in ("raise", "keep"):
            raise InputError(f"on_malformed is {on_malformed!r}", "/on_malformed", 'write "raise" or "keep"')
        self._tools = Tools(tools) if tools else None
        self._keep = on_malformed == "keep"
        self._spans = spans
        self._limit = time_limit
        self._max_held = max_held
        self.diagnostics: list[Diagnostic] = []
        self.unclaimed: list[Span] = []
        self.initial_events: list[Event] = []
        self._message = self.template.defaults
        self._finalized = False
        self._ended = False  # the implicit field was closed for good: the rest belongs to nobody
        self._buffer = ""  # from a little before the undecided text to the end of what was fed
        self._at = 0  # where the undecided text starts in it
        self._floor: int | None = None  # where in the output the next delimiter may start at the earliest
        self._context = self.template.context
        self._known: dict[Delimiter, Match | None] = {}  # what was found in this buffer already
        self._waiting: list[str] = []  # fed, and not worth a look yet
        self._waiting_size = 0
        self._due = 0  # how many characters are worth a look
        self._opened: bool
        self._enter(self.template.implicit, False)
        start = self.template.after_anchor(prefix, self._limit)
        self._offset = -len(start)  # the position of the start of the buffer in the output
        self._starts: re.Pattern[str] | None = None  # tells fast that a chunk has no delimiter; None: look closer
        if start:
            self._push(start, self.initial_events)

    @property
    def message(self) -> dict[str, Any]:
        """What was read so far, without the region that is open."""
        defaults = self.template.source.get("defaults", {})
        return {key: value for key, value in self._message.items() if key in defaults or not _is_empty(value)}

    def to_message(self) -> messages.Message:
        """What was read so far as a message; its diagnostics count characters, as spans do."""
        return to_message(self.message, self.diagnostics)

    @property
    def open_field(self) -> str | None:
        """The field whose region the next text is in, if one was opened by a delimiter or by the start of the text."""
        if self._current is not self.template.implicit:
            return self._current.name if self._current is not None else None
        if self._at < len(self._buffer):
            return None
        for item in self.template.fields.values():
            # One more character, which no delimiter starts with, shows what opens before any text.
            match = item.open.match(self._buffer + "\0", self._at, self._limit) if item.open is not None else None
            if match is not None and match[1] == self._at:
                return item.name
        return None

    def feed(self, text: str) -> list[Event]:
        """Read one more chunk; gives the events that it decides."""
        starts = self._starts
        if starts is not None and self._opened and text and not self._buffer and not self._spans:
            item = self._current
            if item is not None and starts.search(text) is None:  # most chunks: plain text in a region that is open
                self._offset += len(text)
                self._body.append(text)
                return [{"type": "region_chunk", "field": item.name, "text": text, "dirty": item.dirty}]
        if self._finalized:
            raise _used_up()
        events: list[Event] = []
        if starts is None:
            self._push(text, events)
        else:
            self._filter(text, starts, events)
        return events

    def _filter(self, text: str, starts: re.Pattern[str], events: list[Event]) -> None:
        """Take a chunk that may have a delimiter or a part of one."""
        buffer = self._buffer + text
        ready, complete = len(buffer), False
        if starts.search(buffer, self._at) is not None:
            try:
                ready, complete = self._watch.plain_until(buffer, self._at, self._limit)
            except TimeoutError:
                self._buffer = buffer
                self._give_up(events, self._too_slow)
        if complete or len(buffer) - ready > _PATIENCE:
            self._push(text, events)
        else:
            self._settle(events, buffer, ready)

    def finalize(self, text: str = "") -> tuple[dict[str, Any], list[Event]]:
        """End the output, with a last chunk: closes what is open, and gives the message with the last events."""
        if self._finalized:
            raise _used_up()
        events: list[Event] = []
        self._starts = None
        self._wait(text)
        self._extend()
        self._process(events, True)
        missing = [
            name for name, item in self.template.fields.items() if not item.optional and name not in self._message
        ]
        if missing:
            problem = self._problem("missing", f"required fields are missing: {', '.join(missing)}", None)
            self._raise(problem, events)
        self._finalized = True
        return self.message, events

    def _settle(self, events: list[Event], buffer: str, ready: int) -> None:
        """Take `buffer` for the buffer, and its text up to `ready` for that of the current region."""
        if ready > self._at:
            self._take(events, buffer[self._at : ready], self._offset + self._at)
        surplus = max(ready - self._context, 0)
        self._buffer = buffer[surplus:]
        self._offset += surplus
        self._at = ready - surplus

    def _push(self, text: str, events: list[Event]) -> None:
        """Take `text`, and look at it where it is due; never more than `max_held` characters stay undecided."""
        while True:
            room = max(self._max_held - (len(self._buffer) - self._at + self._waiting_size), 0)
            piece, text = text[:room], text[room:]
            self._wait(piece)
            if len(piece) < room and self._due > _PATIENCE // 4 and self._waiting_size < self._due:
                return
            self._extend()
            try:
                self._look(events)
            except ResponseError:
                self._wait(text)
                raise
            if not text:
                return

    def _look(self, events: list[Event]) -> None:
        """Take what is decided out of the buffer."""
        self._process(events, False)
        self._settle(events, self._buffer, self._at)
        if self._floor is not None and self._floor <= self._offset + self._at:
            self._floor = None
        held = len(self._buffer) - self._at
        self._due = held // 4
        self._choose_filter(held <= _PATIENCE and self._floor is None)
        if held >= self._max_held:
            self._give_up(events, f"more than {self._max_held} characters are undecided")

    def _wait(self, text: str) -> None:
        """Keep `text` for the next look."""
        self._waiting.append(text)
        self._waiting_size += len(text)

    def _extend(self) -> None:
        """Put what waits into the buffer."""
        self._buffer += "".join(self._waiting)
        self._waiting.clear()
        self._waiting_size = 0
        self._known.clear()

    def _process(self, events: list[Event], final: bool) -> None:
        """Take every step that is decided."""
        while True:
            try:
                step, decided = self._next(final)
            except TimeoutError:
                self._give_up(events, self._too_slow)
                continue
            if step is None:
                self._advance(events, decided)
                break
            self._step(events, *step)
        if final:
            self._raise(self._close(events, self._at, {}), events)

    def _next(self, final: bool) -> tuple[Step | None, int]:
        """The next delimiter if it is decided, else up to where the text is."""
        buffer, size = self._buffer, len(self._buffer)
        start = self._at if self._floor is None else max(self._at, self._floor - self._offset)
        if start >= size:
            return None, size
        delimiters = self._watch.delimiters
        if final:
            return self._best([self._search(delimiter, start) for delimiter in delimiters]), size
        place, complete = self._watch.plain_until(buffer, start, self._limit)
        if not complete:
            return None, place
        matches = [delimiter.match(buffer, place, self._limit) for delimiter in delimiters]
        if any(one and one[1] == size and delimiter.waits for one, delimiter in zip(matches, delimiters, strict=True)):
            return None, place
        return self._best(matches), place

    def _search(self, delimiter: Delimiter, start: int) -> Match | None:
        """The next match, which an earlier search may have found already."""
        if len(self._watched) == 1:  # nothing else was looked for meanwhile
            return delimiter.search(self._buffer, start, self._limit)
        known = self._known.get(delimiter, _UNKNOWN)
        if known is _UNKNOWN or (known is not None and known[0] < start) or delimiter.pattern.patient:
            known = self._known[delimiter] = delimiter.search(self._buffer, start, self._limit)
        return known

    def _best(self, matches: list[Match | None]) -> Step | None:
        """The first match; of several at one place the longest, then the one that is watched first."""
        best: Step | None = None
        first, last = len(self._buffer), 0  # what matches at the very end takes no part of the output
        for one, (kind, item) in zip(matches, self._watched, strict=True):
            if one is not None and (one[0] < first or (one[0] == first and one[1] > last and best)):
                best = kind, item, one
                first, last = one[0], one[1]
        return best

    def _step(self, events: list[Event], kind: Kind, item: Field, match: Match) -> None:
        """Pass one delimiter."""
        start, end, captures = match
        self._advance(events, start)
        if kind == "open":
            problem = self._close(events, start, {})
            self._open(events, item, match)
        elif start == end and not self._opened:
            # An empty close of the implicit field, with nothing to close: the message ends here.
            self._ended = True
            self._enter(self.template.implicit, False)
            return
        else:
            # A region that took no text at all would be found here forever.
            stuck = start == end and self._began == self._offset + start
            problem = self._close(events, end, captures)
            self._floor = self._offset + end + 1 if stuck else None
        self._raise(problem, events)

    def _advance(self, events: list[Event], end: int) -> None:
        """The text up to `end` belongs to the current region."""
        if end > self._at:
            self._take(events, self._buffer[self._at : end], self._offset + self._at)
            self._at = end

    def _take(self, events: list[Event], text: str, start: int) -> None:
        item = self._current
        if item is None or self._ended:
            self._drop(text, start)
            return
        if not self._opened:
            self._opened = True
            events.append(self._spanned({"type": "region_open", "field": item.name}, start, start))
        self._body.append(text)
        event: Event = {"type": "region_chunk", "field": item.name, "text": text, "dirty": item.dirty}
        if self._spans:
            self._spanned(event, start, start + len(text))
        events.append(event)

    def _drop(self, text: str, start: int) -> None:
        """Remember text that is in no region."""
        if text:
            self.unclaimed.append(Span(start, start + len(text), text))

    def _enter(self, item: Field | None, opened: bool) -> None:
        """Start in a region, or outside of all regions with the implicit field at hand."""
        self._current = item
        self._opened = opened  # whether its opening was told
        self._body: list[str] = []
        self._captures: dict[str, str] = {}
        self._began: int | None = None  # where a region was opened by an empty match
        if self._ended:
            self._watch, self._watched = _BLIND
        elif opened and item is not None:
            self._watch, self._watched = self.template.inside[item.name]
        else:
            self._watch, self._watched = self.template.outside

    def _choose_filter(self, useful: bool) -> None:
        """Set what tells fast that a chunk has no delimiter."""
        at_start = self._at == 0 and self._watch.positional
        self._starts = self._watch.starts if useful and not at_start else None

    def _open(self, events: list[Event], item: Field, match: Match) -> None:
        start, end, captures = match
        self._enter(item, True)
        self._captures = captures
        self._at = end
        if start == end:
            self._began = self._offset + start
        event: Event = {"type": "region_open", "field": item.name}
        if self._spans:
            event["captures"] = dict(captures)
        events.append(self._spanned(event, self._offset + start, self._offset + end))

    def _close(self, events: list[Event], end: int, captures: dict[str, str]) -> ResponseError | None:
        """Close what is open with the text up to `end`, and put its value into the message; gives what was wrong."""
        start, item = self._at, self._current
        self._at = end
        if item is None or not self._opened:
            self._drop(self._buffer[start:end], self._offset + start)
            return None
        raw, captures = "".join(self._body), {**captures, **self._captures}
        self._enter(self.template.implicit, False)
        problem = None
        try:
            value = self._value(item, raw, captures)
        except (ValueError, TimeoutError) as error:
            why = f"reading it takes more than {self._limit} s" if isinstance(error, TimeoutError) else str(error)
            problem = self._problem("malformed", f"the region of {item.name} cannot be read: {why}", item, raw, start)
            if not self._keep:
                return problem
            value = raw
        self._store(item, value)
        event = {"type": "region_close", "field": item.name, "value": value}
        events.append(self._spanned(event, self._offset + start, self._offset + end))
        return None

    def _value(self, item: Field, raw: str, captures: dict[str, str]) -> Any:
        value = item.value(raw, captures, self._limit)
        if self._tools is not None:
            value = self._tools.cast(value, item.content in UNTYPED)
        if item.join is not None and not isinstance(value, str):
            raise ValueError(f"join needs texts, and this is a {type(value).__name__}")
        return value

    def _store(self, item: Field, value: Any) -> None:
        if item.join is not None:
            before = self._message.get(item.name)
            self._message[item.name] = value if before is None else before + item.join + value
        elif item.repeats:
            self._message.setdefault(item.name, []).append(value)
        else:
            self._message[item.name] = value

    @property
    def _too_slow(self) -> str:
        return f"looking for a delimiter takes more than {self._limit} s"

    def _give_up(self, events: list[Event], why: str) -> None:
        """Stop looking for delimiters: the rest of the output belongs to the current region."""
        problem = self._problem("undecided", f"{why}; no delimiter is looked for any more", self._current)
        self._watch, self._watched = _BLIND
        self._choose_filter(True)
        self._raise(problem, events)

    def _problem(
        self, code: str, problem: str, item: Field | None, raw: str = "", end: int | None = None
    ) -> ResponseError:
        name = item.name if item is not None else None
        position = self._offset + (self._at if end is None else end)
        self.diagnostics.append(Diagnostic(code, problem, position - len(raw), position, name, raw))
        path = f"/fields/{pointer(name)}" if name is not None else "/fields"
        fix = 'pass on_malformed="keep" to take the text as it stands'
        return ResponseError(problem, path, fix, raw=raw, message=self.message)

    def _raise(self, problem: ResponseError | None, events: list[Event]) -> None:
        if problem is not None and not self._keep:
            self._starts = None  # the rest of the text may hold anything
            problem.events = events
            raise problem

    def _spanned(self, event: Event, start: int, end: int) -> Event:
        if self._spans:
            event["start"] = start
            event["end"] = end
        return event


def _used_up() -> InputError:
    return InputError("the response is finalized already", "", "make a new parser for the next response")


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str | list | dict) and not value)
