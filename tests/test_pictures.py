"""The pictures of the docs are what their programs draw."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

IMAGES = Path(__file__).parent.parent / "docs" / "img"
PROGRAMS = sorted(IMAGES.glob("draw_*.py"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.stem)
def test_a_picture_is_what_its_program_draws(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(IMAGES))
    drawn = runpy.run_path(str(program))["draw"]()
    assert drawn
    for name, content in drawn.items():
        assert content == (IMAGES / name).read_text(), f"run `python docs/img/{program.name}`"


def test_every_picture_has_its_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(IMAGES))
    drawn = {name for program in PROGRAMS for name in runpy.run_path(str(program))["draw"]()}
    assert {file.name for file in IMAGES.glob("*.*") if file.suffix in (".svg", ".html")} == drawn
