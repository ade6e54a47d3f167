"""`dovetail bench` runs the programs of a folder, says what is missing, and what to do where there is no folder."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dovetail.cli import bench, main

BENCHMARKS = Path(__file__).parent.parent.parent / "benchmarks"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["bench", *arguments])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "shared.py").write_text("import sys\n\n\ndef peer():\n    import no_such_peer\n")
    (tmp_path / "bench_fine.py").write_text('"""Does it run?\n\nYes."""\nimport sys\nprint("table", sys.argv[1:])\n')
    (tmp_path / "bench_broken.py").write_text('"""Does it fail?"""\nimport sys\nsys.exit(7)\n')
    (tmp_path / "bench_peer.py").write_text('"""Is it fast?"""\nimport shared\nprint("not reached")\n')
    return tmp_path


def test_a_named_benchmark_prints_its_question_and_its_table(folder: Path) -> None:
    result = run("fine", "--quick", "--folder", str(folder))
    assert (0, "fine: Does it run?\n\ntable ['--quick']\n\n") == (result.exit_code, result.output)


def test_one_that_lacks_a_peer_is_left_out_and_says_what_to_install(folder: Path) -> None:
    result = run("peer", "fine", "--folder", str(folder))
    assert result.exit_code == 3
    assert 'not installed: no_such_peer; pip install -e ".[dev,dev-models]"' in result.output
    assert "not reached" not in result.output
    assert "table []" in result.output


def test_one_that_fails_is_told(folder: Path) -> None:
    result = run("broken", "--folder", str(folder))
    assert (3, True) == (result.exit_code, "bench_broken.py failed with exit code 7" in result.output)


def test_the_list_has_every_question_and_what_is_missing(folder: Path) -> None:
    result = run("--list", "--folder", str(folder))
    lines = ["broken", "Does it fail?", "fine", "Does it run?", "peer", "Is it fast? Lacks no_such_peer."]
    assert lines == [part for line in result.output.splitlines() for part in line.split(maxsplit=1)]


def test_an_unknown_name_is_refused_with_the_known_ones(folder: Path) -> None:
    result = run("fast", "--folder", str(folder))
    assert (2, True) == (result.exit_code, "'fast'; there are broken, fine, peer" in result.output)


def test_an_installed_package_without_the_folder_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(bench, "_PACKAGES", tmp_path / "site-packages")
    result = run()
    assert result.exit_code == 1
    assert 'pip install -e ".[dev]" && dovetail bench' in result.output


def test_our_own_benchmarks_lack_nothing_but_models_where_the_dev_extra_is_installed() -> None:
    lines = run("--list", "--folder", str(BENCHMARKS)).output.splitlines()
    assert len(lines) == len(list(BENCHMARKS.glob("bench_*.py")))
    lacking = {line.partition(" Lacks ")[2] for line in lines} - {""}
    assert lacking == (set() if find_spec("llama_cpp") else {"llama_cpp."})
