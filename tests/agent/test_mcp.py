"""Tools of MCP servers: their names, their results, and what a server may say of itself."""

from __future__ import annotations

import asyncio
import re
import socket
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from dovetail.agent import mcp
from dovetail.agent.loop.registry import Registry, Terminal
from dovetail.agent.mcp import McpTool, Servers, connect_servers, tool_name
from dovetail.agent.permissions import Rules
from dovetail.agent.protocols import Tool, ToolContext
from dovetail.agent.settings import ServerSettings, server_slug
from dovetail.agent.tools import builtin_tools
from dovetail.agent.types import ToolError, ToolLimits, ToolOutput
from tests.agent.tools.conftest import gone

SCRIPT = str(Path(__file__).with_name("mcp_server.py"))
T = TypeVar("T")


def command(*args: str, **more: Any) -> ServerSettings:
    return ServerSettings(command=sys.executable, args=(SCRIPT, *args), **more)


def context(workspace: Path, progress: Callable[[Any], None] = lambda _: None, **limits: int) -> ToolContext:
    return ToolContext(
        workspace=workspace,
        call_id="c1",
        cancel=asyncio.Event(),
        permissions=Rules(workspace=workspace, mode="yolo"),
        limits=ToolLimits(**limits),
        progress=progress,
    )


def with_servers(
    configs: dict[str, ServerSettings], workspace: Path, use: Callable[[Servers], Awaitable[T]], **more: Any
) -> T:
    async def inside() -> T:
        async with connect_servers(configs, workspace, **more) as servers:
            return await use(servers)

    return asyncio.run(inside())


def named(servers: Servers, name: str) -> McpTool:
    return next(tool for tool in servers.tools if tool.remote_name == name)


@pytest.fixture(scope="module")
def http_server() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, SCRIPT, "http", str(port)], stderr=subprocess.DEVNULL)
    for _ in range(600):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    yield f"http://127.0.0.1:{port}/mcp"
    process.kill()
    process.wait()


@pytest.fixture(params=["stdio", "http"])
def config(request: pytest.FixtureRequest) -> ServerSettings:
    """The same server over pipes and over streamable HTTP."""
    if request.param == "stdio":
        return command("stdio")
    return ServerSettings(http_url=request.getfixturevalue("http_server"))


def test_tools_of_a_server_are_called(config: ServerSettings, tmp_path: Path) -> None:
    shown: list[Any] = []

    async def use(servers: Servers) -> dict[str, ToolOutput]:
        assert [("srv", "connected", "")] == [(state.name, state.status, state.problem) for state in servers.states]
        add: Tool = named(servers, "add")
        assert ("add", "Adds two numbers.", "srv") == (add.name, add.description, add.mcp_server)
        assert ["a", "b"] == add.parameters["required"]
        calls = {"add": {"a": 2, "b": 3}, "fails": {}, "picture": {}, "big": {}, "steps": {}}
        inside = context(tmp_path, shown.append, max_output_bytes=1000)
        return {name: await named(servers, name).run(args, inside) for name, args in calls.items()}

    outputs = with_servers({"srv": config}, tmp_path, use)
    assert ToolOutput("5") == outputs["add"]
    assert outputs["fails"].is_error
    assert "fails" in outputs["fails"].content
    assert "[image image/png is not shown]" == outputs["picture"].content
    assert "99000 bytes left out" in outputs["big"].content
    assert [{"progress": 1, "total": 2, "message": "half"}] == shown


def test_no_server_takes_a_name_that_is_not_its_own(http_server: str, tmp_path: Path) -> None:
    async def use(servers: Servers) -> tuple[list[str], str, str]:
        rules = Rules(workspace=tmp_path, mode="yolo")
        terminal = Terminal({"type": "object"})
        registry = Registry([*builtin_tools(), *servers.tools], rules, terminal)
        assert terminal is registry.get("structured_output")
        renamed = registry.get("mcp__srv__structured_output")
        assert renamed is not None
        output = await renamed.run({"value": "x"}, context(tmp_path))
        shell = registry.get("run_shell_command")
        assert shell is not None
        assert "" == shell.mcp_server
        plain = Registry(servers.tools, rules)
        return registry.names, output.content, getattr(plain.get("structured_output"), "mcp_server", "")

    names, content, server = with_servers({"srv": ServerSettings(http_url=http_server)}, tmp_path, use)
    assert {"mcp__srv__run_shell_command", "run_shell_command", "mcp__srv__structured_output"} < set(names)
    assert ("hijacked x", "srv") == (content, server)
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name) for name in names)


NAMES = [
    ("srv", "add", "add"),
    ("srv", "edit", "mcp__srv__edit"),
    ("srv", "tool_search", "mcp__srv__tool_search"),
    ("srv", "structured_output", "structured_output"),
    ("srv", "mcp__other__x", "mcp__srv__mcp__other__x"),
    ("a__b", "edit", "mcp__a_b__edit"),
    ("ü", "edit", "mcp__server__edit"),
    ("srv", "a b/c", "a_b_c"),
    ("srv", "", "mcp__srv__tool"),
]


@pytest.mark.parametrize(("server", "name", "expected"), NAMES)
def test_the_name_of_a_tool(server: str, name: str, expected: str) -> None:
    assert expected == tool_name(server, name)


def test_long_names_are_cut_and_stay_apart() -> None:
    one, two = tool_name("srv", "x" * 100 + "1"), tool_name("srv", "x" * 100 + "2")
    assert one != two
    assert 64 == len(one) == len(two)
    assert "a_b" == server_slug("__a__b__")


def test_what_a_server_says_of_itself_counts_only_where_it_is_trusted(http_server: str, tmp_path: Path) -> None:
    async def use(servers: Servers) -> list[bool]:
        return [named(servers, name).read_only for name in ("add", "fails")]

    assert [False, False] == with_servers({"srv": ServerSettings(http_url=http_server)}, tmp_path, use)
    assert [True, False] == with_servers({"srv": ServerSettings(http_url=http_server, trust=True)}, tmp_path, use)


def test_servers_and_tools_are_chosen_by_name(http_server: str, tmp_path: Path) -> None:
    async def use(servers: Servers) -> list[tuple[str, list[str]]]:
        return [(state.name, sorted(tool.remote_name for tool in state.tools)) for state in servers.states]

    some = ServerSettings(url=http_server, include_tools=("add", "fails"), exclude_tools=("fails",))
    configs = {"a": some, "b": some, "c": some}
    assert [("a", ["add"])] == with_servers(configs, tmp_path, use, allowed=("a", "b"), excluded=("b",))
    assert [] == with_servers(configs, tmp_path, use, allowed=())


FAILING = [
    (command(), "the server says why"),
    (ServerSettings(command="no-such-command-anywhere"), "No such file"),
    (ServerSettings(http_url="http://127.0.0.1:9/mcp"), "onnect"),
    (ServerSettings(), "neither command nor address"),
    (ServerSettings(command="true"), ""),
]


@pytest.mark.parametrize(("config", "problem"), FAILING)
def test_a_server_that_cannot_be_reached_is_told_and_done_without(
    config: ServerSettings, problem: str, tmp_path: Path
) -> None:
    async def use(servers: Servers) -> Servers:
        return servers

    servers = with_servers({"bad": config}, tmp_path, use)
    assert [("bad", "failed")] == [(state.name, state.status) for state in servers.states]
    assert problem in servers.warnings[0]
    assert [{"name": "bad", "status": "failed"}] == mcp.state_messages(servers.states)


def test_a_server_that_never_answers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def use(servers: Servers) -> list[str]:
        return servers.warnings

    monkeypatch.setattr(mcp, "CONNECT_S", 0.5)
    (warning,) = with_servers({"mute": ServerSettings(command="sleep", args=("60",))}, tmp_path, use)
    assert "no answer within 0.5 s" in warning


def test_a_call_is_given_up_when_its_time_is_over_or_the_run_ends(http_server: str, tmp_path: Path) -> None:
    async def use(servers: Servers) -> None:
        inside = context(tmp_path)
        with pytest.raises(ToolError, match=r"no answer within 0.2 s"):
            await named(servers, "slow").run({}, inside)
        asyncio.get_running_loop().call_later(0.05, inside.cancel.set)
        with pytest.raises(ToolError, match="cancelled"):
            await named(servers, "slow").run({}, inside)

    with_servers({"srv": ServerSettings(http_url=http_server, timeout=200)}, tmp_path, use)


def test_a_server_that_dies_costs_its_calls_and_nothing_else(
    http_server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_KEY", "hidden")

    async def use(servers: Servers) -> str:
        shown = named(servers, "environment")
        environment = [(await shown.run({"name": name}, context(tmp_path))).content for name in ("SECRET_KEY", "GIVEN")]
        assert ["not set", "g"] == environment  # only what is configured of the environment reaches a server
        with pytest.raises(ToolError, match="the server srv failed"):
            await named(servers, "dies").run({}, context(tmp_path))
        with pytest.raises(ToolError, match="the server srv failed"):
            await named(servers, "add").run({"a": 1, "b": 1}, context(tmp_path))
        other = next(tool for tool in servers.states[1].tools if tool.remote_name == "add")
        return (await other.run({"a": 1, "b": 1}, context(tmp_path))).content

    assert "2" == with_servers(
        {"srv": command("stdio", env={"GIVEN": "g"}), "two": ServerSettings(http_url=http_server)}, tmp_path, use
    )


def test_no_process_of_a_server_is_left_when_a_run_is_cancelled(tmp_path: Path) -> None:
    file = tmp_path / "pids"

    async def run(connected: asyncio.Event) -> None:
        async with connect_servers({"srv": command("stubborn", str(file))}, tmp_path) as servers:
            assert "connected" == servers.states[0].status
            connected.set()
            await asyncio.sleep(60)

    async def cancel() -> None:
        connected = asyncio.Event()
        task = asyncio.create_task(run(connected))
        await connected.wait()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancel())
    assert all(gone(int(pid)) for pid in file.read_text().split())
