"""`dovetail inspect`: what it prints and how it exits."""

from __future__ import annotations

import html
import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dovetail.cli import main
from dovetail.cli.inspect_page import renders
from dovetail.cli.shapes import visible
from dovetail.grammar import ebnf
from dovetail.templates.analysis import Evidence
from tests.cli.test_main import read_all, start

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "chat_template.jinja"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["inspect", *arguments], prog_name="dovetail")


def test_what_was_found_is_printed_with_a_picture_of_a_turn() -> None:
    printed = run(str(EXAMPLE)).output
    for line in (
        "reasoning  TAG_BASED",
        "calls      TAG_WITH_JSON, arguments passed as object",
        "  prompt     <|turn|>assistant⏎",
        "  reasoning  They ask about Paris.",
        "  content    I will look it up.",
        '  arguments  {"city": "Paris", "days": 3}',
        "  end        <|done|>",
        'Triggers  <act to="',
    ):
        assert line in printed
    assert "\x1b[" not in printed
    assert "GBNF" not in printed


def test_the_picture_holds_all_of_the_turn() -> None:
    lines = run(str(EXAMPLE)).output.partition("One turn\n")[2].partition("\n\n")[0].splitlines()
    turn = "".join(line[13:] for line in lines)
    assert turn == (
        "<|turn|>assistant⏎<ponder>They ask about Paris.</ponder>⏎I will look it up."
        '<act to="get_weather">{"city": "Paris", "days": 3}</act>'
        '<act to="get_time">{"zone": "Europe/Paris"}</act><|done|>'
    )


def test_evidence_shows_the_two_renders() -> None:
    printed = run(str(EXAMPLE), "--evidence").output
    assert "      without  <|done|>⏎<|turn|>assistant⏎Zqcontentq<|done|>⏎" in printed
    assert "<ponder>Zqreasoningq</ponder>" in printed


def test_the_grammar_parses() -> None:
    printed = run(str(EXAMPLE), "--gbnf").output
    assert ebnf.parse(printed.partition("GBNF\n")[2])


def test_json_holds_everything() -> None:
    found = json.loads(run(str(EXAMPLE), "--json").output)
    assert "TAG_WITH_JSON" == found["modes"]["tools"]
    assert "<ponder>" == found["dialect"]["reasoning"]["start"]
    assert found["capabilities"]["parallel_calls"]
    assert ['<act to="'] == found["grammar"]["triggers"]
    assert {"prompt", "markup", "reasoning", "content", "arguments", "end"} == {row["name"] for row in found["turn"]}
    assert all(row["evidence"]["right"] for row in found["findings"])


def test_the_template_of_a_tokenizer_is_found_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": EXAMPLE.read_text()}))
    assert run(str(EXAMPLE)).output == run(str(tmp_path)).output


def test_what_is_no_template_is_told(tmp_path: Path) -> None:
    (tmp_path / "broken.jinja").write_text("{% if %}")
    result = run(str(tmp_path / "broken.jinja"))
    assert 1 == result.exit_code
    assert "TemplateError: the chat template is not Jinja2" in result.stderr
    assert "at   line 1" in result.stderr
    assert 1 == run(str(tmp_path)).exit_code
    assert 2 == run(str(tmp_path / "missing")).exit_code


def test_a_template_cannot_steer_the_terminal(tmp_path: Path) -> None:
    (tmp_path / "t.jinja").write_text(EXAMPLE.read_text().replace("<ponder>", "<\x1b[31mponder>"))
    assert "\x1b" not in run(str(tmp_path / "t.jinja"), "--evidence").output


def test_a_terminal_sees_colors() -> None:
    process, screen = start("inspect", str(EXAMPLE))
    assert b"\x1b[" in read_all(screen)
    assert process.wait(timeout=60) == 0


def test_the_page_holds_the_turn_and_each_finding_with_its_renders(tmp_path: Path) -> None:
    drawn = tmp_path / "page.html"
    done = run(str(EXAMPLE), "--html", str(drawn))
    assert (0, "") == (done.exit_code, done.output)
    shown = html.unescape(re.sub(r"<[^>]+>", "", drawn.read_text()))
    assert '<|turn|>assistant⏎<ponder>They ask about Paris.</ponder>⏎I will look it up.<act to="get_weather">' in shown
    for finding in json.loads(run(str(EXAMPLE), "--json").output)["findings"]:
        assert f"{finding['what']} {visible(finding['value'])}" in shown
        assert visible(finding["evidence"]["left"]) in shown
        assert visible(finding["evidence"]["right"]) in shown
    assert shown.count("✓") == len(json.loads(run(str(EXAMPLE), "--json").output)["verifications"])


def test_a_page_shows_a_hostile_template_as_text(tmp_path: Path) -> None:
    template, drawn = tmp_path / "<b>.jinja", tmp_path / "page.html"
    template.write_text(EXAMPLE.read_text().replace("ponder", "script>alert(1)</script"))
    assert 0 == run(str(template), "--html", str(drawn)).exit_code
    assert "script>alert" in html.unescape(drawn.read_text())
    assert not re.search(r"<script|<b>", drawn.read_text())


@pytest.mark.parametrize("padding", [0, 1000])
def test_renders_are_cut_where_they_differ(padding: int) -> None:
    same = "." * padding
    evidence = Evidence("reasoning", same + "<a>b" + same, same + "<a><r>t</r>b" + same, ((padding + 3, padding + 6),))
    (_, without), (_, with_it) = renders(evidence)
    assert {"same"} == {piece.kind for piece in without}
    assert [("finding", "<r>"), ("differs", "t</r>")] == [piece for piece in with_it if piece.kind != "same"]
    assert all(len(piece.text) < 450 for piece in [*without, *with_it])
