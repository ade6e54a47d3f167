"""The check of one chat template, feature by feature."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

from dovetail.dialects import Dialect
from dovetail.engine.loaders import Loaded
from dovetail.errors import DialectError, DovetailError
from dovetail.messages import Message, ToolCall
from dovetail.models.speaker import Speaker, embedded_tokens
from dovetail.templates.analysis import Analysis, analyze_template
from dovetail.templates.analysis.verify import Rendered
from dovetail.templates.checks.features import PROBES, tools_of, with_ids, writes_ids
from dovetail.templates.checks.laws import accepted, forced, read_back, stopped, streams
from dovetail.templates.checks.report import FEATURES, Check, Report
from dovetail.templates.checks.turns import Turns

_UTTERANCES = 2  # of the random speaker, for each request
_MAX_BABBLE_S = 2.0  # of processor time for all of them; some formats have very long endings
_FIXES = {
    "reasoning": "write reasoning between two markers that stand nowhere else, the same in prompt and history",
    "content": "write content as it is, between markers that are not part of it",
    "call": "write name and arguments between fixed markers, and the arguments with tojson",
    "parallel": "write each call with the same markers, and the same text between any two of them",
    "nested": "write values that are no strings with tojson",
    "unicode": "write strings with tojson (it leaves Unicode as it is), or between markers that they cannot hold",
    "whitespace": "do not trim arguments: a value is what stands between its markers",
    "ids": "write the id of each call between fixed markers",
    "prompt": "write the same header in the generation prompt as in history, and open only blocks that turns close",
}
# What a reader may remark on, and what to change then.
_REMARKS = {
    "not closed by": "close the calls of every turn with the same marker, also where there is only one",
    "behind the end of the turn": "write nothing behind the end of a turn",
    "closes nothing": "open and close each block in the same turn",
}


def check_template(text: str, bos_token: str = "", eos_token: str = "") -> Report:
    """The report on a template that is given as text."""
    analysis = analyze_template(text, bos_token, eos_token)
    # What was not proved is told in the report; a warning of its use would say it again.
    tried = replace(analysis, dialect=replace(analysis.dialect, proof=()))
    checks = _Checker(tried, Turns(text, tried, bos_token, eos_token)).checks()
    return Report(analysis, checks)


class _LossError(Exception):
    """The template does not write a message as one turn."""


@dataclass(slots=True)
class _Sample:
    """A turn that the template wrote, and what it says."""

    message: Message
    tools: Any
    turn: Rendered


@dataclass(slots=True)
class _Checker:
    analysis: Analysis
    turns: Turns
    samples: list[_Sample] = field(default_factory=list)

    def checks(self) -> tuple[Check, ...]:
        """The check of each feature."""
        checks = [self._feature(feature) for feature in FEATURES if feature in PROBES]
        checks += [self._prompt(), self._streaming(), self._constraint_or_error()]
        return tuple(checks)

    def _feature(self, feature: str) -> Check:
        absent = self._absence(feature)
        if absent:
            return Check(feature, "absent", absent)
        unread = self._unread(feature)
        if unread:
            return Check(feature, "failed", unread, "", _FIXES[feature])
        notes: list[str] = []
        rendered = ""
        for probe in PROBES[feature]:
            if probe.tool_calls and not self.analysis.dialect.calls:
                continue
            try:
                sample, note = self._sample(with_ids(probe, self.analysis.dialect))
                if sample is None:
                    notes += [note] if note and note not in notes else []
                    continue
                rendered = sample.turn.output
                problem = self._read(sample) or (self._ids(sample) if feature == "ids" else "")
                self.samples.append(sample)
                problem = problem or self._read_behind_prompt(sample) or self._read_as_last(sample)
            except _LossError as loss:
                problem, note = str(loss), ""
            except DovetailError as error:
                problem, note = str(error), ""
            if problem:
                fix = next((fix for words, fix in _REMARKS.items() if words in problem), _FIXES[feature])
                return Check(feature, "failed", problem, rendered, fix)
            notes += [note] if note and note not in notes else []
        if not rendered and not notes:
            if feature == "content":
                return Check(feature, "failed", "the template does not write content", "", _FIXES[feature])
            return Check(feature, "absent", "the template writes no such turn")
        return Check(feature, "passed", "; ".join(notes), rendered)

    def _unread(self, feature: str) -> str:
        """Why a feature cannot be read at all that the template speaks of or writes."""
        analysis = self.analysis
        instruction = self.turns.instruction() if feature == "content" else ""
        if instruction:
            return f"{instruction!r} stands before the content of the user too: an instruction, which no model writes"
        if feature == "reasoning" and analysis.dialect.reasoning is None:
            return "the template writes reasoning, and no layout of it was found"
        if feature in ("call", "parallel", "nested", "ids") and not analysis.dialect.calls:
            problem = "the template speaks of calls, and no layout of them was found"
            return "; ".join([problem, *(note for note in analysis.notes if note.startswith("call"))])
        return ""

    def _absence(self, feature: str) -> str:
        """Why a template has none of a feature, with what was looked at; nothing where it has or should have."""
        able, dialect = self.analysis.capabilities, self.analysis.dialect
        if feature == "reasoning" and dialect.reasoning is None and not self.analysis.writes_reasoning:
            count = len(self.analysis.prompts)
            return f"no field of a message shows reasoning, and none of {count} generation prompts opens a block"
        if feature in ("call", "parallel", "nested", "ids") and not dialect.calls and not self.analysis.speaks_of_calls:
            return "a message with tool_calls is rendered without them, and no text says how to call"
        if feature == "parallel" and able.tool_calls and not able.parallel_calls and not self._writes_several():
            return "of two calls the template writes one at most"
        if feature == "ids" and not writes_ids(dialect):
            return "calls with other ids are rendered alike"
        return ""

    def _writes_several(self) -> bool:
        """Whether two calls are in the turn, in whatever way."""
        probe = with_ids(PROBES["parallel"][0], self.analysis.dialect)
        return self.turns.of(probe, tools_of(probe)) is not None

    def _sample(self, message: Message) -> tuple[_Sample | None, str]:
        """The turn that says `message`: as the template writes it, or else as the dialect does; and a note."""
        dialect, tools = self.analysis.dialect, tools_of(message) or None
        try:
            spelled = dialect.render(message)
        except DialectError as error:
            return None, f"{error.problem}, so that no reader could tell"
        turn, note = self.turns.of(message, tools), ""
        able = self.analysis.capabilities
        dropped = message.content and message.tool_calls and not able.content_with_calls
        hidden = message.reasoning or (message.tool_calls and not able.tool_calls)
        if turn is None and hidden and not dropped:
            # Many templates leave reasoning or calls out of history: then no turn of theirs can show it.
            turn = Rendered(dialect.turn.start, spelled, "auto")
            note = "the template leaves it out of history; tried as the model writes it"
        if turn is None and self.turns.splits(message, tools):
            raise _LossError("the template makes several turns of one message")
        if turn is None:
            return None, ""
        return _Sample(message, tools, turn), note

    def _read(self, sample: _Sample) -> str:
        """The problem of reading a sample back; whether the template writes two messages alike is told with it."""
        dialect, turn = self.analysis.dialect, sample.turn
        problem = read_back(dialect, sample.tools, turn, sample.message)
        if problem:
            got = dialect.parse(turn.output, sample.tools, turn.prompt)
            alike = self.turns.of(got, sample.tools)
            if not got.diagnostics and alike is not None and alike.output == turn.output:
                return f"the template cannot tell: {problem}"
        return problem

    def _read_behind_prompt(self, sample: _Sample) -> str:
        """The problem of a sample whose beginning a generation prompt has written, read and forced as such."""
        turn = self.turns.behind_prompt(sample.message, sample.tools)
        if turn is None or turn.output == sample.turn.output:
            return ""
        dialect, message = self.analysis.dialect, sample.message
        problem = read_back(dialect, sample.tools, turn, message) or accepted(dialect, sample.tools, turn)
        problem = problem or forced(dialect, sample.tools, turn, message)
        return f"behind the generation prompt: {problem}" if problem else ""

    def _read_as_last(self, sample: _Sample) -> str:
        """The problem of a sample that is the last turn, where the template writes last turns in a way of their own."""
        turn = self.turns.as_last(sample.message, sample.tools)
        problem = read_back(self.analysis.dialect, sample.tools, turn, sample.message) if turn else ""
        return f"as the last turn: {problem}" if problem else ""

    def _prompt(self) -> Check:
        torn = self.turns.torn_header()
        if torn:
            return Check("prompt", "failed", torn, "", _FIXES["prompt"])
        answers = self.turns.answers()
        for settings, row in answers:
            if not row.passed:
                return Check("prompt", "failed", f"with {settings}: {row.problem}", row.rendered, _FIXES["prompt"])
        return Check("prompt", "passed", f"a plain answer holds behind {len(answers)} of {len(answers)} prompts")

    def _ids(self, sample: _Sample) -> str:
        got = self.analysis.dialect.parse(sample.turn.output, sample.tools, sample.turn.prompt)
        wanted = [call.id for call in sample.message.tool_calls]
        ids = [call.id for call in got.tool_calls]
        if any(id in sample.turn.output for id in wanted):
            return "" if wanted == ids else f"the ids {wanted} are read as {ids}"
        # The template numbers the calls itself.
        return "" if all(ids) and len(set(ids)) == len(ids) else f"the ids are read as {ids}"

    def _streaming(self) -> Check:
        for sample in self.samples:
            problem = streams(self.analysis.dialect, sample.tools, sample.turn)
            if problem:
                return Check(
                    "streaming", "failed", problem, sample.turn.output, "report this: it is a defect of dovetail"
                )
        return Check("streaming", "passed", f"{len(self.samples)} turns, whole, in chunks and damaged")

    def _constraint_or_error(self) -> Check:
        try:
            return self._constraint()
        except DovetailError as error:
            return Check("constraint", "failed", str(error), "", "open calls with a marker that stands nowhere else")

    def _constraint(self) -> Check:
        for sample in self.samples:
            problem = accepted(self.analysis.dialect, sample.tools, sample.turn)
            problem = problem or forced(self.analysis.dialect, sample.tools, sample.turn, sample.message)
            problem = problem or stopped(self.turns.eos_token, sample.turn)
            if problem:
                fix = "write the same white space and markers in history as the model is to write"
                return Check("constraint", "failed", problem, sample.turn.output, fix)
        problem, count = self._babble()
        if problem:
            return Check("constraint", "failed", problem, "", "report this: it is a defect of dovetail")
        counted = f"{len(self.samples)} turns accepted, {count} random ones read"
        eos, end = self.turns.eos_token, self.analysis.dialect.turn.end.strip()
        stops = f"; stop at {end} too, which is not the end-of-sequence token" if eos and end and eos not in end else ""
        return Check("constraint", "passed", counted + stops)

    def _babble(self) -> tuple[str, int]:
        """A random speaker talks under the format, and what it says is read without a remark."""
        dialect, count, cut = self.analysis.dialect, 0, 0
        parallel = self.analysis.capabilities.parallel_calls
        start = time.process_time()
        speaker = _speaker(self.analysis)
        asked = replace(PROBES["parallel"][0], tool_calls=(*PROBES["parallel"][0].tool_calls, _search()))
        tools = tools_of(asked) if dialect.calls else None
        for choice in ("auto", "required") if tools else ("auto",):
            for reasoning in (True, False) if dialect.reasoning else (False,):
                fmt = dialect.format(tools, choice, reasoning, parallel_tool_calls=parallel)
                for _ in range(_UTTERANCES):
                    turn = speaker.speak(fmt.format, max_tokens=500)
                    if time.process_time() - start > _MAX_BABBLE_S:
                        return "", count
                    if not turn.complete:
                        cut += 1
                        continue
                    got = dialect.parse(turn.data, tools, _prompt(dialect, reasoning))
                    count += 1
                    if got.diagnostics or (choice == "required" and not got.tool_calls):
                        remark = got.diagnostics[0].problem if got.diagnostics else "there is no call"
                        return f"the format allows {turn.data.decode()!r}, of which the reader remarks: {remark}", count
        return "" if count or not cut else f"the speaker finds no way to end any of {cut} turns", count


def _prompt(dialect: Dialect, reasoning: bool) -> str | None:
    """The prompt after which the format for a request begins."""
    block, start = dialect.reasoning, dialect.turn.start
    if not reasoning and dialect.content.prompt_opens:
        return start + dialect.content.begins[0]
    if block is not None and reasoning and not block.start:
        return None
    if block is None or block.opened_by == "model" or not reasoning:
        return start + dialect.turn.opened
    return start + block.start


def _search() -> ToolCall:
    return PROBES["nested"][0].tool_calls[0]


def _speaker(analysis: Analysis) -> Speaker:
    """A speaker whose vocabulary has the special tokens of the dialect and a stop token of its own."""
    special = analysis.dialect.special_tokens
    plain = [token for token in embedded_tokens().tokens if not (len(token) > 2 and token.startswith(b"<"))]
    tokens = [*plain, *(token.encode() for token in special), b"<stop>"]
    return Speaker(7, Loaded(tokens, {token: len(plain) + i for i, token in enumerate(special)}, [len(tokens) - 1]))
