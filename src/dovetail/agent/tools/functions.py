"""Python functions as tools: the schema comes from the signature, and arguments arrive as the types it names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from dovetail.agent.protocols import ToolContext
from dovetail.agent.threads import in_daemon_thread
from dovetail.agent.types import Schema, ToolError, ToolOutput
from dovetail.formats.python_types import result_text, signature_of


class FunctionTool:
    """A function with the face of a tool; a parameter annotated as ToolContext gets the context of the call."""

    mcp_server = ""

    def __init__(
        self,
        function: Callable[..., Any],
        name: str = "",
        description: str = "",
        read_only: bool = False,
        parallel: bool = True,
    ) -> None:
        self._function = function
        self._signature = signature_of(function, name, description, ToolContext)
        self.name = self._signature.name
        self.description = self._signature.description
        self.parameters: Schema = self._signature.schema
        self.read_only = read_only
        self.parallel = parallel  # whether calls in one reply run side by side

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        """Call the function, in a thread if it is not a coroutine function; what it returns goes to the model."""
        try:
            given = self._signature.with_context(self._signature.read(args), context)
        except ValueError as error:
            raise ToolError(str(error)) from error
        try:
            if inspect.iscoroutinefunction(self._function):
                result = await self._function(**given)
            else:
                result = await in_daemon_thread(lambda: self._function(**given))
        except ToolError:
            raise
        except Exception as error:  # a tool of the caller that fails is something the model is told
            raise ToolError(f"{type(error).__name__}: {error}") from error
        return result if isinstance(result, ToolOutput) else ToolOutput(result_text(result))


def function_tool(function: Callable[..., Any], *, read_only: bool = False, parallel: bool = True) -> FunctionTool:
    """The function as a tool of its own name, described by its docstring.

    Calls of it in one reply run side by side, unless `parallel` is False.
    """
    return FunctionTool(function, read_only=read_only, parallel=parallel)
