"""`dovetail parse --response-template`: what it prints and how it exits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dovetail.cli import main

TEMPLATE = {
    "start_anchor": "A:",
    "fields": {
        "thinking": {"open": "<think>", "close": "</think>"},
        "calls": {
            "open_pattern": "<call (?P<name>\\w+)>",
            "close": "</>",
            "content": "kv-lines",
            "transform": {"function": {"name": "{name}", "arguments": "{content}"}},
        },
        "count": {"open": "[", "close": "]", "content": "int"},
        "content": {},
    },
}
TOOLS = [{"name": "f", "parameters": {"properties": {"n": {"type": "integer"}}}}]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "template.json").write_text(json.dumps(TEMPLATE))
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"response_template": TEMPLATE}))
    (tmp_path / "odd.json").write_text(json.dumps({**TEMPLATE, "fields": {"x": {"open": "<", "repeats": 1}}}))
    (tmp_path / "wrong.json").write_text('{"fields": {}}')
    (tmp_path / "text.json").write_text("hello")
    (tmp_path / "tools.json").write_text(json.dumps(TOOLS))
    return tmp_path


def run(file: Path, *arguments: str, stdin: str | bytes = "") -> Result:
    command = ["parse", "--response-template", str(file), *arguments]
    return CliRunner().invoke(main, command, input=stdin, prog_name="dovetail")


@pytest.mark.parametrize("name", ["template.json", "tokenizer_config.json", ""])
def test_a_message_is_printed(files: Path, name: str) -> None:
    result = run(files / name, stdin="<think>hm</think>Grüße")
    assert (0, {"thinking": "hm", "content": "Grüße"}) == (result.exit_code, json.loads(result.stdout))


def test_the_message_takes_the_shape_of_an_interface(files: Path) -> None:
    result = run(files / "template.json", "--as", "openai", stdin="<think>hm</think>hello")
    assert {"role": "assistant", "content": "hello", "reasoning": "hm", "reasoning_content": "hm"} == json.loads(
        result.stdout
    )


def test_events_are_printed_one_a_line(files: Path) -> None:
    result = run(files / "template.json", "--stream", "--prompt", "A:<think>", stdin="hm</think>")
    events = [json.loads(line) for line in result.stdout.splitlines()]
    assert ["region_open", "region_chunk", "region_close"] == [event["type"] for event in events]
    assert [-7, 0, 2] == [event["start"] for event in events]


def test_arguments_are_cast(files: Path) -> None:
    result = run(files / "template.json", "--tools", str(files / "tools.json"), stdin="<call f>n: 7</>")
    assert {"n": 7} == json.loads(result.stdout)["calls"]["function"]["arguments"]


def test_what_does_not_fit_is_kept_and_told_or_refused(files: Path) -> None:
    result = run(files / "template.json", stdin="[a]")
    assert (0, {"count": "a"}) == (result.exit_code, json.loads(result.stdout))
    assert "characters 1 to 2: the region of count cannot be read" in result.stderr
    result = run(files / "template.json", "--strict", stdin="[a]")
    assert 1 == result.exit_code
    assert result.stderr.startswith("ResponseError: the region of count cannot be read")


def test_bytes_that_are_no_text_are_replaced(files: Path) -> None:
    assert {"content": "a\ufffd"} == json.loads(run(files / "template.json", stdin=b"a\xc3").stdout)


def test_notes_are_told(files: Path) -> None:
    assert "note: /fields/x/repeats: 1 is read as True" in run(files / "odd.json").stderr


@pytest.mark.parametrize(
    ("name", "words"), [("wrong.json", "fields must be an object"), ("text.json", "the file is not JSON")]
)
def test_a_wrong_file_is_told(files: Path, name: str, words: str) -> None:
    result = run(files / name)
    assert 1 == result.exit_code
    assert words in result.stderr


def test_wrong_tools_are_told(files: Path) -> None:
    result = run(files / "template.json", "--tools", str(files / "text.json"))
    assert 1 == result.exit_code
    assert "give it a JSON list of tools" in result.stderr
