"""How a run ends: every reason with its exit code, the subtype of its result, and the name of its error."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from dovetail.agent.contract import Repair
from dovetail.errors import DovetailError
from dovetail.messages import to_json

Reason = Literal[
    "structured_output",
    "completed",
    "structured_output_missing",
    "structured_output_retries",
    "loop_detected",
    "api_error",
    "authentication",
    "internal_error",
    "input_error",
    "session_error",
    "configuration",
    "sandbox",
    "prompt_blocked",
    "max_turns",
    "wall_time",
    "tool_calls",
    "max_tokens_total",
    "max_cost",
    "reply_truncated",
    "reply_refused",
    "reply_empty",
    "output_error",
    "cancelled",
]


@dataclass(frozen=True, slots=True)
class Kind:
    """What a reason means to the outside."""

    exit_code: int
    subtype: str
    error: str


_DURING = "error_during_execution"
KINDS: dict[Reason, Kind] = {
    "structured_output": Kind(0, "success", ""),
    "completed": Kind(0, "success", ""),
    "structured_output_missing": Kind(1, _DURING, "StructuredOutputMissingError"),
    "structured_output_retries": Kind(56, "error_max_structured_retries", "StructuredOutputRetriesError"),
    "loop_detected": Kind(1, _DURING, "LoopDetectedError"),
    "api_error": Kind(69, _DURING, "ApiError"),
    "authentication": Kind(1, _DURING, "AuthenticationError"),
    "internal_error": Kind(70, _DURING, "InternalError"),
    "session_error": Kind(1, _DURING, "SessionError"),
    "input_error": Kind(42, _DURING, "FatalInputError"),
    "configuration": Kind(52, _DURING, "FatalConfigError"),
    "sandbox": Kind(44, _DURING, "FatalSandboxError"),
    "prompt_blocked": Kind(45, _DURING, "PromptBlockedError"),
    "max_turns": Kind(53, "error_max_turns", "FatalTurnLimitedError"),
    "wall_time": Kind(55, "error_max_wall_time", "FatalBudgetExceededError"),
    "tool_calls": Kind(55, "error_max_tool_calls", "FatalBudgetExceededError"),
    "max_tokens_total": Kind(57, "error_max_tokens_total", "FatalBudgetExceededError"),
    "max_cost": Kind(58, "error_max_cost", "FatalBudgetExceededError"),
    "reply_truncated": Kind(61, _DURING, "ReplyTruncatedError"),
    "reply_refused": Kind(62, _DURING, "ReplyRefusedError"),
    "reply_empty": Kind(63, _DURING, "ReplyEmptyError"),
    "output_error": Kind(74, _DURING, "OutputError"),
    "cancelled": Kind(130, _DURING, "FatalCancellationError"),
}


class HaltError(DovetailError):
    """The run is over, for this reason."""

    def __init__(self, reason: Reason, message: str) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message


class BudgetError(HaltError):
    """A budget of the whole run is used up: it ends, also where a subagent used it."""


@dataclass(frozen=True, slots=True)
class Captured:
    """The answer: the value that was validated, and what was repaired on the way."""

    value: Any
    repairs: tuple[Repair, ...] = ()


@dataclass(frozen=True, slots=True)
class Ending:
    """The one end of a run: its reason, a message where it failed, the last prose, the answer where there is one."""

    reason: Reason
    message: str = ""
    text: str = ""
    captured: Captured | None = None

    @property
    def kind(self) -> Kind:
        """Exit code, subtype and error name."""
        return KINDS[self.reason]

    @property
    def is_error(self) -> bool:
        """Whether the run failed."""
        return self.kind.exit_code != 0


def refused_reply(finish: str, text: str) -> HaltError | None:
    """Why a reply that ended so is no answer, None where it is one."""
    if finish == "length":
        return HaltError(
            "reply_truncated",
            "The model's reply was cut off by a token limit. Raise it with --max-tokens, or ask for less.",
        )
    if finish == "refusal":
        return HaltError("reply_refused", f"The model or its provider refused to answer.{_preview(text)}")
    if not text.strip():
        return HaltError("reply_empty", "The model ended without saying anything.")
    return None


def missing_message(turns: int, prose: str) -> str:
    """Why a run without an answer failed, with the beginning of what the model said instead."""
    message = (
        "Model produced plain text instead of calling the structured_output tool as required by --json-schema "
        f"after {turns} turn(s)."
    )
    return message + _preview(prose)


def _preview(prose: str) -> str:
    preview = prose[:PREVIEW].strip()
    count = f"{PREVIEW}+" if len(prose) >= PREVIEW else str(len(prose))
    return f" Output preview ({count} chars): {to_json(preview)}." if preview else ""


PREVIEW = 200
MAX_TURNS = (
    "Reached max session turns for this session. Increase the number of turns by specifying maxSessionTurns in "
    "settings.json or --max-session-turns."
)
MAX_TURNS_NOTE = (
    "\nNote: --json-schema is active. If the model never called structured_output, verify it isn't denied by "
    "permissions.deny / --exclude-tools and that the schema is satisfiable."
)
CANCELLED = "Operation cancelled."
# The answer to a call that the end of the run overtook.
CUT_OFF = "Cancelled: the run ended before this call did."
