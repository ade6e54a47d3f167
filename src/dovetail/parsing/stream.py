"""The streaming parser: text, bytes or token ids in, events out, and a message at any time."""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from dovetail.engine import Matcher, Vocabulary
from dovetail.errors import InputError, ParseError
from dovetail.formats import Format, JsonSchemaFormat
from dovetail.messages import FinishReason, Message
from dovetail.parsing.events import Event
from dovetail.parsing.layouts import Reasoning
from dovetail.parsing.plan import Layout, plan
from dovetail.parsing.reader import Reader
from dovetail.parsing.signs import CLEAN, signed
from dovetail.parsing.tape import Tape
from dovetail.parsing.teller import Teller
from dovetail.parsing.tokens import Tokens, as_text

Level = Literal["text", "token"]
Chunk = str | bytes | bytearray | Sequence[int]
_BYTES = (bytes, bytearray)  # a union would be made anew for each token


class StreamParser:
    """Reads one turn of a model as it comes, cut in any way; see `Dialect.parser` for how to make one.

    It never raises because of what the model says, unless a matcher is given: then it raises a ParseError at the first
    byte that the matcher refuses, and wherever it would leave a diagnostic.
    """

    __slots__ = (
        "_finish_reason",
        "_matcher",
        "_reader",
        "_reading",
        "_special",
        "_take",
        "_tape",
        "_teller",
        "_tokens",
        "begun",
        "initial_events",
    )

    def __init__(
        self,
        layout: Layout,
        tools: Mapping[str, Any] | None = None,
        *,
        prompt: str | None = None,
        in_reasoning: bool | None = None,
        inline_reasoning: bool = False,
        calls_are_text: bool = False,
        keeps_unknown: bool = False,
        answer: Format | None = None,
        vocabulary: Vocabulary | None = None,
        level: Level = "text",
        matcher: Matcher | None = None,
    ) -> None:
        self._matcher = matcher
        self._finish_reason: FinishReason | None = None
        self.initial_events: list[Event] = []  # what the prompt has already said, at offsets below 0
        self._special = _special_tokens(vocabulary, level)
        self._tokens = None if vocabulary is None else Tokens(vocabulary, frozenset(self._special))
        self._take = self._tokens.take if self._tokens and matcher is None else None
        marks = plan(layout, tuple(self._special.values()), tools is not None)
        is_json = isinstance(answer, JsonSchemaFormat)
        task = marks.for_request(tools, inline_reasoning, is_json, calls_are_text, keeps_unknown)
        self._tape = Tape(marks.ends_of_turn)
        self._teller = Teller(self._tape)
        begun = _last_turn(prompt, layout) if prompt else layout.turn.opened if prompt is None else ""
        self.begun = begun  # the part of the prompt that belongs to the turn
        self._reader = Reader(self._teller, task)
        inside = _starts_inside(layout.reasoning, prompt, begun) if in_reasoning is None else in_reasoning
        inside = inside if layout.reasoning else False
        self._reading = self._reader.turn(inside)
        next(self._reading)
        if begun:
            self._read_prompt(begun)

    def feed(self, chunk: Chunk) -> list[Event]:
        """Take more output; the events that it settles, the spans of which tile what was fed so far."""
        teller = self._teller
        if isinstance(chunk, str):
            if self._matcher is not None:
                self._check(chunk.encode("utf-8", "replace"))
            if teller.passes is not None and chunk and teller.passes(chunk) is None:
                return teller.straight(chunk)
            self._tape.data += chunk.encode("utf-8", "replace")
        else:
            # Engines ask for each token: those that no matcher looks at are taken without a detour.
            take = None if isinstance(chunk, _BYTES) else self._take
            data, text = self._taken(chunk) if take is None else take(chunk)
            if text and teller.passes is not None and teller.passes(text) is None:
                return teller.straight(text)
            self._tape.data += data
        self._advance()
        events, teller.events = teller.events, []
        return events

    def close(self, finish_reason: Literal["stop", "length"] = "stop") -> list[Event]:
        """The end of the output; the events that settles. With "length" what is half read is not guessed at."""
        teller, tape = self._teller, self._tape
        if self._finish_reason is not None:
            return []
        reason: FinishReason = finish_reason
        if finish_reason == "stop":
            if self._matcher is not None and not (self._matcher.is_complete or self._matcher.is_finished):
                raise ParseError("the output ends too early for its format", tape.base + len(tape.data))
            tape.final = True
            closed = teller.closed_calls
            self._advance()
            ends_in_call = (teller.call or teller.closed_calls > closed) and not teller.last_is_complete
            reason = "length" if ends_in_call else finish_reason
        else:
            tape.cut = True
            self._advance()
        if tape.at < len(tape.data):
            tape.look = len(tape.data)
            teller.diagnose("cut_off", "the output was cut off here")
            teller.markup()
        if teller.call is not None:
            teller.close_call()
        teller.enter("")
        teller.passes = None
        self._finish_reason = reason if reason == "length" or not teller.has_calls else "tool_calls"
        events, teller.events = teller.events, []
        return events

    def finish(self, finish_reason: Literal["stop", "length"] = "stop") -> Message:
        """End the output and give the message; "length" says that a limit cut it off, and beats "tool_calls"."""
        self.close(finish_reason)
        return self.message

    @property
    def message(self) -> Message:
        """What was said so far; each piece of it is a prefix of what it will be."""
        return self._teller.message(self._finish_reason)

    def token_span(self, start: int, end: int) -> tuple[int, int]:
        """The tokens in which these bytes of the output stand: the first, and the one behind the last.

        Only for output that was fed as token ids, from its beginning.
        """
        if self._tokens is None:
            raise InputError("without a vocabulary there are no tokens", "", "pass vocabulary= to the parser")
        return self._tokens.span(start, end)

    @property
    def in_reasoning(self) -> bool | None:
        """Whether the output stands inside a block of reasoning; None where no prompt and nothing in it tells yet."""
        return self._reader.in_reasoning

    @property
    def finish_reason(self) -> FinishReason | None:
        """Why the turn ended, once it has."""
        return self._finish_reason

    def _advance(self) -> None:
        if self._finish_reason is not None:
            raise InputError("the output has ended already", "", "make a new parser for a new output")
        if self._tape.data or self._tape.over:
            next(self._reading, None)
            self._tape.compact()
        if self._matcher is not None and self._teller.diagnostics:
            remark = self._teller.diagnostics[0]
            raise ParseError(remark.problem, max(remark.start, 0))

    def _taken(self, chunk: bytes | bytearray | Sequence[int]) -> tuple[bytes, str]:
        """A chunk as it stands on the tape, and as text where it may pass without a look."""
        if isinstance(chunk, _BYTES):
            data = bytes(chunk)
            if self._matcher is not None:
                self._check(data)
            return data.translate(CLEAN), as_text(data)
        if self._tokens is None:
            raise InputError("token ids need a vocabulary", "", "pass vocabulary= to the parser, or feed text")
        if self._matcher is not None:
            self._check_tokens(chunk, self._matcher)
        return self._tokens.take(chunk)

    def _check_tokens(self, chunk: Sequence[int], matcher: Matcher) -> None:
        assert self._tokens is not None
        here = self._tape.base + len(self._tape.data)
        for token in map(operator.index, chunk):  # numpy's integers too
            if not matcher.accept(token):
                raise ParseError(f"the format does not allow token {token} here", here)
            here += self._tokens.size(token)

    def _check(self, data: bytes) -> None:
        matcher = self._matcher
        assert matcher is not None
        if data and not matcher.accept_bytes(data):
            good = _accepted(matcher, data)
            raise ParseError("the output leaves its format", self._tape.base + len(self._tape.data) + good)

    def _read_prompt(self, assistant: str) -> None:
        """Run over what the prompt has written of the turn: the message begins there."""
        data = assistant.encode("utf-8", "replace")
        for token in self._special.values():
            data = data.replace(token.encode(), signed(token.encode()))
        self._tape.data += data
        self._tape.base = -len(data)
        self._advance()
        self.initial_events, self._teller.events = self._teller.events, []


def _special_tokens(vocabulary: Vocabulary | None, level: Level) -> dict[int, str]:
    """The tokens that are matched by id."""
    if level == "text":
        return {}
    if level != "token":
        raise InputError(f"level is {level!r}", "", 'use "text" or "token"')
    if vocabulary is None:
        raise InputError("level is 'token', but there is no vocabulary", "", "pass vocabulary= to the parser")
    return {id: text for text, id in vocabulary.special_tokens.items() if text}


def _starts_inside(reasoning: Reasoning | None, prompt: str | None, begun: str) -> bool | None:
    """Whether the turn begins inside a block of reasoning; None where no prompt tells.

    A block without a start begins with what the prompt says of the turn.
    """
    if reasoning is None:
        return False
    if prompt is None and not begun:
        return None if reasoning.opened_by != "model" else False
    return not reasoning.start and bool(begun.strip())


def _last_turn(prompt: str, layout: Layout) -> str:
    """What the prompt holds of the turn to be read."""
    turn, reasoning = layout.turn, layout.reasoning
    start = turn.start.strip()
    if start and start in prompt:
        before, _, tail = prompt.rpartition(start)
        head = start[: start.rfind(">") + 1]
        ends = [mark for mark in (head, turn.end.strip()) if mark]
        while turn.between and start in before and not any(mark in before.rpartition(start)[2] for mark in ends):
            # Blocks of one turn, each of which begins like a turn.
            before, _, block = before.rpartition(start)
            tail = block + start + tail
        return tail.removeprefix(turn.start[len(turn.start.rstrip()) :])
    if reasoning and reasoning.start.strip() and reasoning.start.strip() in prompt:
        _, _, tail = prompt.rpartition(reasoning.start.strip())
        return reasoning.start.strip() + tail if not tail.strip() else ""
    return ""


def _accepted(matcher: Matcher, data: bytes) -> int:
    """How many of the bytes the matcher takes."""
    low, high = 0, len(data)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if matcher.fork().accept_bytes(data[:middle]) else (low, middle)
    return low
