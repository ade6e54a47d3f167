"""Tool servers beside the terminal tool, by the numbers of the scenarios of headless runs."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.agent.cli.conftest import Bench, until
from tests.agent.servers import Call, Reply

SCRIPT = str(Path(__file__).parent.parent / "mcp_server.py")
SO = Reply(Call("structured_output", {"summary": "fine"}, "so"))
RENAMED = "mcp__srv__structured_output"


@pytest.fixture(scope="module")
def config() -> Iterator[tuple[str, str]]:
    """The flag that leads to one server, started once because that takes long."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen([sys.executable, SCRIPT, "http", str(port)], stderr=subprocess.DEVNULL)
    until(lambda: _listens(port))
    yield "--mcp-config", json.dumps({"mcpServers": {"srv": {"httpUrl": f"http://127.0.0.1:{port}/mcp"}}})
    server.terminate()
    server.wait()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


Config = tuple[str, str]


def test_no_server_takes_the_name_of_the_terminal_tool(bench: Bench, config: Config) -> None:
    """Scenario 99; and its tools work."""
    script = [Reply(Call("add", {"a": 2, "b": 3}, "add"), Call(RENAMED, {"value": "x"}, "shadow")), SO]
    finished = bench.run(script, *config, "-y")
    assert (0, {"summary": "fine"}) == (finished.code, finished.result["structured_result"])
    assert {"structured_output", RENAMED, "add"} <= set(finished.messages[0]["tools"])
    assert [{"name": "srv", "status": "connected"}] == finished.messages[0]["mcp_servers"]
    assert ("5", "hijacked x") == (bench.answers()["add"], bench.answers()["shadow"])
    told = next(t["function"] for t in bench.received[0]["tools"] if t["function"]["name"] == "structured_output")
    assert "summary" in json.dumps(told["parameters"])


def test_the_rules_see_the_new_name(bench: Bench, config: Config) -> None:
    """Scenario 100."""
    bench.settings(tools={"disabled": [RENAMED]})
    finished = bench.run([SO], *config)
    assert 0 == finished.code
    assert "structured_output" in finished.messages[0]["tools"]
    assert RENAMED not in finished.messages[0]["tools"]


def test_without_a_schema_such_a_tool_is_like_any_other(bench: Bench, config: Config) -> None:
    """Scenario 101."""
    bench.write("a.txt")
    calls = Call("structured_output", {"value": "x"}, "so"), Call("read_file", {"file_path": "a.txt"}, "read")
    finished = bench.run([Reply(*calls), Reply("done")], *config, "-y", schema=None)
    assert (0, "done") == (finished.code, finished.result["result"])
    assert "hijacked x" == bench.answers()["so"]
    assert "some text" in bench.answers()["read"]
    assert 55 == bench.run([Reply(*calls)], *config, "-y", "--max-tool-calls", "1", schema=None).code


def test_a_server_that_fails_is_a_warning(bench: Bench) -> None:
    piped = {"command": sys.executable, "args": [SCRIPT, "stdio"]}
    servers = {"broken": {"command": "/no/such/server"}, "srv": piped, "unwanted": {"command": "false"}}
    flags = ("--mcp-config", json.dumps(servers), "--allowed-mcp-server-names", "broken,srv")
    finished = bench.run([SO], *flags)
    assert 0 == finished.code
    assert "Warning: MCP server 'broken'" in finished.stderr
    assert {"broken": "failed", "srv": "connected"} == {
        server["name"]: server["status"] for server in finished.messages[0]["mcp_servers"]
    }


def test_a_bad_configuration_of_servers_ends_with_52(bench: Bench) -> None:
    for config in ("{", "[]", "no/such/file", '{"srv": {"command": 5}}', '{"mcpServers": 1}'):
        finished = bench.command("-p", "x", "--mcp-config", config)
        assert 52 == finished.code, config
