"""A dialect made ready to be read: its markers as words on the tape, and the searches for them."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

from dovetail.layouts.styles import Literals
from dovetail.parsing import json_text, literals, quoted, tagged
from dovetail.parsing.channels import Channels
from dovetail.parsing.declared import Declared
from dovetail.parsing.layouts import (
    ARGUMENTS,
    ID,
    Content,
    Field,
    Quoted,
    Reasoning,
    TaggedCall,
    ToolCalls,
    Turn,
    WholeCall,
)
from dovetail.parsing.signs import either, signed
from dovetail.parsing.stops import Stops, TurnEnds

Phrase = tuple[bytes, ...]

_UNMISTAKABLE = re.compile(rb"<[|\xef]|]<]")
_BETWEEN_TAGS = re.compile("(?<=[>`])(?=<)")


class Layout(Hashable, Protocol):
    """What a reader needs of a dialect."""

    @property
    def calls(self) -> tuple[ToolCalls, ...]:
        """The ways to call tools."""

    @property
    def reasoning(self) -> Reasoning | None:
        """The block of reasoning."""

    @property
    def content(self) -> Content:
        """How content stands."""

    @property
    def turn(self) -> Turn:
        """What surrounds the output."""

    @property
    def excludes(self) -> tuple[str, ...]:
        """What free text may not hold."""


@dataclass(frozen=True, slots=True)
class Head:
    """A call written as text and fields: what stands before the arguments, and how these are written."""

    parts: tuple[Phrase | Field, ...]
    after: Phrase  # what stands behind the arguments, the end of the call included
    id_after: tuple[Phrase, ...]  # what stands before and behind an id that follows the arguments
    style: tagged.Tags | literals.Syntax | quoted.Quotes | None  # None for JSON
    bare: bool = False  # without any arguments


@dataclass(frozen=True, slots=True)
class Way:
    """One way to call tools; `trusted` ways need no look at the name to be told from prose."""

    begin: Phrase
    call_begin: Phrase
    call: WholeCall | Head
    call_end: Phrase
    separator: Phrase
    end: Phrase
    id_template: str
    trusted: bool
    broken: str  # what is missing in a call that is read in this way
    closers: json_text.JsonEnds
    closing: Stops  # of arguments that make no sense
    tolerated: bool = False
    offered_only: bool = False
    checked: bool = False
    trigger: Phrase = ()  # the words that prose never holds; none where prose may
    also_between: tuple[Phrase, ...] = ()
    kin: tuple[Way, ...] = ()  # other ways whose calls stand in the same section

    @property
    def opener(self) -> bytes:
        """The word at which free text may become a call."""
        return (self.begin or self.call_begin or (b"{",))[0]


class Plan:
    """The markers of a dialect, and beside them what one request says about its tools and its answer."""

    def __init__(self, layout: Layout, special_tokens: tuple[str, ...], tools_known: bool) -> None:
        self.reasoning, self.content, turn = layout.reasoning, layout.content, layout.turn
        spellings = ((self.reasoning.start, self.reasoning.end), *self.reasoning.others) if self.reasoning else ()
        self.reasoning_starts = tuple(words for start, _ in spellings if (words := _words(start)))
        self.reasoning_ends = tuple(_words(end) for _, end in spellings)
        # Inside the block they are markup where they could be nothing else.
        self.opened_again = tuple(start for start in self.reasoning_starts if re.fullmatch(rb"<.*>|\[.*]", start[0]))
        begins = [begin for begin in (*self.content.begins, *self.content.notes) if begin]
        self.content_begins = tuple(_words(begin) for begin in begins)
        self.content_ends = tuple(_words(end) for end in self.content.ends if end.strip())
        self.content_pads = tuple(begin[len(begin.rstrip()) :] for begin in begins)  # white space behind each
        self.between = _words(turn.between)
        self.between_without_role = _words(turn.between[: turn.between.rfind(">") + 1])
        self.opened = _words(turn.opened)
        self.closing = _words(turn.closing)
        self.turn_ends = tuple(_ends_of(turn))
        self.ends_of_turn = TurnEnds(words[0] for words in self.turn_ends)
        self.ways = _ways(layout, tools_known)
        self.called_by = tuple(way for way in self.ways if way.trusted or tools_known)
        self.call_marks = frozenset(way.opener.decode("utf-8", "replace") for way in self.ways)
        self.channels = self._channels()
        openers = self._openers(layout)
        self.answer_ends = json_text.ends(tuple(word for _, word in openers))
        # In prose a marker that is a special token is one only by its id, where the tokens are known.
        tokens = {token.encode(): signed(token.encode()) for token in special_tokens}
        spelled = [] if self._all_are_tokens(tuple(tokens)) else openers[: len(self.ways)]
        self.openers = _prose_stops(openers, tokens, spelled)
        self.reasoning_stops = _prose_stops(self._reasoning_stops(layout), tokens)
        ends = [(_lead(end), end.strip().encode()) for end in self.content.ends if end] or openers
        inside = [("", way.opener) for way in self.ways if way.trusted and not way.broken]
        inside += [
            (_lead(layout.turn.end), words[0]) for words in (*self.turn_ends, self.closing, self.between) if words
        ]
        block_ends = [words[0] for words in (*self.reasoning_ends, *self.content_ends, *self.turn_ends)]
        self.block_ends = _prose_stops([("", word) for word in block_ends], tokens)
        inside += [("", begin.encode()) for begin, _ in self.content.marks]
        self.content_stops = _prose_stops([*ends, *inside], tokens)
        self.tools: Mapping[str, Any] | None = None
        self.inline_reasoning = False
        self.json_answer = False
        self.calls_are_text = False
        self.keeps_unknown = False
        self._declared: dict[str, Declared] = {}

    def for_request(
        self,
        tools: Mapping[str, Any] | None,
        inline_reasoning: bool,
        json_answer: bool,
        calls_are_text: bool = False,
        keeps_unknown: bool = False,
    ) -> Plan:
        """The markers of a layout as one request uses them."""
        made = copy(self)
        made.tools = tools
        made.inline_reasoning = inline_reasoning
        made.json_answer = json_answer
        made.calls_are_text = calls_are_text
        made.keeps_unknown = keeps_unknown
        made._declared = {}
        return made

    def _openers(self, layout: Layout) -> list[tuple[str, bytes]]:
        spacing = layout.calls[0].spacing if layout.calls else ""
        openers = [(spacing, way.opener) for way in self.ways]
        openers += [(spacing, way.trigger[0]) for way in self.ways if way.trigger and way.trigger[0] != way.opener]
        openers += [("", begin.encode()) for begin, _ in self.content.marks]
        stray_ends = () if self.content.optional else self.content_ends
        blocks = (*self.reasoning_starts, *self.reasoning_ends, *self.content_begins, *stray_ends)
        if self.channels:
            blocks += ((self.channels.start,), self.between_without_role)
        rest = (*blocks, self.between, self.closing)
        openers += [("", words[0]) for words in rest if words]
        return openers + [(_lead(layout.turn.end), words[0]) for words in self.turn_ends]

    def _all_are_tokens(self, tokens: tuple[bytes, ...]) -> bool:
        """Whether every way to call begins with a token; where one does not, formats take all of them spelled too."""
        return all(way.broken or way.tolerated or way.opener.startswith(tokens) for way in self.ways)

    def _channels(self) -> Channels | None:
        if not self.between or not self.reasoning_starts or not self.content_begins:
            return None
        recipients = [way.call_begin[-1] if way.call_begin else b"" for way in self.ways]
        begins = [b"".join(begin) for begin in self.content_begins]
        return Channels(b"".join(self.reasoning_starts[0]), begins, recipients)

    def _reasoning_stops(self, layout: Layout) -> list[tuple[str, bytes]]:
        """The end of reasoning, and what may end it where its own end is missing."""
        if self.reasoning is None:
            return []
        pad, barred = self.reasoning.pad, [word.encode() for word in layout.excludes]
        fallbacks = [way.opener for way in self.called_by if not way.broken or _holds(way.opener, barred)]
        fallbacks += (begin[0] for begin in self.content_begins if _holds(begin[0], barred))
        fallbacks += (words[0] for words in (*self.turn_ends, self.between) if words)
        marks = [("", begin.encode()) for begin, _ in self.content.marks]
        marks += [("", start[0]) for start in self.opened_again]
        return marks + [(pad, word) for word in (*(end[0] for end in self.reasoning_ends), *fallbacks)]

    def declared(self, tool: str) -> Declared:
        """What is known about the arguments of a tool."""
        if tool not in self._declared:
            schema = (self.tools or {}).get(tool)
            self._declared[tool] = Declared(schema, schema)
        return self._declared[tool]


@lru_cache(maxsize=256)
def plan(layout: Layout, special_tokens: tuple[str, ...], tools_known: bool) -> Plan:
    """The plan of a dialect, where these tokens are matched by their ids."""
    return Plan(layout, special_tokens, tools_known)


def _prose_stops(
    markers: list[tuple[str, bytes]], tokens: Mapping[bytes, bytes], spelled: Sequence[tuple[str, bytes]] = ()
) -> Stops:
    def mark(word: bytes) -> bytes:
        for token, sign in tokens.items():
            word = word.replace(token, sign)
        return word

    return Stops([*((pad, mark(word)) for pad, word in markers), *spelled])


def _lead(marker: str) -> str:
    """The white space before a marker."""
    return marker[: len(marker) - len(marker.lstrip())]


def _holds(word: bytes, barred: list[bytes]) -> bool:
    return any(mark in word for mark in barred)


def _words(marker: str) -> Phrase:
    """A marker as the words between which white space is free; tags and brackets of a list are words of their own."""
    text = _BETWEEN_TAGS.sub(" ", marker.strip())
    if len(text) > 1 and text.endswith("["):
        return (*_words(text[:-1]), b"[")
    if len(text) > 1 and text.startswith("]") and not text.startswith("]<]"):
        return (b"]", *_words(text[1:]))
    return tuple(text.encode().split())


def _ends_of(turn: Turn) -> list[Phrase]:
    """What ends a turn, each as the words between which white space is free."""
    return [tuple(end.encode().split()) for end in (turn.end, *turn.other_ends) if end.strip()]


def _ways(layout: Layout, tools_known: bool) -> tuple[Way, ...]:
    ways = [_way(layout, calls) for calls in layout.calls]
    ways = [replace(way, kin=_kin(way, ways)) for way in ways]
    if not layout.turn.between:
        # A model may forget how a call begins; what then looks like the rest of one is a call only by its name, or by
        # markup that no other text has.
        for calls, way in zip(layout.calls, list(ways), strict=True):
            lost = way.begin or way.call_begin[:-1]
            left = way.call_begin if way.begin else way.call_begin[-1:]
            if lost and left and re.search(rb"\w", left[-1]) and (tools_known or _UNMISTAKABLE.match(left[0])):
                shorter = _way(layout, calls, lost=b" ".join(lost).decode("utf-8", "replace"))
                ways.append(shorter)
    return tuple(ways)


def _kin(way: Way, ways: Sequence[Way]) -> tuple[Way, ...]:
    """The other ways whose calls stand in sections that begin and end in the same way."""
    return tuple(one for one in ways if one is not way and way.begin and (one.begin, one.end) == (way.begin, way.end))


def _way(layout: Layout, calls: ToolCalls, lost: str = "") -> Way:
    begin, call_begin = _words(calls.begin), _words(calls.call_begin)
    call_end, end = _words(calls.call_end), _words(calls.end)
    if lost:
        call_begin = call_begin if begin else call_begin[-1:]
        begin = ()
    call = calls.call
    head = _head(call, call_end, calls.value_ends) if isinstance(call, TaggedCall) else call
    marks = [words[0] for words in (call_end, end, *_ends_of(layout.turn)) if words]
    return Way(
        begin=begin,
        call_begin=call_begin,
        call=head,
        call_end=call_end,
        separator=_words(calls.separator),
        end=() if lost else end,
        id_template=calls.id_template,
        trusted=not lost and not calls.named and _is_marker(begin + call_begin),
        broken=lost,
        tolerated=calls.tolerated,
        offered_only=calls.offered_only,
        checked=calls.checked,
        trigger=_words(calls.opens_with) if not lost and _is_marker(_words(calls.opens_with)) else (),
        also_between=tuple(_words(join) for join in calls.also_between),
        closers=json_text.ends(tuple(marks)),
        closing=Stops([("", word) for word in marks], either),
    )


def _is_marker(words: Phrase) -> bool:
    """Whether text is markup by itself: brackets alone are prose too."""
    return bool(re.search(rb"\w", b"".join(words)))


def _head(call: TaggedCall, call_end: Phrase, value_ends: tuple[str, ...]) -> Head:
    if ARGUMENTS not in call.parts:
        parts = tuple(_words(part) if isinstance(part, str) else part for part in call.parts)
        return Head(parts, call_end, (), None, bare=True)
    at = call.parts.index(ARGUMENTS)
    before, after = call.parts[:at], call.parts[at + 1 :]
    style: tagged.Tags | literals.Syntax | quoted.Quotes | None = None
    words = [_words(part) if isinstance(part, str) else part for part in before]
    shown: list[Phrase | Field] = [part for part in words if part != ()]
    if isinstance(call.arguments, Literals):
        style = literals.syntax(call.arguments)
        shown.append((style.begin,))
    elif isinstance(call.arguments, Quoted):
        style = quoted.quotes(call.arguments, value_ends)
        shown.append((style.begin,))
    elif call.arguments != "json":
        style = tagged.tags(call.arguments, call.pad, call.cdata)
    behind = [_words(part) if isinstance(part, str) else () for part in (*after, "", "")]
    if ID in after:
        at = after.index(ID)
        rest = [word for words in behind[at + 1 :] for word in words]
        return Head(tuple(shown), behind[0], (behind[0], (*rest, *call_end)), style)
    return Head(tuple(shown), (*(word for words in behind for word in words), *call_end), (), style)
