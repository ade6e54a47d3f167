"""`dovetail demo` shows a template, its dialect, and turns that are accepted and read back; plainly when piped."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from rich.console import Console

from dovetail import dialects
from dovetail.cli import main
from dovetail.cli.demo_screen import Screen, painted


def demo(*arguments: str) -> str:
    result = CliRunner().invoke(main, ["demo", "--fast", *arguments])
    assert result.exit_code == 0, result.output
    return result.output


def parts(output: str, name: str) -> list[str]:
    """What stands behind a name, line for line."""
    return [line.split(maxsplit=1)[1] for line in output.splitlines() if line.startswith(f"  {name} ")]


@pytest.mark.parametrize("seed", range(6))
def test_every_turn_is_accepted_and_read_back_whatever_the_seed(seed: int) -> None:
    assert "\n5 of 5 turns accepted by their formats and read without a remark\n" in demo("--seed", str(seed))


def test_the_template_is_shown_with_its_regions_and_its_proof() -> None:
    output = demo()
    assert "{%- if message.reasoning_content %}<muse>" in output
    assert "They ask about Paris." == parts(output, "reasoning")[0]
    assert "<|use|>get_weather<|with|>" == parts(output, "markup")[2]
    assert parts(output, "constraint")[0].startswith("yes")


def test_calls_and_the_answer_fit_what_was_asked_for() -> None:
    output = demo()
    calls = [json.loads(call.removeprefix("get_weather ")) for call in parts(output, "call") if call != "yes"]
    assert len(calls) >= 4
    assert {"Lisbon", "Oslo", "Quito"} >= {call["city"] for call in calls}
    (answer,) = [json.loads(text) for text in parts(output, "content") if text.startswith("{")]
    assert {"sky", "degrees", "warnings"} == answer.keys()


def test_piped_output_is_plain_and_repeats() -> None:
    first = CliRunner().invoke(main, ["demo", "--seed", "3"]).output
    assert "\x1b" not in first
    assert first == demo("--seed", "3")


def test_the_screen_shows_every_byte_once_and_the_message_beside_it() -> None:
    text = '<think>\nHm.\n</think>\n\nÜber<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>'
    parser, screen, console = dialects.get("qwen_3").parser(prompt=""), Screen(), Console(width=200)
    for byte in text.encode():
        screen.add(bytes([byte]), parser.feed(bytes([byte])))
    assert text.replace("\n", "⏎") == str(screen._painted())
    screen.add(b"", parser.close())
    assert text.replace("\n", "⏎") == str(screen._painted())
    with console.capture() as shown:
        console.print(screen.side_by_side(parser.message))
    assert 'f {"a": 1}' in shown.get()


def test_a_narrow_screen_cuts_nothing_off() -> None:
    parser, screen, console = dialects.get("qwen_3").parser(prompt=""), Screen(), Console(width=60)
    screen.add(b"x" * 500, parser.feed(b"x" * 500))
    with console.capture() as shown:
        console.print(screen.side_by_side(parser.message))
    assert 1000 == shown.get().count("x")


def test_no_output_steers_the_terminal() -> None:
    assert "a⏎\\x1b[2J" == str(painted("content", "a\n\x1b[2J"))
