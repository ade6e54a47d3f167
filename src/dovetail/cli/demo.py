"""`dovetail demo`: what the engine does, on a screen."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

import click
from rich.console import Console
from rich.text import Text

from dovetail.engine import compile
from dovetail.models import Speaker


class _Scene(NamedTuple):
    title: str
    format: dict[str, Any]


_WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "maxLength": 20},
        "days": {"type": "integer"},
        "unit": {"enum": ["celsius", "fahrenheit"]},
    },
    "required": ["city", "unit"],
}
_SCENES = [
    _Scene(
        "a JSON object that fits a schema",
        {"type": "json_schema", "json_schema": _WEATHER, "max_whitespace_cnt": 1},
    ),
    _Scene(
        "thinking, then a tool call",
        {
            "type": "sequence",
            "elements": [
                {"type": "tag", "begin": "<think>", "content": {"type": "any_text"}, "end": "</think>"},
                {
                    "type": "tag",
                    "begin": '<tool_call>{"name": "get_weather", "arguments": ',
                    "content": {"type": "json_schema", "json_schema": _WEATHER, "max_whitespace_cnt": 1},
                    "end": "}</tool_call>",
                },
            ],
        },
    ),
    _Scene("a regular expression", {"type": "regex", "pattern": r"[A-Z]{3}-\d{4}( (north|south))?"}),
    _Scene(
        "an EBNF grammar",
        {"type": "grammar", "grammar": 'root ::= term (" + " term)*\nterm ::= [0-9]{1,3} | "(" root ")"'},
    ),
    _Scene(
        "a tag whose marks are single tokens",
        {
            "type": "tag",
            "begin": {"type": "token", "token": "<|start|>"},
            "content": {"type": "any_tokens", "max_tokens": 12},
            "end": {"type": "token", "token": "<|return|>"},
        },
    ),
]


@click.command()
@click.option("--fast", is_flag=True, help="Print without the pace of a live model.")
@click.option("--seed", default=13, show_default=True, help="The same seed says the same things.")
def demo(fast: bool, seed: int) -> None:
    """Let a random speaker utter a few formats, live, and check that each output is accepted.

    The speaker has no weights: it draws tokens at random. Only the masks make sense of what it says.
    """
    console = Console(highlight=False, soft_wrap=True)
    speaker = Speaker(seed)
    live = console.is_terminal and not fast
    accepted = sum(_show(console, speaker, scene, live) for scene in _SCENES)
    console.print(f"{accepted} of {len(_SCENES)} outputs accepted")
    if accepted < len(_SCENES):
        raise click.exceptions.Exit(1)


def _show(console: Console, speaker: Speaker, scene: _Scene, live: bool) -> bool:
    console.print(Text(scene.title, style="bold"))
    ids: list[int] = []
    pending = b""  # a character may be spread over several tokens
    for token in speaker.stream(scene.format):
        ids.append(token)
        special = token in speaker.vocabulary.special_tokens.values()
        pending += speaker.tokens[token]
        if live:
            time.sleep(0.02)
        if not special and not _is_whole(pending):
            continue
        console.print(Text(_visible(pending), style="magenta" if special else "cyan"), end="")
        pending = b""
    accepted = _accepts(speaker, scene, ids)
    mark = Text("accepted", style="green") if accepted else Text("refused", style="bold red")
    console.print(Text(f"\n{len(ids)} tokens, ") + mark + Text("\n"))
    return accepted


def _accepts(speaker: Speaker, scene: _Scene, ids: list[int]) -> bool:
    """Whether a fresh matcher takes the tokens from first to last."""
    matcher = compile(scene.format, speaker.vocabulary).matcher()
    return matcher.validate(ids) == len(ids) and all(map(matcher.accept, ids)) and matcher.is_finished


def _is_whole(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.reason != "unexpected end of data"
    return True


def _visible(data: bytes) -> str:
    """The text with control characters shown, so that no output can steer the terminal."""
    text = data.decode("utf-8", "replace")
    return "".join(letter if letter.isprintable() or letter == "\n" else f"\\x{ord(letter):02x}" for letter in text)
