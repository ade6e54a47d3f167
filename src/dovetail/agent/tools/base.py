"""What the built-in tools share: their shape, and the way from a path in a call to a file that may be touched."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dovetail.agent.protocols import ToolContext
from dovetail.agent.types import Schema, ToolError, ToolOutput

Action = Callable[[Mapping[str, Any], ToolContext], Awaitable[ToolOutput]]


@dataclass(frozen=True, slots=True)
class Builtin:
    """A tool whose behavior is one coroutine function."""

    name: str
    description: str
    parameters: Schema
    action: Action
    read_only: bool = False
    mcp_server: str = ""

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        """Do it."""
        return await self.action(args, context)


def parameters(required: str = "", **properties: Mapping[str, Any]) -> Schema:
    """The schema of an object with these properties, of which those named in `required` have to be there."""
    return {
        "type": "object",
        "properties": properties,
        "required": required.split(),
        "additionalProperties": False,
    }


def text(description: str, **more: Any) -> Mapping[str, Any]:
    """A string parameter."""
    return {"type": "string", "description": description, **more}


def whole(description: str, **more: Any) -> Mapping[str, Any]:
    """An integer parameter."""
    return {"type": "integer", "description": description, **more}


def flag(description: str) -> Mapping[str, Any]:
    """A boolean parameter."""
    return {"type": "boolean", "description": description}


def permitted(context: ToolContext, name: str, *, write: bool = False) -> Path:
    """The file that a path in a call leads to, links resolved; ToolError if it may not be touched."""
    if not name or "\0" in name:
        raise ToolError("the path is empty or holds a zero byte")
    path = context.workspace / name
    decision = context.permissions.allows_path(path, write)
    if decision.verdict != "allow":
        raise ToolError(f"{name}: {decision.reason or 'this path may not be used'}")
    try:
        return path.resolve()
    except (OSError, RuntimeError) as error:
        raise ToolError(f"{name}: {error}") from error


def ticking(context: ToolContext) -> Callable[[], None]:
    """A check for long work in a thread: it raises ToolError once the time of the call is up or the run has ended."""
    deadline = time.monotonic() + context.limits.timeout_s

    def check() -> None:
        if context.cancel.is_set():
            raise ToolError("cancelled")
        if time.monotonic() > deadline:
            raise ToolError(f"this took longer than {context.limits.timeout_s:g} s; ask for less")

    return check


def shown(context: ToolContext, path: Path) -> str:
    """A path as the model knows it: relative to the workspace where it lies inside."""
    root = context.workspace.resolve()
    return (path.relative_to(root).as_posix() or ".") if path.is_relative_to(root) else str(path)


def why(error: OSError) -> str:
    """What the operating system said, without its number and path."""
    return error.strerror or str(error)
