from __future__ import annotations

import asyncio
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


@pytest.fixture
def call(tmp_path: Path) -> Call:
    """Call a built-in tool in an empty workspace."""

    def one(name: str, _context: ToolContext | None = None, /, **args: Any) -> ToolOutput:
        return run(TOOLS[name], args, _context or context_in(tmp_path))

    return one
