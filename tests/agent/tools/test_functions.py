"""Python functions as tools: schema, arguments, results and failures."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import Field

from dovetail.agent.protocols import Tool, ToolContext
from dovetail.agent.tools import function_tool
from dovetail.agent.types import ToolError, ToolOutput
from dovetail.errors import InputError
from tests.agent.tools.conftest import context_in, run


@dataclass
class Point:
    x: int
    y: int = 0


def move(
    point: Point, unit: Literal["m", "km"] = "m", *, times: int = Field(default=1, description="how often")
) -> Any:
    """Moves a point."""
    return {"x": point.x * times, "unit": unit, "kind": type(point).__name__}


def test_the_schema_comes_from_the_signature() -> None:
    tool: Tool = function_tool(move)
    assert ("move", "Moves a point.") == (tool.name, tool.description)
    assert ["point"] == tool.parameters["required"]
    assert "how often" == tool.parameters["properties"]["times"]["description"]
    assert ["m", "km"] == tool.parameters["properties"]["unit"]["enum"]


def test_arguments_arrive_as_the_types_of_the_signature(tmp_path: Path) -> None:
    output = run(function_tool(move), {"point": {"x": 2}, "times": 3}, context_in(tmp_path))
    assert '{"x": 6, "unit": "m", "kind": "Point"}' == output.content


def test_a_coroutine_function_with_the_context_is_a_tool_too(tmp_path: Path) -> None:
    async def where(context: ToolContext, name: str = "x") -> str:
        return f"{context.workspace.name}/{name}"

    tool = function_tool(where)
    assert ["name"] == list(tool.parameters["properties"])
    assert f"{tmp_path.name}/x" == run(tool, {}, context_in(tmp_path)).content


RESULTS = [
    (None, "Done."),
    ("text", "text"),
    ([1, "ü"], '[1, "ü"]'),
    (Point(1), '{"x": 1, "y": 0}'),
    (ToolOutput("o"), "o"),
]


@pytest.mark.parametrize(("result", "content"), RESULTS)
def test_any_result_becomes_text(tmp_path: Path, result: Any, content: str) -> None:
    def give() -> Any:
        return result

    assert content == run(function_tool(give), {}, context_in(tmp_path)).content


def test_what_goes_wrong_is_told_to_the_model(tmp_path: Path) -> None:
    def fails() -> None:
        raise KeyError("k")

    with pytest.raises(ToolError, match="KeyError: 'k'"):
        run(function_tool(fails), {}, context_in(tmp_path))
    with pytest.raises(ToolError, match="/point/x: "):
        run(function_tool(move), {"point": {"x": "two"}}, context_in(tmp_path))


def test_functions_that_cannot_be_tools_are_refused() -> None:
    def many(*args: int) -> None: ...

    with pytest.raises(InputError, match=r"\*args"):
        function_tool(many)
    with pytest.raises(InputError, match="cannot be the name"):
        function_tool(lambda: None)
