"""The chat templates of wheels, as their makers ship them: everything that they support holds."""

from __future__ import annotations

import pytest

import dovetail as dt
from tests.templates.wheels import templates

TEMPLATES = templates()


def test_there_are_templates_in_the_wheels() -> None:
    assert len(TEMPLATES) > 20
    assert any(name.startswith("mistral-v3") for name in TEMPLATES)
    assert "llama4-0" in TEMPLATES


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_template_of_a_wheel_holds(name: str) -> None:
    report = dt.check(TEMPLATES[name], "<s>", "</s>")
    assert report.passed, report
