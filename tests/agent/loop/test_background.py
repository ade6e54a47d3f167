"""The end of a run whose background does not want to end."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from dovetail.agent.contract import make_contract
from dovetail.agent.loop.tasks import HOLDBACK_S
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
    """A tool that will not be cancelled for a while."""

    name = "stay"
    description = "stays"
    parameters: Mapping[str, Any] = {"type": "object"}
    read_only = False
    mcp_server = ""
    running = 0

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        self.running += 1
        end = time.monotonic() + 2 * HOLDBACK_S
        while (left := end - time.monotonic()) > 0:
            try:
                await asyncio.sleep(left)
            except asyncio.CancelledError:
                continue
        return ToolOutput("gone")


def test_an_agent_that_never_finalises_delays_the_result_by_the_holdback_only() -> None:
    """Scenario 67."""
    stays = Stays()

    def script(request: Request, serial: int) -> Reply:
        names = {tool.name for tool in request.tools}
        if "structured_output" not in names:
            return Reply(Call("stay", {}))
        return Reply(Call("agent", {})) if serial == 0 else Reply(Call("structured_output", {}), delay_s=0)

    provider = ScriptedProvider(script)

    async def main() -> float:
        run = make_run(provider, make_contract({}), [Spawner(), stays])
        task = asyncio.create_task(run.execute())
        while not run._state.captured or not stays.running:
            await asyncio.sleep(0)
        began = time.monotonic()
        assert "structured_output" == (await task).reason
        took = time.monotonic() - began
        kinds = [message.get("subtype") for message in run.messages]
        assert "task_notification" not in kinds  # it was not there to say so
        return took

    assert asyncio.run(main()) >= HOLDBACK_S * 0.9
