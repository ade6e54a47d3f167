"""How a template writes calls: none, one or two of them, with other names, ids and arguments."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from dovetail.dialects import ARGUMENTS, ID, NAME, JsonCall, KeyedCall, TaggedCall
from dovetail.dialects.format_builder import call_pieces
from dovetail.layouts.styles import PYTHON_DICT, Layout, Literals
from dovetail.parsing.layouts import ArgumentStyle, CallLayout, Field, Quoted
from dovetail.templates.analysis.arguments import find_arguments
from dovetail.templates.analysis.content import FoundContent
from dovetail.templates.analysis.cores import FIRST, INDEX, SECOND, cut, marked, with_index
from dovetail.templates.analysis.diff import ListLayout, list_layout, markers, shared_end
from dovetail.templates.analysis.evidence import CallIdPosition, ToolFormat
from dovetail.templates.analysis.frame import Frame
from dovetail.templates.analysis.json_calls import find_json_call
from dovetail.templates.analysis.probes import (
    CONTENT,
    IDS,
    NAMES,
    VALUES,
    Call,
    Prober,
    Shape,
    assistant,
)
from dovetail.templates.analysis.reasoning import FoundReasoning
from dovetail.templates.analysis.spelling import find_spelling

_ID_PATTERN = "[A-Za-z0-9_.:-]{1,64}"
_SHORT_PATTERN = "[a-zA-Z0-9]{9}"  # which templates demand that refuse shorter ids


@dataclass(frozen=True, slots=True)
class FoundCalls:
    """The layout of calls; `other_end` is how a turn with calls ends where that is not how others do."""

    call: CallLayout
    format: ToolFormat
    call_begin: str
    call_end: str
    begin: str
    end: str
    separator: str
    lead: str
    spacing: str
    parallel: bool
    with_content: bool
    empty_content: bool  # content stands in its markers even where there is none
    other_end: str
    runs: bool  # calls follow each other without the header that joins other blocks
    joint: str  # what closes a call that another block follows, where blocks begin like turns
    id_position: CallIdPosition
    id_pattern: str
    id_template: str
    first_id: int
    indented: bool  # the arguments are JSON over several lines
    block: tuple[str, str]  # the markers around content that calls follow, where other content has none
    reordered: CallLayout | None  # the call as other clients pass it, where its fields are written as they come
    evidence: tuple[str, str, str]  # what was varied, and the two renders

    def notes(self) -> list[str]:
        """What the template does to calls that no reader can undo."""
        notes = []
        if self.end.strip() and self.end.strip() not in self.evidence[1]:
            notes.append(f"one call alone is not closed by {self.end.strip()}")
        style = self.call.arguments if isinstance(self.call, TaggedCall) else "json"
        if isinstance(style, Literals) and "\n" in style.raw:
            notes.append("strings are written without escapes, so that a quote or a backslash in one is misread")
        return notes

    def rows(self) -> list[tuple[str, str, tuple[str, str, str]]]:
        """The parts of the layout that are there, by name, with what showed them."""
        rows = [
            ("calls.begin", self.begin),
            ("calls.call_begin", self.call_begin),
            ("calls.call_end", self.call_end),
            ("calls.separator", self.separator),
            ("calls.end", self.end),
        ]
        rows += [("calls.part", part) for part in call_pieces(self.call) if isinstance(part, str)]
        style = self.call.arguments if isinstance(self.call, TaggedCall) else "json"
        if isinstance(style, Layout):
            rows += [("arguments.begin", style.begin), ("arguments.middle", "".join(style.middle["string"]))]
            rows += [("arguments.stop", style.stop)]
        elif isinstance(style, Literals):
            rows += [("arguments.begin", style.begin), ("arguments.assign", style.assign)]
            rows += [("arguments.quote", style.quotes[0])]
        elif isinstance(style, Quoted):
            rows += [("arguments.begin", style.begin), ("arguments.assign", style.assign)]
            rows += [("arguments.quote", style.quote)]
        return [(what, value, self.evidence) for what, value in rows]


def find_calls(
    prober: Prober, frame: Frame, reasoning: FoundReasoning, content: FoundContent, shape: Shape
) -> FoundCalls | None:
    """The layout of calls of a template that renders them; None where nothing tells their arguments apart."""
    return _Calls(prober, frame, reasoning, content, shape).layout()


@dataclass(frozen=True, slots=True)
class _Opening:
    """What opens the calls, and the white space before it without and with content."""

    section: str
    lead: str
    spacing: str
    with_content: bool


@dataclass(frozen=True, slots=True)
class _Ids:
    """The ids of calls, as the fields of the same names have them."""

    position: CallIdPosition = "NONE"
    pattern: str = ""
    template: str = "{id}"
    first: int = 0


class _Calls:
    def __init__(
        self, prober: Prober, frame: Frame, reasoning: FoundReasoning, content: FoundContent, shape: Shape
    ) -> None:
        self.prober = prober
        self.frame = frame
        self.reasoning = reasoning
        self.content = content
        self.shape = shape
        self.one = self._turn(FIRST)
        two = self._turn(FIRST, SECOND)
        self.two = two if NAMES[1] in two.partition(NAMES[0])[2] and VALUES[2] in two else ""
        self.block = ("", "") if content.begin.strip() else self._block()
        if any(self.block):
            self.content = replace(content, begin=self.block[0], end=self.block[1])

    def _block(self) -> tuple[str, str]:
        """The markers around content beside calls, which are there too where the content is empty."""
        before, _, behind = self._turn(FIRST, content=CONTENT).partition(CONTENT)
        begin, end = "".join(markers(before)[:1]), "".join(markers(behind)[:1])
        both = bool(begin and end) and before == begin and behind.startswith(end) and self.one.startswith(begin + end)
        once = both and (self.two or self.one).count(end) == 1  # or else it begins each call
        return (begin, end) if once and begin != self.reasoning.end else ("", "")

    def _turn(self, *calls: Call, content: str = "") -> str:
        turn = self.prober.turn(assistant(content, "", calls, self.shape))
        return self.frame.body(turn) if turn else ""

    def layout(self) -> FoundCalls | None:
        text = self.two or self.one
        spelled = find_spelling(text, dict(FIRST.arguments))
        cores = cut(marked(text) if spelled else text)
        after = cores.after.removesuffix(self.content.turn_end) if self.content.turn_end else cores.after
        layout = list_layout(cores.before, cores.between, after)
        if spelled:
            style: ArgumentStyle = PYTHON_DICT if spelled[2] == "python" else "json"
            call, begin, end = _call(TaggedCall(cores.parts, style), layout.begin, layout.end)
        else:
            arguments = find_arguments(self._turn, cores.parts, layout.end)
            if arguments is None:
                return None
            tagged = TaggedCall(arguments.parts, arguments.style, arguments.pad, arguments.after, cdata=arguments.cdata)
            call, begin, end = _call(tagged, layout.begin, arguments.rest)
        ids = self._ids(call, begin, cores.first_index)
        return self._assembled(call, begin, end, layout, ids)

    def _opening(self, layout: ListLayout) -> _Opening:
        both = self._turn(FIRST, content=CONTENT)
        opened = self._without_blocks(layout.open)
        section, spacing = opened.lstrip(), ""
        first = re.search(f"{NAMES[0]}|{IDS[0]}", both)
        if first and CONTENT in both[: first.start()]:
            behind = both[: first.start()].rpartition(CONTENT)[2]
            behind = with_index(behind, layout.begin).removesuffix(layout.begin)
            if self.content.end:
                behind = behind.removeprefix(self.content.end)
            section = shared_end(opened, behind).lstrip()
            spacing = behind[: len(behind) - len(section)]
        lead = opened[: len(opened) - len(section)]
        header = self.frame.start.strip()
        spacing = spacing if header and header in spacing else _trailing(spacing)
        return _Opening(section, _trailing(lead), spacing, self._carries_content(both))

    def _without_blocks(self, opened: str) -> str:
        """What opens the calls, without empty blocks of reasoning and content before it."""
        if self.reasoning.end and self.reasoning.end in opened:
            opened = opened.rpartition(self.reasoning.end)[2].removeprefix(self.reasoning.after)
        empty = self.content.begin + self.content.end
        return opened.removeprefix(empty) if self.content.end else opened

    def _carries_content(self, both: str) -> bool:
        """Whether content beside calls is rendered, and as content: some templates make reasoning of it."""
        start = self.reasoning.start.strip()
        is_reasoning = bool(start) and both.partition(CONTENT)[0].rstrip().endswith(start)
        return CONTENT in both and NAMES[0] in both and not is_reasoning

    def _assembled(self, call: CallLayout, call_begin: str, call_end: str, layout: ListLayout, ids: _Ids) -> FoundCalls:
        opening = self._opening(layout)
        section, separator, end, joint = opening.section, layout.separator, layout.close, ""
        if section.strip() and not call_begin.strip():
            section, separator, call_begin = section + call_begin, separator + call_begin, ""
        # What stands behind calls without a section, and is not how other turns end, ends turns with calls.
        other_end = end if not section.strip() and markers(end) else ""
        header = self.frame.start.strip()
        if header and header in separator and self.reasoning.between:
            joint, separator = separator.partition(header)[0], ""
        return FoundCalls(
            call=call,
            format=_tool_format(call),
            call_begin=call_begin,
            call_end=call_end,
            begin=section,
            end=end if section.strip() else "",
            separator=separator,
            lead=opening.lead,
            spacing=opening.spacing,
            parallel=bool(self.two),
            with_content=opening.with_content,
            empty_content=bool(self.content.end) and self.content.begin + self.content.end in layout.open,
            other_end=other_end,
            runs=bool(self.two) and header not in layout.separator,
            joint=joint,
            id_position=ids.position,
            id_pattern=ids.pattern,
            id_template=ids.template,
            first_id=ids.first,
            indented=self._indented(),
            block=self.block,
            reordered=self._reordered(call),
            evidence=("one call or two", self.one, self.two or self.one),
        )

    def _ids(self, call: CallLayout, call_begin: str, first: int) -> _Ids:
        pieces = call_pieces(call)
        if ID not in pieces:
            return _Ids()
        place = pieces.index(ID)
        position: CallIdPosition = "POST_ARGS"
        if place < pieces.index(NAME):
            position = "PRE_FUNC_NAME"
        elif place < pieces.index(ARGUMENTS):
            position = "BETWEEN_FUNC_AND_ARGS"
        if IDS[0] not in self.one:
            return _Ids(position, r"\d{1,18}", _id_template(call, call_begin), first)
        short = self.prober.turn(assistant(calls=(replace(FIRST, id="q"),), shape=self.shape))
        return _Ids(position, _ID_PATTERN if short else _SHORT_PATTERN)

    def _reordered(self, call: CallLayout) -> JsonCall | None:
        """The call with its type before its id, where the template writes whatever order it is passed."""
        fields = list(call.fields) if isinstance(call, JsonCall) else []
        place = next((at for at, (_, value) in enumerate(fields[1:], 1) if fields[at - 1][1] is ID), 0)
        if not isinstance(call, JsonCall) or not place or not isinstance(fields[place][1], str):
            return None
        message = assistant(calls=(FIRST,), shape=self.shape)
        message["tool_calls"] = [{"type": wire["type"], **wire} for wire in message["tool_calls"]]
        turn = self.prober.turn(message) or ""
        fields[place - 1 : place + 1] = reversed(fields[place - 1 : place + 1])
        return (
            replace(call, fields=tuple(fields))
            if 0 <= turn.find(f'"{fields[place - 1][0]}"') < turn.find(IDS[0])
            else None
        )

    def _indented(self) -> bool:
        spelling = find_spelling(self.one, dict(FIRST.arguments))
        return spelling is not None and "\n" in self.one[spelling[0] : spelling[1]]


def _trailing(text: str) -> str:
    """The white space at the end of a text."""
    return text[len(text.rstrip()) :]


def _call(call: TaggedCall, begin: str, end: str) -> tuple[CallLayout, str, str]:
    """The layout of one call, JSON where it is one object, and what stands before and behind it."""
    if INDEX in begin:
        begin, _, tail = begin.partition(INDEX)
        call = replace(call, parts=(ID, *((tail,) if tail else ()), *call.parts))
    json_call = find_json_call(call.parts, begin, end) if call.arguments == "json" else None
    return json_call or (call, begin, end)


def _id_template(call: CallLayout, call_begin: str) -> str:
    """The whole of what a number counts: where it shares an unbroken run of text with the name, that run is the id."""
    if not isinstance(call, TaggedCall):
        return "{id}"
    shown = {NAME: "{name}", ID: "{id}", ARGUMENTS: "\n"}
    text = call_begin + "".join(shown[part] if isinstance(part, Field) else part for part in call.parts)
    run = next((piece for piece in re.split(r"[\s<>\[\]\"'|｜]+", text) if "{id}" in piece), "{id}")
    return run if "{name}" in run else "{id}"


def _tool_format(call: CallLayout) -> ToolFormat:
    if isinstance(call, JsonCall | KeyedCall):
        return "JSON_NATIVE"
    return "TAG_WITH_JSON" if call.arguments in ("json", PYTHON_DICT) else "TAG_WITH_TAGGED"
