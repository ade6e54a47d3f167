"""Law 5 (bounded work): schemas made to hurt end in a grammar or a clear error, within a gibibyte of memory."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.fuzz.hostile_schemas import CASES

GIBIBYTE = 1 << 30


@pytest.fixture(scope="module")
def outcomes() -> dict[str, tuple[str, int]]:
    """What becomes of each schema in a process of their own, and its peak of memory by then in MiB."""
    command = [sys.executable, "-m", "tests.fuzz.hostile_schemas"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {name: (outcome, peak) for name, outcome, peak in map(json.loads, told.splitlines())}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.slow
def test_a_hostile_schema_works_or_is_refused(name: str, outcomes: dict[str, tuple[str, int]]) -> None:
    outcome, peak = outcomes[name]
    assert ("refused" if CASES[name].text is None else "accepted") == outcome.partition(":")[0], outcome
    assert peak << 20 < GIBIBYTE
