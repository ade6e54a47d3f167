"""From what was found to a dialect."""

from __future__ import annotations

import re
from dataclasses import replace

from dovetail.dialects import Content, Dialect, Reasoning, ToolCalls, Turn
from dovetail.dialects.format_builder import call_pieces
from dovetail.templates.analysis.calls import FoundCalls
from dovetail.templates.analysis.content import FoundContent
from dovetail.templates.analysis.diff import markers
from dovetail.templates.analysis.frame import Frame
from dovetail.templates.analysis.reasoning import FoundReasoning

_INDENT = 64  # blanks before a line of JSON that is written over several lines


def assemble(
    name: str, frame: Frame, reasoning: FoundReasoning, content: FoundContent, calls: FoundCalls | None
) -> Dialect:
    """The dialect that writes what the template writes."""
    readable = calls is not None and (bool((calls.begin + calls.call_begin).strip()) or calls.format == "JSON_NATIVE")
    return Dialect(
        name,
        _tool_calls(calls, bool(reasoning.between)) if calls and readable else (),
        _reasoning(reasoning),
        _content(frame, reasoning, content, calls),
        _turn(frame, reasoning, content, calls),
        excludes=(content.begin,)
        if reasoning.end and content.mode == "ALWAYS_WRAPPED" and not reasoning.between
        else (),
        optional_space=True,
    )


def _reasoning(reasoning: FoundReasoning) -> Reasoning | None:
    if not reasoning.end:
        return None
    return Reasoning(
        reasoning.start,
        reasoning.end,
        reasoning.opened_by,
        pad=reasoning.pad,
        after=reasoning.after,
        empty=reasoning.empty,
        bare_end=reasoning.bare_end,
        # Models that never write the start themselves, or think for the sake of calls only, forget the end before one.
        ends_at_calls=reasoning.opened_by == "prompt" or reasoning.mode == "TOOLS_ONLY" or reasoning.open_at_calls,
        open_at_calls=reasoning.open_at_calls,
    )


def _content(frame: Frame, reasoning: FoundReasoning, content: FoundContent, calls: FoundCalls | None) -> Content:
    if content.mode == "PLAIN" and calls and any(calls.block):
        return Content((calls.block[0],), (calls.block[1],), always=True, optional=True)
    if content.mode == "PLAIN":
        return Content()
    if reasoning.between:
        ends = dict.fromkeys((content.end or content.turn_end.strip(), calls.joint if calls else "", reasoning.end))
        notes = (content.begin,) if calls and calls.with_content else ()
        return Content((content.begin,), tuple(end for end in ends if end), notes)
    opened = any(text == content.begin for _, text in frame.prompts)
    return Content(
        (content.begin,),
        (content.end,),
        always=bool(calls and calls.empty_content),
        optional=content.mode == "WRAPPED_WITH_REASONING",
        prompt_opens=opened,
    )


def _turn(frame: Frame, reasoning: FoundReasoning, content: FoundContent, calls: FoundCalls | None) -> Turn:
    end, closing = content.turn_end.rstrip(), ""
    last = markers(end)
    if len(last) > 1 and end.endswith(last[-1]):
        closing, end = end[: -len(last[-1])], last[-1]
    if reasoning.between:
        end, closing = end or content.end, calls.joint if calls else ""
    others = (calls.other_end.strip(),) if calls and calls.other_end else ()
    return Turn(
        frame.start or _user_end(frame),
        end if end.strip() else "",
        between=reasoning.between,
        closing=closing,
        other_ends=others,
        opened=_opened(frame, reasoning),
    )


def _user_end(frame: Frame) -> str:
    """The end of the user's turn, which begins that of the model where it has no header; nothing if both end alike."""
    end = frame.user_end.strip()
    return "" if end and end in frame.end else end


def _opened(frame: Frame, reasoning: FoundReasoning) -> str:
    """What the prompt writes of the first block, where that is not its reasoning."""
    text = frame.prompts[0][1] if frame.prompts else ""
    is_reasoning = reasoning.end and (reasoning.end in text or reasoning.start.strip() in text)
    return "" if is_reasoning or not text.strip() else text


def _tool_calls(calls: FoundCalls, in_blocks: bool) -> tuple[ToolCalls, ...]:
    way = _way(calls, in_blocks)
    return (way, replace(way, call=calls.reordered)) if calls.reordered else (way,)


def _way(calls: FoundCalls, in_blocks: bool) -> ToolCalls:
    opener = calls.begin or calls.call_begin
    head = call_pieces(calls.call)[0]
    trigger = re.sub(r"(?<=[>\])])\s*\[\s*\Z", "", opener.rstrip()) if opener.strip() else ""
    named = bool(trigger) and not re.search(r"\w|>>|<", trigger)
    if not trigger and isinstance(head, str):
        trigger = head
    return ToolCalls(
        calls.call,
        call_begin=calls.call_begin,
        call_end=calls.call_end,
        begin=calls.begin,
        end=calls.end,
        separator=calls.separator,
        trigger=trigger,
        named=named,
        lead=calls.lead,
        spacing=calls.spacing,
        id_pattern=calls.id_pattern,
        id_template=calls.id_template,
        first_id=calls.first_id,
        runs=calls.runs and in_blocks,
        max_whitespace=_INDENT if calls.indented else None,
    )
