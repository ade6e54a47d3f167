"""The benchmark of vLLM's backend classes runs and reports each of them; how long anything takes is not checked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"


def test_each_backend_is_reported_for_each_workload(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    program = [sys.executable, str(BENCHMARKS / "vllm_backends.py"), os.environ["DOVETAIL_ENGINE_MODEL"]]
    subprocess.run([*program, "--quick", "--json", str(out)], check=True, timeout=600, capture_output=True)
    written = json.loads(out.read_text())
    assert written.keys() == {"small schemas", "40 fields", "10 tools"}
    for rows in written.values():
        assert rows.keys() == {"dovetail", "guidance", "xgrammar"}
        for row in rows.values():
            assert min(row.values()) > 0
            assert row["fill_p50_us"] <= row["fill_p99_us"]
