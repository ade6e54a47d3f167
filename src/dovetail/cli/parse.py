"""`dovetail parse`: what a model said, as a message or as events."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click

from dovetail.cli.parse_template import parse_with_template
from dovetail.errors import InputError


@click.command()
@click.option(
    "--response-template",
    "template",
    metavar="FILE",
    required=True,
    type=click.Path(exists=True, path_type=Path),
    help="A response template, or the tokenizer that has one: its folder or tokenizer_config.json.",
)
@click.option(
    "--tools",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The tools of the request, a list in JSON.",
)
@click.option("--stream", is_flag=True, help="Print events while the output comes, one JSON object a line.")
@click.option("--prompt", metavar="TEXT", help="The prompt, or what it ends with, such as <think>.")
@click.option("--strict", is_flag=True, help="Refuse what the template cannot read.")
def parse(template: Path, tools: Path | None, stream: bool, prompt: str | None, strict: bool) -> None:
    """Read what a model said from the standard input, and print it as JSON.

    What the template cannot read stands as text in place of the value, and the standard error tells where and why. With
    the tools of the request arguments get their declared types.

    \b
    Examples
      dovetail parse --response-template template.json < output.txt
      dovetail parse --response-template model/ --tools tools.json < output.txt
      some-model | dovetail parse --response-template tokenizer_config.json --stream

    \b
    Exit codes
      0  the output was read
      1  the template or the tools are wrong, or the output did not fit and --strict was given
      2  the command line is wrong
    """
    parse_with_template(template, _tools(tools), stream, prompt, strict, sys.stdin.buffer)


def _tools(file: Path | None) -> Any:
    if file is None:
        return None
    try:
        return json.loads(file.read_bytes())
    except ValueError as error:
        raise InputError(f"the file is not JSON: {error}", str(file), "give it a JSON list of tools") from None
