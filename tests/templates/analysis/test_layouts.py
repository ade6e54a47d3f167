"""Layouts that published templates use: each is found, and what is rendered is accepted and read back."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

import dovetail as dt
from dovetail.templates.analysis import analyze_template
from dovetail.templates.analysis.probes import Prober
from dovetail.templates.analysis.verify import PROBES, verifier_of

LAYOUTS = tomllib.loads((Path(__file__).parent.parent / "layouts.toml").read_text())


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_is_found_and_what_it_renders_is_read_back(name: str) -> None:
    source = LAYOUTS[name]["template"]
    analysis = analyze_template(source)
    modes = analysis.modes
    assert LAYOUTS[name]["modes"] == [modes.reasoning, modes.content, modes.tools, modes.call_id]
    rows = list(verifier_of(analysis, Prober(source)).verify(PROBES))
    assert [(row.feature, row.problem) for row in rows if not row.passed] == []
    assert {"content", "one call"} <= {row.feature for row in rows}
    report = dt.check(source)
    assert report.passed, report


def test_instructions_behind_a_conversation_are_no_part_of_a_turn() -> None:
    turn = analyze_template(LAYOUTS["instructions behind every conversation"]["template"]).dialect.turn
    assert ("<|over|>", "") == (turn.end, turn.closing)


def test_a_colon_that_a_template_always_ends_with_is_no_header_in_a_text() -> None:
    source = (
        "{% for m in messages %}{{ ('User: ' if m.role == 'user' else 'Assistant: ') ~ m.content ~ '\\n' }}"
        "{% endfor %}Assistant:"
    )
    dialect = analyze_template(source).dialect
    assert "Hello: you." == dialect.parse(" Hello: you.\nAssistant:").content.strip()
