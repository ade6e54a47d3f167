"""What an analysis says, and from which renders it knows it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from dovetail.dialects import Dialect
from dovetail.templates.analysis.probes import PLAIN, PLAIN_VIEW, Shape, View

ReasoningMode = Literal["NONE", "TAG_BASED", "DELIMITER", "FORCED_OPEN", "FORCED_CLOSED", "TOOLS_ONLY"]
ContentMode = Literal["PLAIN", "ALWAYS_WRAPPED", "WRAPPED_WITH_REASONING"]
ToolFormat = Literal["NONE", "JSON_NATIVE", "TAG_WITH_JSON", "TAG_WITH_TAGGED"]
CallIdPosition = Literal["NONE", "PRE_FUNC_NAME", "BETWEEN_FUNC_AND_ARGS", "POST_ARGS"]


@dataclass(frozen=True, slots=True)
class Evidence:
    """Two renders of conversations that differ in one thing, `varied`, and the parts in which the renders differ.

    Where one render alone shows a finding, `left` is empty. `spans` are (start, end) of what was found, in `right`.
    """

    varied: str
    left: str
    right: str
    spans: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was found, such as ("reasoning.start", "<think>"), and what showed it."""

    what: str
    value: str
    evidence: Evidence
    correction: str = ""  # the reason, where a correction and not the renders say so


@dataclass(frozen=True, slots=True)
class Modes:
    """The layout in the words of llama.cpp's analyzer."""

    reasoning: ReasoningMode = "NONE"
    content: ContentMode = "PLAIN"
    tools: ToolFormat = "NONE"
    call_id: CallIdPosition = "NONE"


@dataclass(frozen=True, slots=True)
class Capabilities:
    """What the template can carry."""

    tools: bool = False  # a list of tools is rendered
    tool_calls: bool = False  # calls of an assistant turn are rendered
    parallel_calls: bool = False  # more than one of them in one turn
    tool_role: bool = False  # answers of tools are rendered
    call_ids: bool = False  # ids of calls are rendered
    content_with_calls: bool = False  # text beside calls is rendered
    system_role: bool = False
    arguments: Literal["none", "object", "string", "either"] = "none"  # the form in which calls must be passed
    typed_content: bool = False  # content may be a list of parts
    reasoning_field: str = ""  # the key of a message under which reasoning is read, or ""
    reasoning_in_history: bool = False  # the reasoning of earlier turns is rendered
    history_switch: str = ""  # the variable that has it rendered where it is not, such as preserve_thinking, or ""
    thinking_switch: str = ""  # the variable that turns reasoning on and off, such as enable_thinking, or ""


@dataclass(frozen=True, slots=True)
class Verification:
    """One probe that was not used for the inference: whether its render is accepted and read back equal."""

    feature: str
    passed: bool
    rendered: str = ""
    problem: str = ""
    misread: bool = False  # it is read as something else, and the reader does not say so


def faults(rows: Sequence[Verification]) -> int:
    """How much is wrong with a dialect: what is misread weighs more than what is refused."""
    return sum((4 if row.misread else 1) for row in rows if not row.passed)


@dataclass(frozen=True, slots=True)
class Analysis:
    """A dialect derived from a chat template."""

    dialect: Dialect
    modes: Modes = Modes()
    capabilities: Capabilities = Capabilities()
    findings: tuple[Finding, ...] = ()
    verifications: tuple[Verification, ...] = ()
    notes: tuple[str, ...] = ()  # what could not be found or does not agree, in sentences
    generation_prompt: str = ""  # what the template writes to begin an assistant turn
    same_as: str = ""  # the built-in dialect that the result equals, or ""
    shape: Shape = PLAIN  # how messages must be passed so that the template renders all of them
    view: View = PLAIN_VIEW  # how the template was shown conversations
    speaks_of_calls: bool = False  # the template reads tool_calls, or tells the model how to call the tools it is given
    prompts: tuple[tuple[tuple[tuple[str, Any], ...], str], ...] = ()  # the generation prompt by settings
    writes_reasoning: bool = False  # a field of reasoning is rendered, whether its layout was found or not

    @property
    def tools_in_prompt(self) -> bool:
        """Whether tools have to be told in the system prompt: the template has no place for them, or for calls."""
        return not (self.dialect.calls and self.capabilities.tools)

    @property
    def faults(self) -> int:
        """How much of the proof failed; calls that are rendered and not found count like calls that are misread.

        Content that no probe shows was not proved either: the turn is cut at the wrong place.
        """
        unseen = all(row.feature != "content" for row in self.verifications)
        missing = self.capabilities.tool_calls and not self.dialect.calls
        return faults(self.verifications) + 8 * missing + 4 * unseen
