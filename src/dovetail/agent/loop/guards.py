"""The guard against a model that goes round in circles: it makes the same call and gets the same result."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence

from dovetail.agent.types import LoopLimits, ToolResult, ToolUse

# What changes files: a call that was made before means something new after it.
_EDITS = frozenset(("edit", "write_file"))


def fingerprint(use: ToolUse) -> str:
    """Equal for calls of one tool with the same arguments, however they are written."""
    arguments = use.arguments if use.value is None else json.dumps(use.value, sort_keys=True)
    return f"{use.name}\n{arguments}"


class LoopGuard:
    """Watches the calls that answer one prompt.

    Progress is a call with other arguments, another result than the last time, or a changed file in between: only calls
    without any of these are counted.
    """

    def __init__(self, limits: LoopLimits | None = None, max_calls: int | None = None) -> None:
        self._limits = limits or LoopLimits()
        # None: the bound of the limits; 0 or less: none at all
        self._max_calls = self._limits.calls if max_calls is None else max_calls
        self._alike: Counter[str] = Counter()
        self._results: dict[str, int] = {}
        self._last = ""
        self._row = 0
        self._calls = 0

    def see(self, use: ToolUse) -> str | None:
        """Why the run must stop before this call, or None."""
        mark, limits = fingerprint(use), self._limits
        self._calls += 1
        self._alike[mark] += 1
        self._row = self._row + 1 if mark == self._last else 1
        self._last = mark
        if 0 <= limits.in_a_row <= self._row:
            return _halted(
                "consecutive_identical_calls", f"{use.name} was called {self._row} times in a row with the same result"
            )
        if 0 <= limits.in_all <= self._alike[mark]:
            return _halted(
                "repeated_calls",
                f"{use.name} was called {self._alike[mark]} times with the same arguments and result",
            )
        if 0 < self._max_calls < self._calls:
            return _halted("call_cap", f"more than {self._max_calls} calls for one prompt")
        return None

    def learn(self, uses: Sequence[ToolUse], results: Sequence[ToolResult]) -> None:
        """Take note of what came of calls that were seen."""
        for use, result in zip(uses, results, strict=False):
            mark, outcome = fingerprint(use), hash((result.status, result.content))
            if self._results.get(mark, outcome) != outcome:
                self._alike[mark] = 1
                self._row = 1 if mark == self._last else self._row
            self._results[mark] = outcome
            if use.name in _EDITS and result.status == "ok":
                self._edited()

    def _edited(self) -> None:
        """Forget the other calls: they may well give something new now. Edits that come again and again still count."""
        self._alike = Counter({mark: n for mark, n in self._alike.items() if mark.partition("\n")[0] in _EDITS})
        self._results = {mark: outcome for mark, outcome in self._results.items() if mark in self._alike}


def _halted(kind: str, reason: str) -> str:
    return (
        f"Loop detection halted the run ({kind}: {reason}). "
        "Make the prompt more specific, give the model the tool that it lacks, or change the limits in settings (loop)."
    )
