"""How a template writes reasoning: with and without it, switched on and off, beside content and beside calls."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

from dovetail.templates.analysis.diff import closers, markers, segments, shared_end, shared_start
from dovetail.templates.analysis.evidence import ReasoningMode
from dovetail.templates.analysis.frame import ONE_CALL, Frame, Settings
from dovetail.templates.analysis.probes import (
    CONTENT,
    NAMES,
    REASONING,
    REASONING_FIELDS,
    Prober,
    Shape,
    Wire,
    assistant,
)
from dovetail.templates.analysis.source import Source

_LISTED = re.compile(r"""['"]thinking['"]: ['"]\Z""")  # parts of content written out as they are
_THOUGHT = re.compile(r"(?i)think|thought|reason")
_MAX_SPLITS = 24  # markers at which a template is asked whether it cuts content


@dataclass(frozen=True, slots=True)
class FoundReasoning:
    """The markers of reasoning; `content_begin` is what stands before content, wherever it was seen."""

    start: str = ""
    end: str = ""
    pad: str = ""
    after: str = ""
    empty: str = ""
    bare_end: bool = False
    opened_by: Literal["prompt", "model", "either"] = "model"
    mode: ReasoningMode = "NONE"
    between: str = ""  # what joins it with the next block, where that begins like a turn
    shape: str = ""  # how reasoning must be passed, or "" where it is never rendered
    settings: Settings = ()
    with_content: bool = False
    evidence: tuple[str, str, str] = ("", "", "")  # what was varied, and the two renders
    content_begin: str = ""
    content_end: str = ""  # where it closes content only beside reasoning
    open_at_calls: bool = False  # nothing closes it before calls


@dataclass(frozen=True, slots=True)
class _Shown:
    """A render that shows reasoning: what stands before it, and between it and what follows."""

    before: str
    behind: str
    with_content: bool
    shape: str
    settings: Settings
    turn: str
    plain: str  # the same without reasoning
    plain_before: str  # what stands before what follows, without reasoning
    extra: str  # what closes content only where there is reasoning
    before_calls: str = ""  # what stands between it and calls, where that is shown too


def find_reasoning(prober: Prober, source: Source, frame: Frame, shape: Shape | None) -> FoundReasoning:
    """The layout of reasoning, from a render that shows it or else from prompts and what the template cuts off."""
    shown = _shown(prober, frame, shape, ("reasoning_content", *source.reasoning, "parts"))
    reasoning = _from_render(frame, shown) if shown else _from_prompts(prober, source, frame)
    if not reasoning.end:
        return reasoning
    reasoning = _empty_forms(prober, frame, reasoning)
    return replace(reasoning, opened_by=_opened_by(frame, reasoning), mode=_mode(frame, reasoning, shown is not None))


def _shown(prober: Prober, frame: Frame, shape: Shape | None, ways: tuple[str, ...]) -> _Shown | None:
    for way in dict.fromkeys(ways):
        for settings in frame.switches:
            own = replace(shape or Shape(), reasoning=way)
            messages = [(assistant(CONTENT, REASONING, (), own), assistant(CONTENT), CONTENT)]
            if shape:
                calls = assistant("", "", ONE_CALL, shape)
                messages.append((assistant("", REASONING, ONE_CALL, own), calls, NAMES[0]))
            renders = [_shown_before(prober, frame, way, settings, *row) for row in messages]
            first = next((shown for shown in renders if shown), None)
            if first:
                last = renders[-1]
                return replace(first, before_calls=last.behind if last and last is not first else "")
    return None


def _shown_before(
    prober: Prober, frame: Frame, way: str, settings: Settings, message: Wire, without: Wire, target: str
) -> _Shown | None:
    """Reasoning in a message, before the target; `without` is the same message without it."""
    turn, plain = prober.turn(message, settings=settings), prober.turn(without, settings=settings)
    if not turn or not plain or REASONING not in turn or target not in turn.partition(REASONING)[2]:
        return None
    before, _, rest = frame.body(turn, settings).partition(REASONING)
    if _LISTED.search(before):
        return None
    plain_before = frame.body(plain, settings).partition(target)[0]
    behind, _, last = rest.partition(target)
    extra = last.removesuffix(frame.end) if target == CONTENT and last.endswith(frame.end) else ""
    return _Shown(before, behind, target == CONTENT, way, settings, turn, plain, plain_before, extra)


def is_reasoning_written(prober: Prober, source: Source) -> bool:
    """Whether the template writes what stands in a field of reasoning, in whatever layout."""
    fields = dict.fromkeys((*REASONING_FIELDS, *source.reasoning))
    messages = [assistant(CONTENT, REASONING, (), Shape(reasoning=field)) for field in fields]
    return any(REASONING in (prober.turn(message) or "") for message in messages)


def _from_render(frame: Frame, shown: _Shown) -> FoundReasoning:
    behind, begin = _without_begin(frame, shown)
    between = ""
    if frame.start.strip() and frame.start.strip() in behind:
        behind, _, rest = behind.partition(frame.start.strip())
        between, begin = frame.start, rest + begin
    start, end = shown.before, behind.strip()
    left = start[len(start.rstrip()) :]
    right = behind[: len(behind) - len(behind.lstrip())]
    start, pad = (start[: len(start) - len(left)], left) if left == right else (start, right if not left else "")
    return FoundReasoning(
        start=start,
        end=end,
        pad=pad,
        after=behind[len(behind.rstrip()) :],
        between=between,
        shape=shown.shape,
        settings=shown.settings,
        with_content=shown.with_content,
        evidence=("reasoning", shown.plain, shown.turn),
        content_begin=begin if shown.with_content else "",
        content_end=shown.extra,
        open_at_calls=bool(shown.before_calls) and not between and end not in shown.before_calls,
    )


def _without_begin(frame: Frame, shown: _Shown) -> tuple[str, str]:
    """What stands behind reasoning, split where the next thing begins."""
    behind, plain = shown.behind, shown.plain_before
    if not shown.with_content:
        first = next((part for part in segments(behind) if part.strip()), "")
        at = behind.find(first) + len(first)
        shared = shared_end(behind[at:], plain)
        return behind[: len(behind) - len(shared)], shared
    if plain and behind.endswith(plain) and behind[: -len(plain)].strip():
        return behind[: -len(plain)], plain
    closing = [part for part in segments(shown.extra or content_end(frame)) if part.strip()]
    if not closing or not (plain.strip() or shown.extra):
        return _without_what_calls_lack(behind, shown.before_calls)
    parts = segments(behind)
    size = 0
    while closing and parts:
        part = parts.pop()
        size += len(part)
        closing = closing[: len(closing) - bool(part.strip())]
    return behind[: len(behind) - size], behind[len(behind) - size :]


def _without_what_calls_lack(behind: str, before_calls: str) -> tuple[str, str]:
    """What stands behind reasoning, split behind the markers that calls have there too."""
    common = shared_start(behind, before_calls)
    rest = behind[len(common) :]
    return (common, rest) if markers(common) and markers(rest) else (behind, "")


def content_end(frame: Frame) -> str:
    """What closes content before the turn ends, judged by how the turn of the user ends."""
    common = shared_end(frame.end, frame.user_end)
    return frame.end[: len(frame.end) - len(common)] if common.strip() else ""


# Templates that show no reasoning.


def _from_prompts(prober: Prober, source: Source, frame: Frame) -> FoundReasoning:
    texts = _beginnings(prober, frame)
    start, end = _block(source, [text for _, text in texts])
    end = end or _cut_marker(prober, source) or _closing(source, start)
    start = start or _opening(source, end)
    if not end or not start or (start in _before_content(prober, frame) and not _THOUGHT.search(start)):
        return FoundReasoning()
    settings, text = next(((settings, text) for settings, text in texts if start in text), ((), ""))
    before, _, pad = text.partition(start)
    evidence = ("the settings of the template", frame.prompts[0][1], text) if text else ("content", "", end)
    pad = pad if not pad.strip() else ""
    return FoundReasoning(before.lstrip() + start, end, pad, settings=settings, evidence=evidence)


def _beginnings(prober: Prober, frame: Frame) -> list[tuple[Settings, str]]:
    """What prompts and turns begin with that holds a marker, by settings."""
    texts = [*frame.prompts]
    for settings in frame.switches:
        turn = prober.turn(assistant(CONTENT), settings=settings) if settings else None
        texts += [(settings, frame.body(turn, settings).partition(CONTENT)[0])] if turn else []
    return [(settings, text) for settings, text in texts if markers(text)]


def _before_content(prober: Prober, frame: Frame) -> str:
    """What stands before content under the default settings, unless that is a block of its own."""
    before = frame.body(prober.turn(assistant(CONTENT)) or "").partition(CONTENT)[0]
    return before if len(markers(before)) == 1 else ""


def _block(source: Source, texts: list[str]) -> tuple[str, str]:
    """The markers of a block: of one that is opened and closed, or else each as far as it is shown alone."""
    for text in texts:
        first, *_, last = [*markers(text), *markers(text)]
        if first != last:
            inside = text[text.find(first) : text.rfind(last)]
            named = bool(inside.removeprefix(first).strip())  # what is opened has a name behind its marker
            return (inside.rstrip() if named else first), last
    alone = [markers(text)[0] for text in texts]
    closers = [mark for mark in alone if _opening(source, mark)]
    openers = [mark for mark in alone if mark not in closers]
    # A marker that only closes may close anything, unless another prompt opens it or its name says what it is.
    closers = [mark for mark in closers if _opening(source, mark) in openers or _THOUGHT.search(mark)]
    return "".join(openers[:1]), "".join(closers[:1])


def _cut_marker(prober: Prober, source: Source) -> str:
    """The marker up to which the template drops content: what ended reasoning in older conversations."""
    for marker in [mark for mark in source.markers if not re.search(r"[{}%]", mark)][:_MAX_SPLITS]:
        turn = prober.turn(assistant(REASONING + marker + CONTENT))
        if turn and CONTENT in turn and REASONING not in turn:
            return marker
    return ""


def _opening(source: Source, end: str) -> str:
    """The marker that the end is the end of."""
    for sign in ("/", "END", "end"):
        start = end.replace(sign, {"/": "", "END": "START", "end": "start"}[sign], 1)
        if start != end and (sign == "/" or start in source.markers):
            return start
    return ""


def _closing(source: Source, start: str) -> str:
    """The marker that closes what this one opens, as its like is written: where the template has it, or it is known."""
    for end in closers(start):
        if end in source.markers or ("/" in end and "/" not in start and _THOUGHT.search(start)):
            return end
    return ""


# What the prompt and an empty block say.


def _empty_forms(prober: Prober, frame: Frame, reasoning: FoundReasoning) -> FoundReasoning:
    """How turns without reasoning say so."""
    for settings in frame.switches:
        turn = prober.turn(assistant(CONTENT), settings=settings)
        before = frame.body(turn, settings).partition(CONTENT)[0] if turn and CONTENT in turn else ""
        before = before.removesuffix(reasoning.content_begin) if reasoning.content_begin else before
        if reasoning.end not in before or reasoning.between:
            continue
        head, _, tail = before.partition(reasoning.end)
        start = reasoning.start.strip()
        if not head.strip():
            reasoning = replace(reasoning, bare_end=True)
            if tail != reasoning.after or head:
                reasoning = replace(reasoning, empty=before)
        elif head.strip() == start and (tail != reasoning.after or not head.startswith(reasoning.start)):
            reasoning = replace(reasoning, empty=before)
        if not reasoning.shape and head.strip() == start:
            reasoning = replace(reasoning, after=tail)
    return reasoning


def _opened_by(frame: Frame, reasoning: FoundReasoning) -> Literal["prompt", "model", "either"]:
    rests = [text for _, text in frame.prompts if reasoning.end not in text]
    if not reasoning.start:
        return "prompt"
    opened = [text for text in rests if text.strip().endswith(reasoning.start.strip())]
    if not opened:
        return "model"
    return "prompt" if len(opened) == len(rests) else "either"


def _mode(frame: Frame, reasoning: FoundReasoning, shown: bool) -> ReasoningMode:
    if not reasoning.start:
        return "DELIMITER"
    if shown and not reasoning.with_content:
        return "TOOLS_ONLY"
    texts = [text.strip() for _, text in frame.prompts]
    opens = any(text.endswith(reasoning.start.strip()) for text in texts)
    closes = any(text.endswith(reasoning.end) and reasoning.start.strip() in text for text in texts)
    if opens:
        return "FORCED_CLOSED" if closes else "FORCED_OPEN"
    return "TAG_BASED"
