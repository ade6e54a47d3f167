"""How a template writes calls: none, one or two of them, with other names, ids and arguments."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, replace
from typing import Any

from dovetail.dialects import ARGUMENTS, ID, NAME, JsonCall, KeyedCall, TaggedCall
from dovetail.dialects.making import call_pieces
from dovetail.formats.styles import Layout
from dovetail.parsing.layouts import PYTHON_DICT, CallLayout, Field, Literals
from dovetail.templates.analysis.arguments import find_arguments
from dovetail.templates.analysis.content import FoundContent
from dovetail.templates.analysis.diff import ListLayout, list_layout, markers, shared_end
from dovetail.templates.analysis.evidence import CallIdPosition, ToolFormat
from dovetail.templates.analysis.frame import Frame
from dovetail.templates.analysis.probes import (
    CONTENT,
    IDS,
    KEYS,
    NAMES,
    VALUES,
    Call,
    Prober,
    Shape,
    assistant,
)
from dovetail.templates.analysis.reasoning import FoundReasoning
from dovetail.templates.analysis.spelling import find_spelling

FIRST = Call(NAMES[0], {KEYS[0]: VALUES[0], KEYS[1]: VALUES[1]}, IDS[0])
SECOND = Call(NAMES[1], {KEYS[0]: VALUES[2], KEYS[1]: VALUES[3]}, IDS[1])
_ARGS, _INDEX = "\ue001", "\ue002"  # stand for the arguments of a call, and for its place among the calls
_ID_PATTERN = "[A-Za-z0-9_.:-]+"
_SHORT_PATTERN = "[a-zA-Z0-9]{9}"


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
    evidence: tuple[str, str, str]  # what was varied, and the two renders

    def rows(self) -> list[tuple[str, str, tuple[str, str, str]]]:
        """The parts of the layout that are there, by name, with what showed them."""
        found = [
            ("calls.begin", self.begin),
            ("calls.call_begin", self.call_begin),
            ("calls.call_end", self.call_end),
            ("calls.separator", self.separator),
            ("calls.end", self.end),
        ]
        found += [("calls.part", part) for part in call_pieces(self.call) if isinstance(part, str)]
        style = self.call.arguments if isinstance(self.call, TaggedCall) else "json"
        if isinstance(style, Layout):
            found += [("arguments.begin", style.begin), ("arguments.middle", "".join(style.middle["string"]))]
            found += [("arguments.stop", style.stop)]
        elif isinstance(style, Literals):
            found += [("arguments.begin", style.begin), ("arguments.assign", style.assign)]
            found += [("arguments.quote", style.quotes[0])]
        return [(what, value, self.evidence) for what, value in found]


def find_calls(
    prober: Prober, frame: Frame, reasoning: FoundReasoning, content: FoundContent, shape: Shape
) -> FoundCalls:
    """The layout of calls of a template that renders them."""
    return _Calls(prober, frame, reasoning, content, shape).found()


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

    def _turn(self, *calls: Call, content: str = "", reasoning: str = "") -> str:
        shape = replace(self.shape, reasoning=self.reasoning.shape)
        settings = self.reasoning.settings if reasoning else ()
        turn = self.prober.turn(assistant(content, reasoning, calls, shape), settings=settings)
        return self.frame.body(turn, settings) if turn else ""

    def found(self) -> FoundCalls:
        text = self.two or self.one
        spelled = find_spelling(text, dict(FIRST.arguments))
        python = bool(spelled and spelled[2] == "python")
        if spelled:
            text = _marked(text, self.two != "")
        before, cores, between, after = _pieces(text)
        after = self._close(after, bool(self.two))
        layout = list_layout(before, between, after)
        if between is None and after == "" and self.two == "":
            layout = ListLayout("", before, after, "", "")
        opening = self._opening(layout)
        parts, call_end = _parts(cores[0]), layout.end
        style: Any = "json"
        pad = after_each = ""
        if python:
            style = PYTHON_DICT
        elif not spelled:
            found = find_arguments(self._turn, parts, call_end)
            parts, call_end, style = found.parts, found.rest, found.style
            pad, after_each = found.pad, found.after
        call, call_begin, call_end = _call(parts, layout.begin, call_end, style, pad, after_each)
        return self._assembled(call, call_begin, call_end, layout, opening, parts)

    def _close(self, after: str, section: bool) -> str:
        """What stands behind the last call, without the end of the turn."""
        turn_end = self.content.turn_end
        if turn_end and after.endswith(turn_end):
            return after[: len(after) - len(turn_end)]
        return after

    def _opening(self, layout: ListLayout) -> tuple[str, str, str, bool]:
        """What opens the calls, the white space before it without and with content, and whether there is content."""
        both = self._turn(FIRST, content=CONTENT)
        opened = self._without_blocks(layout.open)
        section, spacing = opened.lstrip(), ""
        first = re.search(f"{NAMES[0]}|{IDS[0]}", both)
        if first and CONTENT in both[: first.start()]:
            behind = both[: first.start()].rpartition(CONTENT)[2]
            behind = _indexed(behind, layout.begin).removesuffix(layout.begin)
            if self.content.end:
                behind = behind.removeprefix(self.content.end)
            section = shared_end(opened, behind).lstrip()
            spacing = behind[: len(behind) - len(section)]
            spacing = spacing[len(spacing.rstrip()) :]
        lead = opened[: len(opened) - len(section)]
        before = both.partition(CONTENT)[0].rstrip()
        is_reasoning = bool(self.reasoning.start.strip()) and before.endswith(self.reasoning.start.strip())
        carried = CONTENT in both and NAMES[0] in both and not is_reasoning
        return section, lead[len(lead.rstrip()) :], spacing, carried

    def _without_blocks(self, opened: str) -> str:
        """What opens the calls, without empty blocks of reasoning and content before it."""
        if self.reasoning.end and self.reasoning.end in opened:
            opened = opened.rpartition(self.reasoning.end)[2].removeprefix(self.reasoning.after)
        empty = self.content.begin + self.content.end
        return opened.removeprefix(empty) if self.content.end else opened

    def _assembled(
        self,
        call: CallLayout,
        call_begin: str,
        call_end: str,
        layout: ListLayout,
        opening: tuple[str, str, str, bool],
        parts: tuple[str | Field, ...],
    ) -> FoundCalls:
        section, lead, spacing, with_content = opening
        end, other_end, separator, joint = layout.close, "", layout.separator, ""
        if section.strip() and not call_begin.strip():
            section, separator, call_begin = section + call_begin, separator + call_begin, ""
        if end and not section.strip() and markers(end):
            end, other_end = "", end
        header = self.frame.start.strip()
        runs = bool(self.two) and header not in separator
        if header and header in separator:
            joint, separator = separator.partition(header)[0], ""
        position, pattern, template, first = self._ids(call, parts, call_begin)
        return FoundCalls(
            call=call,
            format=_tool_format(call),
            call_begin=call_begin,
            call_end=call_end,
            begin=section,
            end=end if section.strip() else "",
            separator=separator,
            lead=lead,
            spacing=spacing,
            parallel=bool(self.two),
            with_content=with_content,
            empty_content=bool(self.content.end) and self.content.begin + self.content.end in layout.open,
            other_end=other_end,
            runs=runs,
            joint=joint,
            id_position=position,
            id_pattern=pattern,
            id_template=template,
            first_id=first,
            indented=self._indented(),
            evidence=("one call or two", self.one, self.two or self.one),
        )

    def _ids(
        self, call: CallLayout, parts: tuple[str | Field, ...], call_begin: str
    ) -> tuple[CallIdPosition, str, str, int]:
        pieces = call_pieces(call)
        if ID not in pieces:
            return "NONE", "", "{id}", 0
        place = pieces.index(ID)
        position: CallIdPosition = "POST_ARGS"
        if place < pieces.index(NAME):
            position = "PRE_FUNC_NAME"
        elif place < pieces.index(ARGUMENTS):
            position = "BETWEEN_FUNC_AND_ARGS"
        if IDS[0] in self.one:
            short = self.prober.turn(assistant(calls=(replace(FIRST, id="q"),), shape=self.shape))
            return position, _ID_PATTERN if short else _SHORT_PATTERN, "{id}", 0
        return position, r"\d+", _id_template(call, call_begin), self._first_index()

    def _indented(self) -> bool:
        found = find_spelling(self.one, dict(FIRST.arguments))
        return found is not None and "\n" in self.one[found[0] : found[1]]

    def _first_index(self) -> int:
        found = re.search(r"\d+", re.sub(f"{NAMES[0]}|{VALUES[0]}", "", self._index_text()))
        return int(found[0]) if found else 0

    def _index_text(self) -> str:
        """The part of the first call in which its index stands."""
        text = _marked(self.two, True) if find_spelling(self.two, dict(FIRST.arguments)) else self.two
        before, cores, _, _ = _pieces(text, keep=True)
        return before[-200:] + cores[0] if not re.search(r"\d", cores[0]) else cores[0]


def _marked(text: str, two: bool) -> str:
    """A text with the arguments of its calls replaced by a mark."""
    for call in (FIRST, SECOND) if two else (FIRST,):
        found = find_spelling(text, dict(call.arguments))
        if found:
            text = text[: found[0]] + _ARGS + text[found[1] :]
    return text


def _pieces(text: str, keep: bool = False) -> tuple[str, list[str], str | None, str]:
    """What stands before the first call, the cores of the calls, and what is between and behind them.

    A core runs from the first thing to the last thing that the call says. Numbers that count the calls are marked.
    """
    spans: list[tuple[int, int]] = []
    for call in (FIRST, SECOND):
        floor = spans[-1][1] if spans else 0
        names = [found for found in re.finditer(re.escape(call.name), text) if found.start() >= floor]
        if not names:
            break
        words = [re.escape(word) for word in (call.name, call.id, *call.arguments.values()) if word in text]
        places = [found.span() for found in re.finditer("|".join(words), text)]
        ceiling = text.find(SECOND.name, floor) if call is FIRST and SECOND.name in text else len(text)
        if call is FIRST and SECOND.id in text:
            ceiling = min(ceiling, text.find(SECOND.id))
        marks = [found.span() for found in re.finditer(_ARGS, text) if floor <= found.start()]
        inside = [span for span in places if floor <= span[0] < max(ceiling, 0)] + marks[:1]
        spans.append((min(span[0] for span in inside), max(span[1] for span in inside)))
    before, after = text[: spans[0][0]], text[spans[-1][1] :]
    cores = [text[start:end] for start, end in spans]
    between = text[spans[0][1] : spans[1][0]] if len(spans) > 1 else None
    if between is not None and not keep:
        before, between = _index_marks(before, between)
        cores[0] = _index_in_core(cores[0], cores[1])
    return before, cores, between, after


def _index_marks(before: str, between: str) -> tuple[str, str]:
    """Both texts with the number that counts the calls replaced by a mark, where their ends differ in nothing else."""
    i, j = len(before), len(between)
    while i and j:
        if before[i - 1] == between[j - 1]:
            i, j = i - 1, j - 1
            continue
        left, right = re.search(r"\d+\Z", before[:i]), re.search(r"\d+\Z", between[:j])
        if not left or not right or int(right[0]) != int(left[0]) + 1:
            break
        before = before[: left.start()] + _INDEX + before[i:]
        between = between[: right.start()] + _INDEX + between[j:]
        i, j = left.start(), right.start()
    return before, between


def _indexed(text: str, begin: str) -> str:
    """A text that ends with the beginning of a first call, with the mark that `begin` has for its number."""
    if _INDEX not in begin:
        return text
    pattern = re.escape(begin).replace(_INDEX, r"\d+") + r"\Z"
    found = re.search(pattern, text)
    return text[: found.start()] + begin if found else text


def _index_in_core(first: str, second: str) -> str:
    left, right = first.partition(NAMES[0])[2], second.partition(NAMES[1])[2]
    for one, other in zip(re.finditer(r"\d+", left), re.finditer(r"\d+", right), strict=False):
        same = left[: one.start()].replace(VALUES[0], VALUES[2]) == right[: other.start()]
        if same and int(other[0]) == int(one[0]) + 1:
            at = len(first) - len(left) + one.start()
            return first[:at] + _INDEX + first[at + len(one[0]) :]
    return first


def _parts(core: str) -> tuple[str | Field, ...]:
    """A core as text and fields; arguments that are not marked stand as the text that they are."""
    fields = {NAMES[0]: NAME, IDS[0]: ID, _INDEX: ID, _ARGS: ARGUMENTS}
    pattern = "|".join(map(re.escape, fields))
    return tuple(fields.get(piece, piece) for piece in re.split(f"({pattern})", core) if piece)


def _call(
    parts: tuple[str | Field, ...], begin: str, end: str, style: Any, pad: str, after_each: str
) -> tuple[CallLayout, str, str]:
    """The layout of one call, and what stands before and behind it."""
    if _INDEX in begin:
        head, _, tail = begin.partition(_INDEX)
        begin, parts = head, (ID, *((tail, *parts) if tail else parts))
    if style == "json":
        found = _json_call(parts, begin, end)
        if found:
            return found
    return TaggedCall(parts, style, pad=pad, after=after_each), begin, end


def _json_call(parts: tuple[str | Field, ...], begin: str, end: str) -> tuple[CallLayout, str, str] | None:
    """A call that is one JSON object, if it is one."""
    names = {NAME: NAMES[0], ID: IDS[0], ARGUMENTS: json.dumps({_ARGS: 0})}
    text = begin + "".join(names[part] if isinstance(part, Field) else part for part in parts) + end
    for found in re.finditer(r"\{", begin):
        try:
            value, size = json.JSONDecoder().raw_decode(text[found.start() :])
        except ValueError:
            continue
        call = _shape(value)
        if call is None:
            continue
        whole = text[found.start() : found.start() + size]
        call = _spelled(call, whole)
        if call is not None:
            return call, begin[: found.start()], text[found.start() + size :]
    return None


def _shape(value: Any) -> JsonCall | KeyedCall | None:
    if not isinstance(value, dict):
        return None
    arguments = {_ARGS: 0}
    if value == {NAMES[0]: arguments}:
        return KeyedCall()
    inside = next((key for key, item in value.items() if isinstance(item, dict) and item != arguments), "")
    members = [
        (key, item)
        for outer, inner in value.items()
        for key, item in (inner.items() if outer == inside and inside else ((outer, inner),))
    ]
    fields: list[tuple[str, Field | str]] = []
    for key, item in members:
        known = NAME if item == NAMES[0] else ID if item == IDS[0] else ARGUMENTS if item == arguments else item
        if not isinstance(known, str | Field):
            return None
        fields.append((key, known))
    values = [item for _, item in fields]
    return JsonCall(tuple(fields), inside) if NAME in values and ARGUMENTS in values else None


def _spelled(call: JsonCall | KeyedCall, whole: str) -> JsonCall | KeyedCall | None:
    """The call with the white space of its text, if it is regular."""
    if isinstance(call, JsonCall):
        first = call.inside if call.inside and call.fields[0][1] in (NAME, ARGUMENTS) else call.fields[0][0]
        key = json.dumps(first)
        at = whole.find(key)
        colon, gap = re.match(r"\s*:\s*", whole[at + len(key) :]), re.search(r'[}"0-9](\s*,\s*)"', whole)
        closing = re.search(r"\s*\}\Z", whole)
        if not colon or not gap or not closing:
            return None
        call = replace(call, spelling=(whole[:at], gap[1], colon[0], closing[0]))
        return next((way for way in (call, replace(call, bare_id=True)) if _written(way) == whole), None)
    return call if _written(call) == whole else None


def _written(call: JsonCall | KeyedCall) -> str:
    names = {NAME: NAMES[0], ID: IDS[0], ARGUMENTS: json.dumps({_ARGS: 0})}
    return "".join(names[part] if isinstance(part, Field) else part for part in call_pieces(call))


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
