"""The reader of a turn: blocks of reasoning, content and calls, in whatever order they come."""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.parsing import json_text
from dovetail.parsing.calls import begins_call, call_to, calls
from dovetail.parsing.channels import Channels
from dovetail.parsing.events import Region
from dovetail.parsing.plan import Phrase, Plan
from dovetail.parsing.stops import marker_size
from dovetail.parsing.tape import Steps, peek, phrase, shared_start, space
from dovetail.parsing.teller import Teller
from dovetail.parsing.texts import free_text

MAX_MARK = 256  # bytes of markup inside text
_JSON_STARTS = frozenset(b'{["')
_FENCED_STARTS = _JSON_STARTS | frozenset(b"-0123456789tfn")


class Reader:
    """Reads one turn from the tape of a teller."""

    def __init__(self, teller: Teller, plan: Plan) -> None:
        self.teller = teller
        self.tape = teller.tape
        self.plan = plan
        self.in_reasoning: bool | None = False  # None while nothing tells
        self._over = False
        self._has_reasoned = False  # a block of reasoning has been read
        self._stray = False  # text outside blocks has been noted
        self._closed_until = 0  # the offset up to which an open block is known to be closed later

    def turn(self, in_reasoning: bool | None) -> Steps[None]:
        """All of the turn; `in_reasoning` where a block is open already, None where only the output can tell."""
        if in_reasoning is None:
            self.in_reasoning = None
            self.in_reasoning = in_reasoning = yield from self._starts_inside()
        if in_reasoning:
            yield from self._reasoning()
        elif self.plan.opened:
            yield from self._opened_again()
        blank = True
        while not self._over:
            size = (yield from self._behind_space()) if blank else -1
            if size < 0:
                size = yield from self._content()
            if size == 0:
                return
            blank = yield from self._block(size)
        yield from self._rest()

    def _opened_again(self) -> Steps[None]:
        """Tell what the prompt has written of the first block, where the model writes it again."""
        tape, opened = self.tape, self.plan.opened
        again = yield from phrase(tape, (*opened, *opened))
        tape.look = tape.at
        if again and (yield from phrase(tape, opened)):
            self.teller.markup()

    def _starts_inside(self) -> Steps[bool]:
        """Whether the output begins inside a block of reasoning that the prompt has opened.

        The end of the block tells that it does; its start, a call, other blocks and the end of the output that it does
        not. Nothing is told until one of them has come.
        """
        tape, openers = self.tape, self.plan.openers
        offset = tape.look - tape.at
        while True:
            opener = openers.find.search(tape.data, tape.at + offset)
            if opener:
                offset = opener.end() - tape.at
                is_inside = yield from self._tells_start(offset - marker_size(opener))
                if is_inside is not None:
                    tape.look = tape.at
                    return is_inside
                offset = opener.start() - tape.at + 1
            elif tape.over:
                tape.look = tape.at
                return self._presumed() and not tape.blank()
            else:
                offset = openers.held(tape.data, tape.at + offset) - tape.at
                yield

    def _tells_start(self, offset: int) -> Steps[bool | None]:
        """What the marker at this distance says about the start of the output, if anything."""
        plan = self.plan
        if (yield from self._any_at(offset, plan.reasoning_ends)):
            return True
        others = (*plan.reasoning_starts, *plan.content_begins, plan.between, plan.closing, *plan.turn_ends)
        if (yield from self._any_at(offset, others)):
            return False
        self.tape.look = self.tape.at + offset
        if not (yield from begins_call(self.teller, plan)):
            return None
        self.tape.look = self.tape.at
        # A call that could not end reasoning would be lost there; text before one that seldom does is content.
        can_end = self.plan.reasoning_stops.find.match(self.tape.data, self.tape.at + offset) is not None
        is_usual = self._presumed() and plan.reasoning is not None and plan.reasoning.ends_at_calls
        return is_usual and can_end and self.tape.after_space() < self.tape.at + offset

    def _presumed(self) -> bool:
        """Whether output that does not tell is reasoning."""
        return self.plan.reasoning is not None and self.plan.reasoning.presumed

    def _behind_space(self) -> Steps[int]:
        """The size of an opener behind nothing but white space; 0 at the end, -1 where text comes first.

        White space between blocks is no content.
        """
        tape, openers = self.tape, self.plan.openers
        tape.look = tape.at
        while True:
            # What has been skipped is not looked at again, however often the reader has to wait.
            tape.look = behind = tape.after_space()
            opener = openers.find.match(tape.data, behind)
            if opener:
                tape.look = opener.end()
                return marker_size(opener)
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
        if (yield from self._any_at(offset, plan.reasoning_starts)):
            self._reasoning_markup()
            yield from self._reasoning()
            return True
        if (yield from self._content_or_calls(offset)) or (yield from self._end_of_block(offset)):
            return True
        if plan.channels and (yield from self._channel(offset, plan.channels)):
            return True
        if (yield from self._half_header(offset)) or (yield from self._half_call(offset)):
            return True
        if (yield from self._doubled(offset)):
            return True
        if not (yield from self._mark(offset, "content")):
            tape.look = tape.at + offset + 1
            self.teller.text("content")
        return False

    def _mark(self, offset: int, region: Region) -> Steps[bool]:
        """Tell markup inside text, such as that of citations, which adds nothing to the text."""
        for begin, end in self.plan.content.marks:
            if begin in self.plan.call_marks and (self.plan.calls_are_text or region == "reasoning"):
                continue  # a call that is text is text with its marker
            if (yield from self._at(offset, (begin.encode(),))) and (yield from self._up_to(end.encode())):
                size, self.tape.look = self.tape.look - self.tape.at, self.tape.at + offset
                self.teller.text(region)
                self.tape.look = self.tape.at + size - offset
                self.teller.markup()
                return True
        return False

    def _up_to(self, end: bytes) -> Steps[bool]:
        """Look up to and with what ends markup inside text, which is short."""
        tape = self.tape
        while True:
            size = tape.data[tape.look : tape.look + MAX_MARK].find(end)
            if size >= 0:
                tape.look += size + len(end)
                return True
            if tape.final or len(tape.data) - tape.look >= MAX_MARK:
                return False
            yield

    def _end_of_block(self, offset: int) -> Steps[bool]:
        """The end of a block that is not open, or of the turn."""
        plan = self.plan
        for words in (plan.between, plan.closing, *plan.turn_ends):
            if (yield from self._at(offset, words)):
                self._over = words in plan.turn_ends
                self.teller.markup()
                return True
        if plan.channels and (yield from self._header_follows(offset, plan.channels)):
            self.teller.diagnose("header", "the role is missing in this header")
            self.teller.markup()
            return True
        if (yield from self._any_at(offset, plan.reasoning_ends)):
            is_text = yield from self._is_text(offset)
            if plan.reasoning and (is_text or not plan.reasoning.bare_end):
                self.teller.diagnose("reasoning", f"{plan.reasoning.end} closes nothing")
            if is_text:
                return False
            self.teller.markup()
            yield from self._skip(plan.reasoning.after if plan.reasoning else "")
            return True
        if not plan.content.optional and (yield from self._any_at(offset, plan.content_ends)):
            self.teller.diagnose("outside", "the end of a block closes nothing")
            self.teller.markup()
            return True
        return False

    def _is_text(self, offset: int) -> Steps[bool]:
        """Whether the end of reasoning that closes nothing belongs to the text before it: nothing was reasoned here."""
        size = self.tape.look - self.tape.at
        is_markup = self._has_reasoned or (yield from self._any_at(offset, self.plan.content_ends))
        self.tape.look = self.tape.at + size
        return not is_markup and self.teller.has_content

    def _header_follows(self, offset: int, channels: Channels) -> Steps[bool]:
        """Look at the beginning of a header whose role is missing, so that its channel comes next."""
        if not (yield from self._at(offset, self.plan.between_without_role)):
            return False
        size = self.tape.look - self.tape.at
        follows = yield from phrase(self.tape, (channels.start,))
        self.tape.look = self.tape.at + size
        return follows

    def _half_header(self, offset: int) -> Steps[bool]:
        """The header of a block that the output ends in."""
        tape, channels = self.tape, self.plan.channels
        if not tape.final or channels is None or not (yield from self._at(offset, (channels.start,))):
            return False
        tape.look = tape.at + offset
        tape.starved = False
        if (yield from channels.header(tape)) is not None or not tape.starved:
            return False
        self.teller.diagnose("cut_off", "the output ends in the header of a block")
        tape.look = len(tape.data)
        self.teller.markup()
        return True

    def _doubled(self, offset: int) -> Steps[bool]:
        """Tell the start of a call, behind which a call begins that has a start of its own, as markup."""
        plan, tape = self.plan, self.tape
        if plan.calls_are_text:
            return False
        # Where it takes more than that word to begin a call, the word alone is text.
        for word in sorted({way.opener for way in plan.called_by if way.trusted and len(way.trigger) < 2}):
            if not (yield from self._at(offset, (word,))):
                continue
            size = tape.look - tape.at
            is_doubled = yield from begins_call(self.teller, plan)
            tape.look = tape.at + size
            if is_doubled:
                self.teller.diagnose("call", "a call is opened twice")
                self.teller.markup()
                return True
        return False

    def _half_call(self, offset: int) -> Steps[bool]:
        """A call of which nothing but its beginning has come before the output ended."""
        tape = self.tape
        if self.plan.calls_are_text or not (yield from self._ends_in_a_call(offset)):
            return False
        self.teller.diagnose("cut_off", "the output ends before the name of the call does")
        tape.look = len(tape.data)
        self.teller.markup()
        return True

    def _ends_in_a_call(self, offset: int) -> Steps[bool]:
        """Whether the output ends before the head of a call that begins here does."""
        tape = self.tape
        if not tape.final:
            return False
        for way in self.plan.ways:
            tape.starved = False
            tape.look = tape.at + offset
            if way.trigger and (yield from phrase(tape, way.trigger)) and (yield from self._runs_out(offset)):
                return True
        return False

    def _runs_out(self, offset: int) -> Steps[bool]:
        """Whether more output could have made a call of what comes next."""
        self.tape.look = self.tape.at + offset
        return not (yield from begins_call(self.teller, self.plan)) and self.tape.starved

    def _channel(self, offset: int, channels: Channels) -> Steps[bool]:
        """A block behind a header that no row of the dialect has."""
        self.tape.look = self.tape.at + offset
        header = yield from channels.header(self.tape)
        if header is None:
            return False
        start, end = self.tape.base + self.tape.at + offset, self.tape.base + self.tape.look
        match header.kind:
            case "call":
                way = self.plan.ways[header.way]
                if self.plan.calls_are_text or not (yield from call_to(self.teller, self.plan, way, header.name)):
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
        return (yield from self._content_block(offset)) or (yield from self._calls(offset))

    def _content_block(self, offset: int) -> Steps[bool]:
        for begin, pad in zip(self.plan.content_begins, self.plan.content_pads, strict=True):
            if (yield from self._at(offset, begin)):
                yield from shared_start(self.tape, pad.encode())
                self.teller.markup()
                yield from self._wrapped()
                return True
        return False

    def _calls(self, offset: int) -> Steps[bool]:
        if self.plan.calls_are_text:
            return False
        for way in self.plan.ways:
            self.tape.look = self.tape.at + offset
            if (yield from calls(self.teller, self.plan, way)):
                return True
        return False

    def _any_at(self, offset: int, choices: Iterable[Phrase]) -> Steps[bool]:
        for words in choices:
            if (yield from self._at(offset, words)):
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
        self.in_reasoning = self._has_reasoned = True
        yield from self._reasoning_block()
        self.in_reasoning = False

    def _reasoning_block(self) -> Steps[None]:
        reasoning = self.plan.reasoning
        assert reasoning is not None
        region: Region = "content" if self.plan.inline_reasoning else "reasoning"
        offset = self.tape.look - self.tape.at
        if self.plan.reasoning_starts and (yield from self._again(offset)):
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
            if (yield from self._any_at(offset, self.plan.reasoning_ends)):
                break
            if (yield from self._ends_without_end(offset)):
                return
            if (yield from self._opens_again(offset)) or (yield from self._mark(offset, region)):
                continue
            self.tape.look = self.tape.at + offset + 1
            self.teller.text(region)
        self.in_reasoning = False
        if self.plan.inline_reasoning:
            self.teller.text("content")
        else:
            self.teller.enter("")
            self.teller.markup()
        before, end, after = reasoning.skipped.partition(reasoning.end)
        yield from self._skip(after if end and inside == len(before) else reasoning.after)

    def _opens_again(self, offset: int) -> Steps[bool]:
        """Tell the start of reasoning inside of it as markup, unless reasoning stays in the content."""
        if self.plan.inline_reasoning or not (yield from self._any_at(offset, self.plan.opened_again)):
            return False
        self.teller.diagnose("reasoning", "the block is open already")
        self.teller.markup()
        return True

    def _again(self, offset: int) -> Steps[bool]:
        for words in self.plan.reasoning_starts:
            self.tape.look = self.tape.at + offset
            if (yield from phrase(self.tape, words)):
                return True
        return False

    def _ends_without_end(self, offset: int) -> Steps[bool]:
        """Whether what comes next ends a block of reasoning whose own end is missing: then it is told."""
        here = self.tape.base + self.tape.at + offset
        reasoning = self.plan.reasoning
        assert reasoning is not None
        if self.plan.calls_are_text and (yield from self._call_as_text(offset, reasoning.ends_at_calls)):
            self.tape.look = self.tape.at + offset
            self.teller.enter("")
            self.teller.markup()
        elif (yield from self._next_block(offset)):
            self.teller.enter("")
            self.tape.look = self.tape.at
        elif (yield from self._calls_too_early(offset, reasoning.ends_at_calls)):
            if reasoning.open_at_calls:
                return True
        elif (yield from self._half_call_ends_block(offset, reasoning.ends_at_calls)):
            pass
        elif not (yield from self._content_block(offset)):
            return False
        self.teller.diagnose("reasoning", f"{reasoning.end} is missing", here, here)
        return True

    def _next_block(self, offset: int) -> Steps[bool]:
        """Whether the turn ends here, or its next block begins."""
        plan = self.plan
        return (yield from self._any_at(offset, (*plan.turn_ends, plan.closing, plan.between)))

    def _calls_too_early(self, offset: int, at_once: bool) -> Steps[bool]:
        """Tell calls inside a block that is open, unless the block is closed later: then they are its text."""
        return (yield from self._call_ends_block(offset, at_once)) and (yield from self._calls(offset))

    def _call_ends_block(self, offset: int, at_once: bool) -> Steps[bool]:
        """Whether a call comes next that ends the open block."""
        self.tape.look = self.tape.at + offset
        if not (yield from begins_call(self.teller, self.plan)):
            return False
        return at_once or not (yield from self._is_closed_later(offset))

    def _half_call_ends_block(self, offset: int, at_once: bool) -> Steps[bool]:
        """Tell half of a call at the end of the output, unless the open block is closed behind its marker."""
        return (yield from self._may_end_block(offset, at_once)) and (yield from self._half_call(offset))

    def _may_end_block(self, offset: int, at_once: bool) -> Steps[bool]:
        """Whether the output has ended, and the open block is not closed in it."""
        return self.tape.final and (at_once or not (yield from self._is_closed_later(offset)))

    def _call_as_text(self, offset: int, at_once: bool) -> Steps[bool]:
        """Whether a call, or half of one, ends the open block, though calls are the text of the content."""
        if (yield from self._call_ends_block(offset, at_once)):
            return True
        return (yield from self._may_end_block(offset, at_once)) and (yield from self._ends_in_a_call(offset))

    def _is_closed_later(self, offset: int) -> Steps[bool]:
        """Whether the end of the open block comes before the end of the turn."""
        tape, ends = self.tape, self.plan.block_ends
        if tape.base + tape.at + offset < self._closed_until:
            return True
        while True:
            end = ends.find.search(tape.data, tape.at + offset)
            if end:
                self._closed_until = tape.base + end.start()
                offset = end.end() - marker_size(end) - tape.at
                return not (yield from self._any_at(offset, self.plan.turn_ends))
            if tape.over:
                return False
            offset = ends.held(tape.data, tape.at + offset) - tape.at
            yield

    def _broken_off(self, offset: int) -> Steps[bool]:
        """Whether a block of reasoning that stays in the content ends before it says anything, and not by its end."""
        tape, stops, end = self.tape, self.plan.reasoning_stops, self.plan.reasoning_ends[0][0]
        while True:
            tape.look = tape.at + offset
            tape.look = behind = tape.after_space()
            stop = stops.find.match(tape.data, behind)
            if stop:
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
        while size := (yield from free_text(self.teller, "content", self.plan.content_stops)):
            offset = self.tape.look - size - self.tape.at
            if (yield from self._closes_content(offset)):
                return
            if (yield from self._mark(offset, "content")):
                continue
            self.tape.look = self.tape.at + offset + 1
            self.teller.text("content")

    def _closes_content(self, offset: int) -> Steps[bool]:
        """Whether what comes next ends a block of content: its own end, or what shows that the end is missing."""
        plan = self.plan
        if not any(plan.content.ends):
            self.teller.enter("")
            self.tape.look = self.tape.at  # what ends it is not its own
            return True
        if (yield from self._any_at(offset, plan.content_ends)):
            self.teller.enter("")
            self.teller.markup()
            return True
        here = self.tape.base + self.tape.at + offset
        missing = (yield from self._next_block(offset)) and (yield from self._block_follows(offset))
        self.tape.look = self.tape.at
        if missing or (yield from self._calls_too_early(offset, False)):
            self.teller.diagnose("content", f"{plan.content.ends[0]} is missing", here, here)
            return True
        return False

    def _block_follows(self, offset: int) -> Steps[bool]:
        """Whether what joins blocks joins one here; where nothing of a block comes behind it, it is quoted in text."""
        tape, plan = self.tape, self.plan
        if not (yield from self._at(offset, plan.between)):
            return True
        behind = tape.look - tape.at
        tape.starved = False
        if (yield from self._any_at(behind, (*plan.reasoning_starts, *plan.content_begins))) or tape.starved:
            return True
        for start in (offset, behind):
            tape.look = tape.at + start
            if (yield from begins_call(self.teller, plan)) or tape.starved:
                return True
        tape.look = tape.at + behind
        is_header = plan.channels is not None and (yield from plan.channels.header(tape)) is not None
        return is_header or tape.starved

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
