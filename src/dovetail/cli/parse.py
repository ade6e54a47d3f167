"""`dovetail parse`: what a model said, as a message or as events."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click
from rich.console import Console
from rich.text import Text

from dovetail import dialects
from dovetail.cli.parse_template import parse_with_template
from dovetail.cli.shapes import SHAPES, shaped
from dovetail.dialects.families import FAMILIES
from dovetail.errors import InputError
from dovetail.parsing import Event

_CHUNK = 1 << 16
_STYLES = {"content": "default", "reasoning": "magenta", "tool_call": "cyan", "": "bright_black"}


@click.command(epilog=f"Dialects: {', '.join(sorted(family.name for family in FAMILIES))}")
@click.option("--dialect", "name", metavar="NAME", help="How the model talks; see below.")
@click.option(
    "--response-template",
    "template",
    metavar="FILE",
    type=click.Path(exists=True, path_type=Path),
    help="Read by a response template instead: a file, a tokenizer_config.json, or a tokenizer's folder.",
)
@click.option(
    "--tools",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The tools of the request, a list in JSON.",
)
@click.option("--stream", is_flag=True, help="Print events while the output comes, one JSON object a line.")
@click.option("--as", "shape", type=click.Choice(SHAPES), default="message", help="The shape of the message.")
@click.option("--prompt", metavar="TEXT", help="What the prompt ends with, such as <think>.")
@click.option("--cut", is_flag=True, help="The output was cut off by a limit.")
@click.option("--strict", is_flag=True, help="Refuse what the dialect's format would not allow.")
def parse(
    name: str | None,
    template: Path | None,
    tools: Path | None,
    stream: bool,
    shape: str,
    prompt: str | None,
    cut: bool,
    strict: bool,
) -> None:
    """Read what a model said from the standard input, and print it as JSON.

    The message has content, reasoning and tool calls. What could not be read as it stands is text, or a call with
    "complete": false, and a diagnostic tells where and why. FILE holds the list of tools of the request: with it
    arguments get their declared types, and calls of other tools are remarked on.

    \b
    Examples
      dovetail parse --dialect qwen_3 < output.txt
      dovetail parse --dialect qwen_3_coder --tools tools.json --as openai < output.txt
      dovetail parse --dialect deepseek_r1 --prompt '<think>' < output.txt
      dovetail parse --response-template tokenizer_config.json < output.txt
      some-model | dovetail parse --dialect harmony --stream

    \b
    Exit codes
      0  the output was read
      1  the tools are wrong, there is no such dialect, or a strict reader refused the output
      2  the command line is wrong
    """
    if (name is None) == (template is None):
        raise click.UsageError("Give either --dialect NAME or --response-template FILE.")
    if template is not None:
        parse_with_template(template, _tools(tools), stream, shape, prompt, strict, sys.stdin.buffer)
        return
    assert name is not None
    parser = dialects.get(name).parser(_tools(tools), prompt, strict=strict)
    printer = _Printer(sys.stdout.isatty())
    for chunk in _chunks(sys.stdin.buffer):
        events = parser.feed(chunk)
        if stream:
            printer.events(events)
    last = parser.close("length" if cut else "stop")
    if stream:
        printer.events(last)
    else:
        printer.message(shaped(parser.message, shape))


class _Printer:
    """JSON, with colors on a terminal."""

    def __init__(self, colored: bool) -> None:
        self._console = Console() if colored else None

    def events(self, events: list[Event]) -> None:
        for event in events:
            line = json.dumps(_as_json(event), ensure_ascii=False)
            if self._console:
                self._console.print(Text(line, _STYLES[event.region]), soft_wrap=True)
            else:
                click.echo(line)

    def message(self, value: Any) -> None:
        text = json.dumps(value, ensure_ascii=False, indent=2)
        if self._console:
            self._console.print_json(text, ensure_ascii=False)
        else:
            click.echo(text)


def _chunks(source: BinaryIO) -> Iterator[bytes]:
    """What is there, as soon as it is there."""
    read = getattr(source, "read1", source.read)
    while chunk := read(_CHUNK):
        yield chunk


def _tools(file: Path | None) -> Any:
    if file is None:
        return None
    try:
        return json.loads(file.read_bytes())
    except ValueError as error:
        raise InputError(f"the file is not JSON: {error}", str(file), "give it a JSON list of tools") from None


def _as_json(event: Event) -> dict[str, Any]:
    """An event without the fields that say nothing."""
    fields: dict[str, Any] = {"kind": event.kind, "region": event.region, "start": event.start, "end": event.end}
    if event.text:
        fields["text"] = event.text
    if event.call_index >= 0:
        fields["call_index"] = event.call_index
    if event.call is not None:
        fields["call"] = dataclasses.asdict(event.call)
    return fields
