"""Shells complete verbs, options and choices."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from dovetail.cli import main


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_asks_the_command_itself(shell: str) -> None:
    result = CliRunner().invoke(main, ["completion", shell])
    assert 0 == result.exit_code
    assert f"_DOVETAIL_COMPLETE={shell}_complete" in result.output


def test_bash_takes_the_script() -> None:
    script = CliRunner().invoke(main, ["completion", "bash"]).stdout
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("dovetail do", ["doctor"]),
        ("dovetail doctor se", ["serve"]),
        ("dovetail parse --as op", ["openai"]),
        ("dovetail grammar --exp", ["--explain"]),
    ],
)
def test_verbs_options_and_choices_are_offered(words: str, offered: list[str]) -> None:
    command = shutil.which("dovetail", path=str(Path(sys.executable).parent))
    assert command, "the command is not installed beside this Python"
    asked = {"_DOVETAIL_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split()) - 1)}
    done = subprocess.run([command], env=os.environ | asked, capture_output=True, text=True, check=True)
    assert offered == [line.partition(",")[2] for line in done.stdout.splitlines()]
