"""The values that cross between the parts of a run: turns, requests, deltas, results, decisions."""

from __future__ import annotations

import base64
import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from dovetail.errors import DovetailError

Schema = Mapping[str, Any]

# The terminal tool: its parameters are the user's schema, and its first valid call ends the run.
STRUCTURED_OUTPUT = "structured_output"


def is_like_terminal(name: str) -> bool:
    """Whether a name is that of the terminal tool or a misspelling of it: then its arguments are a payload."""
    if name.startswith("mcp__"):
        return False
    letters = re.sub(r"[^a-z]", "", name.lower())
    return difflib.SequenceMatcher(None, letters, "structuredoutput").ratio() > 0.8


# What stands in every durable record in place of the arguments of the terminal tool.
REDACTED_ARGUMENTS: Mapping[str, Any] = {"__redacted": "structured_output payload (see stdout result)"}

# How much a model thinks before it answers.
Effort = Literal["low", "medium", "high"]

ApprovalMode = Literal["plan", "default", "auto-edit", "auto", "yolo"]


# Turns: what was said so far.


@dataclass(frozen=True, slots=True)
class Text:
    """Prose of the model."""

    text: str


@dataclass(frozen=True, slots=True)
class Thinking:
    """Reasoning of the model; `signature` is what its provider wants back with it, unread."""

    text: str
    signature: str = ""


@dataclass(frozen=True, slots=True)
class ToolUse:
    """One call: `arguments` is the text as written, `value` the object it says, None where it says none.

    `signature` is what the provider wants back with the call, unread.
    """

    id: str
    name: str
    arguments: str = "{}"
    value: Mapping[str, Any] | None = None
    signature: str = ""

    @classmethod
    def of(cls, id: str, name: str, value: Mapping[str, Any]) -> ToolUse:
        """A call with its arguments given as an object."""
        return cls(id, name, json.dumps(value, ensure_ascii=False), value)


Block = Text | Thinking | ToolUse


@dataclass(frozen=True, slots=True)
class ToolResult:
    """The one answer to one call.

    `content` is for the model and `display`, where it differs, for people; `status` tells why there is no ordinary
    answer, and `is_error` what the model is told.
    """

    tool_use_id: str
    name: str
    content: str
    is_error: bool = False
    status: Literal["ok", "error", "invalid", "denied", "not_found", "skipped", "duplicate", "cancelled"] = "ok"
    display: str | None = None


@dataclass(frozen=True, slots=True)
class Image:
    """A picture, as the bytes of a file of its media type."""

    media_type: str
    data: bytes = field(repr=False)

    @property
    def base64(self) -> str:
        """The bytes as services take them."""
        return base64.b64encode(self.data).decode()


@dataclass(frozen=True, slots=True)
class UserTurn:
    """What the user said, or what the run says in the user's place (a reminder, a notification)."""

    text: str
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class AssistantTurn:
    """What the model said, block by block in its order."""

    blocks: tuple[Block, ...] = ()

    @property
    def text(self) -> str:
        """All prose of the turn."""
        return "".join(block.text for block in self.blocks if isinstance(block, Text))

    @property
    def tool_uses(self) -> tuple[ToolUse, ...]:
        """All calls of the turn."""
        return tuple(block for block in self.blocks if isinstance(block, ToolUse))


@dataclass(frozen=True, slots=True)
class ToolTurn:
    """The answers to all calls of the assistant turn before it, in the order of the calls."""

    results: tuple[ToolResult, ...]


Turn = UserTurn | AssistantTurn | ToolTurn


# Requests and deltas: what a provider takes and gives.


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as the model sees it; `strict` asks the provider to enforce the schema, if it can.

    `example` has arguments that are known to fit; they are not sent to anybody.
    """

    name: str
    description: str
    parameters: Schema
    strict: bool = False
    example: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """The tool choice that allows only the tool of this name."""

    name: str


ToolChoice = Literal["auto", "required", "none"] | Named


@dataclass(frozen=True, slots=True)
class Request:
    """One call of the model."""

    turns: tuple[Turn, ...]
    system: str = ""
    tools: tuple[ToolSpec, ...] = ()
    tool_choice: ToolChoice = "auto"
    max_output_tokens: int | None = None
    temperature: float | None = None


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one model call; usages add up."""

    input_tokens: int = 0  # all of them, those of the cache included
    output_tokens: int = 0
    cached_tokens: int = 0  # read from the provider's cache
    cache_written_tokens: int = 0

    @property
    def total(self) -> int:
        """Tokens in and out."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.cached_tokens + other.cached_tokens,
            self.cache_written_tokens + other.cache_written_tokens,
        )


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of prose."""

    text: str


@dataclass(frozen=True, slots=True)
class ThinkingDelta:
    """A piece of reasoning, or its signature, or both; a signature closes its block."""

    text: str = ""
    signature: str = ""


@dataclass(frozen=True, slots=True)
class ToolStart:
    """A call begins; `index` tells calls of one reply apart, `id` is "" where the provider gives none."""

    index: int
    id: str
    name: str


@dataclass(frozen=True, slots=True)
class ToolArguments:
    """A piece of the JSON text of a call's arguments."""

    index: int
    text: str


@dataclass(frozen=True, slots=True)
class ToolEnd:
    """A call is complete; calls that never end were cut off."""

    index: int
    signature: str = ""


@dataclass(frozen=True, slots=True)
class UsageDelta:
    """The tokens of this model call, as far as the provider tells; the last one counts."""

    usage: Usage


@dataclass(frozen=True, slots=True)
class Restarted:
    """The attempt failed and a new one begins: everything that this stream said so far is void.

    `model` is the name of the model that is asked next, where it is another one.
    """

    reason: str
    attempt: int
    delay_s: float
    status: int | None = None
    model: str = ""


@dataclass(frozen=True, slots=True)
class Finish:
    """The reply is complete; "length" means cut off by a token limit, "refusal" stopped by the provider."""

    reason: Literal["stop", "tool_use", "length", "refusal"]


Delta = TextDelta | ThinkingDelta | ToolStart | ToolArguments | ToolEnd | UsageDelta | Restarted | Finish


class ProviderError(DovetailError):
    """A model call failed: what happened, the HTTP status if there was one, and whether trying again may help."""

    def __init__(
        self, problem: str, *, status: int | None = None, retryable: bool = False, retry_after_s: float | None = None
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.status = status
        self.retryable = retryable
        self.retry_after_s = retry_after_s


class AuthenticationError(ProviderError):
    """There is no key, or the provider refuses it."""


@dataclass(frozen=True, slots=True)
class ProviderOptions:
    """How to reach a model: what flags, settings and environment say together.

    `name` is "openai", "anthropic", "gemini", "local", "speaker", or "" for what is configured; `model` names the model
    or, for "local", its directory. `tell` hears what of a request is not done as it was asked,
    and `progress` how much of a local model is loaded, from 0 to 1.
    """

    name: str = ""
    model: str = ""
    base_url: str = ""
    api_key: str = ""
    timeout_s: float = 600.0
    max_retries: int = 5
    seed: int | None = None
    max_output_tokens: int | None = None
    temperature: float | None = None
    effort: Effort | None = None
    fallback_model: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)
    tell: Callable[[str], None] = field(default=lambda _: None, compare=False)
    progress: Callable[[float], None] | None = field(default=None, compare=False)


# Tools and what surrounds a call.


class ToolError(DovetailError):
    """A tool could not do what it was asked to; the text goes to the model."""


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a tool gives back: `content` for the model, `display` for people where it differs."""

    content: str
    display: str | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ToolLimits:
    """Bounds on one tool call."""

    timeout_s: float = 120.0
    max_output_bytes: int = 1 << 20
    max_output_chars: int = 25_000  # of what the model is shown; -1 is without limit


@dataclass(frozen=True, slots=True)
class LoopLimits:
    """How many calls without progress stop a run: alike in a row, alike in all, and any at all; -1 is never."""

    in_a_row: int = 5
    in_all: int = 6
    calls: int = 1000


@dataclass(frozen=True, slots=True)
class Decision:
    """What the permission rules say about a call, by which rule, and why in words."""

    verdict: Literal["allow", "ask", "deny"]
    rule: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class HookDecision:
    """What the hooks around a call say together.

    `blocked` turns the call into an error result with `reason`; `context` is appended to the result for the model;
    `warnings` are for stderr.
    """

    blocked: bool = False
    reason: str = ""
    context: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SpawnRequest:
    """A subagent to start: its task, a few words about it, its kind, and whether the caller waits for it."""

    prompt: str
    description: str
    subagent_type: str = "general-purpose"
    background: bool = False
    tool_use_id: str = ""


@dataclass(frozen=True, slots=True)
class TaskInfo:
    """A background task or scheduled prompt as the model sees it."""

    id: str
    description: str
    status: Literal["running", "completed", "failed", "cancelled", "scheduled"]


@dataclass(frozen=True, slots=True)
class ToolCallEvent:
    """One finished call for telemetry; `arguments` is already redacted for the terminal tool."""

    name: str
    call_id: str
    arguments: Mapping[str, Any]
    duration_ms: float
    status: str
    decision: str = "allow"
    error: str = ""
    mcp_server: str = ""
