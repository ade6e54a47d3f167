"""Whether content stands between markers, and how the turn ends behind it."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.templates.analysis.diff import shared_end
from dovetail.templates.analysis.evidence import ContentMode
from dovetail.templates.analysis.frame import ONE_CALL, Frame
from dovetail.templates.analysis.probes import CONTENT, VALUES, Prober, Shape, assistant
from dovetail.templates.analysis.reasoning import FoundReasoning


@dataclass(frozen=True, slots=True)
class FoundContent:
    """The markers around content, and the end of the turn."""

    mode: ContentMode
    begin: str
    end: str
    turn_end: str
    evidence: tuple[str, str, str]


def find_content(prober: Prober, frame: Frame, reasoning: FoundReasoning, shape: Shape | None) -> FoundContent:
    """The layout of content, from a turn with nothing else and, if there are calls, one with calls alone."""
    plain = prober.turn(assistant(CONTENT)) or ""
    calls = prober.turn(assistant(calls=ONE_CALL, shape=shape)) if shape else None
    evidence = ("content or calls", calls or "", plain)
    begin = _begin(frame.body(plain).partition(CONTENT)[0], reasoning)
    if not begin.strip() and reasoning.content_end:
        return FoundContent(
            "WRAPPED_WITH_REASONING", reasoning.content_begin, reasoning.content_end, frame.end, evidence
        )
    if not begin.strip():
        return FoundContent("PLAIN", "", "", frame.end, evidence)
    closing = frame.body(calls).rpartition(VALUES[1])[2] if calls else ""
    ends = [shared_end(frame.end, other) for other in (frame.user_end, closing)]
    turn_end = min((end for end in ends if end.strip()), key=len, default="")
    end = frame.end[: len(frame.end) - len(turn_end)]
    return FoundContent("ALWAYS_WRAPPED", begin, end, turn_end, evidence)


def _begin(before: str, reasoning: FoundReasoning) -> str:
    """What stands before content, without a block that says that there is no reasoning."""
    if reasoning.content_begin and before.endswith(reasoning.content_begin):
        return reasoning.content_begin
    if reasoning.end and reasoning.end in before:
        return before.partition(reasoning.end)[2].removeprefix(reasoning.after)
    return before
