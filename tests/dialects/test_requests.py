"""Every form of tools, tool_choice and reasoning, and what makes none."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dovetail.dialects.requests import Request, Tool, read_request
from dovetail.errors import DialectError

SCHEMA = {"type": "object", "properties": {"q": {"type": "string"}}}
F = {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}
G = {"type": "function", "function": {"name": "g"}}
SEARCH = {"type": "web_search", "name": "browser.search", "parameters": SCHEMA}
OPEN = {"type": "web_open"}
ALL = [F, G, SEARCH, OPEN]

TOOLS = [
    # tool, what it becomes
    (F, Tool("f", SCHEMA)),
    (G, Tool("g", True)),
    ({"function": {"name": "f"}}, Tool("f", True)),
    ({"type": "function", "name": "f", "parameters": SCHEMA}, Tool("f", SCHEMA)),
    ({"type": "function", "function": {"name": "f", "parameters": True}}, Tool("f", True)),
    ({"type": "function", "function": {"name": "f", "parameters": SCHEMA, "strict": False}}, Tool("f", True)),
    ({"type": "function", "function": {"name": "f", "parameters": SCHEMA, "strict": True}}, Tool("f", SCHEMA)),
    (SEARCH, Tool("browser.search", SCHEMA, "web_search")),
    (OPEN, Tool("web_open", True, "web_open")),
]

CHOICES = [
    # tool_choice, names that are left, what has to be called
    ("auto", ["f", "g", "browser.search", "web_open"], "auto"),
    (None, ["f", "g", "browser.search", "web_open"], "auto"),
    ("none", [], "auto"),
    ("required", ["f", "g", "browser.search", "web_open"], "required"),
    ({"type": "function", "function": {"name": "g"}}, ["g"], "forced"),
    ({"type": "function", "name": "g"}, ["g"], "forced"),
    ({"type": "web_search"}, ["browser.search"], "forced"),
    (
        {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [G, {"type": "web_open"}]}},
        ["g", "web_open"],
        "auto",
    ),
    ({"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [F]}}, ["f"], "required"),
    ({"type": "allowed_tools", "mode": "required", "tools": [{"type": "function", "name": "f"}]}, ["f"], "required"),
]

REFUSED = [
    # changed arguments, words of the message, path
    ({"tools": "f"}, "must be a list", "/tools"),
    ({"tools": [5]}, "neither", "/tools/0"),
    ({"tools": [F, {"type": "function"}]}, "neither", "/tools/1"),
    ({"tools": [{"function": {}}]}, "name", "/tools/0/function/name"),
    ({"tools": [{"type": "function", "function": {"name": 5}}]}, "name", "/tools/0/function/name"),
    ({"tools": [{"type": "function", "function": {"name": "f", "parameters": []}}]}, "JSON Schema", "/parameters"),
    ({"tools": [{"type": "b", "parameters": 1}]}, "JSON Schema", "/tools/0/parameters"),
    ({"tools": [], "tool_choice": "required"}, "no tool to call", "/tools"),
    ({"tool_choice": "sometimes"}, "'sometimes'", "/tool_choice"),
    ({"tool_choice": {"type": "function", "function": {"name": "h"}}}, "'h', which is not in", "/tool_choice"),
    ({"tool_choice": {"type": "function"}}, "needs a name", "/tool_choice"),
    ({"tool_choice": {"type": "code"}}, "'code', which is not in", "/tool_choice"),
    ({"tools": [SEARCH, SEARCH], "tool_choice": {"type": "web_search"}}, "fits 2 tools", "/tool_choice"),
    ({"tool_choice": {"type": "allowed_tools"}}, "a mode and a list", "/tool_choice/allowed_tools"),
    (
        {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [{"type": "code"}]}}},
        "'code' is not in",
        "/tool_choice/allowed_tools/tools/0",
    ),
    (
        {"tool_choice": {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": []}}},
        "no tool to call",
        "/tools",
    ),
    ({"reasoning": "maybe"}, "'maybe'", "/reasoning"),
    ({"parallel_tool_calls": "no"}, "'no'", "/parallel_tool_calls"),
]


def read(
    tools: Any = ALL, tool_choice: Any = "auto", reasoning: Any = True, parallel_tool_calls: Any = True
) -> Request:
    return read_request(tools, tool_choice, reasoning, parallel_tool_calls)


@pytest.mark.parametrize(("given", "tool"), TOOLS)
def test_a_tool_in_any_form_is_one_value(given: dict[str, Any], tool: Tool) -> None:
    assert (tool,) == read([given]).tools


@pytest.mark.parametrize(("choice", "left", "called"), CHOICES)
def test_tool_choice_says_which_tools_are_left_and_whether_to_call(choice: Any, left: list[str], called: str) -> None:
    request = read(tool_choice=choice)
    assert left == [tool.name for tool in request.tools]
    assert called == request.choice


@pytest.mark.parametrize(
    ("given", "mode"),
    [(True, "enabled"), (False, "disabled"), ("enabled", "enabled"), ("disabled", "disabled"), ("auto", "auto")],
)
def test_reasoning_is_a_mode(given: Any, mode: str) -> None:
    assert mode == read(reasoning=given).reasoning


@pytest.mark.parametrize(("changed", "words", "path"), REFUSED)
def test_what_makes_no_sense_is_refused_where_it_stands(changed: dict[str, Any], words: str, path: str) -> None:
    with pytest.raises(DialectError, match=words) as caught:
        read(**changed)
    assert path in caught.value.path
    assert isinstance(caught.value, ValueError)


def test_the_models_of_client_libraries_are_tools_too() -> None:
    class Model:
        def model_dump(self, exclude_none: bool) -> dict[str, Any]:
            return F

    assert (Tool("f", SCHEMA),) == read([Model()]).tools


def test_requests_refused_elsewhere_are_refused(conformance: Path) -> None:
    from dovetail import get_model_structural_tag

    taken = []
    for line in (conformance / "xgrammar" / "model_tag_errors.jsonl").read_text().splitlines():
        record = json.loads(line)
        try:
            get_model_structural_tag(
                record["model"],
                tools=record["tools"],
                tool_choice=record["tool_choice"],
                reasoning=record["reasoning"],
                **record["options"],
            )
        except ValueError:
            continue
        taken.append(record["id"])
    assert [] == taken
