"""Python functions as tools of the speaker, and a chat that goes on."""

from __future__ import annotations

import asyncio
import signal
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Literal

import pytest

import dovetail as dt
from dovetail.models import Speaker, blocking
from dovetail.models.conversation import Conversation, TurnEnd, tool_message


@dataclass
class Place:
    city: Literal["Rome", "Oslo"]


def get_weather(place: Place, days: Literal[1, 3] = 1) -> dict[str, Any]:
    """Tells the weather."""
    assert isinstance(place, Place)
    return {"city": place.city, "days": days, "sky": "clear"}


async def get_time() -> str:
    """Tells the time."""
    return "noon"


def fail() -> None:
    """Fails."""
    raise RuntimeError("out of order")


@pytest.fixture(params=["hermes", "qwen_3_coder", "harmony", "mistral"])
def speaker(request: pytest.FixtureRequest) -> Speaker:
    return Speaker(seed=3, dialect=request.param)


def test_functions_are_called_and_their_results_told(speaker: Speaker) -> None:
    result = dt.call(speaker, "Rain?", [get_weather, get_time], tool_choice="required", max_rounds=1, seed=4)
    assert result.calls
    for made in result.calls:
        assert "" == made.error
        if made.name == "get_weather":
            assert made.arguments["place"]["city"] == made.value["city"]
        else:
            assert ("get_time", "noon") == (made.name, made.value)
    roles = [message["role"] for message in result.messages]
    assert ["user", "assistant", *["tool"] * len(result.calls), "assistant"] == roles
    ids = [call["id"] for call in result.messages[1]["tool_calls"]]
    assert ids == [message["tool_call_id"] for message in result.messages if message["role"] == "tool"]
    assert result.text == (result.messages[-1]["content"] or "")


def test_the_rounds_are_bounded() -> None:
    for seed in range(10):
        result = dt.call(Speaker(seed, dialect="hermes"), "Time?", [get_time], max_rounds=2, seed=seed, temperature=1)
        assert "assistant" == result.messages[-1]["role"]
        assert "tool_calls" not in result.messages[-1]
        assert sum("tool_calls" in message for message in result.messages) <= 2


def test_what_fails_is_told_to_the_model() -> None:
    result = dt.call(Speaker(dialect="hermes"), "Go!", [fail], tool_choice="required", max_rounds=1)
    assert "RuntimeError: out of order" == result.calls[0].error
    assert {"Error: RuntimeError: out of order"} == {
        message["content"] for message in result.messages if message["role"] == "tool"
    }


def test_one_tool_may_be_asked_for() -> None:
    choice = {"type": "function", "function": {"name": "get_time"}}
    chat = [{"role": "user", "content": "Time?"}]
    result = dt.call(Speaker(dialect="hermes"), chat, [get_weather, get_time], tool_choice=choice, max_rounds=1)
    assert {"get_time"} == {made.name for made in result.calls}
    assert 1 == len(chat)


def test_without_functions_it_answers() -> None:
    result = dt.call(Speaker(dialect="hermes"), "Hello!", [], system="Be kind.")
    assert ((), ["system", "user", "assistant"]) == (result.calls, [one["role"] for one in result.messages])


def test_the_async_twin_does_the_same() -> None:
    async def ask() -> Any:
        return await dt.call_async(Speaker(dialect="hermes"), "Time?", [get_time], tool_choice="required", max_rounds=1)

    assert "noon" == asyncio.run(ask()).calls[0].value


@pytest.mark.parametrize(
    ("functions", "options", "problem"),
    [
        ([get_time, get_time], {}, "the same name"),
        ([lambda: None], {}, "cannot be the name of a tool"),
        ([get_time], {"max_token": 1}, "no option 'max_token'"),
        ([get_time], {"tool_choice": {"type": "function", "function": {"name": "other"}}}, "other"),
    ],
)
def test_what_makes_no_sense_is_told(functions: Any, options: Any, problem: str) -> None:
    with pytest.raises(dt.InputError, match=problem):
        dt.call(Speaker(dialect="hermes"), "Time?", functions, **options)


def test_a_conversation_goes_on_and_forgets_what_was_cut_off() -> None:
    async def talk() -> Conversation:
        chat = Conversation(Speaker(dialect="hermes"))
        for question in ("One?", "Two?"):
            ends = [
                event
                async for event in chat.reply([{"role": "user", "content": question}])
                if isinstance(event, TurnEnd)
            ]
            assert 1 == len(ends)
            assert ends[0].tokens > 0
        async with aclosing(chat.reply([{"role": "user", "content": "Three?"}])) as events:
            async for _ in events:
                break
        return chat

    chat = asyncio.run(talk())
    assert ["user", "assistant", "user", "assistant"] == [one["role"] for one in chat.messages]


def test_tools_that_are_no_functions_are_done_by_the_caller() -> None:
    tool = {"type": "function", "function": {"name": "ask", "parameters": {"type": "object", "properties": {}}}}

    async def talk() -> None:
        chat = Conversation(Speaker(dialect="hermes"), tools=[tool])
        said = [event async for event in chat.reply([{"role": "user", "content": "Go!"}], "required")]
        assert isinstance(said[-1], TurnEnd)
        calls = said[-1].message.tool_calls
        assert {"ask"} == {call.name for call in calls}
        said = [event async for event in chat.reply([tool_message(call, "done") for call in calls], "none")]
        assert isinstance(said[-1], TurnEnd)
        assert () == said[-1].message.tool_calls
        assert ["user", "assistant", *["tool"] * len(calls), "assistant"] == [one["role"] for one in chat.messages]

    asyncio.run(talk())


def test_an_interrupt_ends_what_is_running() -> None:
    ended = []

    async def forever() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(True)

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        with pytest.raises(KeyboardInterrupt):
            blocking.run(forever())
    finally:
        signal.signal(signal.SIGALRM, before)
    assert ended
