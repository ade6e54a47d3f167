"""`dovetail inspect`: what it prints and how it exits."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner, Result

from dovetail.cli import main
from dovetail.grammar import ebnf
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


def test_a_terminal_sees_colours() -> None:
    process, screen = start("inspect", str(EXAMPLE))
    assert b"\x1b[" in read_all(screen)
    assert process.wait(timeout=60) == 0
