"""The pictures of the docs are what their programs draw."""

from __future__ import annotations

import runpy
from pathlib import Path

IMAGES = Path(__file__).parent.parent / "docs" / "img"


def test_the_picture_of_a_turn_is_up_to_date() -> None:
    drawn = runpy.run_path(str(IMAGES / "draw_turn.py"))["draw"]()
    assert drawn == (IMAGES / "turn.svg").read_text(), "run `python docs/img/draw_turn.py`"
