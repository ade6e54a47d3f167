"""The tools that come with a run, and Python functions as tools.

builtin_tools()      files, search, shell, web, subagents and the rest; permissions decide which are offered
function_tool(f)     a Python function, with its schema from its signature
"""

from __future__ import annotations

from collections.abc import Collection

from dovetail.agent.protocols import Tool
from dovetail.agent.sandbox import Sandbox
from dovetail.agent.tools.agents import (
    ASK_USER_QUESTION,
    EXIT_PLAN_MODE,
    MAX_DEPTH,
    SCHEDULE,
    SEND_MESSAGE,
    TASK_STOP,
    TODO_WRITE,
    agent_tool,
)
from dovetail.agent.tools.files import EDIT, READ_FILE, WRITE_FILE
from dovetail.agent.tools.functions import FunctionTool, function_tool
from dovetail.agent.tools.listing import GLOB, LIST_DIRECTORY
from dovetail.agent.tools.searching import GREP
from dovetail.agent.tools.shell import shell_tool
from dovetail.agent.tools.web import WEB_FETCH

__all__ = ["FunctionTool", "builtin_tools", "function_tool"]


def builtin_tools(
    max_subagent_depth: int = MAX_DEPTH, sandbox: Sandbox | None = None, keep: Collection[str] = ()
) -> list[Tool]:
    """Every tool that comes with a run, in the order in which a model sees them.

    Commands of the shell run in the sandbox, without the keys of providers but those to `keep`.
    """
    return [
        READ_FILE,
        WRITE_FILE,
        EDIT,
        LIST_DIRECTORY,
        GLOB,
        GREP,
        shell_tool(sandbox, keep),
        WEB_FETCH,
        TODO_WRITE,
        agent_tool(max_subagent_depth),
        TASK_STOP,
        SEND_MESSAGE,
        SCHEDULE,
        ASK_USER_QUESTION,
        EXIT_PLAN_MODE,
    ]
