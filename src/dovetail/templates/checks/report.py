"""What a check found, and how it is told."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dovetail.templates.analysis import Analysis

Status = Literal["passed", "failed", "absent"]
FEATURES = (
    "reasoning",
    "content",
    "call",
    "parallel",
    "nested",
    "unicode",
    "whitespace",
    "ids",
    "prompt",
    "streaming",
    "constraint",
)
MARKS: dict[Status, str] = {"passed": "yes", "failed": "NO", "absent": "-"}


@dataclass(frozen=True, slots=True)
class Check:
    """One feature: whether it holds, or that the template has none of it.

    `detail` says why, `rendered` is the turn that shows it, and `fix` is what the author of the template can change.
    """

    feature: str
    status: Status
    detail: str = ""
    rendered: str = ""
    fix: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """What was found in a chat template, and which features of it keep the laws."""

    analysis: Analysis
    checks: tuple[Check, ...]

    @property
    def passed(self) -> bool:
        """Whether everything that the template supports holds."""
        return not self.failures

    @property
    def failures(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.status == "failed")

    def __getitem__(self, feature: str) -> Check:
        return next(check for check in self.checks if check.feature == feature)

    def __str__(self) -> str:
        lines = []
        for check in self.checks:
            lines.append(f"{check.feature:<11} {MARKS[check.status]:<4} {check.detail}".rstrip())
            if check.fix:
                lines.append(f"{'':<16} fix  {check.fix}")
        return "\n".join(lines)


def markdown(rows: Sequence[tuple[str, Report]]) -> str:
    """A table of templates by features, as the README shows it."""
    marks: dict[Status, str] = {"passed": "✓", "failed": "✗", "absent": ""}
    lines = [
        f"| template | {' | '.join(FEATURES)} |",
        f"|---|{':-:|' * len(FEATURES)}",
    ]
    for name, report in rows:
        lines.append(f"| {name} | {' | '.join(marks[report[feature].status] for feature in FEATURES)} |")
    return "\n".join(lines)
