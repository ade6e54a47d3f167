"""The first command on a fresh machine: no network, no extras, an interpreter of its own."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.agent.cli.conftest import Bench
from tests.agent.warm import ROOT

FILES = {
    "type": "object",
    "properties": {"files": {"type": "array", "items": {"type": "string"}}},
    "required": ["files"],
}
ASKED = ("run", "-p", "List the Python files here", "--json-schema", json.dumps(FILES))
ARGUMENTS = (*ASKED, "--model", "speaker", "--seed", "1")

# What the extras bring; a fresh machine has none of it.
_WITHOUT = """
import sys

import pytest

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in "openai anthropic google mcp opentelemetry httpx2 transformers".split():
            raise ImportError(f"No module named {name!r}")

sys.meta_path.insert(0, Absent())
from dovetail.cli import main
main(prog_name="dovetail")
"""


def test_the_first_command_prints_a_valid_object(bench: Bench) -> None:
    del bench.env["OPENAI_API_KEY"]
    finished = bench.warm.cold(*ARGUMENTS, env=bench.env, cwd=bench.workspace)
    assert 0 == finished.code
    assert "" == finished.stderr
    files = json.loads(finished.stdout)["files"]
    assert all(isinstance(file, str) for file in files)


def test_nothing_answers_where_no_model_is_named(bench: Bench) -> None:
    """Neither without a key, as in the pull request of a fork, nor with a key alone."""
    for form in ("text", "json"):
        with_key = bench.command(*ASKED[1:], "-o", form)
        assert with_key.code == 52
        assert all(
            way in with_key.stderr for way in ("--model NAME", "OPENAI_API_KEY", "--base-url", "--model speaker")
        )
        del bench.env["OPENAI_API_KEY"]
        finished = bench.command(*ASKED[1:], "-o", form)
        assert (52, with_key.stderr) == (finished.code, finished.stderr)
        if form == "text":
            assert "" == finished.stdout
        else:
            assert "configuration" == finished.result["termination_reason"]
        bench.env["OPENAI_API_KEY"] = "test-key"


def test_it_needs_none_of_the_extras_and_names_the_one_that_is_missing(bench: Bench) -> None:
    def without(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", _WITHOUT, *arguments],
            env=bench.env | {"PYTHONPATH": str(ROOT / "src")},
            cwd=bench.workspace,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )

    done = without(*ARGUMENTS)
    assert 0 == done.returncode, done.stderr
    assert "files" in json.loads(done.stdout)
    done = without("run", "-p", "x", "--provider", "openai", "--model", "m")
    assert 52 == done.returncode
    assert "dovetail-lm[agent]" in done.stderr


def test_a_directory_that_cannot_be_run_gets_one_error_and_nothing_else(bench: Bench) -> None:
    """Triton wrote a page about leaks below it."""
    bench.write("model/config.json", '{"model_type": "llama"}')
    finished = bench.warm.cold("run", "-p", "x", "--model", "model", env=bench.env, cwd=bench.workspace)
    assert (52, "") == (finished.code, finished.stdout)
    first, *_, last = finished.stderr.splitlines()
    assert first.startswith("the model cannot be loaded: ")
    assert last.startswith("  fix  ")


def test_a_run_with_a_service_loads_no_compiler_of_grammars() -> None:
    """They would double the time that the command needs to start, in which no signal is answered."""
    code = """
import sys

import pytest
import dovetail.agent.command
from dovetail.agent.providers import configured
from dovetail.agent.types import ProviderOptions
configured(ProviderOptions(model="gpt-5", api_key="x"))
heavy = ("numpy", "dovetail.grammar", "dovetail.engine", "dovetail.dialects", "dovetail.parsing", "mcp", "openai")
print(sorted(set(heavy) & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "[]\n" == done.stdout


@pytest.mark.parametrize("number", ["SIGINT", "SIGTERM"])
@pytest.mark.parametrize("arguments", [["-p", "x", "-o", "json"], ["-p", "x"], ["--no-such-flag"]])
def test_a_signal_while_the_command_is_loaded_has_its_result(number: str, arguments: list[str]) -> None:
    code = f"""
import os, signal, sys
sys.argv = ["dovetail", "run", *{arguments!r}]
from dovetail.cli import main
os.kill(os.getpid(), signal.{number})
main(prog_name="dovetail")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    if "json" in arguments:
        assert ["cancelled"] == [message["termination_reason"] for message in json.loads(done.stdout)]
    else:
        assert "" == done.stdout
    assert (1 if "--no-such-flag" in arguments else 130) == done.returncode
    assert "Traceback" not in done.stderr


CLOSED = [("<&-", 0), (">&-", 74), ("2>&-", 0), ("<&- 2>&-", 0), ("<&- >&- 2>&-", 74)]


@pytest.mark.parametrize(("closed", "code"), CLOSED)
@pytest.mark.parametrize("form", ["text", "json"])
def test_standard_streams_may_be_closed(bench: Bench, closed: str, code: int, form: str) -> None:
    """Nothing else gets into what is open, and an answer that nobody can get is a failure."""
    servers = ["--mcp-config", '{"x": {"command": "no"}}']
    words = [sys.executable, "-m", "dovetail", *ARGUMENTS, "-o", form, *servers]
    script = f'exec "$@" {closed}'
    done = subprocess.run(
        ["bash", "-c", script, "bash", *words], env=bench.env, cwd=bench.workspace, capture_output=True, text=True
    )
    assert code == done.returncode
    assert "Traceback" not in done.stderr
    assert "internal" not in done.stdout + done.stderr
    if ">&-" in closed.replace("2>&-", ""):
        assert "" == done.stdout
    else:
        assert "files" in done.stdout
        json.loads(done.stdout)
    assert ("standard output is closed" in done.stderr) == (closed == ">&-")


def test_a_folder_that_is_gone_is_told(bench: Bench) -> None:
    script = 'mkdir gone && cd gone && rmdir ../gone && exec "$@"'
    words = [sys.executable, "-m", "dovetail", "run", "-p", "x", "--model", "speaker", "-o", "json"]
    done = subprocess.run(
        ["bash", "-c", script, "bash", *words], env=bench.env, cwd=bench.workspace, capture_output=True, text=True
    )
    assert 52 == done.returncode
    assert "is gone" in json.loads(done.stdout)[-1]["error"]["message"]
