"""How exactly a schema is held: every keyword by its place, and why where it is not exact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from .pointers import Where, render
from .reader import ANNOTATIONS
from .references import children

Status = Literal["exact", "widened", "impossible"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One keyword: `pointer` is the JSON Pointer of its schema.

    It is exact, or widened: more is accepted than it says. Where nothing at all can be accepted at its place, the
    keyword is impossible.
    """

    pointer: str
    keyword: str
    status: Status
    why: str = ""


@dataclass(frozen=True, slots=True)
class SchemaReport:
    """What `explain_schema` found out."""

    findings: tuple[Finding, ...]

    @property
    def is_exact(self) -> bool:
        """Whether exactly the values are accepted that the schema admits."""
        return all(finding.status != "widened" for finding in self.findings)

    def of(self, status: Status) -> tuple[Finding, ...]:
        """The findings with this status."""
        return tuple(finding for finding in self.findings if finding.status == status)


def report(schema: Any, widened: dict[tuple[str, str], str], impossible: set[str]) -> SchemaReport:
    """Every keyword of `schema` in order, beside what was noted while it was lowered."""
    findings: list[Finding] = []
    for pointer, keyword in dict.fromkeys((*_keywords(schema), *widened)):  # what has no place in the schema comes last
        why = widened.get((pointer, keyword))
        if why is not None:
            findings.append(Finding(pointer, keyword, "widened", why))
        elif pointer in impossible:
            findings.append(Finding(pointer, keyword, "impossible", "no value satisfies this schema"))
        else:
            findings.append(Finding(pointer, keyword, "exact"))
    return SchemaReport(tuple(findings))


def _keywords(schema: Any) -> Iterator[tuple[str, str]]:
    pending: list[tuple[Any, Where]] = [(schema, ())]
    while pending:
        current, where = pending.pop()
        if isinstance(current, dict):
            pointer = render(where)
            yield from ((pointer, keyword) for keyword in current if keyword not in ANNOTATIONS)
            pending.extend(reversed(list(children(current, where))))
