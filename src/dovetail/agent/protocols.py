"""The parts of a run as its loop sees them; each is a protocol, so that tests and callers can bring their own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol

from dovetail.agent.types import (
    ApprovalMode,
    Decision,
    Delta,
    HookDecision,
    Request,
    Schema,
    SpawnRequest,
    TaskInfo,
    ToolCallEvent,
    ToolLimits,
    ToolOutput,
    ToolUse,
    Turn,
    Usage,
)

# How often a repeated prompt comes back before it ends by itself.
MAX_FIRINGS = 100


class Provider(Protocol):
    """A model behind some interface."""

    @property
    def name(self) -> str:
        """The kind of provider: openai, anthropic, gemini, local, speaker."""

    @property
    def model(self) -> str:
        """The model's name, as envelopes and transcripts show it."""

    @property
    def forces_tools(self) -> bool:
        """Whether `tool_choice` "required" and Named are honored."""

    def stream(self, request: Request) -> AsyncIterator[Delta]:
        """The reply piece by piece, ending in Finish; a failure raises ProviderError.

        Closing the iterator early (or cancelling the task that reads it) ends the model call.
        """

    async def close(self) -> None:
        """Let connections go."""


class Tool(Protocol):
    """Something the model can call."""

    @property
    def name(self) -> str:
        """Its name, unique within a registry."""

    @property
    def description(self) -> str:
        """What it does, for the model."""

    @property
    def parameters(self) -> Schema:
        """The JSON Schema of its arguments, an object at the root."""

    @property
    def read_only(self) -> bool:
        """Whether calls may run in parallel with each other: it changes nothing."""

    @property
    def mcp_server(self) -> str:
        """The MCP server it comes from, or ""."""

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        """Do it, with arguments that fit `parameters`; a failure raises ToolError."""


class Tasks(Protocol):
    """Subagents and scheduled prompts of a run."""

    async def spawn(self, request: SpawnRequest) -> str:
        """The subagent's answer, or for a background one its task id at once."""

    def stop(self, task_id: str) -> bool:
        """End a task or schedule; False if there is none of that id that runs."""

    def send(self, task_id: str, text: str) -> bool:
        """Say something to a running background agent before its next turn; False if there is none."""

    def schedule(self, prompt: str, after_s: float, every_s: float | None = None) -> str:
        """Ask the model `prompt` later, once or again and again, and return an id."""

    def list(self) -> Sequence[TaskInfo]:
        """All tasks and schedules, the oldest first."""


@dataclass(frozen=True, slots=True)
class ToolContext:
    """What a tool may use while it runs.

    `cancel` is set when the run ends early; `progress` sends something to the event stream; `depth` counts how many
    subagents deep the call is made, 0 for the run itself.
    """

    workspace: Path
    call_id: str
    cancel: asyncio.Event
    permissions: Permissions
    tasks: Tasks | None = None
    limits: ToolLimits = field(default_factory=ToolLimits)
    progress: Callable[[Mapping[str, Any]], None] = lambda _: None
    depth: int = 0
    session: dict[str, Any] = field(default_factory=dict)  # state that tools keep between calls of one run


class Permissions(Protocol):
    """The rules about tools and paths."""

    @property
    def mode(self) -> ApprovalMode:
        """The approval mode in force."""

    def registers(self, name: str, mcp_server: str = "") -> Decision:
        """Whether the tool may be offered to the model at all: "deny" names the rule that removes it."""

    def decide(self, name: str, args: Mapping[str, Any], read_only: bool) -> Decision:
        """Whether this call may run; "ask" means that a person would have to say so."""

    def allows_path(self, path: Path, write: bool) -> Decision:
        """Whether a file tool may touch the path, symbolic links resolved."""


class Hooks(Protocol):
    """Commands of the operator around tool calls; `args` are always the real ones."""

    async def pre(self, use: ToolUse, args: Mapping[str, Any]) -> HookDecision:
        """Before a validated and permitted call."""

    async def post(self, use: ToolUse, args: Mapping[str, Any], output: ToolOutput) -> HookDecision:
        """After a call that succeeded."""

    async def post_failure(
        self, use: ToolUse, args: Mapping[str, Any], error: str, interrupted: bool = False
    ) -> HookDecision:
        """After a call that failed while it ran."""

    async def prompt(self, text: str) -> HookDecision:
        """Before the model is asked for the first time."""

    async def stop(self, reason: str) -> HookDecision:
        """Once the run has come to its end by itself."""


class Recorder(Protocol):
    """The transcript of a session; everything is redacted on its way in."""

    @property
    def session_id(self) -> str:
        """The session's UUID."""

    @property
    def path(self) -> Path | None:
        """The transcript's file, None when nothing is recorded."""

    def record(self, turn: Turn, *, usage: Usage | None = None, model: str = "", subtype: str = "") -> None:
        """Append a turn."""

    def system(self, subtype: str, data: Mapping[str, Any]) -> None:
        """Append something that is no turn (a notification, a telemetry mirror)."""

    def flush(self) -> str | None:
        """Bring everything to disk before the result is shown; the problem in words if that failed."""

    def close(self) -> None:
        """Flush and let the file go."""


class Telemetry(Protocol):
    """Events and spans for operators; never a payload value."""

    def event(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Something happened (api_request, api_error, api_retry, session_start, ...)."""

    def tool_call(self, event: ToolCallEvent) -> None:
        """A call finished."""

    def end(self, outcome: Literal["ok", "error", "cancelled"], error_type: str = "", message: str = "") -> None:
        """The run is over."""
