"""A warning names the line of the user that caused it, however deep the cause lies."""

from __future__ import annotations

from pathlib import Path

import pytest

import dovetail as dt
from dovetail.callers import warn
from dovetail.dialects import Dialect
from dovetail.dialects.dialect import _warned

UNPROVEN = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% if m.tool_calls %}<calls>{% for c in m.tool_calls %}"
    "<do>{{ c.function.name }}|{{ c.function.arguments | tojson }}</do>{{ '</calls>' if loop.index == 2 else '' }}"
    "{% endfor %}{% endif %}<|end|>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]


@pytest.fixture
def dialect() -> Dialect:
    _warned.clear()
    return dt.analyze(UNPROVEN)


def line_of(text: str) -> int:
    """The line of this file that holds the text first."""
    return next(i for i, line in enumerate(Path(__file__).read_text().splitlines(), 1) if text in line)


def test_a_format_that_warns_names_the_call_of_the_user(dialect: Dialect) -> None:
    with pytest.warns(dt.UnprovenWarning) as caught:
        dialect.format(TOOLS)  # asks for the format
    assert (__file__, line_of("# asks for the format")) == (caught[0].filename, caught[0].lineno)


def test_a_parser_that_warns_names_the_call_of_the_user(dialect: Dialect) -> None:
    with pytest.warns(dt.UnprovenWarning) as caught:
        dialect.parse("Hello", TOOLS)  # asks for the message
    assert (__file__, line_of("# asks for the message")) == (caught[0].filename, caught[0].lineno)


def test_a_warning_from_outside_the_package_names_its_own_caller() -> None:
    with pytest.warns(UserWarning, match="why") as caught:
        warn("why", UserWarning)  # warns by itself
    assert (__file__, line_of("# warns by itself")) == (caught[0].filename, caught[0].lineno)
