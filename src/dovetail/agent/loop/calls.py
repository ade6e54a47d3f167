"""One tool call from its request to its result: found, valid, permitted, past the hooks, run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import jsonschema_rs

from dovetail.agent.contract.validation import MAX_SHOWN, Checked, Finding, check, from_json
from dovetail.agent.exit_reasons import Captured, HaltError
from dovetail.agent.loop.registry import Registry
from dovetail.agent.loop.state import State
from dovetail.agent.output import bounded
from dovetail.agent.protocols import Tasks, Tool, ToolContext
from dovetail.agent.types import (
    STRUCTURED_OUTPUT,
    Decision,
    ToolCallEvent,
    ToolError,
    ToolResult,
    ToolUse,
    is_like_terminal,
)
from dovetail.messages import to_json

_CUT = "\nThe reply was cut off by its token limit. Make the arguments shorter, or split the work over several calls."


@dataclass(frozen=True, slots=True)
class Called:
    """The result for the model, the same as the transcript may have it, and the answer if the call delivered it."""

    result: ToolResult
    recorded: ToolResult
    captured: Captured | None = None


class Caller:
    """Makes the calls of one conversation."""

    def __init__(self, state: State, registry: Registry, tasks: Tasks | None, depth: int, parent: str | None) -> None:
        self._state = state
        self._registry = registry
        self._tasks = tasks
        self._depth = depth
        self._parent = parent
        self._validators: dict[str, jsonschema_rs.Validator | None] = {}

    async def call(self, use: ToolUse, cut: bool) -> Called:
        """Make one call; whatever goes wrong with it is a result, except the end of the run."""
        began = time.monotonic()
        try:
            called = await self._call(use, cut)
        except asyncio.CancelledError:
            self._count(use, _failed(use, "cancelled", "cancelled"), began)
            raise
        self._count(use, called.recorded, began)
        return called

    async def _call(self, use: ToolUse, cut: bool) -> Called:
        tool = self._registry.get(use.name)
        if tool is None:
            known = ", ".join(self._registry.names)
            meant = f' Did you mean "{STRUCTURED_OUTPUT}"?' if self._is_misspelled(use) else ""
            return _plain(_failed(use, "not_found", f'Tool "{use.name}" not found.{meant} Available tools: {known}'))
        checked = self._checked(use, tool)
        if checked.findings:
            return self._invalid(use, checked, cut)
        args: Mapping[str, Any] = checked.value if not self._terminal(use) else dict(use.value or {})
        decision = self._state.parts.permissions.decide(use.name, args, tool.read_only)
        if decision.verdict != "allow":
            return self._denied(use, _refusal(use.name, decision), asked=decision.verdict == "ask")
        before = await self._state.parts.hooks.pre(use, args)
        self._warn(before.warnings)
        if before.blocked:
            return self._denied(use, before.reason or "A PreToolUse hook blocked this call.")
        return await self._run(use, tool, args, checked, before.context)

    async def _run(self, use: ToolUse, tool: Tool, args: Mapping[str, Any], checked: Checked, context: str) -> Called:
        hooks = self._state.parts.hooks
        try:
            output = await tool.run(args, self._context(use))
        except (asyncio.CancelledError, HaltError):
            raise
        except Exception as error:
            text = str(error) if isinstance(error, ToolError) else f"{type(error).__name__}: {error}"
            after = await hooks.post_failure(use, args, text)
            self._warn(after.warnings)
            return self._error(use, _with_context(text, context, after.context))
        if output.is_error:
            after = await hooks.post_failure(use, args, output.content)
            self._warn(after.warnings)
            return self._error(use, _with_context(output.content, context, after.context))
        after = await hooks.post(use, args, output)
        self._warn(after.warnings)
        if after.blocked:
            return self._denied(use, after.reason or "A PostToolUse hook rejected this result.")
        content, display = self._shown(use, _with_context(output.content, context, after.context))
        result = ToolResult(use.id, use.name, content, display=output.display or display)
        captured = Captured(checked.value, checked.repairs) if self._terminal(use) else None
        return Called(result, result, captured)

    def _error(self, use: ToolUse, text: str) -> Called:
        return _plain(_failed(use, "error", self._shown(use, text)[0]))

    def _shown(self, use: ToolUse, text: str) -> tuple[str, str | None]:
        """What the model is shown of an output, and what people are shown where that is not all of it."""
        shown = self._state.outputs.shown(use.id, text)
        return shown, None if shown is text else bounded(text)

    def _is_misspelled(self, use: ToolUse) -> bool:
        return self._state.contract is not None and self._depth == 0 and is_like_terminal(use.name)

    def _terminal(self, use: ToolUse) -> bool:
        return self._state.is_terminal(use, self._depth)

    def _checked(self, use: ToolUse, tool: Tool) -> Checked:
        if use.value is None:
            return Checked(None, (Finding("", _no_object(use.arguments), "/"),))
        if self._terminal(use):
            assert self._state.contract is not None
            return self._state.contract.check(use.value)
        if use.name not in self._validators:
            self._validators[use.name] = _validator(tool)
        validator = self._validators[use.name]
        return check(dict(use.value), [validator]) if validator else Checked(dict(use.value))

    def _invalid(self, use: ToolUse, checked: Checked, cut: bool) -> Called:
        tail = _CUT if cut and use.value is None else ""
        if not self._terminal(use):
            return _plain(_failed(use, "invalid", f"Invalid arguments for {use.name}.\n{checked.explained()}{tail}"))
        head = "The arguments of structured_output do not fit the schema."
        again = "Correct all of this and call structured_output again."
        failed = _failed(use, "invalid", f"{head}\n{checked.explained()}{tail}\n{again}")
        # Findings quote the value; what is kept names only places of the schema.
        return Called(failed, replace(failed, content=f"{head} {checked.recorded()}{tail}"))

    def _denied(self, use: ToolUse, reason: str, asked: bool = False) -> Called:
        self._state.deny(use)
        if asked and self._state.parts.output.form == "text":
            self._state.parts.warn(
                f'Warning: Tool "{use.name}" requires user approval, which a headless run cannot ask for.\n'
                "The call was denied and the run goes on.\n"
                f"Allow it with --allowed-tools {use.name}, or everything with -y."
            )
        return _plain(_failed(use, "denied", reason))

    def _context(self, use: ToolUse) -> ToolContext:
        state = self._state
        output, parent = state.parts.output, self._parent

        def progress(content: Mapping[str, Any]) -> None:
            output.event({"type": "tool_progress", "tool_use_id": use.id, "content": dict(content)}, parent)

        return ToolContext(
            workspace=state.workspace,
            call_id=use.id,
            cancel=state.cancel,
            permissions=state.parts.permissions,
            tasks=self._tasks,
            limits=state.tool_limits,
            progress=progress,
            depth=self._depth,
            session=state.tool_state,
        )

    def _count(self, use: ToolUse, result: ToolResult, began: float) -> None:
        state = self._state
        duration_ms = (time.monotonic() - began) * 1000
        used = state.tools_used.setdefault(use.name, {"count": 0, "failed": 0, "duration_ms": 0})
        used["count"] += 1
        used["failed"] += result.is_error
        used["duration_ms"] = round(used["duration_ms"] + duration_ms, 3)
        shown = "" if is_like_terminal(use.name) else short(use.arguments)
        outcome = "" if result.status == "ok" else f"  {result.status}: {short(result.content)}"
        state.note(f"{use.name} {shown}  {duration_ms / 1000:.1f} s{outcome}", self._depth)
        tool = self._registry.get(use.name)
        state.parts.telemetry.tool_call(
            ToolCallEvent(
                name=use.name,
                call_id=use.id,
                arguments=state.public_arguments(use),
                duration_ms=duration_ms,
                status=result.status,
                decision="deny" if result.status == "denied" else "allow",
                error=result.content if result.is_error else "",
                mcp_server=tool.mcp_server if tool else "",
            )
        )

    def _warn(self, warnings: tuple[str, ...]) -> None:
        for warning in warnings:
            self._state.parts.warn(warning)


def short(text: str, most: int = 100) -> str:
    """The beginning of a text on one line."""
    line = " ".join(text[: 4 * most].split())
    return line if len(line) <= most else f"{line[:most]}..."


def _no_object(arguments: str) -> str:
    """Why arguments are not the object that they have to be."""
    try:
        value = from_json(arguments)
    except RecursionError:
        return "the arguments are nested too deeply"
    except ValueError as error:
        return f"the arguments are not valid JSON: {error}"
    return f"the arguments must be an object, not {to_json(value)[:MAX_SHOWN]}"


def _validator(tool: Tool) -> jsonschema_rs.Validator | None:
    try:
        return jsonschema_rs.validator_for(
            dict(tool.parameters), validate_formats=False, offline=True, pattern_options=jsonschema_rs.RegexOptions()
        )
    except ValueError:  # a server's schema that cannot be compiled: the server will check its arguments itself
        return None


def _failed(use: ToolUse, status: Any, text: str) -> ToolResult:
    return ToolResult(use.id, use.name, text, is_error=True, status=status)


def _plain(result: ToolResult) -> Called:
    return Called(result, result)


def _refusal(name: str, decision: Decision) -> str:
    start = f'Dovetail requires permission to use "{name}", but that permission was declined'
    if decision.verdict == "ask":
        return f"{start} (non-interactive mode cannot prompt for confirmation). {decision.reason}".strip()
    if decision.reason:
        return decision.reason
    return f'{start}. Matching deny rule: "{decision.rule}".' if decision.rule else f"{start}."


def _with_context(content: str, *contexts: str) -> str:
    """The result with what hooks add; their angle brackets are escaped, since they are no markup of ours."""
    added = [context.replace("<", "&lt;").replace(">", "&gt;") for context in contexts if context]
    return "\n\n".join([content, *added])
