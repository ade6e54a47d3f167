"""Outputs and prompts of llama.cpp's tests, with dialects that were derived from the chat templates.

Outputs are compared as llama.cpp compares: names and ids exact, text stripped at both ends, arguments as JSON values.
"""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

import dovetail as dt
from dovetail.templates.analysis import analyze_template
from dovetail.templates.prompts import generation_prompt
from dovetail.templates.render import ChatTemplate

# The templates of which some parts are broken are read all the same.
pytestmark = pytest.mark.filterwarnings("ignore::dovetail.UnprovenWarning")

DIFFERENCES = tomllib.loads((Path(__file__).parent.parent / "known_differences.toml").read_text())["chat_cases"]


def read(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def value(arguments: str) -> Any:
    try:
        return json.loads(arguments)
    except ValueError:
        return None


def said(message: dict[str, Any]) -> tuple[str, str, list[Any]]:
    calls = [call.get("function", call) for call in message.get("tool_calls") or []]
    return (
        (message["content"] or "").strip(),
        message.get("reasoning_content", "").strip(),
        [(call["name"], value(call["arguments"])) for call in calls],
    )


def agrees(folder: Path, record: dict[str, Any]) -> bool:
    inputs, expected = record["inputs"], record["expect"]
    tools = [{"type": "function", "function": tool} for tool in inputs["tools"]] or None
    options: dict[str, Any] = {"prompt": record["prompt"], "inline_reasoning": inputs["reasoning_format"] == "none"}
    if inputs.get("json_schema"):
        schema = inputs["json_schema"]
        schema = json.loads(schema) if isinstance(schema, str) else schema
        options["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    parser = dt.analyze((folder / "templates" / record["template"]).read_text()).parser(tools, **options)
    parser.feed(record["input"])
    message = parser.message if record["is_partial"] else parser.finish()
    ids = [call["id"] for call in expected["tool_calls"]]
    same_ids = not any(ids) or [call.id for call in message.tool_calls] == ids
    return same_ids and said(message.to_openai()) == said(expected)


def test_outputs_are_read_as_expected_but_for_listed_differences(conformance: Path) -> None:
    folder = conformance / "llama_cpp"
    records = [record for record in read(folder / "chat_cases.jsonl") if record["kind"] == "parse"]
    found = {record["id"] for record in records if not agrees(folder, record)}
    assert len(records) == 350
    assert DIFFERENCES.keys() == found


def wire(message: dict[str, Any]) -> dict[str, Any]:
    """A recorded message as a chat template takes it."""
    made = {key: text for key, text in message.items() if key in ("role", "reasoning_content") and text}
    made["content"] = message["content"]
    if message.get("tool_name"):
        made |= {"name": message["tool_name"], "tool_call_id": message["tool_call_id"]}
    if message["tool_calls"]:
        made["tool_calls"] = [
            {"type": "function", "function": {"name": call["name"], "arguments": json.loads(call["arguments"])}}
            for call in message["tool_calls"]
        ]
    return made


def test_generation_prompts_agree(conformance: Path) -> None:
    folder = conformance / "llama_cpp"
    records = read(folder / "generation_prompt_cases.jsonl")
    for record in records:
        inputs = record["inputs"]
        source = (folder / "templates" / record["template"]).read_text()
        made = generation_prompt(
            ChatTemplate(source),
            analyze_template(source),
            [wire(message) for message in inputs["messages"]],
            thinking=inputs["enable_thinking"],
            go_on=inputs["continue_final_message"].replace("none", ""),
        )
        assert record["expect_generation_prompt"] == made, record["id"]
    assert len(records) == 39
