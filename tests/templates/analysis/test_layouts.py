"""Layouts that published templates use: each is found, and what is rendered is accepted and read back."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from dovetail.templates.analysis import analyse_template
from dovetail.templates.analysis.frame import call_shape, frame
from dovetail.templates.analysis.probes import Prober
from dovetail.templates.analysis.source import read_source
from dovetail.templates.analysis.verify import PROBES, Verifier

LAYOUTS = tomllib.loads((Path(__file__).parent.parent / "layouts.toml").read_text())


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_is_found_and_what_it_renders_is_read_back(name: str) -> None:
    source = LAYOUTS[name]["template"]
    analysis = analyse_template(source)
    modes = analysis.modes
    assert LAYOUTS[name]["modes"] == [modes.reasoning, modes.content, modes.tools, modes.call_id]
    prober = Prober(source)
    turn = frame(prober, read_source(source), call_shape(prober))
    assert turn is not None
    verifier = Verifier(prober, turn, analysis.dialect, analysis.shape, analysis.capabilities.content_with_calls)
    rows = list(verifier.verify(PROBES))
    assert [(row.feature, row.problem) for row in rows if not row.passed] == []
    assert {"content", "one call"} <= {row.feature for row in rows}
