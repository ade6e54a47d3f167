"""`dovetail parse`: what it prints and how it exits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dovetail.cli import main
from dovetail.cli.parse import _Printer
from dovetail.parsing import Event

OUTPUT = '<think>hm</think>\n\nHi é\n<tool_call>\n{"name": "f", "arguments": {"a": "1"}}\n</tool_call>'
TOOLS = [{"type": "function", "function": {"name": "g"}}]


def run(*arguments: str, stdin: str | bytes = OUTPUT) -> Result:
    return CliRunner().invoke(main, ["parse", "--dialect", "qwen_3", *arguments], input=stdin, prog_name="dovetail")


def message(*arguments: str, stdin: str | bytes = OUTPUT) -> Any:
    result = run(*arguments, stdin=stdin)
    assert 0 == result.exit_code, result.output
    return json.loads(result.output)


def test_a_message_is_printed() -> None:
    printed = message()
    assert ("Hi é", "hm", "tool_calls") == (printed["content"], printed["reasoning"], printed["finish_reason"])
    call = {"name": "f", "arguments": '{"a": "1"}', "value": {"a": "1"}, "id": "", "complete": True}
    assert [call] == printed["tool_calls"]


def test_events_are_printed_one_a_line_and_tile_the_output() -> None:
    result = run("--stream")
    events = [json.loads(line) for line in result.output.splitlines()]
    assert len(OUTPUT.encode()) == sum(event["end"] - event["start"] for event in events)
    assert "Hi é" == "".join(event.get("text", "") for event in events if event["region"] == "content")
    assert "f" == next(event["call"]["name"] for event in events if event["kind"] == "close" and "call" in event)


SHAPES = [
    ("openai", lambda printed: printed["tool_calls"][0]["function"]["name"]),
    ("huggingface", lambda printed: printed["tool_calls"][0]["function"]["name"]),
    ("anthropic", lambda printed: printed["content"][-1]["name"]),
    ("responses", lambda printed: printed[-1]["name"]),
]


@pytest.mark.parametrize(("shape", "name"), SHAPES)
def test_a_message_has_the_shape_that_was_asked_for(shape: str, name: Any) -> None:
    assert "f" == name(message("--as", shape))


def test_tools_are_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    file.write_text(json.dumps(TOOLS))
    assert ["unknown_tool"] == [remark["code"] for remark in message("--tools", str(file))["diagnostics"]]


def test_the_prompt_and_a_cut_are_taken_into_account() -> None:
    printed = message("--prompt", "<think>", "--cut", stdin="still think")
    assert ("still think", "length") == (printed["reasoning"], printed["finish_reason"])


def test_bytes_that_are_no_text_are_read_all_the_same() -> None:
    assert "a\ufffd" == message(stdin=b"a\xff")["content"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--dialect", "klingon"), "there is no dialect 'klingon'"),
        (("--strict",), "the output leaves its format"),
    ],
)
def test_what_cannot_be_done_is_told(arguments: tuple[str, ...], words: str) -> None:
    result = run(*arguments, stdin="<think>a<think>")
    assert 1 == result.exit_code
    assert words in result.output


def test_a_file_of_tools_that_is_no_json_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "tools.json"
    file.write_text("nope")
    result = run("--tools", str(file))
    assert (1, True) == (result.exit_code, "not JSON" in result.output)


def test_on_a_terminal_there_are_colors(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    printer = _Printer(colored=True)
    printer.events([Event("text", "reasoning", 0, 2, "hm")])
    printer.message({"content": "hi"})
    printed = capsys.readouterr().out
    assert "\x1b[" in printed
    assert "hm" in printed
