"""What all conversations of one run share: its parts, its bounds, and what has come of it so far."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dovetail.agent.contract import Contract
from dovetail.agent.exit_reasons import Captured, Reason
from dovetail.agent.loop.budget import Budget, Limits
from dovetail.agent.loop.outputs import Outputs
from dovetail.agent.output import Output
from dovetail.agent.protocols import Hooks, Permissions, Provider, Recorder, Telemetry
from dovetail.agent.types import REDACTED_ARGUMENTS, STRUCTURED_OUTPUT, ToolLimits, ToolUse, is_like_terminal


@dataclass(frozen=True, slots=True)
class Parts:
    """What a run is made of."""

    provider: Provider
    permissions: Permissions
    hooks: Hooks
    recorder: Recorder
    telemetry: Telemetry
    output: Output
    warn: Callable[[str], None] = lambda _: None
    note: Callable[[str], None] = lambda _: None  # what the run is doing, for whoever wants to see it


@dataclass(slots=True)
class State:
    """A run while it runs."""

    parts: Parts
    workspace: Path
    limits: Limits
    contract: Contract | None
    budget: Budget
    system: str = ""
    tool_limits: ToolLimits = field(default_factory=ToolLimits)
    outputs: Outputs = field(default_factory=lambda: Outputs(-1, None))
    context_window: int | None = None  # in tokens, where the user says it
    cancel: asyncio.Event = field(default_factory=asyncio.Event)
    captured: Captured | None = None
    abort: Callable[[Reason, str], None] = lambda _reason, _message: None  # ends the run, from anywhere in it
    api_s: float = 0.0
    prose: str = ""
    denials: list[dict[str, Any]] = field(default_factory=list)
    suppressed: list[dict[str, Any]] = field(default_factory=list)
    tools_used: dict[str, dict[str, float]] = field(default_factory=dict)
    handled: dict[str, str] = field(default_factory=dict)  # provider ids of calls, with what they called
    ids_repeat: bool = False
    given_ids: set[str] = field(default_factory=set)
    replayed: set[str] = field(default_factory=set)
    call_ids: set[str] = field(default_factory=set)
    tool_state: dict[str, Any] = field(default_factory=dict)
    started: float = field(default_factory=time.monotonic)

    def is_terminal(self, use: ToolUse, depth: int) -> bool:
        """Whether a call is one of the terminal tool of this run."""
        return self.contract is not None and depth == 0 and use.name == STRUCTURED_OUTPUT

    @property
    def window(self) -> int | None:
        """How many tokens the context of the model holds, where that is known."""
        return self.context_window or self.budget.known(self.parts.provider.model).context

    def is_replay(self, given_id: str, mark: str, reads: bool) -> bool:
        """Whether a provider repeats a call that was handled.

        Ids that mean nothing show no replay: those of a provider that gives one id to different calls, or to all. As
        long as there was only one id, a call that only `reads` can be taken for a replay: nothing else came between.
        """
        before = self.handled.get(given_id)
        self.handled[given_id] = mark
        self.ids_repeat |= before is not None and before != mark
        return before == mark and not self.ids_repeat and (reads or len(self.given_ids) > 1)

    def public_arguments(self, use: ToolUse) -> Mapping[str, Any]:
        """The arguments of a call as they may be kept: never those of the terminal tool, however it is spelled."""
        if self.contract is not None and is_like_terminal(use.name):
            return REDACTED_ARGUMENTS
        return use.value if use.value is not None else {"__unparsed": use.arguments[:1000]}

    def note(self, text: str, depth: int) -> None:
        """Tell who watches what happened, and when."""
        self.parts.note(f"{time.monotonic() - self.started:8.1f} s  {'  ' * depth}{text}")

    def deny(self, use: ToolUse) -> None:
        """Note a call that was not permitted."""
        self.denials.append(
            {"tool_name": use.name, "tool_use_id": use.id, "tool_input": dict(self.public_arguments(use))}
        )

    def figures(self) -> dict[str, Any]:
        """What the result tells about the run."""
        duration = int((time.monotonic() - self.started) * 1000)
        return {
            "duration_ms": duration,
            "duration_api_ms": min(int(self.api_s * 1000), duration),
            "num_turns": self.budget.turns,
            "usage": self.budget.usage,
            "cost_usd": self.budget.cost_usd,
            "is_estimated": self.budget.is_estimated,
            "permission_denials": self.denials,
            "suppressed_tool_calls": self.suppressed,
            "stats": {
                "model": self.parts.provider.model,
                "provider": self.parts.provider.name,
                "turns": self.budget.turns,
                "tool_calls": self.budget.tool_calls,
                "tools": self.tools_used,
            },
        }
