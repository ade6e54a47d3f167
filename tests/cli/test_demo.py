"""`dovetail demo` shows each format, plainly when piped, the same for the same seed."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

from dovetail.cli import main


@pytest.mark.parametrize("seed", range(12))
def test_every_output_is_accepted_whatever_the_seed(seed: int) -> None:
    result = CliRunner().invoke(main, ["demo", "--fast", "--seed", str(seed)])
    assert result.exit_code == 0, result.output
    assert "5 of 5 outputs accepted" in result.output


def test_piped_output_is_plain_and_repeats() -> None:
    first = CliRunner().invoke(main, ["demo", "--seed", "3"]).output
    assert "\x1b" not in first
    assert first == CliRunner().invoke(main, ["demo", "--seed", "3"]).output
