"""Whether a dialect holds what its template renders: probes that were not used to find it.

What the template writes for a message is cut out of the turn, must be accepted by the format of the request, and must
be read back as the same message without a diagnostic.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from dovetail.dialects import Dialect
from dovetail.engine import accepts
from dovetail.errors import DovetailError
from dovetail.messages import Message
from dovetail.templates.analysis.diff import markers
from dovetail.templates.analysis.evidence import Analysis, Verification
from dovetail.templates.analysis.frame import SENTENCE, Frame, Settings, call_shapes, frame
from dovetail.templates.analysis.probes import USER, Call, Prober, Shape, Wire, assistant, user
from dovetail.templates.analysis.source import read_source

_PARAMETERS: Wire = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "ratio": {"type": "number"},
        "metric": {"type": "boolean"},
        "filter": {
            "type": "object",
            "properties": {"tags": {"type": "array", "items": {"type": "string"}}, "limit": {"type": "integer"}},
        },
    },
}
TOOLS: list[Wire] = [
    {"type": "function", "function": {"name": name, "description": "d", "parameters": _PARAMETERS}}
    for name in ("lookup_weather", "find_places")
]
_FIRST = Call("lookup_weather", {"city": "São Paulo, north", "days": 3}, "qwert1234")
_SECOND = Call("find_places", {"city": "Kyōto\nEast", "filter": {"tags": ["a b", "c"], "limit": 2}}, "qwert1235")
_CONTENT = 'Well, 5 is more than 4.\nLet me see: "naïve" is it?'
_REASONING = "They ask about two places.\n\nFirst the one, then the other."
_REMARK = "diagnostic: "
ONLY_REASONING = "the reasoning is read as"  # calls and content are read as they are meant
_BROKEN_LINE = re.compile(r"[^>\]}\n]\s*\Z")  # a header that ends within a line, with no marker


@dataclass(frozen=True, slots=True)
class Probe:
    """A message of the assistant and what it shows."""

    feature: str
    content: str = ""
    reasoning: str = ""
    calls: tuple[Call, ...] = ()


# The probes of calls, those that say nothing else first.
CALLING = ("one call", "parallel calls", "reasoning and calls", "content and calls", "everything")
PROBES = (
    Probe("content", _CONTENT),
    Probe("reasoning", _CONTENT, _REASONING),
    Probe("one call", calls=(_FIRST,)),
    Probe("parallel calls", calls=(_FIRST, _SECOND)),
    Probe("content and calls", _CONTENT, calls=(_FIRST,)),
    Probe("reasoning and calls", "", _REASONING, (_SECOND,)),
    Probe("everything", _CONTENT, _REASONING, (_SECOND, _FIRST)),
)


@dataclass(frozen=True, slots=True)
class Rendered:
    """What the template writes for a message: the prompt, the output behind it, and the mode of reasoning."""

    prompt: str | None  # None where no prompt ends as this turn begins
    output: str
    reasoning: Any


class Verifier:
    """Probes of one template against one dialect."""

    def __init__(self, prober: Prober, frame: Frame, dialect: Dialect, shape: Shape | None, with_content: bool) -> None:
        self.prober = prober
        self.frame = frame
        self.dialect = dialect
        self.shape = shape or Shape()
        self.with_content = with_content  # whether content stands beside calls

    def verify(self, probes: tuple[Probe, ...]) -> Iterator[Verification]:
        """The verdict on each probe that the template carries."""
        for probe in probes:
            rendered = self.rendered(probe)
            if rendered is not None:
                problem, misread = self._problem(probe, rendered)
                yield Verification(probe.feature, not problem, rendered.output, problem, misread)

    def proof(self) -> tuple[Verification, ...]:
        """The verdict on all probes, and on an answer behind each generation prompt."""
        return (*self.verify(PROBES), *(row for _, row in self.answers()))

    def rendered(self, probe: Probe, tools: Any = TOOLS) -> Rendered | None:
        """The output that says the probe, or None where the template does not carry all of it."""
        body = self._body(probe, tools)
        if body is None or self._header_in(body):
            return None
        return self._cut(body, probe, self._settings(probe))

    def behind_prompt(self, probe: Probe, tools: Any = TOOLS) -> Rendered | None:
        """What a generation prompt leaves of an output to the model; None where it has written nothing of it."""
        body = self._body(probe, tools)
        if body is None or self._header_in(body):
            return None
        begun = [text for _, text in self.frame.prompts if text and body.startswith(text)]
        if not begun:
            return None
        opened = max(begun, key=len)
        start = self.frame.user_end + self.dialect.turn.start
        mode = True if _opens(self.dialect, opened) else "auto"
        return Rendered(start + opened, self._without_end(body, probe)[len(opened) :], mode)

    def as_last(self, probe: Probe, tools: Any = TOOLS) -> Rendered | None:
        """The output of a last turn, where turns were read as history and the template renders last ones too."""
        if not self.prober.view.later:
            return None
        prober = replace(self.prober, view=replace(self.prober.view, later=False), _memo={})
        return Verifier(prober, self.frame, self.dialect, self.shape, self.with_content).rendered(probe, tools)

    def torn_header(self) -> str:
        """Why the generation prompt does not begin a turn as history does; nothing where it does."""
        start, history = self.dialect.turn.start, self.frame.history_start
        written = [self.prober.turn(None, prompt=True, settings=settings) or "" for settings, _ in self.frame.prompts]
        if (
            start.strip()
            and any(text.strip() for text in written)
            and not any(start.strip() in text for text in written)
        ):
            return f"no generation prompt writes the header {start.strip()!r} of history"
        if history and _BROKEN_LINE.search(history) and not markers(start.removeprefix(history)):
            return f"the generation prompt goes on behind {history!r} with words that history leaves out"
        return ""

    def instruction(self) -> str:
        """A sentence that the template writes before the content of the assistant as before that of the user."""
        begin = self.dialect.content.begins[0].strip()
        before = (self.prober.render([user()]) or "").partition(USER)[0].rstrip()
        return begin if SENTENCE.search(begin) and before.endswith(begin) else ""

    def splits(self, probe: Probe, tools: Any = TOOLS) -> bool:
        """Whether the template makes two turns of what the probe says."""
        body = self._body(probe, tools)
        return body is not None and self._header_in(body)

    def answers(self) -> Iterator[tuple[str, Verification]]:
        """A plain answer behind each generation prompt, with the settings of the prompt."""
        for settings, text in self.frame.prompts:
            user_end = dict(self.frame.user_ends).get(settings, self.frame.user_end)
            prompt = user_end + self.dialect.turn.start + text
            probe, output, mode = answer_behind(self.dialect, text)
            problem, misread = self._problem(probe, Rendered(prompt, output, mode))
            yield str(dict(settings) or "no settings"), Verification("prompt", not problem, output, problem, misread)

    def _settings(self, probe: Probe) -> Settings:
        return self.shape.settings if probe.reasoning else ()

    def _body(self, probe: Probe, tools: Any) -> str | None:
        """The turn behind its header, or None where the template does not carry all of the probe."""
        if (probe.reasoning and not self.shape.reasoning) or (probe.calls and not self.dialect.calls):
            return None
        if probe.content and probe.calls and not self.with_content:
            return None
        settings = self._settings(probe)
        message = assistant(probe.content, probe.reasoning, probe.calls, self.shape)
        turn = self.prober.turn(message, settings=settings, tools=tools)
        return self.frame.body(turn, settings) if turn is not None and _carried(turn, probe) else None

    def _header_in(self, body: str) -> bool:
        """Whether a second turn begins in a body, and not another block of the same one."""
        turn = self.dialect.turn
        start = turn.start.strip()
        joined = any(start in way.separator + way.spacing for way in self.dialect.calls) or bool(turn.between)
        is_distinct = any(char.isalnum() for char in start)  # a colon alone may stand anywhere in a text
        return is_distinct and start in body and start != turn.end.strip() and not joined

    def _without_end(self, body: str, probe: Probe) -> str:
        turn = self.dialect.turn
        for end in (turn.end, *turn.other_ends):
            tail = body.rstrip()
            if end.strip() and tail.endswith(end.strip()) and not self._closes_block(end, probe):
                body = tail[: -len(end.strip())]
                lead = end[: len(end) - len(end.lstrip())]
                return body.removesuffix(lead) if lead else body
        return body

    def _cut(self, body: str, probe: Probe, settings: Settings) -> Rendered:
        """A body without the end of the turn, and without what the prompt has written of it."""
        turn = self.dialect.turn
        body = self._without_end(body, probe)
        start = self.frame.user_end + turn.start
        block = self.dialect.reasoning
        if turn.opened and body.startswith(turn.opened):
            return Rendered(start + turn.opened, body[len(turn.opened) :], True)
        if block is None:
            return Rendered(start, body, True)
        if probe.reasoning and not block.start:
            return Rendered(None, body, True)
        if probe.reasoning:
            for _, text in self.frame.prompts:
                if text and block.end not in text and body.startswith(text) and block.opened_by != "model":
                    return Rendered(start + text, body[len(text) :], True)
        return Rendered(start, body, "auto")

    def _closes_block(self, end: str, probe: Probe) -> bool:
        """Ends that close the last block as well stay in the output."""
        ends = [way.call_end for way in self.dialect.calls] if probe.calls else self.dialect.content.ends
        return bool(self.dialect.turn.between) and end.strip() in ends

    def _problem(self, probe: Probe, rendered: Rendered) -> tuple[str, bool]:
        """What is wrong with a probe, or nothing; and whether it is misread."""
        tools = TOOLS if probe.calls else None
        try:
            message = self.dialect.parse(rendered.output, tools, prompt=rendered.prompt)
            problem = _difference(probe, message)
            if problem:
                return problem, not problem.startswith(_REMARK)
            made = self.dialect.format(tools, reasoning=rendered.reasoning)
            accepted = accepts(made.format, rendered.output)
            return ("" if accepted else "the format refuses what the template renders"), False
        except DovetailError as error:
            return f"{type(error).__name__}: {error}", False


def _opens(dialect: Dialect, text: str) -> bool:
    """Whether a prompt ends inside a block of reasoning."""
    block = dialect.reasoning
    return bool(block and block.start.strip() and text.rstrip().endswith(block.start.strip()))


def _reasoned(dialect: Dialect, text: str) -> str:
    """The reasoning that a prompt has written itself and closed."""
    block = dialect.reasoning
    if block is None or block.end not in text:
        return ""
    return text.partition(block.end)[0].strip().removeprefix(block.start.strip())


def answer_behind(dialect: Dialect, opened: str) -> tuple[Probe, str, Any]:
    """A plain answer that goes on behind what a prompt has written of the turn: what it says, how, and the mode."""
    block, content, turn = dialect.reasoning, dialect.content, dialect.turn
    begin, end, closing = content.begins[0], content.ends[0], "" if turn.between else turn.closing
    begin = "" if begin.strip() and opened.rstrip().endswith(begin.strip()) else begin
    probe = Probe("prompt", _CONTENT, _reasoned(dialect, opened))
    if turn.opened and opened.startswith(turn.opened) and begin.startswith(turn.opened):
        begin = begin.removeprefix(turn.opened)
    if block and (_opens(dialect, opened) or (not block.start and opened.strip())):
        thought = _REASONING + block.pad + block.end + block.after + turn.between
        written = "" if block.start else opened.lstrip()
        return replace(probe, reasoning=written + _REASONING), thought + begin + _CONTENT + end + closing, True
    inside = bool(content.begins[0].strip()) and not begin.strip()  # the prompt has opened the content
    return probe, begin + _CONTENT + end + closing, False if inside else "auto"


def _carried(turn: str, probe: Probe) -> bool:
    """Whether the template renders all parts of a probe; their spelling may change, so only words are looked for."""
    words = [word for text in (probe.content, probe.reasoning) if text for word in (text[:20], text[-8:])]
    return all(word in turn for word in (*words, *(call.name for call in probe.calls)))


def _difference(probe: Probe, message: Message) -> str:
    expected = [(call.name, dict(call.arguments)) for call in probe.calls]
    if [(call.name, call.value) for call in message.tool_calls] != expected:
        return f"the calls are read as {[(call.name, call.value) for call in message.tool_calls]!r}"
    if message.content.strip() != probe.content.strip():
        return f"the content is read as {message.content!r}"
    if message.reasoning.strip() != probe.reasoning.strip():
        return f"{ONLY_REASONING} {message.reasoning!r}"
    if not all(call.complete for call in message.tool_calls):
        return "a call is read as incomplete"
    if message.diagnostics:
        return _REMARK + message.diagnostics[0].problem
    return ""


def verifier_of(analysis: Analysis, prober: Prober, with_content: bool | None = None) -> Verifier:
    """The verifier of a template whose analysis is known; `with_content` where content may stand beside calls."""
    prober = replace(prober, view=analysis.view)
    shapes = call_shapes(prober)
    shape = analysis.shape if any(analysis.shape.arguments == shape.arguments for shape in shapes) else None
    turn = frame(prober, read_source(prober.source), shape)
    assert turn is not None  # or there would be no analysis
    able = analysis.capabilities.content_with_calls if with_content is None else with_content
    return Verifier(prober, turn, replace(analysis.dialect, proof=()), analysis.shape, able)
