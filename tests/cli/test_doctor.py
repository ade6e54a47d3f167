"""`dovetail doctor`: what is installed, what is missing, and the command that mends it."""

from __future__ import annotations

import json
import tomllib
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest
from click.testing import CliRunner

import dovetail as dt
from dovetail.cli import main
from dovetail.extras import EXTRAS

PROJECT = tomllib.loads((Path(__file__).parent.parent.parent / "pyproject.toml").read_text())["project"]
PARTS = {"": PROJECT["dependencies"]} | {name: PROJECT["optional-dependencies"][name] for name in EXTRAS}


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The versions that the doctor finds; a test changes them."""
    lines = [*PARTS[""], *(f'{line}; extra == "{extra}"' for extra in EXTRAS for line in PARTS[extra])]
    found = {line.partition(">=")[0]: line.partition(">=")[2] for lines in PARTS.values() for line in lines}

    def version(name: str) -> str:
        if name not in found:
            raise PackageNotFoundError(name)
        return found[name]

    monkeypatch.setattr("dovetail.cli.doctor.requires", lambda name: lines)
    monkeypatch.setattr("dovetail.cli.doctor.version", version)
    return found


def examine(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["doctor", *arguments])
    return result.exit_code, result.output


def states(*arguments: str) -> dict[tuple[str, str], str]:
    parts = json.loads(examine("--json", *arguments)[1])["parts"]
    return {(part["name"], package["name"]): package["state"] for part in parts for package in part["packages"]}


def test_an_extra_of_users_has_a_purpose_and_one_of_developers_has_none() -> None:
    names = set(PROJECT["optional-dependencies"])
    assert {name for name in names if not name.startswith(("dev", "docs"))} == set(EXTRAS)


def test_every_package_of_the_project_is_looked_for(installed: dict[str, str]) -> None:
    wanted = {(part, line.partition(">=")[0]) for part, lines in PARTS.items() for line in lines}
    assert dict.fromkeys(wanted, "ok") == states()
    assert 0 == examine(*EXTRAS)[0]


def test_what_is_missing_or_old_is_named_with_the_command_that_mends_it(installed: dict[str, str]) -> None:
    del installed["starlette"]
    installed["openai"] = "2.99.1"
    assert ("missing", "old") == (states()["serve", "starlette"], states()["agent", "openai"])
    code, shown = examine()
    assert 0 == code
    assert "serve: incomplete; " in shown
    assert "transformers: complete; " in shown
    assert "2.99.1, at least 3 is needed" in shown
    assert '  fix  pip install "dovetail-lm[serve]"\n' in shown


def test_the_exit_code_tells_whether_the_named_extras_are_complete(installed: dict[str, str]) -> None:
    del installed["uvicorn"]
    assert 3 == examine("serve")[0]
    assert 0 == examine("transformers")[0]
    assert 2 == examine("sing")[0]
    assert {"", "serve"} == {part for part, _ in states("serve")}


def test_what_every_use_needs_is_never_optional(installed: dict[str, str]) -> None:
    del installed["numpy"]
    assert 3 == examine()[0]


@pytest.mark.parametrize(("installed_one", "state"), [("2.13.0+cpu", "ok"), ("3.0.0rc1", "ok"), ("2.3", "old")])
def test_local_builds_and_candidates_count_as_their_release(
    installed: dict[str, str], installed_one: str, state: str
) -> None:
    installed["torch"] = installed_one
    assert state == states()["transformers", "torch"]


def test_a_package_that_is_only_on_the_path_is_told_as_such(monkeypatch: pytest.MonkeyPatch) -> None:
    def requires(name: str) -> list[str]:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("dovetail.cli.doctor.requires", requires)
    assert (1, "Error: dovetail-lm is not installed, only on the path\n  fix  pip install dovetail-lm\n") == examine()


def test_keys_are_named_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    for shown in (examine()[1], examine("--json")[1]):
        assert "OPENAI_API_KEY" in shown
        assert "secret" not in shown


def test_it_tells_the_versions_that_a_report_of_a_fault_needs() -> None:
    told = json.loads(examine("--json")[1])
    assert dt.__version__ == told["dovetail"]
    assert {"python", "system", "programs", "landlock", "keys"} <= set(told)
