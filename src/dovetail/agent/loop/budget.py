"""Bounds of a run, and how they are written on the command line."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field

from dovetail.agent.exit_reasons import MAX_TURNS, MAX_TURNS_NOTE, BudgetError, HaltError
from dovetail.agent.providers.catalog import Catalog, Known
from dovetail.agent.types import LoopLimits, Usage
from dovetail.errors import InputError

UNLIMITED = -1
MAX_WALL_TIME_S = 2_147_483
MAX_TOOL_CALLS = 1_000_000
MAX_TOKENS = 10**12
MAX_COST_USD = 1e6
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
    max_tokens_total: int = UNLIMITED
    max_cost_usd: float = UNLIMITED
    loop: LoopLimits = field(default_factory=LoopLimits)


def parse_duration(text: str, name: str = "--max-wall-time") -> float:
    """Seconds from "90", "1.5h", "10m" or "2000ms"; at least one."""
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match[1]) * _UNITS[(match[2] or "s").lower()] if match else 0.0
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


def parse_dollars(text: str, name: str = "--max-cost") -> float:
    """Dollars from "2", "0.50" or "$2"; -1 for no limit."""
    try:
        dollars = float(text.strip().removeprefix("$"))
    except ValueError:
        dollars = math.nan
    if not (dollars == UNLIMITED or 0 <= dollars <= MAX_COST_USD):
        raise InputError(f"{name}: {text!r} is not an amount of dollars, or -1 for no limit", "", "write 0.50 or 2")
    return dollars


class Budget:
    """What a run has used so far, with its subagents."""

    def __init__(self, limits: Limits, has_contract: bool, catalog: Catalog | None = None) -> None:
        self._limits = limits
        self._has_contract = has_contract
        self._catalog = catalog or Catalog()
        self.turns = 0
        self.subagent_turns = 0
        self.tool_calls = 0
        self.failed_structured = 0
        self.usage = Usage()
        self.cost_usd: float | None = 0.0  # None once a model answered whose prices nobody knows
        self.is_estimated = False

    @property
    def turns_left(self) -> bool:
        """Whether the model may be called once more."""
        return not 0 <= self._limits.max_turns <= self.turns + self.subagent_turns

    def turn(self, depth: int = 0) -> None:
        """Count a call of the model, before it is made: by the run itself, or by a subagent so many levels below."""
        if not self.turns_left:
            raise BudgetError("max_turns", MAX_TURNS + (MAX_TURNS_NOTE if self._has_contract else ""))
        self._check_spending()
        if depth:
            self.subagent_turns += 1
        else:
            self.turns += 1

    def known(self, model: str) -> Known:
        """What is known about a model."""
        return self._catalog.find(model)

    def spend(self, model: str, usage: Usage, is_estimated: bool = False) -> None:
        """Count the tokens of a call of the model, whether it came to its end or not."""
        self.usage += usage
        self.is_estimated |= is_estimated
        prices = self._catalog.find(model).usd
        self.cost_usd = None if prices is None or self.cost_usd is None else self.cost_usd + prices.cost(usage)

    def _check_spending(self) -> None:
        tokens, dollars = self._limits.max_tokens_total, self._limits.max_cost_usd
        if 0 <= tokens <= self.usage.total:
            raise BudgetError(
                "max_tokens_total",
                f"Run aborted: token budget of {tokens} used up (--max-tokens-total); observed {self.usage.total}.",
            )
        if dollars >= 0 and (self.cost_usd is None or self.cost_usd >= dollars):
            spent = "an unknown amount" if self.cost_usd is None else f"${self.cost_usd:.4f}"
            raise BudgetError("max_cost", f"Run aborted: ${dollars:g} used up (--max-cost); spent {spent}.")

    def tool_call(self) -> BudgetError | None:
        """Count a tool call before it is made; what ends the run where it may not be made."""
        self.tool_calls += 1
        most = self._limits.max_tool_calls
        if most < 0 or self.tool_calls <= most:
            return None
        return BudgetError(
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
