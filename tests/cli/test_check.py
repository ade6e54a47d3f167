"""`dovetail check`: what it prints and how it exits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dovetail.cli import main
from dovetail.templates.checks import FEATURES
from tests.cli.test_main import read_all, start

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "chat_template.jinja"
PLAIN = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, ["check", *map(str, arguments)], prog_name="dovetail")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A good template, a plain one and one whose calls cannot be told apart."""
    (tmp_path / "good.jinja").write_text(EXAMPLE.read_text())
    (tmp_path / "plain.jinja").write_text(PLAIN)
    bad = EXAMPLE.read_text().replace("'</act>' }}", "('</act>' if loop.first else '</end>') }}")
    (tmp_path / "bad.jinja").write_text(bad)
    return tmp_path


def test_one_template_is_told_feature_by_feature() -> None:
    result = run(EXAMPLE)
    assert 0 == result.exit_code
    assert [*FEATURES] == [line.split()[0] for line in result.output.splitlines()[: len(FEATURES)]]
    assert result.output.endswith("everything holds\n")
    assert "\x1b[" not in result.output


def test_several_templates_are_a_table_and_failures_are_explained(folder: Path) -> None:
    result = run(folder)
    assert 3 == result.exit_code
    header, *rows = result.output.splitlines()[:4]
    assert [*FEATURES] == header.split()
    assert ["bad", "good", "plain"] == [row.split()[0] for row in rows]
    assert rows[1].split()[1:] == ["yes"] * 7 + ["-", "yes", "yes", "yes"]
    assert rows[2].split()[1:] == ["-", "yes", "-", "-", "-", "yes", "yes", "-", "yes", "yes", "yes"]
    assert "bad, parallel: " in result.output
    assert "  fix  write each call with the same markers" in result.output
    assert result.output.endswith("2 of 3 templates hold everything that they support\n")


def test_a_table_in_markdown(folder: Path) -> None:
    lines = run(folder / "good.jinja", folder / "plain.jinja", "--markdown").output.splitlines()
    assert 4 == len(lines)
    assert lines[2].startswith("| good | ✓ | ✓ |")


def test_json_holds_one_report_a_line(folder: Path) -> None:
    result = run(folder, "--json")
    reports = [json.loads(line) for line in result.output.splitlines()]
    assert [False, True, True] == [report["passed"] for report in reports]
    assert [*FEATURES] == [check["feature"] for check in reports[0]["checks"]]


def test_what_cannot_be_analyzed_is_told_and_the_rest_is_checked(folder: Path) -> None:
    (folder / "broken.jinja").write_text("{% if %}")
    result = run(folder)
    assert 1 == result.exit_code
    assert "TemplateError: the chat template is not Jinja2" in result.stderr
    assert "2 of 3 templates hold" in result.stdout


def test_the_command_line_needs_a_file(tmp_path: Path) -> None:
    assert 2 == run().exit_code
    assert 2 == run(tmp_path / "missing").exit_code
    assert 1 == run(tmp_path).exit_code


def test_a_terminal_sees_colors() -> None:
    process, screen = start("check", str(EXAMPLE))
    assert b"\x1b[32m" in read_all(screen)
    assert process.wait(timeout=60) == 0
