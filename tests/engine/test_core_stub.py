"""The stub of the core says what the core is."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import dovetail

ROOT = Path(__file__).parent.parent.parent


def test_the_stub_is_the_one_that_the_core_gives(tmp_path: Path) -> None:
    """To renew it, write to src/dovetail/_core.pyi with the command below."""
    command = [sys.executable, "-m", "nanobind.stubgen", "-q", "-m", "dovetail._core", "-p", "core/python/stub.pat"]
    made = tmp_path / "_core.pyi"
    subprocess.run([*command, "-o", str(made)], check=True, cwd=ROOT)
    assert Path(dovetail.__file__).with_name("_core.pyi").read_text() == made.read_text()
