"""One name of the distribution and one command that installs it, in the code and in the docs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from dovetail.extras import DISTRIBUTION, EXTRAS, install

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
# A command of pip, up to the end of the code that it stands in.
COMMAND = re.compile(r"pip install ((?:-[\w-]+ )*)([^`\n|&#;)]+)")
# The sources themselves, with or without extras.
HERE = re.compile(r'"?\.(\[[\w,-]+\])?"?')


def texts(*patterns: str) -> list[Path]:
    return [path for pattern in patterns for path in sorted(ROOT.glob(pattern))]


def commands(path: Path) -> list[str]:
    return [found[2].strip() for found in COMMAND.finditer(path.read_text("utf-8"))]


def test_the_distribution_is_the_one_of_the_project() -> None:
    assert DISTRIBUTION == PROJECT["name"]


def test_the_commands_name_the_distribution_and_its_extras() -> None:
    assert "pip install dovetail-lm" == install()
    assert 'pip install "dovetail-lm[agent]"' == install("agent")


@pytest.mark.parametrize("path", texts("README.md", "docs/**/*.md", "examples/*.py"), ids=lambda path: path.name)
def test_docs_name_no_other_distribution(path: Path) -> None:
    for target in commands(path):
        if HERE.fullmatch(target):
            continue
        named = re.match(r'"?dovetail[\w-]*', target)
        if named is None:
            continue  # somebody else's package
        match = re.fullmatch(rf'{DISTRIBUTION}|"{DISTRIBUTION}\[([\w,-]+)\]"', target)
        assert match, f"{path.name}: pip install {target}"
        assert set((match[1] or "").split(",")) <= {"", *EXTRAS, "dev", "docs"}


def test_code_takes_the_command_from_its_one_place() -> None:
    written = [
        f"{path.relative_to(ROOT)}: {target}"
        for path in texts("src/dovetail/**/*.py")
        if path.name != "extras.py"
        for target in commands(path)
        if DISTRIBUTION in target
    ]
    assert [] == written


def test_every_extra_that_the_code_names_exists() -> None:
    call = re.compile(r"""\binstall\(["']([\w-]+)["']\)""")
    named = {name for path in texts("src/dovetail/**/*.py") for name in call.findall(path.read_text("utf-8"))}
    assert named
    assert named <= set(EXTRAS)
