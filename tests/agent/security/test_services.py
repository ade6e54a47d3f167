"""Services that listen at a place in the file system, such as agents for keys, are not reached from the sandbox."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from dovetail.agent.sandbox import NoSandbox
from tests.agent.security.test_repositories import WORKING
from tests.agent.security.test_sandbox import KINDS, World, rules_of

_SERVE = 'import socket; s = socket.socket(socket.AF_UNIX); s.bind("relative"); s.listen(); print(flush=True); input()'
# Works without a sandbox, as the test sees for each socket.
_CONNECT = """python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect("{}"); print("ESC" "APED")'"""


@pytest.fixture
def base() -> Iterator[Path]:
    """The name of a socket must be short."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("work/sub", "out"):
            (Path(folder) / name).mkdir(parents=True)
        yield Path(folder)


@pytest.fixture
def sockets(base: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Path]]:
    """Services outside the workspace and in it, by absolute and relative names, and one that only a variable names."""
    paths = [base / name for name in ("out/agent", "work/sub/agent", "work/relative", "out/named")]
    with ExitStack() as stack:
        folder = os.open(base / "out", os.O_RDONLY)
        stack.callback(os.close, folder)
        for address in (str(paths[0]), str(paths[1]), f"/proc/self/fd/{folder}/named"):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen()
        server = stack.enter_context(
            subprocess.Popen(
                [sys.executable, "-c", _SERVE], cwd=base / "work", stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        )
        assert server.stdout is not None
        server.stdout.readline()
        monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", f"unix:path={paths[3]},guid=1")
        yield paths
        server.kill()


@pytest.mark.parametrize("network", [False, True])
@pytest.mark.parametrize("kind", WORKING)
def test_no_command_reaches_a_service(base: Path, sockets: list[Path], kind: str, network: bool) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(base)}
    sandbox = KINDS[kind](rules_of(base / "work", base), network)
    world = World(base, environment, sandbox)
    assert "alive" in world.run("echo alive")
    open_world = World(base, environment, NoSandbox())
    assert all("ESCAPED" in open_world.run(_CONNECT.format(path)) for path in sockets)
    for path in sockets:
        for command in (
            _CONNECT.format(path),
            f"ln {path} sub/x; " + _CONNECT.format("sub/x"),
            "mv sub new",
            _CONNECT.format("new/agent"),
            f"mv {path} sub/y; " + _CONNECT.format("sub/y"),
            _CONNECT.format(f"/proc/self/root{path}"),
        ):
            assert "ESCAPED" not in world.run(command)
    sandbox.close()


@pytest.mark.parametrize("kind", [kind for kind in WORKING if kind == "bubblewrap"])
def test_commands_may_have_services_of_their_own(base: Path, sockets: list[Path], kind: str) -> None:
    sandbox = KINDS[kind](rules_of(base / "work", base), False)
    world = World(base, {"PATH": os.environ["PATH"], "HOME": str(base)}, sandbox)
    own = f"{_SERVE.replace('input()', '')}; c = socket.socket(socket.AF_UNIX); c.connect('relative'); print('done')"
    assert "done" in world.run(f"cd sub && python3 -c '{own.replace(chr(39), chr(34))}'")
    sandbox.close()
