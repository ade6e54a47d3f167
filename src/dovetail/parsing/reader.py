"""The reader of a turn: blocks of reasoning, content and calls, in whatever order they come."""

from __future__ import annotations

from dovetail.parsing import json_text
from dovetail.parsing.calls import call_to, calls
from dovetail.parsing.channels import Channels
from dovetail.parsing.events import Region
from dovetail.parsing.plan import Phrase, Plan
from dovetail.parsing.stops import marker_size
from dovetail.parsing.tape import Steps, peek, phrase, shared_start, space
from dovetail.parsing.teller import Teller
from dovetail.parsing.texts import free_text

_JSON_STARTS = frozenset(b'{["')
_FENCED_STARTS = _JSON_STARTS | frozenset(b"-0123456789tfn")


class Reader:
    """Reads one turn from the tape of a teller."""

    def __init__(self, teller: Teller, plan: Plan) -> None:
        self.teller = teller
        self.tape = teller.tape
        self.plan = plan
        self._over = False
        self._stray = False  # text outside blocks has been noted

    def turn(self, in_reasoning: bool) -> Steps[None]:
        """All of the turn; `in_reasoning` where the prompt has opened a block."""
        if in_reasoning:
            yield from self._reasoning()
        blank = True
        while not self._over:
            size = (yield from self._behind_space()) if blank else -1
            if size < 0:
                size = yield from self._content()
            if size == 0:
                return
            blank = yield from self._block(size)
        yield from self._rest()

    def _behind_space(self) -> Steps[int]:
        """The size of an opener behind nothing but white space; 0 at the end, -1 where text comes first.

        White space between blocks is no content.
        """
        tape, openers = self.tape, self.plan.openers
        tape.look = tape.at
        while True:
            # What has been skipped is not looked at again, however often the reader has to wait.
            tape.look = behind = tape.after_space()
            found = openers.find.match(tape.data, behind)
            if found:
                tape.look = found.end()
                return marker_size(found)
            if behind < len(tape.data) and (tape.final or openers.held(tape.data, behind) != behind):
                tape.look = tape.at
                return -1
            if tape.final:
                self.teller.markup()
                return 0
            yield

    def _content(self) -> Steps[int]:
        """Text up to an opener."""
        content = self.plan.content
        if content.wrapped and not content.optional and not self._stray:
            self._stray = True
            self.teller.diagnose("outside", f"text stands outside {content.begins[0]}")
        if self.plan.json_answer:
            yield from self._answer()
        return (yield from free_text(self.teller, "content", self.plan.openers))

    def _answer(self) -> Steps[None]:
        """An answer in JSON, inside whose strings nothing is a marker; a fence around it is markup."""
        tape = self.tape
        fenced = yield from phrase(tape, (b"```json",))
        if not fenced:
            tape.look = tape.at
        yield from space(tape)
        if (yield from peek(tape)) not in (_FENCED_STARTS if fenced else _JSON_STARTS):
            tape.look = tape.at
            return
        if fenced:
            self.teller.diagnose("fence", "the answer stands in a fence")
            self.teller.markup()
        closed = yield from json_text.value(tape, self.plan.answer_ends, self.teller, "content")
        if closed and fenced and (yield from phrase(tape, (b"```",))):
            self.teller.markup()
        tape.look = tape.at

    def _block(self, size: int) -> Steps[bool]:
        """Whatever the opener of this size opens; False where it is text after all."""
        tape, plan = self.tape, self.plan
        offset = tape.look - size - tape.at
        if (yield from self._at(offset, plan.reasoning_start)):
            self._reasoning_markup()
            yield from self._reasoning()
            return True
        if (yield from self._content_or_calls(offset)):
            return True
        if (yield from self._at(offset, plan.reasoning_end)):
            if plan.reasoning and not plan.reasoning.bare_end and plan.reasoning_end != plan.closing:
                self.teller.diagnose("reasoning", f"{plan.reasoning.end} closes nothing")
            self.teller.markup()
            yield from self._skip(plan.reasoning.after if plan.reasoning else "")
            return True
        for words in (plan.between, plan.closing, *plan.turn_ends):
            if (yield from self._at(offset, words)):
                self._over = words in plan.turn_ends
                self.teller.markup()
                return True
        if plan.channels and (yield from self._channel(offset, plan.channels)):
            return True
        tape.look = tape.at + offset + 1
        self.teller.text("content")
        return False

    def _channel(self, offset: int, channels: Channels) -> Steps[bool]:
        """A block behind a header that no row of the dialect has."""
        self.tape.look = self.tape.at + offset
        header = yield from channels.header(self.tape)
        if header is None:
            return False
        start, end = self.tape.base + self.tape.at + offset, self.tape.base + self.tape.look
        match header.kind:
            case "call":
                if not (yield from call_to(self.teller, self.plan, self.plan.ways[header.way], header.name)):
                    return False
            case "reasoning":
                self._reasoning_markup()
                yield from self._reasoning()
            case "content":
                self.teller.markup()
                yield from self._wrapped()
        self.teller.diagnose("header", "this header is not written as it should be", start, end)
        return True

    def _content_or_calls(self, offset: int) -> Steps[bool]:
        """A block of content, or calls."""
        for begin, pad in zip(self.plan.content_begins, self.plan.content_pads, strict=True):
            if (yield from self._at(offset, begin)):
                yield from shared_start(self.tape, pad.encode())
                self.teller.markup()
                yield from self._wrapped()
                return True
        for way in self.plan.ways:
            self.tape.look = self.tape.at + offset
            if (yield from calls(self.teller, self.plan, way)):
                return True
        return False

    def _at(self, offset: int, words: Phrase) -> Steps[bool]:
        self.tape.look = self.tape.at + offset
        return bool(words) and (yield from phrase(self.tape, words))

    def _reasoning_markup(self) -> None:
        """What has been looked at is markup, unless reasoning stays in the content: then it is told with the text."""
        if not self.plan.inline_reasoning:
            self.teller.markup()

    def _reasoning(self) -> Steps[None]:
        """The text of a block whose start has been told, its end and what follows it."""
        reasoning = self.plan.reasoning
        assert reasoning is not None
        region: Region = "content" if self.plan.inline_reasoning else "reasoning"
        offset = self.tape.look - self.tape.at
        if (yield from phrase(self.tape, self.plan.reasoning_start)):
            self._reasoning_markup()  # the prompt has opened the block, and the model opens it again
        elif offset and (yield from self._broken_off(offset)):
            self.teller.markup()
        self.tape.look = self.tape.at
        start = self.tape.base + self.tape.at
        yield from self._skip(reasoning.start[len(reasoning.start.rstrip()) :] + reasoning.pad)
        if start < 0 == self.tape.base + self.tape.at:
            start = 0  # the prompt ends here, and what the model leaves out it leaves out behind it
        while True:
            size = yield from free_text(self.teller, region, self.plan.reasoning_stops)
            if not size:
                return
            offset = self.tape.look - size - self.tape.at
            inside = self.tape.base + self.tape.at + offset - start
            if (yield from self._at(offset, self.plan.reasoning_end)):
                break
            here = self.tape.base + self.tape.at + offset
            if (yield from self._content_or_calls(offset)):
                self.teller.diagnose("reasoning", f"{reasoning.end} is missing", here, here)
                return
            self.tape.look = self.tape.at + offset + 1
            self.teller.text(region)
        if self.plan.inline_reasoning:
            self.teller.text("content")
        else:
            self.teller.enter("")
            self.teller.markup()
        before, end, after = reasoning.skipped.partition(reasoning.end)
        yield from self._skip(after if end and inside == len(before) else reasoning.after)

    def _broken_off(self, offset: int) -> Steps[bool]:
        """Whether a block of reasoning that stays in the content ends before it says anything, and not by its end."""
        tape, stops, end = self.tape, self.plan.reasoning_stops, self.plan.reasoning_end[0]
        while True:
            tape.look = tape.at + offset
            tape.look = behind = tape.after_space()
            found = stops.find.match(tape.data, behind)
            if found:
                return not tape.data.startswith(end, behind)
            if tape.final or (behind < len(tape.data) and stops.held(tape.data, behind) != behind):
                return False
            yield

    def _skip(self, pad: str) -> Steps[None]:
        """White space that belongs to the markup."""
        if not self.plan.inline_reasoning:
            yield from shared_start(self.tape, pad.encode())
            self.teller.markup()

    def _wrapped(self) -> Steps[None]:
        """The content of a block, and its end."""
        if self.plan.json_answer and not self.plan.content.always:  # such a block may also be a note before a call
            yield from self._answer()
        size = yield from free_text(self.teller, "content", self.plan.content_stops)
        self.teller.enter("")
        if not any(self.plan.content.ends):
            self.tape.look -= size  # what ends it is not its own
        self.teller.markup()

    def _rest(self) -> Steps[None]:
        """What stands behind the end of the turn is not part of it."""
        tape, noted = self.tape, False
        while True:
            if not noted and not tape.blank():
                noted = True
                here = tape.base + tape.after_space()
                self.teller.diagnose("after_end", "there is text behind the end of the turn", here, here)
            tape.look = len(tape.data)
            self.teller.markup()
            if tape.final:
                return
            yield
