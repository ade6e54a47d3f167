"""`dovetail parse --response-template`: what a model said, read by a response template."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import click

from dovetail.cli.shapes import shaped
from dovetail.errors import InputError
from dovetail.response_templates import ResponseParser, ResponseTemplate

_CHUNK = 1 << 16


def load_template(file: Path) -> ResponseTemplate:
    """From a file that holds the template, or from a tokenizer: its folder or its `tokenizer_config.json`."""
    if file.is_dir():
        return ResponseTemplate.of_tokenizer(file)
    try:
        content = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise InputError(f"the file is not JSON: {error}", str(file), "give it a response template") from None
    holds_tokenizer = isinstance(content, dict) and "fields" not in content
    return ResponseTemplate.of_tokenizer(file) if holds_tokenizer else ResponseTemplate.load(content)


def parse_with_template(
    file: Path, tools: Any, stream: bool, shape: str, prompt: str | None, strict: bool, source: BinaryIO
) -> None:
    """Print the message, or its events as they come; what is only noted goes to the standard error.

    The shape "message" has the fields that the template names.
    """
    template = load_template(file)
    for note in template.notes:
        click.echo(f"note: {note}", err=True)
    parser = ResponseParser(
        template, prompt or "", tools=tools, on_malformed="raise" if strict else "keep", spans=stream
    )
    _print_events(parser.initial_events if stream else [])
    for chunk in _text(source):
        events = parser.feed(chunk)
        _print_events(events if stream else [])
    message, last = parser.finalize()
    _print_events(last if stream else [])
    if not stream:
        shown = message if shape == "message" else shaped(parser.to_message(), shape)
        click.echo(json.dumps(shown, ensure_ascii=False, indent=2))
    for diagnostic in parser.diagnostics:
        click.echo(f"characters {diagnostic.start} to {diagnostic.end}: {diagnostic.problem}", err=True)


def _print_events(events: list[dict[str, Any]]) -> None:
    for event in events:
        click.echo(json.dumps(event, ensure_ascii=False))


def _text(source: BinaryIO) -> Iterator[str]:
    """What is there, as soon as it is there; a character may come in two pieces."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    read = getattr(source, "read1", source.read)
    while chunk := read(_CHUNK):
        yield decoder.decode(chunk)
    yield decoder.decode(b"", final=True)
