"""A scripted model in this process, for tests that need thousands of runs; it speaks the scripts of the servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

from dovetail.agent.contract import Contract
from dovetail.agent.exit_reasons import Ending
from dovetail.agent.loop import Limits, Parts, Plan, Run
from dovetail.agent.loop.null_parts import AllowAll, NoHooks, NoRecorder, NoTelemetry
from dovetail.agent.output import Output, Sink
from dovetail.agent.protocols import Tool
from dovetail.agent.types import (
    Delta,
    Finish,
    ProviderError,
    Request,
    Restarted,
    TextDelta,
    ThinkingDelta,
    ToolArguments,
    ToolEnd,
    ToolStart,
    Usage,
    UsageDelta,
)
from tests.agent.servers.script import Call, Reply, Say, Think, numbered

SESSION = "00000000-0000-4000-8000-000000000001"


class ScriptedProvider:
    """Answers by a script; a reply with a status fails, and one that is cut is restarted with the next reply."""

    name = "scripted"
    model = "scripted"

    def __init__(self, script: Sequence[Reply] | Callable[[Request, int], Reply], forces_tools: bool = True) -> None:
        self._script = script
        self.forces_tools = forces_tools
        self.requests: list[Request] = []

    async def stream(self, request: Request) -> AsyncIterator[Delta]:
        serial = len(self.requests)
        self.requests.append(request)
        reply = self._script(request, serial) if callable(self._script) else self._script[serial]
        if reply.status != 200:
            raise ProviderError(reply.message, status=reply.status)
        for index, delta in enumerate(deltas(reply, serial)):
            await asyncio.sleep(reply.pace_s)
            if index == reply.stall_after:
                await asyncio.sleep(reply.stall_s)
            if index == reply.cut_after:
                yield Restarted("cut", 1, 0.0)
                async for more in self.stream(request):
                    yield more
                return
            if index == reply.error_after:
                raise ProviderError("the engine broke down", status=500)
            yield delta

    async def close(self) -> None:
        pass


def deltas(reply: Reply, serial: int) -> list[Delta]:
    """The pieces of a reply."""
    made: list[Delta] = []
    for index, block in numbered(reply.blocks, f"call_{serial}_"):
        match block:
            case Say(text):
                made += [TextDelta(piece) for piece in reply.cut(text)]
            case Think(text, signature):
                made += [*(ThinkingDelta(piece) for piece in reply.cut(text)), ThinkingDelta("", signature)]
            case Call():
                pieces = [ToolArguments(index, piece) for piece in reply.cut(block.text)]
                made += [ToolStart(index, block.id, block.name), *pieces, ToolEnd(index)]
    return [*made, UsageDelta(Usage(*reply.usage)), Finish(reply.finish)]


def make_run(
    provider: ScriptedProvider,
    contract: Contract | None = None,
    tools: Sequence[Tool] = (),
    limits: Limits | None = None,
    **parts: Any,
) -> Run:
    """A run of the script, with its messages kept; parts that are not given do nothing."""
    output = Output("json", Sink(None), SESSION, provider.model)
    given = {
        "permissions": AllowAll(),
        "hooks": NoHooks(),
        "recorder": NoRecorder(SESSION),
        "telemetry": NoTelemetry(),
        "output": output,
    }
    plan = Plan("do it", Path("/"), contract, limits or Limits())
    return Run(plan, Parts(provider=provider, **{**given, **parts}), tools)


def execute(run: Run) -> Ending:
    """Run to the end."""
    return asyncio.run(run.execute())


def results(run: Run) -> dict[str, dict[str, Any]]:
    """The tool results by the id of their call; an id that comes twice is an error."""
    found: dict[str, dict[str, Any]] = {}
    for message in run.messages:
        if message["type"] == "user":
            for block in message["message"]["content"]:
                if block["type"] == "tool_result":
                    assert block["tool_use_id"] not in found
                    found[block["tool_use_id"]] = block
    return found


def uses(run: Run) -> list[str]:
    """The ids of all calls in their order."""
    return [
        block["id"]
        for message in run.messages
        if message["type"] == "assistant"
        for block in message["message"]["content"]
        if block["type"] == "tool_use"
    ]
