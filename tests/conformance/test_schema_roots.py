"""Schemas for the answer of a headless run: the reference's decision, or a better one where it is known to be wrong."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

from dovetail.agent.contract import ContractError, read_contract

DIFFERENCES = tomllib.loads((Path(__file__).parent.parent / "known_differences.toml").read_text())["schema_roots"]


def wanted(case: dict[str, Any]) -> bool:
    if case.get("accepted_but_impossible"):
        return False
    return bool(case["accepts"] or case.get("rejected_but_possible"))


def decided(case: dict[str, Any]) -> tuple[bool, str]:
    raw = case["raw"] if case.get("raw") is not None else json.dumps(case["schema"])
    try:
        read_contract(raw, Path("/"))
    except ContractError as error:
        return False, error.problem
    return True, ""


def test_every_recorded_schema_is_taken_or_refused_for_the_recorded_reason(conformance: Path) -> None:
    cases = [json.loads(line) for line in (conformance / "schema_root_cases.jsonl").read_text().splitlines()]
    assert len(cases) == 156
    different = set()
    for number, case in enumerate(cases, 1):
        accepted, problem = decided(case)
        reason = case["error"] if not case.get("rejected_but_possible") else None
        if accepted != wanted(case) or (not accepted and reason and reason not in problem):
            different.add(str(number))
    assert set(DIFFERENCES) == different
