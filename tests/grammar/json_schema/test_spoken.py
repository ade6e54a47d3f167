"""Documents spoken under real schemas are valid: a few of those that the program behind this makes by the thousand."""

from __future__ import annotations

import json
from pathlib import Path

from tests.fuzz.speak_schemas import play

EVERY = 20


def test_whatever_is_spoken_under_a_real_schema_is_valid(conformance: Path) -> None:
    lines = (conformance / "json_schema" / "maskbench_dev.jsonl").read_text().splitlines()[::EVERY]
    found: list[str] = []
    valid = 0
    for seed, line in enumerate(lines):
        counts, findings = play(json.loads(line), 8, seed)
        valid += counts["valid"]
        # Keys that a schema does not declare are not remembered, so that they may come twice.
        found += [finding for finding in findings if "a key comes twice" not in finding]
    assert [] == found
    assert valid > 4 * len(lines)
