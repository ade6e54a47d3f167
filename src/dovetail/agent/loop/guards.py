"""Guards against a model that goes round in circles."""

from __future__ import annotations

import json
import re
from collections import Counter

from dovetail.agent.types import ToolUse

IN_A_ROW = 5
IN_ALL = 6
SIMILAR_COMMANDS = 8
MANY_CALLS = 100
MOST_CALLS = 1000
_VARIABLE = re.compile(r"\d+|\s+")


def fingerprint(use: ToolUse) -> str:
    """Equal for calls of one tool with the same arguments, however they are written."""
    arguments = use.arguments if use.value is None else json.dumps(use.value, sort_keys=True)
    return f"{use.name}\n{arguments}"


class LoopGuard:
    """Watches the calls that answer one prompt."""

    def __init__(self, max_calls: int | None = None) -> None:
        self._max_calls = max_calls  # None: the built-in bounds; 0 or less: none at all
        self._seen: Counter[str] = Counter()
        self._last = ""
        self._row = 0
        self._last_command = ""
        self._similar = 0
        self._calls = 0

    def see(self, use: ToolUse) -> str | None:
        """Why the run must stop before this call, or None."""
        self._calls += 1
        print_ = fingerprint(use)
        repeated = print_ in self._seen
        self._seen[print_] += 1
        self._row = self._row + 1 if print_ == self._last else 1
        self._last = print_
        if self._row >= IN_A_ROW:
            return _halted("consecutive_identical_calls", f"{use.name} was called {self._row} times in a row alike")
        if self._seen[print_] >= IN_ALL:
            return _halted(
                "repeated_calls", f"{use.name} was called {self._seen[print_]} times with the same arguments"
            )
        if self._command(use) >= SIMILAR_COMMANDS:
            return _halted("shell_stagnation", f"{self._similar} shell commands in a row were alike")
        return self._too_many(repeated)

    def _command(self, use: ToolUse) -> int:
        command = str((use.value or {}).get("command", "")) if use.name == "run_shell_command" else ""
        shape = _VARIABLE.sub(" ", command).strip()
        self._similar = self._similar + 1 if shape and shape == self._last_command else 1
        self._last_command = shape
        return self._similar if shape else 0

    def _too_many(self, repeated: bool) -> str | None:
        if self._max_calls is not None:
            if 0 < self._max_calls < self._calls:
                return _halted("call_cap", f"more than {self._max_calls} calls for one prompt")
            return None
        if (self._calls > MANY_CALLS and repeated) or self._calls > MOST_CALLS:
            return _halted("call_cap", f"{self._calls} calls for one prompt")
        return None


def _halted(kind: str, reason: str) -> str:
    return (
        f"Loop detection halted the run ({kind}: {reason}). "
        "Make the prompt more specific, or give the model the tool that it lacks."
    )
