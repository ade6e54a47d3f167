"""Bounds of a run, and how they are written on the command line."""

from __future__ import annotations

import re
from dataclasses import dataclass

from dovetail.agent.endings import MAX_TURNS, MAX_TURNS_NOTE, HaltError
from dovetail.errors import InputError

UNLIMITED = -1
MAX_WALL_TIME_S = 2_147_483
MAX_TOOL_CALLS = 1_000_000
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h)?", re.IGNORECASE | re.ASCII)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Limits:
    """What a run may use; -1 is without limit."""

    max_turns: int = UNLIMITED
    max_wall_time_s: float = UNLIMITED
    max_tool_calls: int = UNLIMITED
    max_structured_retries: int = 10
    max_subagent_depth: int = 5
    max_parallel: int = 10
    max_calls_per_prompt: int | None = None


def parse_duration(text: str, name: str = "--max-wall-time") -> float:
    """Seconds from "90", "1.5h", "10m" or "2000ms"; at least one."""
    found = _DURATION.fullmatch(text.strip())
    seconds = float(found[1]) * _UNITS[(found[2] or "s").lower()] if found else 0.0
    if not 1 <= seconds <= MAX_WALL_TIME_S:
        raise InputError(
            f"{name}: {text!r} is not a duration between 1s and {MAX_WALL_TIME_S}s", "", "write 90, 30s, 10m or 1.5h"
        )
    return seconds


def parse_count(text: str, name: str = "--max-tool-calls", most: int = MAX_TOOL_CALLS) -> int:
    """A whole number from 0 on, or -1 for no limit."""
    try:
        number = int(text)
    except ValueError:
        number = -2
    if not UNLIMITED <= number <= most:
        raise InputError(f"{name}: {text!r} is not a whole number from 0 to {most}, or -1 for no limit")
    return number


class Budget:
    """What a run has used so far."""

    def __init__(self, limits: Limits, has_contract: bool) -> None:
        self._limits = limits
        self._has_contract = has_contract
        self.turns = 0
        self.tool_calls = 0
        self.failed_structured = 0

    @property
    def turns_left(self) -> bool:
        """Whether the model may be called once more."""
        return self._limits.max_turns < 0 or self.turns < self._limits.max_turns

    def turn(self) -> None:
        """Count a call of the model, before it is made."""
        if not self.turns_left:
            raise HaltError("max_turns", MAX_TURNS + (MAX_TURNS_NOTE if self._has_contract else ""))
        self.turns += 1

    def tool_call(self) -> HaltError | None:
        """Count a tool call before it is made; what ends the run where it may not be made."""
        self.tool_calls += 1
        most = self._limits.max_tool_calls
        if most < 0 or self.tool_calls <= most:
            return None
        return HaltError(
            "tool_calls",
            f"Run aborted: tool-call budget of {most} exceeded (--max-tool-calls); observed {self.tool_calls}.",
        )

    def structured_failure(self) -> None:
        """Count a call of the terminal tool that was not accepted."""
        self.failed_structured += 1
        if 0 <= self._limits.max_structured_retries < self.failed_structured:
            raise HaltError(
                "structured_output_retries",
                f"Run aborted: {self.failed_structured} structured_output calls were not accepted "
                f"(--max-structured-retries {self._limits.max_structured_retries}).",
            )


def wall_time_message(seconds: float) -> str:
    """Why a run out of time ended."""
    return f"Run aborted: wall-clock budget of {seconds:g}s exceeded (--max-wall-time)."
