"""Parts that do nothing: a run without hooks, transcript, telemetry or rules."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from dovetail.agent.types import ApprovalMode, Decision, HookDecision, ToolCallEvent, ToolOutput, ToolUse, Turn, Usage


class NoHooks:
    """No command runs around a call."""

    async def pre(self, use: ToolUse, args: Mapping[str, Any]) -> HookDecision:
        """Let the call run."""
        return HookDecision()

    async def post(self, use: ToolUse, args: Mapping[str, Any], output: ToolOutput) -> HookDecision:
        """Take the result as it is."""
        return HookDecision()

    async def post_failure(
        self, use: ToolUse, args: Mapping[str, Any], error: str, interrupted: bool = False
    ) -> HookDecision:
        """Take the failure as it is."""
        return HookDecision()

    async def prompt(self, text: str) -> HookDecision:
        """Let the run begin."""
        return HookDecision()

    async def stop(self, reason: str) -> HookDecision:
        """Let the run end."""
        return HookDecision()


class NoRecorder:
    """Nothing is written."""

    path: Path | None = None

    def __init__(self, session_id: str) -> None:
        self.session_id = session_id

    def record(self, turn: Turn, *, usage: Usage | None = None, model: str = "", subtype: str = "") -> None:
        """Forget the turn."""

    def system(self, subtype: str, data: Mapping[str, Any]) -> None:
        """Forget it."""

    def flush(self) -> str | None:
        """Nothing can have failed."""
        return None

    def close(self) -> None:
        """Nothing is open."""


class NoTelemetry:
    """Nobody is told."""

    def event(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Forget it."""

    def tool_call(self, event: ToolCallEvent) -> None:
        """Forget it."""

    def end(self, outcome: Literal["ok", "error", "cancelled"], error_type: str = "", message: str = "") -> None:
        """Forget it."""


class AllowAll:
    """Every call may run: for callers who bring their own tools."""

    mode: ApprovalMode = "yolo"

    def registers(self, name: str, mcp_server: str = "") -> Decision:
        """Offer it."""
        return Decision("allow")

    def decide(self, name: str, args: Mapping[str, Any], read_only: bool) -> Decision:
        """Run it."""
        return Decision("allow")

    def allows_path(self, path: Path, write: bool) -> Decision:
        """Touch it."""
        return Decision("allow")
