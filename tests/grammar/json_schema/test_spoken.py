"""Real schemas and an independent validator: some of the documents that two programs make by the thousand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.fuzz import mutate_documents, speak_schemas

EVERY = 20


def some_cases(conformance: Path) -> list[dict[str, Any]]:
    lines = (conformance / "json_schema" / "maskbench_dev.jsonl").read_text().splitlines()
    return [case for case in map(json.loads, lines[::EVERY]) if case["tests"]]


def test_whatever_is_spoken_under_a_real_schema_is_valid(conformance: Path) -> None:
    cases = some_cases(conformance)
    found: list[str] = []
    valid = 0
    for seed, case in enumerate(cases):
        counts, findings = speak_schemas.play(case, 8, seed)
        valid += counts["valid"]
        found += findings
    assert [] == found
    assert valid > 4 * len(cases)


def test_a_changed_document_is_accepted_exactly_when_it_is_valid(conformance: Path) -> None:
    found: list[str] = []
    valid = 0
    for seed, case in enumerate(some_cases(conformance)):
        counts, findings = mutate_documents.play(case, 25, seed)
        valid += counts["valid"]
        found += findings
    assert [] == found
    assert valid > 100
