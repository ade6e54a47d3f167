"""Python functions as tools: the schema comes from the signature, and arguments arrive as the types it names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic.fields import FieldInfo

from dovetail.agent.protocols import ToolContext
from dovetail.agent.threads import in_daemon_thread
from dovetail.agent.types import Schema, ToolError, ToolOutput
from dovetail.errors import InputError
from dovetail.messages import to_json

_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


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
        self.name = name or getattr(function, "__name__", "")
        if not self.name.isidentifier():
            raise InputError(f"{self.name!r} cannot be the name of a tool", "", "pass name=...")
        self.description = description or inspect.getdoc(function) or self.name
        self.read_only = read_only
        self.parallel = parallel  # whether calls in one reply run side by side
        self._context_name, self._model = _arguments(function, self.name)
        self.parameters: Schema = self._model.model_json_schema()

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        """Call the function, in a thread if it is not a coroutine function; what it returns goes to the model."""
        try:
            values = self._model.model_validate(dict(args))
        except ValidationError as error:
            problems = "; ".join(f"{_pointer(one['loc'])}: {one['msg']}" for one in error.errors(include_url=False))
            raise ToolError(problems) from error
        given = {name: getattr(values, name) for name in type(values).model_fields if name in values.model_fields_set}
        if self._context_name:
            given[self._context_name] = context
        try:
            if inspect.iscoroutinefunction(self._function):
                result = await self._function(**given)
            else:
                result = await in_daemon_thread(lambda: self._function(**given))
        except ToolError:
            raise
        except Exception as error:  # a tool of the caller that fails is something the model is told
            raise ToolError(f"{type(error).__name__}: {error}") from error
        return result if isinstance(result, ToolOutput) else ToolOutput(_told(result))


def function_tool(function: Callable[..., Any], *, read_only: bool = False, parallel: bool = True) -> FunctionTool:
    """The function as a tool of its own name, described by its docstring.

    Calls of it in one reply run side by side, unless `parallel` is False.
    """
    return FunctionTool(function, read_only=read_only, parallel=parallel)


def _arguments(function: Callable[..., Any], name: str) -> tuple[str, Any]:
    hints = get_type_hints(function, include_extras=True)
    fields: dict[str, Any] = {}
    context_name = ""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind not in _NAMED:
            raise InputError(f"a tool cannot have the parameter {parameter}", f"function {name}", "name each parameter")
        annotation = hints.get(parameter.name, Any)
        if annotation is ToolContext:
            context_name = parameter.name
            continue
        absent = parameter.default is inspect.Parameter.empty
        field = parameter.default if isinstance(parameter.default, FieldInfo) else ... if absent else parameter.default
        fields[parameter.name] = (annotation, field)
    model = create_model(name, __config__=ConfigDict(extra="forbid", arbitrary_types_allowed=True), **fields)
    return context_name, model


def _told(result: Any) -> str:
    if isinstance(result, str):
        return result
    if result is None:
        return "Done."
    return to_json(TypeAdapter(Any).dump_python(result, mode="json"))


def _pointer(location: tuple[int | str, ...]) -> str:
    return "".join(f"/{part}" for part in location)
