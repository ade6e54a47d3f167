"""The benchmark of everyday tasks in its smallest mode keeps what its page promises."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.real_model, pytest.mark.slow]

PROGRAM = Path(__file__).parent.parent.parent / "benchmarks" / "bench_real.py"


def test_answers_are_valid_end_and_are_right_as_often_as_those_of_peers(tmp_path: Path) -> None:
    out = tmp_path / "figures.json"
    ways = ["--ways", "llama.cpp: dovetail", "llama.cpp: xgrammar", "own grammar"]
    command = [sys.executable, str(PROGRAM), "--quick", *ways, "--results", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    assert 0 == done.returncode, done.stderr
    found = json.loads(out.read_text())["ways"]
    ours = found.pop("llama.cpp: Dovetail")
    assert (1.0, 1.0, 0) == (ours["valid"], ours["ended"], ours["odd"])
    assert found
    assert all(ours["right"] >= theirs["right"] for theirs in found.values())
    assert "| llama.cpp: Dovetail | 100% | 100% | 0 |" in done.stdout
