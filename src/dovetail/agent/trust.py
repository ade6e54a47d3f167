"""What the settings of a project that nobody has vouched for may do: take away, and never give.

restricted(user, project)   the user's settings with what restricts them, and the names of settings that are not used
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from dovetail.agent.types import LoopLimits, ToolLimits

# Lists that only forbid: entries of the project are added to the user's.
_FORBIDDING = ("permissions.deny", "permissions.ask", "tools.exclude", "tools.disabled", "mcp.excluded")
# Values that may only get stricter, the loosest first.
_STEPS: Mapping[str, tuple[Any, ...]] = {
    "tools.approvalMode": ("yolo", "auto-edit", "auto", "default", "plan"),
    "tools.sandbox": ("off", "auto", "landlock", "bubblewrap", "required"),
    "tools.sandboxNetwork": (True, False),
    "tools.webFetch": (True, False),
}
_DEFAULTS = {
    "tools.approvalMode": "auto",
    "tools.sandbox": "auto",
    "tools.sandboxNetwork": False,
    "tools.webFetch": False,
}
# Limits, of which the lower one counts, with what holds where the user says nothing; None is none.
_LIMITS: Mapping[str, float | None] = {
    "model.maxSessionTurns": None,
    "model.maxWallTimeSeconds": None,
    "model.maxToolCalls": None,
    "model.maxToolCallsPerTurn": LoopLimits().calls,
    "model.maxTokensTotal": None,
    "model.maxCostUsd": None,
    "model.maxRetries": 5,
    "tools.shellTimeoutSeconds": ToolLimits().timeout_s,
}
_NONE_AT_ZERO = "model.maxToolCallsPerTurn"

Object = Mapping[str, Any]


def restricted(user: Object, project: Object) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The user's settings under the restrictions of the project, and what else the project says, which is not used."""
    result = {key: dict(value) if isinstance(value, dict) else value for key, value in user.items()}
    unused: list[str] = []
    for section, values in project.items():
        entries = values.items() if isinstance(values, dict) else [("", values)]
        for key, value in entries:
            name = f"{section}.{key}" if isinstance(values, dict) else section
            restrict = _restriction(name)
            given = result.get(section)
            before = given.get(key) if isinstance(given, dict) else None
            if restrict is not None and (stricter := restrict(name, before, value)) is not None:
                result.setdefault(section, {})[key] = stricter
            elif value not in (None, before):
                unused.append(name if restrict is not None or section in _SPLIT else section)
    return result, tuple(dict.fromkeys(unused))


# Sections of which only some settings give power, so that each is told by its own name.
_SPLIT = frozenset("permissions tools model mcp context general output telemetry".split())


def _restriction(name: str) -> Callable[[str, Any, Any], Any] | None:
    if name in _FORBIDDING:
        return _added
    if name in _STEPS:
        return _stricter
    return _lower if name in _LIMITS else None


def _added(_name: str, before: Any, value: Any) -> Any:
    return [*(before or ()), *value]


def _stricter(name: str, before: Any, value: Any) -> Any:
    """The value where it is at least as strict as the one before, else None."""
    steps = _STEPS[name]
    before = _DEFAULTS[name] if before is None else before
    return value if value in steps and before in steps and steps.index(value) >= steps.index(before) else None


def _lower(name: str, before: Any, value: Any) -> Any:
    """The value where it is a limit no higher than the one before, else None."""
    default = _LIMITS[name]
    known = (math.inf if default is None else default) if before is None else _limit(name, before)
    return value if _limit(name, value) <= known and _limit(name, value) < math.inf else None


def _limit(name: str, value: Any) -> float:
    """The limit as a number, infinite where it is none: below zero, however it is written."""
    number = float(value)
    is_one = number > 0 if name == _NONE_AT_ZERO else number >= 0  # no limit either where it is no number
    return number if is_one else math.inf
