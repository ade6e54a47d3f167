"""The fuzzer of the HTTP surface, for a moment."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dovetail

PROGRAM = Path(__file__).parent.parent / "fuzz" / "serve.py"


def test_damaged_requests_are_answered() -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(dovetail.__file__).parent.parent)}
    command = [sys.executable, str(PROGRAM), "--requests", "150"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert 0 == done.returncode, done.stdout + done.stderr
    assert done.stdout.startswith("150 requests, no finding")
