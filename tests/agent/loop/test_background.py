"""The end of a run whose background does not want to end."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from typing import Any

from dovetail.agent.contract import make_contract
from dovetail.agent.protocols import ToolContext
from dovetail.agent.types import Request, SpawnRequest, ToolOutput
from tests.agent.scripted import ScriptedProvider, make_run
from tests.agent.servers import Call, Reply


class Spawner:
    name = "agent"
    description = "starts an agent"
    parameters: Mapping[str, Any] = {"type": "object"}
    read_only = False
    mcp_server = ""

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        assert context.tasks is not None
        await context.tasks.spawn(SpawnRequest("stay", "stays", background=True, tool_use_id=context.call_id))
        return ToolOutput("started")


class Stays:
    """A tool that will not be cancelled until it is released."""

    name = "stay"
    description = "stays"
    parameters: Mapping[str, Any] = {"type": "object"}
    read_only = False
    mcp_server = ""
    running = 0

    def __init__(self) -> None:
        self.released = asyncio.Event()

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        self.running += 1
        while not self.released.is_set():
            with contextlib.suppress(asyncio.CancelledError):
                await self.released.wait()
        return ToolOutput("gone")


def test_an_agent_that_never_finalizes_does_not_hold_the_result_forever() -> None:
    """Scenario 67."""
    stays = Stays()

    def script(request: Request, serial: int) -> Reply:
        names = {tool.name for tool in request.tools}
        if "structured_output" not in names:
            return Reply(Call("stay", {}))
        return Reply(Call("agent", {})) if serial == 0 else Reply(Call("structured_output", {}), delay_s=0)

    provider = ScriptedProvider(script)

    async def main() -> None:
        run = make_run(provider, make_contract({}), [Spawner(), stays])
        task = asyncio.create_task(run.execute())
        while not run._state.captured or not stays.running:
            await asyncio.sleep(0)
        assert "structured_output" == (await task).reason
        stays.released.set()
        kinds = [message.get("subtype") for message in run.messages]
        assert "task_notification" not in kinds  # it was not there to say so

    asyncio.run(main())
