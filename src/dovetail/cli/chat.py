"""`dovetail chat`: talk with a local model in the terminal."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import click
from rich.console import Console
from rich.text import Text

from dovetail.cli.loading import load_with_bar
from dovetail.errors import InputError

_STYLES = {"reasoning": "magenta", "content": "default", "tool_call": "cyan"}


@click.command()
@click.argument("question", nargs=-1)
@click.option("-m", "--model", default="smollm2", show_default=True, help="A file, a directory, a name, or speaker.")
@click.option("--dialect", metavar="NAME", help="How the model talks; found out from its template if left out.")
@click.option("--json-schema", metavar="JSON|@FILE", help="The schema that every answer has to fit.")
@click.option("--tools", metavar="FILE", help="A Python file whose functions the model may call.")
@click.option("--tool-choice", type=click.Choice(["auto", "required", "none"]), default="auto", help="May it, must it?")
@click.option("--system", metavar="TEXT", default="", help="What is said before the first question.")
@click.option("--reasoning", is_flag=True, help="Let the model think first, if it can.")
@click.option("--temperature", default=0.0, show_default=True, type=click.FloatRange(0, 2), help="How freely it draws.")
@click.option("--repetition-penalty", default=1.1, show_default=True, help="Against saying the same again; 1 for none.")
@click.option("--seed", type=int, help="The same seed says the same.")
@click.option("--max-tokens", default=512, show_default=True, type=click.IntRange(1), help="Tokens in an answer.")
def chat(
    question: tuple[str, ...],
    model: str,
    dialect: str | None,
    json_schema: str | None,
    tools: str | None,
    tool_choice: str,
    system: str,
    **drawing: Any,
) -> None:
    """Talk with a local model; what it says is shown while it comes, in the colors of its regions.

    With QUESTION one answer is given; otherwise lines are read until the end of the input, and Ctrl-C stops an answer,
    or the chat where none is being written. The functions of a --tools
    file are called with arguments that fit their signatures, and their results go back to the model. Where the chat
    template of the model has no place for tools, they are told in the system prompt.

    \b
    Examples
      dovetail chat
      dovetail chat "Name three planets." --json-schema '{"type": "array", "items": {"type": "string"}, "minItems": 3}'
      dovetail chat --model ./Qwen3-0.6B-Q8_0.gguf --tools weather.py
    """
    from dovetail.models.answers import GenerateOptions, messages_of
    from dovetail.models.conversation import Conversation

    console = Console(highlight=False, soft_wrap=True)
    functions: list[Callable[..., Any]] = [] if tools is None else functions_of(Path(tools))
    answer = None if json_schema is None else {"type": "json_schema", "json_schema": _schema(json_schema)}
    options = cast(GenerateOptions, drawing)
    loaded = load_with_bar(model, dialect)
    try:
        talk = Conversation(loaded, functions, response_format=answer, options=options)
        asked: Iterable[str] = [" ".join(question)] if question else _lines(console)
        for line in asked:
            turns = messages_of(line, "" if talk.messages else system)
            try:
                asyncio.run(_reply(console, talk, turns, tool_choice if functions else "auto"))
            except (KeyboardInterrupt, InputError) as error:
                if question or not _is_typed():
                    raise
                _tell_break(error)
    finally:
        loaded.close()


def functions_of(file: Path) -> list[Callable[..., Any]]:
    """The public functions of a Python file, in the order in which they stand there."""
    spec = importlib.util.spec_from_file_location("dovetail_chat_tools", file)
    if spec is None or spec.loader is None or not file.is_file():
        raise InputError(f"there is no Python file {str(file)!r}", "--tools", "name a file that ends in .py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        problem = f"{file} cannot be run: {type(error).__name__}: {error}"
        raise InputError(problem, "--tools", "run it with python first") from error
    functions: list[Callable[..., Any]] = [
        value
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == spec.name and not name.startswith("_")
    ]
    if not functions:
        raise InputError(f"{file} has no public function", "--tools", "define one, with types and a docstring")
    return functions


def _schema(given: str) -> Any:
    from dovetail.messages import from_json

    try:
        return from_json(Path(given[1:]).read_text("utf-8") if given.startswith("@") else given)
    except OSError as error:
        raise InputError(f"cannot read {given[1:]}: {error.strerror}", "--json-schema", "name a file") from error
    except ValueError as error:
        raise InputError(f"this is not JSON: {error}", "--json-schema", "give a JSON Schema, or @FILE") from error


def _is_typed() -> bool:
    """Whether a person types the lines."""
    return sys.stdin.isatty()


def _lines(console: Console) -> Iterator[str]:
    """What a person types, or a pipe brings."""
    while True:
        try:
            line = console.input("[bold]> [/bold]") if _is_typed() else sys.stdin.readline()
        except EOFError:
            return
        if not line and not _is_typed():
            return
        if line.strip():
            yield line.strip()


async def _reply(console: Console, talk: Any, turns: list[dict[str, Any]], choice: str) -> None:
    from dovetail.models.conversation import FunctionCall, TurnEnd

    region = ""

    def newline() -> None:
        if region:
            console.print()

    async with aclosing(talk.reply(turns, choice)) as events:
        async for event in events:
            if isinstance(event, TurnEnd):
                newline()
                region = ""
                _tell_end(event)
            elif isinstance(event, FunctionCall):
                console.print(Text(f"  = {_clean(event.told)}", "green" if not event.error else "red"))
            elif event.kind == "open" and event.region == "tool_call" and event.call is not None:
                newline()
                console.print(Text(f"  {_clean(event.call.name)} ", "bold cyan"), end="")
                region = event.region
            elif event.kind == "text" and event.region and event.text:
                if region != event.region:
                    newline()
                    region = event.region
                console.print(Text(_clean(event.text), _STYLES[event.region]), end="")


def _tell_end(end: Any) -> None:
    """What the turn has cost, on standard error: standard output has what was said."""
    rate = end.tokens / end.seconds if end.seconds else 0.0
    led = ", led to its end" if end.led else ", cut off" if end.finish == "length" else ""
    notes = "".join(f"; {note.text}" for note in end.notes)
    text = f"{end.prompt_tokens} + {end.tokens} tokens, {rate:.1f} tokens/s{led}{notes}"
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text(text, "bright_black"))


def _tell_break(error: BaseException) -> None:
    """Why an answer broke off; the chat goes on as if it had not been asked for."""
    text = "stopped, and forgotten; Ctrl-D ends the chat" if isinstance(error, KeyboardInterrupt) else str(error)
    Console(stderr=True, highlight=False, soft_wrap=True).print(Text(f"\n{text}", "bright_black"))


def _clean(text: str) -> str:
    """The text without what could steer a terminal."""
    return "".join(letter if letter.isprintable() or letter == "\n" else f"\\x{ord(letter):02x}" for letter in text)
