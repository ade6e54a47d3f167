"""One table of scenarios for every provider: the services by script, the local model of random weights by its masks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

import jsonschema
import pytest

from dovetail.agent.loop.reply import Reply as Read
from dovetail.agent.loop.reply import read_reply
from dovetail.agent.providers.local import LocalProvider
from dovetail.agent.types import (
    AssistantTurn,
    Named,
    Request,
    Text,
    Thinking,
    ToolResult,
    ToolSpec,
    ToolTurn,
    ToolUse,
    UserTurn,
)
from tests.agent.providers.conftest import SERVICES, ask, connected, read
from tests.agent.servers import Call, Reply, Say, ScriptedServer, Think

LOOK = ToolSpec(
    "look",
    "Look at a place.",
    {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
        "required": ["city", "days"],
        "additionalProperties": False,
    },
    strict=True,
)
PING = ToolSpec("ping", "Say nothing.", {"type": "object", "properties": {}})
ASKED = Request((UserTurn("Wie ist das Wetter in Zürich? ☂"),), "Be brief.", (LOOK, PING))
HISTORY = replace(
    ASKED,
    turns=(
        *ASKED.turns,
        AssistantTurn(
            (
                Thinking("Two places.", "c2lnbmVk"),
                Text("I look."),
                ToolUse.of("c1", "look", {"city": "Zürich", "days": 1}),
                ToolUse("c2", "look", '{"city": ', None),
            )
        ),
        ToolTurn((ToolResult("c1", "look", "Rain."), ToolResult("c2", "look", "not JSON", True, "invalid"))),
        AssistantTurn((Thinking("Nothing to say."),)),
        UserTurn("And now?"),
        AssistantTurn((Text("Sun."),)),
        UserTurn("Sure?"),
    ),
)
GOOD = Call("look", {"city": "Zürich", "days": 2})

Check = Callable[[Read], None]


def calls_one(reply: Read) -> None:
    assert ["look"] == [use.name for use in reply.turn.tool_uses]
    assert "tool_use" == reply.finish


def calls_some(reply: Read) -> None:
    assert {use.name for use in reply.turn.tool_uses} <= {"look", "ping"}
    assert reply.turn.tool_uses
    assert "tool_use" == reply.finish


def calls_none(reply: Read) -> None:
    assert () == reply.turn.tool_uses
    assert "stop" == reply.finish


def thinks(reply: Read) -> None:
    assert any(isinstance(block, Thinking) and block.text for block in reply.turn.blocks)


def is_cut_off(reply: Read) -> None:
    assert "length" == reply.finish
    assert all(use.value is None for use in reply.turn.tool_uses)


@dataclass(frozen=True)
class Scenario:
    """A request, what a scripted service answers, and what must hold of the reply of any provider."""

    request: Request
    script: Reply
    check: Check


SCENARIOS = {
    "a named tool is called": Scenario(replace(ASKED, tool_choice=Named("look")), Reply(GOOD), calls_one),
    "some tool is called": Scenario(
        replace(ASKED, tool_choice="required"), Reply(GOOD, Call("ping"), Call("ping")), calls_some
    ),
    "no tool is called": Scenario(replace(ASKED, tool_choice="none"), Reply("No."), calls_none),
    "without tools there is text": Scenario(replace(ASKED, tools=()), Reply("Hello, 世界."), calls_none),
    "thoughts come before the rest": Scenario(
        replace(ASKED, tool_choice="none"), Reply(Think("Well."), Say("Rain.")), thinks
    ),
    "a limit cuts the reply off": Scenario(
        replace(ASKED, tool_choice=Named("look"), max_output_tokens=4),
        Reply(Say("I"), finish="length"),
        is_cut_off,
    ),
    "a history with calls, failures and thoughts is taken": Scenario(
        replace(HISTORY, tool_choice=Named("look")), Reply(GOOD), calls_one
    ),
    "a tool of any schema is offered": Scenario(
        replace(ASKED, tools=(ToolSpec("look", "", {}),), tool_choice=Named("look")), Reply(Call("look")), calls_one
    ),
}


def holds(scenario: Scenario, reply: Read) -> None:
    scenario.check(reply)
    assert reply.usage.input_tokens > 0
    assert reply.usage.output_tokens > 0
    if reply.finish != "length":
        schemas = {tool.name: dict(tool.parameters) for tool in scenario.request.tools}
        for use in reply.turn.tool_uses:
            jsonschema.validate(use.value, schemas[use.name])
    ids = [use.id for use in reply.turn.tool_uses]
    assert len(ids) == len(set(filter(None, ids)))


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_service_meets_the_scenario(name: str, service: str) -> None:
    scenario = SCENARIOS[name]
    reply, restarts, _ = ask(service, scenario.request, scenario.script)
    assert [] == restarts
    holds(scenario, reply)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_local_model_of_random_weights_meets_the_scenario(name: str, local: LocalProvider) -> None:
    scenario = SCENARIOS[name]
    request = scenario.request
    if request.max_output_tokens is None:
        request = replace(request, max_output_tokens=180)
    reply, _ = read(local, request, close=False)
    holds(scenario, reply)


@pytest.mark.parametrize("service", SERVICES)
def test_the_next_turn_takes_the_reply_back(service: str) -> None:
    first = Reply(Think("Hm."), Say("I look."), GOOD, Call("ping"))
    with ScriptedServer([first, Reply("Rain.")]) as server:
        provider = connected(server, service)

        async def both() -> list[Read]:
            one = await read_reply(provider, ASKED, lambda _: None, set(), lambda _: None)
            results = tuple(ToolResult(use.id, use.name, "ok") for use in one.turn.tool_uses)
            following = replace(ASKED, turns=(*ASKED.turns, one.turn, ToolTurn(results)))
            two = await read_reply(provider, following, lambda _: None, set(), lambda _: None)
            await provider.close()
            return [one, two]

        one, two = asyncio.run(both())
    assert (["look", "ping"], "Rain.") == ([use.name for use in one.turn.tool_uses], two.turn.text)


@pytest.mark.parametrize("service", SERVICES)
def test_a_stream_that_is_left_early_ends_the_call(service: str) -> None:
    with ScriptedServer([Reply("word " * 50, pieces=50, pace_s=0.02)]) as server:

        async def leave() -> None:
            provider = connected(server, service)
            stream = provider.stream(ASKED)
            async for _ in stream:
                break
            await stream.aclose()  # type: ignore[attr-defined]
            await provider.close()

        asyncio.run(leave())
        assert server.wait_for_drop()


def test_a_local_reply_that_is_left_early_ends_the_generation(local: LocalProvider) -> None:
    async def leave() -> None:
        stream = local.stream(ASKED)
        async for _ in stream:
            break
        await stream.aclose()

    asyncio.run(leave())
    reply, _ = read(local, replace(ASKED, tool_choice=Named("look"), max_output_tokens=180), close=False)
    calls_one(reply)
