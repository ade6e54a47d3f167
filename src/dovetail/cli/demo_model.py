"""The tour of `dovetail demo --model`: a real model with and without masks, a call, and a run that reads a file."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tempfile
from contextlib import aclosing
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from dovetail.cli.demo_screen import painted
from dovetail.cli.loading import load_with_bar
from dovetail.messages import Message, from_json
from dovetail.models import Model, Sampling, plan_turn

_MAX_TOKENS = 96
_PERSON = {
    "type": "object",
    "properties": {"first_name": {"type": "string"}, "age": {"type": "integer"}, "city": {"type": "string"}},
    "required": ["first_name", "age", "city"],
}
_REVIEW = {
    "type": "object",
    "properties": {"mood": {"enum": ["positive", "negative", "neutral"]}, "stars": {"enum": [1, 2, 3, 4, 5]}},
    "required": ["mood", "stars"],
}
_QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("Extract first_name, age and city as JSON: Maria is 34 years old and lives in Porto.", _PERSON),
    ("Give mood and stars of this review as JSON: The best meal of my life!", _REVIEW),
]
_WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
    },
}
_NOTE = "The project Otter was begun in 2019. Its leader is Mia Lund.\n"
_FACTS = {
    "type": "object",
    "properties": {"leader": {"type": "string"}, "year": {"type": "integer"}},
    "required": ["leader", "year"],
}


def tour(console: Console, name: str) -> bool:
    """Show what masks do for a real model; whether everything that was held fits."""
    model = load_with_bar(name)
    console.print(f"{model.name} answers, without a mask and with one; temperature 0, at most {_MAX_TOKENS} tokens.\n")
    try:
        fits = [_side_by_side(console, model, question, schema) for question, schema in _QUESTIONS]
        fits.append(_call(console, model))
    finally:
        model.close()
    fits.append(_run(console, name))
    console.print(f"{sum(fits)} of {len(fits)} answers under a mask fit and ended")
    return all(fits)


def _side_by_side(console: Console, model: Model, question: str, schema: dict[str, Any]) -> bool:
    _heading(console, question)
    with console.status("it answers without a mask"):
        free, _ = asyncio.run(_answered(model, question))
    with console.status("it answers with a mask"):
        answer = {"type": "json_schema", "json_schema": schema}
        held, message = asyncio.run(_answered(model, question, response_format=answer))
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(ratio=1)
    table.add_column(ratio=1)
    table.add_row(
        Panel(painted("content", free), title=f"without: {_verdict(free, schema)}", title_align="left"),
        Panel(painted("content", held), title=f"with: {_verdict(held, schema)}", title_align="left"),
    )
    console.print(table)
    return _fits(message.content, schema)


def _call(console: Console, model: Model) -> bool:
    question = "What is the weather in Rome?"
    _heading(console, f"{question}  (with a tool)")
    asked = {"tools": [_WEATHER], "tool_choice": "required", "parallel_tool_calls": False}
    with console.status("it calls"):
        text, message = asyncio.run(_answered(model, question, **asked))
    console.print(Panel(painted("content", text), title="output", title_align="left"))
    for call in message.tool_calls:
        console.print(Text(f"  call  {call.name} ", "bold") + painted("arguments", call.arguments))
    console.print()
    return [call.name for call in message.tool_calls] == ["get_weather"]


def _run(console: Console, name: str) -> bool:
    """A headless run in a folder with a note; standard output has the value and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "note.txt").write_text(_NOTE)
        prompt = "Extract leader and year from this note: @note.txt"
        command = ["run", prompt, "--model", name, "--json-schema", json.dumps(_FACTS), "--max-tokens", "200", "-q"]
        _heading(console, f"dovetail run {prompt!r} --model {name} --json-schema ...")
        with console.status("it runs"):
            done = subprocess.run(
                [sys.executable, "-m", "dovetail", *command, "--bare"],
                cwd=folder,
                capture_output=True,
                text=True,
                check=False,
            )
    console.print(painted("content", done.stdout.strip() or done.stderr.strip()), soft_wrap=True)
    console.print()
    return done.returncode == 0 and _fits(done.stdout, _FACTS)


async def _answered(model: Model, question: str, **asked: Any) -> tuple[str, Message]:
    """What the model says, and the message that is read from it."""
    turn = plan_turn(model, [{"role": "user", "content": question}], reasoning="disabled", **asked)
    parser, data = turn.parser(), b""
    async with aclosing(turn.steps(Sampling(0.0, max_tokens=_MAX_TOKENS))) as steps:
        async for step in steps:
            data += step.data
            parser.feed(step.data)
    parser.close()
    return data.decode("utf-8", "replace").strip(), parser.message


def _verdict(text: str, schema: dict[str, Any]) -> str:
    return "fits the schema" if _fits(text, schema) else "does not fit the schema"


def _fits(text: str, schema: dict[str, Any]) -> bool:
    import jsonschema_rs

    try:
        return jsonschema_rs.validator_for(schema).is_valid(from_json(text))
    except ValueError:
        return False


def _heading(console: Console, text: str) -> None:
    console.print(Text(text, "bold"), soft_wrap=True)
