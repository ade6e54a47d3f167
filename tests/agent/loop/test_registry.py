"""The tools of a conversation: names, the guard of the terminal tool, and the search for tools put aside."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from dovetail.agent.contract import make_contract
from dovetail.agent.loop.null_parts import AllowAll
from dovetail.agent.loop.registry import MAX_LOADED, Registry, Terminal
from dovetail.agent.protocols import ToolContext
from dovetail.agent.types import ToolError, ToolOutput
from tests.agent.scripted import ScriptedProvider, execute, make_run, results
from tests.agent.servers import Call, Reply


class Fake:
    description = "A tool that adds numbers."
    parameters: Mapping[str, Any] = {"type": "object"}
    read_only = True

    def __init__(self, name: str, server: str = "") -> None:
        self.name = name
        self.mcp_server = server

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        return ToolOutput(f"{self.mcp_server}:{self.name}")


def test_a_name_that_is_taken_is_qualified_by_the_server() -> None:
    tools = [Fake("read", "a"), Fake("read", "b"), Fake("structured_output", "a"), Fake("read")]
    registry = Registry(tools, AllowAll(), Terminal({}))
    assert ["mcp__a__read", "mcp__a__structured_output", "mcp__b__read", "read", "structured_output"] == registry.names
    assert isinstance(registry.get("structured_output"), Terminal)
    alone = Registry([Fake("structured_output", "a")], AllowAll())
    assert ["structured_output"] == alone.names
    assert [False] == [spec.strict for spec in alone.specs()]


def test_a_subagents_registry_never_has_the_terminal_tool() -> None:
    registry = Registry([Fake("read"), Fake("agent")], AllowAll(), Terminal({}))
    assert ["agent", "read"] == registry.without_terminal(AllowAll()).names
    assert ["read"] == registry.without_terminal(AllowAll(), frozenset({"agent"})).names
    # A server's tool of that name, in a run without a contract, is an ordinary tool and stays.
    assert ["structured_output"] == Registry([Fake("structured_output", "a")], AllowAll()).without_terminal(
        AllowAll()
    ).names


def test_the_terminal_tool_refuses_to_run_below_the_main_run() -> None:
    """Scenario 98, by a guard at run time."""
    context = ToolContext(None, "c", None, AllowAll(), depth=1)  # type: ignore[arg-type]
    with pytest.raises(ToolError, match="belongs to the main run"):
        asyncio.run(Terminal({}).run({}, context))


def test_many_tools_of_servers_are_put_aside_until_they_are_searched_for() -> None:
    tools = [Fake("read"), *(Fake(f"tool{i}", "srv") for i in range(MAX_LOADED)), Fake("weather_report", "srv")]
    script = [
        Reply(Call("tool_search", {"query": "weather"}, "s")),
        Reply(Call("weather_report", {}, "w"), Call("tool5", {}, "t"), Call("tool_search", {"query": "zzz"}, "z")),
        Reply(Call("structured_output", {})),
    ]
    provider = ScriptedProvider(script)
    run = make_run(provider, make_contract({}), tools)
    assert "structured_output" == execute(run).reason
    first, second, third = ({spec.name for spec in request.tools} for request in provider.requests)
    assert {"structured_output", "read", "tool_search"} == first
    assert first | {"weather_report"} == second
    assert second | {"tool5"} == third  # asked for by its name, a tool comes too
    assert "srv:weather_report" == results(run)["w"]["content"]
    assert "No further tool" in results(run)["z"]["content"]
