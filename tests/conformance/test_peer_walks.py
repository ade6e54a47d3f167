"""What we say under real schemas is accepted by XGrammar or llguidance where these know the schema."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import peer_walks
from tests.recorded import records

EVERY = 24


@pytest.mark.slow
def test_what_is_said_under_a_real_schema_is_accepted_by_a_peer_that_knows_it(conformance: Path) -> None:
    cases = list(records(conformance / "json_schema" / "maskbench_dev.jsonl"))[::EVERY]
    found: list[str] = []
    judged = 0
    for case in cases:
        counts, findings = peer_walks.play(case, 2, 0)
        judged += counts["schemas judged"]
        found += findings
    assert [] == found
    assert judged > 0.7 * len(cases)
