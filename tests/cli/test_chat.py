"""`dovetail chat`, with the embedded speaker."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import dovetail as dt
from dovetail.cli import main

verb = importlib.import_module("dovetail.cli.chat")

FLAG = {"type": "object", "properties": {"sure": {"type": "boolean"}}, "required": ["sure"]}
TOOLS = '''
def get_weather(city: str) -> str:
    """The weather of a city."""
    return "rain in " + city

def _hidden() -> None: ...
'''


def chat(*arguments: str, typed: str = "") -> tuple[int, str, str]:
    done = CliRunner().invoke(main, ["chat", "--model", "speaker", *arguments], input=typed)
    return done.exit_code, done.stdout, done.stderr


def test_an_answer_fits_its_schema_and_figures_go_to_standard_error() -> None:
    code, said, told = chat("Sure?", "--json-schema", json.dumps(FLAG))
    assert 0 == code
    assert json.loads(said)["sure"] in (True, False)
    assert "tokens/s" in told


def test_lines_are_answered_one_by_one() -> None:
    code, said, told = chat("--json-schema", json.dumps({"enum": [7]}), typed="one?\n\ntwo?\n")
    assert (0, "7\n7\n") == (code, said)
    assert 2 == told.count("tokens/s")


def test_functions_of_a_file_are_called(tmp_path: Path) -> None:
    file = tmp_path / "weather.py"
    file.write_text(TOOLS)
    code, said, _ = chat("Rain?", "--tools", str(file), "--tool-choice", "required", "--seed", "3")
    assert 0 == code
    assert "get_weather" in said
    assert "= rain in" in said


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["--tools", "none.py"], "there is no Python file"),
        (["--json-schema", "{"], "this is not JSON"),
        (["--json-schema", "@none.json"], "cannot read none.json"),
    ],
)
def test_what_is_wrong_is_told_before_a_model_is_loaded(arguments: list[str], problem: str) -> None:
    code, said, told = chat("?", *arguments)
    assert (1, "") == (code, said)
    assert problem in told


def test_a_file_without_functions_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "empty.py"
    file.write_text("x = 1\n")
    assert "no public function" in chat("?", "--tools", str(file))[2]
    file.write_text("1 / 0\n")
    assert "ZeroDivisionError" in chat("?", "--tools", str(file))[2]


@pytest.mark.parametrize("broken", [KeyboardInterrupt(), dt.ModelError("too long", "/messages", "shorten it")])
@pytest.mark.parametrize("typed", [True, False])
def test_an_answer_that_breaks_off_ends_no_chat_of_a_person(
    monkeypatch: pytest.MonkeyPatch, broken: BaseException, typed: bool
) -> None:
    asked: list[str] = []

    async def reply(_console: Any, _talk: Any, said: list[dict[str, Any]], _choice: str) -> None:
        asked.append(said[-1]["content"])
        if len(asked) == 1:
            raise broken

    monkeypatch.setattr(verb, "_reply", reply)
    monkeypatch.setattr(verb, "_lines", lambda _: iter(["one", "two"]))
    monkeypatch.setattr(verb, "_is_typed", lambda: typed)
    code, _, told = chat()
    assert (["one", "two"] if typed else ["one"]) == asked
    assert typed is (code == 0)
    assert not typed or "forgotten" in told or "too long" in told
