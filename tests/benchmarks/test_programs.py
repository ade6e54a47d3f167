"""Each benchmark runs in its smallest mode and reports what it promises; how long anything takes is not checked."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import dovetail

pytestmark = pytest.mark.slow

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"
ENGINES = {"dovetail", "llguidance", "xgrammar"}
SPREAD = {"p50", "mean", "p99", "max"}


def run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    # The package under test, also where it is on the path but not installed.
    environment = {**os.environ, "PYTHONPATH": str(Path(dovetail.__file__).parent.parent)}
    command = [sys.executable, str(BENCHMARKS / program), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)


def figures(program: str, out: Path, *arguments: str) -> tuple[str, dict[str, Any]]:
    done = run(program, "--quick", "--json", str(out), *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout, json.loads(out.read_text())


def assert_whole(study: dict[str, Any], engines: set[str]) -> None:
    assert study.keys() == engines
    for name, result in study.items():
        for figure in ("compile_ms", "again_us", "first_mask_ms"):
            assert result[figure] > 0
        for figure in ("warm_us", "new_us", "accept_us"):
            assert result[figure].keys() == SPREAD
            assert result[figure]["p50"] <= result[figure]["p99"] <= result[figure]["max"]
        assert ("memory_kb" in result) == (name != "llguidance")
        assert ("resident_kb" in result) == (name != "xgrammar")


def test_tool_calling_is_reported_with_a_verdict_on_each_promise(tmp_path: Path) -> None:
    # Without XGrammar, which compiles ten tools for many seconds; the test of the formats runs it.
    engines = ENGINES - {"xgrammar"}
    arguments = ("--tools", "10", "--engines", ",".join(engines))
    printed, written = figures("bench_tools.py", tmp_path / "out.json", *arguments)
    assert written["machine"]["cpu"]
    assert_whole(written["studies"][" 10 tools"], engines)
    verdicts = [line for line in printed.splitlines() if line.startswith(("PASS  ", "FAIL  "))]
    assert len(verdicts) == 9
    assert not any("xgrammar" in line for line in verdicts)


def test_a_kind_of_format_is_reported_for_each_engine(tmp_path: Path) -> None:
    printed, written = figures("bench_formats.py", tmp_path / "out.json", "--kind", "EBNF, JSON")
    assert_whole(written["studies"]["EBNF, JSON"], ENGINES)
    assert all(f"EBNF, JSON, {engine}" in printed for engine in ENGINES)


def test_the_cost_of_a_byte_is_reported_by_size(tmp_path: Path) -> None:
    printed, written = figures("bench_text.py", tmp_path / "out.json")
    assert len(written["text"]) == 4
    for row in written["text"].values():
        assert row["ns_per_byte"].keys() == {"1000", "100000"}
    assert printed.splitlines()[-1].startswith(("PASS", "FAIL"))


def test_response_templates_are_reported_beside_transformers(tmp_path: Path) -> None:
    printed, written = figures("bench_response_templates.py", tmp_path / "out.json")
    for row in written["outputs"].values():
        assert row["chunk_us"].keys() == row["whole_us"].keys() == {"dovetail", "transformers"}
    assert written["growth"]["dovetail"].keys() == {"20000", "100000"}
    assert len([line for line in printed.splitlines() if line.startswith(("PASS  ", "FAIL  "))]) == 3


def test_each_shortcut_is_reported(tmp_path: Path) -> None:
    _, written = figures("bench_shortcuts.py", tmp_path / "out.json")
    without = {f"without {name}" for name in dovetail._core.shortcuts()}
    assert written["shortcuts"].keys() == {"all", "none", *without}
    for row in written["shortcuts"].values():
        assert 0 < row["mean"]
        assert 0 < row["new_mean"] <= row["new_max"]


def test_the_analysis_of_templates_is_reported_with_a_verdict_on_each_promise(tmp_path: Path) -> None:
    printed, written = figures("bench_analyze.py", tmp_path / "out.json")
    assert all(cost > 0 for cost in (*written["times"].values(), written["first"], written["cached"]))
    assert len([line for line in printed.splitlines() if line.startswith(("  PASS  ", "  FAIL  "))]) == 2


@pytest.mark.parametrize("program", sorted(path.name for path in BENCHMARKS.glob("bench_*.py")))
def test_help_teaches(program: str) -> None:
    done = run(program, "--help")
    assert done.returncode == 0
    assert f"python benchmarks/{program} --quick" in done.stdout


def test_an_unknown_engine_is_named() -> None:
    done = run("bench_tools.py", "--engines", "dovetail,nonesuch")
    assert done.returncode == 2
    assert "no engine is called 'nonesuch'" in done.stderr


def test_parsing_is_reported_beside_its_peers(tmp_path: Path) -> None:
    printed, written = figures("bench_parse.py", tmp_path / "out.json")
    assert {"dovetail", "token ids", "transformers"} == written["qwen_3"].keys()
    assert {"dovetail", "token ids"} == written["harmony"].keys() - {"openai-harmony"}
    assert all(cost > 0 for study in written.values() for cost in study.values())
    assert "does not grow" in printed


def test_a_server_under_load_is_reported(tmp_path: Path) -> None:
    printed, written = figures("bench_serve.py", tmp_path / "out.json")
    assert ([], 0, 0) == (written["errors"], written["mixed"], written["running_at_end"])
    assert written["own_time_us"].keys() == {"p50", "p90", "p99"}
    assert written["resident_mb"].keys() == {"early", "late"}
    assert printed.splitlines()[-1].startswith("PASS")


def test_forms_are_reported_with_a_verdict_for_each_buffer(tmp_path: Path) -> None:
    printed, written = figures("bench_forms.py", tmp_path / "out.json")
    assert written.keys() == {"Dovetail, numpy", "Dovetail, torch", "XGrammar"}
    assert 4 == sum(line.startswith(("PASS  ", "FAIL  ")) for line in printed.splitlines())


def test_threads_are_reported(tmp_path: Path) -> None:
    out = tmp_path / "out.json"
    done = run("bench_threads.py", "--quick", "--threads", "2", "--json", str(out))
    assert done.returncode == 0, done.stderr
    written = json.loads(out.read_text())
    assert written["threads"] == 2
    assert min(written.values()) > 0
