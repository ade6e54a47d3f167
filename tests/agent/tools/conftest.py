"""What tests of tools share: a context in a folder, calls in it, and processes that are gone."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dovetail.agent.permissions import Rules
from dovetail.agent.protocols import Tool, ToolContext
from dovetail.agent.tools import builtin_tools
from dovetail.agent.types import ToolLimits, ToolOutput

TOOLS = {tool.name: tool for tool in builtin_tools()}

Call = Callable[..., ToolOutput]


def context_in(workspace: Path, **more: Any) -> ToolContext:
    more.setdefault("permissions", Rules(workspace=workspace.resolve(), mode="yolo"))
    more.setdefault("limits", ToolLimits(timeout_s=20))
    return ToolContext(workspace=workspace, call_id="c1", cancel=asyncio.Event(), **more)


def run(tool: Tool, args: dict[str, Any], context: ToolContext) -> ToolOutput:
    return asyncio.run(tool.run(args, context))


def alive(pid: int) -> bool:
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False


def pids(path: Path, count: int) -> list[int]:
    """The process ids that a command wrote, once it has written them all."""
    for _ in range(500):
        if path.exists() and len(found := path.read_text().split()) >= count:
            return [int(pid) for pid in found]
        time.sleep(0.01)
    raise AssertionError("the command did not start")


def gone(pid: int) -> bool:
    for _ in range(500):
        if not alive(pid):
            return True
        time.sleep(0.01)
    return False


def working_in(folder: Path) -> list[int]:
    """The processes whose working folder this is."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "cwd").readlink() == folder.resolve():
                found.append(int(process.name))
    return found


@pytest.fixture
def call(tmp_path: Path) -> Call:
    """Call a built-in tool in an empty workspace."""

    def one(name: str, _context: ToolContext | None = None, /, **args: Any) -> ToolOutput:
        return run(TOOLS[name], args, _context or context_in(tmp_path))

    return one
