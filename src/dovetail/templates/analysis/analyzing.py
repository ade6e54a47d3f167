"""The analysis of one template, from its source to its dialect."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache

from dovetail.dialects import Dialect, Proof
from dovetail.errors import TemplateError
from dovetail.templates.analysis.assemble import assemble
from dovetail.templates.analysis.calls import FoundCalls, find_calls
from dovetail.templates.analysis.capabilities import find_capabilities
from dovetail.templates.analysis.content import FoundContent, find_content
from dovetail.templates.analysis.corrections import Correction, corrected
from dovetail.templates.analysis.evidence import Analysis, Evidence, Finding, Modes, Verification, faults
from dovetail.templates.analysis.frame import ONE_CALL, Frame, call_shapes, frame
from dovetail.templates.analysis.kinship import adopted, kin
from dovetail.templates.analysis.probes import CONTENT, NAMES, PLAIN_VIEW, Prober, Shape, View, assistant, user
from dovetail.templates.analysis.reasoning import FoundReasoning, find_reasoning, is_reasoning_written
from dovetail.templates.analysis.source import Source, read_source
from dovetail.templates.analysis.verify import CALLING, ONLY_REASONING, Verifier

_CALLING = re.compile(r"(?i)(tool|function)[ _]?call|call(ing)? (a |the )?(tool|function)|func_name|functools")


@lru_cache(maxsize=256)
def analyze_template(source: str, bos_token: str = "", eos_token: str = "") -> Analysis:
    """What a template says about how its model talks; the same source is analyzed once.

    Of the ways to read it, each a bounded number of renders, the first that is proved is taken, or else the best.
    """
    facts = read_source(source)
    best: Analysis | None = None
    for attempt in _attempts(facts, Prober(source, bos_token, eos_token)):
        if best is None or _is_better(attempt, best):
            best = attempt
        if not best.faults:
            break
    if best is None:
        problem = "the chat template renders no turn of an assistant"
        raise TemplateError(problem, "", "write messages with the roles user and assistant, and their content")
    rows = [row for row in best.verifications if row.feature != "prompt"]
    if rows and not any(row.passed for row in rows):
        problem = f"nothing that the chat template renders is read back: {rows[0].problem}"
        raise TemplateError(problem, "", "write its dialect by hand, and register it")
    return _proved_by(_without_misread_calls(best))


def _is_better(attempt: Analysis, best: Analysis) -> bool:
    """Whether less is wrong; history, which may leave things out, has to show all that last turns do."""
    shown, known = ({row.feature for row in analysis.verifications} for analysis in (attempt, best))
    return attempt.faults < best.faults and (not attempt.view.later or best.view.later or known <= shown)


def _proved_by(analysis: Analysis) -> Analysis:
    """The analysis with a dialect that carries its notes and its proof."""
    proof = tuple(Proof(_part(row.feature), row.feature, row.problem) for row in analysis.verifications)
    return replace(analysis, dialect=replace(analysis.dialect, notes=analysis.notes, proof=proof))


def _part(feature: str) -> str:
    """The part of a dialect that a probe is about."""
    return "calls" if feature in CALLING else feature


def _without_misread_calls(analysis: Analysis) -> Analysis:
    """The analysis without calls where they would be read as something else, with the reason."""
    rows = [
        row
        for row in analysis.verifications
        if row.misread and row.feature in CALLING[:2] and not row.problem.startswith(ONLY_REASONING)
    ]
    if not rows or not analysis.dialect.calls:
        return analysis
    reason = f"calls are refused, because they would be misread: {rows[0].problem}"
    return replace(analysis, dialect=replace(analysis.dialect, calls=()), notes=(*analysis.notes, reason))


def _attempts(facts: Source, first: Prober) -> Iterator[Analysis]:
    """The template as it is read in each view and with each shape of calls."""
    seen = False
    for view in _views(facts):
        if seen and (view.parts or view.documents or view.thought):
            continue  # other messages are for templates that refuse the usual ones
        prober = first if view == PLAIN_VIEW else replace(first, view=view, refusals={}, _memo={})
        shapes: list[Shape | None] = [*call_shapes(prober)]
        for shape in shapes or [None]:
            turn = frame(prober, facts, shape)
            if turn is not None:
                seen = True
                yield _read(prober, facts, turn, shape)


def _views(facts: Source) -> Iterator[View]:
    yield PLAIN_VIEW
    yield View(whole_header=True)
    yield View(later=True)
    yield View(block_marker=True)
    yield View(prompt_header=True)
    if "documents" in facts.names:
        yield View(documents=True)
    yield View(thought=True)
    for parts in ("all", "user"):
        yield View(parts=parts)
        yield View(parts=parts, later=True)


def _read(prober: Prober, facts: Source, turn: Frame, shape: Shape | None) -> Analysis:
    """The template as these renders show it."""
    reasoning = find_reasoning(prober, facts, turn, shape)
    content = find_content(prober, turn, reasoning, shape)
    calls = find_calls(prober, turn, reasoning, content, shape) if shape else None
    name = "template-" + hashlib.sha256(prober.source.encode()).hexdigest()[:8]
    dialect, corrections = corrected(facts, assemble(name, turn, reasoning, content, calls))
    family = kin(dialect)
    dialect = adopted(dialect, family) if family else dialect
    shown = replace(shape or Shape(), reasoning=reasoning.shape, settings=reasoning.settings)
    parts = _Parts(turn, reasoning, content, calls)
    dialect, verifications = _proved(Verifier(prober, turn, dialect, shown, bool(calls and calls.with_content)))
    notes = [*_notes(prober, verifications, shape, dialect), *(calls.notes() if calls else ())]
    return Analysis(
        dialect,
        _modes(parts, dialect),
        find_capabilities(prober, facts, turn, reasoning, calls, shape or Shape()),
        (*parts.findings(prober), *(_corrected(row) for row in corrections)),
        verifications,
        tuple(notes),
        turn.start + (turn.prompts[0][1] if turn.prompts else ""),
        family.name if family else "",
        shown,
        prober.view,
        _speaks_of_calls(prober, facts, shape),
        turn.prompts,
        bool(reasoning.end) or is_reasoning_written(prober, facts),
    )


def _speaks_of_calls(prober: Prober, facts: Source, shape: Shape | None) -> bool:
    """Whether a template renders calls, or takes tools and reads calls or tells the model how to call."""
    takes_tools = NAMES[0] in (prober.render([user()]) or "")
    return shape is not None or (takes_tools and ("tool_calls" in facts.names or bool(_CALLING.search(facts.texts))))


@dataclass(frozen=True, slots=True)
class _Parts:
    """All that was found by comparison."""

    frame: Frame
    reasoning: FoundReasoning
    content: FoundContent
    calls: FoundCalls | None

    def findings(self, prober: Prober) -> list[Finding]:
        """Each thing that was found, with the renders that showed it."""
        plain, prompted = prober.turn(assistant(CONTENT)) or "", prober.turn(None, prompt=True) or ""
        reasoning, content = self.reasoning, self.content
        rows = [
            ("turn.start", self.frame.start, ("a turn or a prompt for one", prompted, plain)),
            ("turn.end", content.turn_end, content.evidence),
            ("reasoning.start", reasoning.start, reasoning.evidence),
            ("reasoning.end", reasoning.end, reasoning.evidence),
            ("content.begin", content.begin, content.evidence),
            ("content.end", content.end, content.evidence),
        ]
        if self.calls:
            rows += self.calls.rows()
        return [Finding(what, value, _evidence(value, *shown)) for what, value, shown in rows if value]


def _evidence(value: str, varied: str, left: str, right: str) -> Evidence:
    at = right.find(value)
    return Evidence(varied, left, right, ((at, at + len(value)),) if at >= 0 else ())


def _corrected(row: Correction) -> Finding:
    return Finding("correction", row.name, Evidence("the source of the template", "", ""), row.reason)


def _modes(parts: _Parts, dialect: Dialect) -> Modes:
    modes = Modes(
        parts.reasoning.mode,
        parts.content.mode,
        parts.calls.format if parts.calls else "NONE",
        parts.calls.id_position if parts.calls else "NONE",
    )
    if dialect.reasoning and modes.reasoning == "NONE":
        modes = replace(modes, reasoning="TAG_BASED")
    if dialect.content.wrapped and not dialect.content.always and modes.content == "PLAIN":
        modes = replace(modes, content="WRAPPED_WITH_REASONING")
    return modes


def _proved(verifier: Verifier) -> tuple[Dialect, tuple[Verification, ...]]:
    """The dialect, repaired where that helps, and the verdict on the probes."""
    best, verdict = verifier.dialect, verifier.proof()
    for other in () if _holds(verdict) else _repairs(best):
        verifier.dialect = other
        repaired = verifier.proof()
        if faults(repaired) < faults(verdict):
            best, verdict = other, repaired
        if _holds(verdict):
            break
    return best, verdict


def _holds(rows: tuple[Verification, ...]) -> bool:
    return all(row.passed for row in rows)


def _repairs(dialect: Dialect) -> Iterator[Dialect]:
    """The dialect with what may differ from turn to turn left open."""
    if dialect.content.wrapped and not dialect.content.optional:
        yield replace(dialect, content=replace(dialect.content, optional=True))


def _notes(prober: Prober, verifications: tuple[Verification, ...], shape: Shape | None, dialect: Dialect) -> list[str]:
    notes = [f"{row.feature}: {row.problem}" for row in verifications if not row.passed]
    if shape and not dialect.calls:
        notes.append("calls have no marker that tells them from text, or their arguments from each other")
    messages = [assistant(CONTENT), *([assistant(calls=ONE_CALL, shape=shape)] if shape else [])]
    refusals = dict.fromkeys(prober.refusal([user(), message]) for message in messages)
    return notes + [f"Transformers refuses to render this template: {why}" for why in refusals if why]
