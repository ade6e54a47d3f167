"""`dovetail grammar`: what it prints and how it exits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dovetail.cli import main
from dovetail.formats import load_format

FORMAT = {
    "type": "triggered_tags",
    "triggers": ["<f="],
    "tags": [{"begin": "<f=a>", "content": {"type": "regex", "pattern": "[0-9]+"}, "end": "</f>"}],
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "calls.json").write_text(json.dumps({"type": "structural_tag", "format": FORMAT}))
    (tmp_path / "answer.ebnf").write_text('root ::= "yes" | "no"\n')
    (tmp_path / "answer.gbnf").write_text('root ::= "yes" | "no"\n')
    (tmp_path / "wrong.json").write_text('{"format": {"type": "tag", "begin": "<", "content": {"type": "any_text"}}}')
    (tmp_path / "binary.json").write_bytes(b"\xff\xfe")
    return tmp_path


def run(*arguments: str, stdin: str = "") -> Result:
    return CliRunner().invoke(main, ["grammar", *arguments], input=stdin, prog_name="dovetail")


def test_without_an_option_a_file_is_only_checked(files: Path) -> None:
    result = run(str(files / "calls.json"))
    assert (0, "valid: triggered_tags\n") == (result.exit_code, result.output)


def test_a_wrong_file_is_told_with_its_place(files: Path) -> None:
    result = run(str(files / "wrong.json"))
    assert 1 == result.exit_code
    assert "FormatError: `end` is missing\n  at   /format/end\n  fix  add it" in result.stderr


@pytest.mark.parametrize(
    ("name", "text", "code", "answer"),
    [
        ("calls.json", "call <f=a>42</f>", 0, "accepted\n"),
        ("calls.json", "call <f=a>b</f>", 3, "refused\n"),
        ("answer.ebnf", "yes", 0, "accepted\n"),
        ("answer.gbnf", "maybe", 3, "refused\n"),
    ],
)
def test_a_text_is_tried(files: Path, name: str, text: str, code: int, answer: str) -> None:
    result = run(str(files / name), "--accepts", text)
    assert (code, answer) == (result.exit_code, result.output)


def test_the_standard_input_is_read_as_what_from_says() -> None:
    assert "accepted\n" == run("-", "--from", "regex", "--accepts", "42", stdin="[0-9]+\n").output
    assert "accepted\n" == run("-", "--from", "ebnf", "--accepts", "a", stdin='root ::= "a"').output
    assert "valid: any_text\n" == run("-", stdin='{"type": "text"}').output


@pytest.mark.parametrize("target", ["ebnf", "gbnf", "lark"])
def test_a_grammar_is_printed_in_another_language(files: Path, target: str) -> None:
    result = run(str(files / "answer.ebnf"), "--to", target)
    assert 0 == result.exit_code
    assert ("start" if target == "lark" else "root") in result.stdout


def test_a_structural_tag_is_printed_as_json(files: Path) -> None:
    result = run(str(files / "answer.ebnf"), "--to", "structural-tag")
    assert 0 == result.exit_code
    assert "grammar" == load_format(result.stdout).type


def test_bytes_that_are_no_text_are_refused(files: Path) -> None:
    result = run(str(files / "binary.json"))
    assert (1, True) == (result.exit_code, "not UTF-8" in result.stderr)


def test_a_missing_file_is_a_usage_error(files: Path) -> None:
    assert 2 == run(str(files / "none.json")).exit_code


def test_what_is_not_exact_in_a_schema_is_explained() -> None:
    schema = {"type": "array", "uniqueItems": True}
    result = run("-", "--explain", stdin=json.dumps(schema))
    assert 3 == result.exit_code
    assert result.output.startswith("widened     /uniqueItems  ")
    assert "1 of 2 keywords are exact" in result.output
    fmt = {"type": "json_schema", "json_schema": {"schema": {"type": "array"}}}
    exact = run("-", "--explain", stdin=json.dumps(fmt))
    assert (0, "1 of 1 keywords are exact\n") == (exact.exit_code, exact.output)
    assert 1 == run("-", "--explain", stdin="{").exit_code


def test_a_format_is_explained_in_its_own_style() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}, "additionalProperties": True}
    fmt = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    assert 0 == run("-", "--explain", stdin=json.dumps(fmt)).exit_code
    marked = {"type": "json_schema", "json_schema": schema, "style": "minimax_m3_xml"}
    assert "cannot name properties that are not declared" in run("-", "--explain", stdin=json.dumps(marked)).output
