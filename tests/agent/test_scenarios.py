"""Every scenario of headless runs is somebody's test: docstrings name their numbers."""

from __future__ import annotations

import ast
import re
from pathlib import Path

SCENARIOS = 118
_NAMED = re.compile(r"[Ss]cenarios? ((?:\d+(?:, | and | to )?)+)")


def numbers(text: str) -> set[int]:
    """The scenarios that a docstring names: "Scenarios 5 to 7, 9 and 11"."""
    found: set[int] = set()
    for list_ in _NAMED.findall(text):
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", list_):
            found |= set(range(int(first), int(last or first) + 1))
    return found


def test_numbers_are_read_from_docstrings() -> None:
    assert {5, 6, 7, 9, 11} == numbers("Scenarios 5 to 7, 9 and 11: words.")
    assert {1} == numbers("Scenario 1.")


def test_every_scenario_has_a_test() -> None:
    covered: set[int] = set()
    for path in Path(__file__).parent.rglob("test_*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
                covered |= numbers(ast.get_docstring(node) or "")
    assert set(range(1, SCENARIOS + 1)) == covered
