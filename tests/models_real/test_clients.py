"""Clients of OpenAI and Anthropic against a server with the real model."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import anthropic
import openai
import pytest
from pydantic import BaseModel

from dovetail.serving import create_app, in_background
from dovetail.serving.models import local

pytestmark = pytest.mark.real_model

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOLS: Any = [
    {"type": "function", "function": {"name": name, "description": f"The {what} of a city.", "parameters": CITY}}
    for name, what in (("get_weather", "weather"), ("get_time", "time"))
]
ROME: Any = [{"role": "user", "content": "What is the weather in Rome?"}]
MARIA: Any = [{"role": "user", "content": "Maria is 34 years old. Extract name and age."}]
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}


class Person(BaseModel):
    name: str
    age: int


class Mood(BaseModel):
    mood: Literal["positive", "negative"]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with in_background(create_app(local("smollm2"))) as at:
        yield at


@pytest.fixture(scope="module")
def client(url: str) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as made:
        yield made


def test_a_chat_is_answered_whole_and_as_a_stream(client: openai.OpenAI) -> None:
    asked: dict[str, Any] = {"model": "smollm2", "messages": ROME, "temperature": 0, "max_tokens": 16}
    done = client.chat.completions.create(**asked)
    assert done.choices[0].finish_reason == "length"
    assert (done.model_extra or {}).get("notes") is None
    assert False is (done.choices[0].model_extra or {})["led_to_end"]
    pieces = [chunk.choices[0].delta.content or "" for chunk in client.chat.completions.create(**asked, stream=True)]
    assert "Rome" in "".join(pieces)


@pytest.mark.parametrize(
    ("choice", "names"),
    [
        ("required", {"get_weather", "get_time"}),
        ({"type": "function", "function": {"name": "get_time"}}, {"get_time"}),
        ("auto", {"get_weather", "get_time"}),
    ],
)
def test_tools_are_called_as_they_are_chosen(client: openai.OpenAI, choice: Any, names: set[str]) -> None:
    asked: dict[str, Any] = {"model": "smollm2", "messages": ROME, "tools": TOOLS, "tool_choice": choice}
    asked |= {"parallel_tool_calls": False, "max_tokens": 60, "temperature": 0}
    if choice == "auto":
        asked |= {"stop": ["\n", ". "]}  # the helper of the client has no use for text that was cut off
    done = client.chat.completions.create(**asked)
    assert ["tools_in_prompt"] == [note["code"] for note in (done.model_extra or {})["notes"]]
    calls = done.choices[0].message.tool_calls or []
    assert bool(calls) or choice == "auto"
    for call in calls:
        assert call.type == "function"
        assert call.function.name in names
        assert {"city"} == set(json.loads(call.function.arguments))
    with client.chat.completions.stream(**asked) as stream:
        for _ in stream:
            pass
        whole = stream.get_final_completion().choices[0].message
    assert bool(whole.tool_calls) == bool(calls)


def test_answers_are_parsed_into_models(client: openai.OpenAI) -> None:
    done = client.chat.completions.parse(
        model="smollm2", messages=MARIA, response_format=Person, max_tokens=48, temperature=0
    )
    assert done.choices[0].message.parsed == Person(name="Maria", age=34)
    answered = client.responses.parse(
        model="smollm2", input="I love it! Which mood?", text_format=Mood, max_output_tokens=32, temperature=0
    )
    assert answered.output_parsed is not None


def test_a_limit_that_is_short_leads_an_answer_to_its_end(client: openai.OpenAI) -> None:
    story = {"type": "object", "properties": {"story": {"type": "string"}}, "required": ["story"]}
    wanted: Any = {"type": "json_schema", "json_schema": {"name": "story", "schema": story}}
    asked: Any = [{"role": "user", "content": "Tell a long story of a fisher."}]
    done = client.chat.completions.create(
        model="smollm2", messages=asked, response_format=wanted, max_tokens=32, temperature=0
    )
    assert "stop" == done.choices[0].finish_reason
    assert {"story"} == set(json.loads(done.choices[0].message.content or ""))


def test_the_clients_of_anthropic_are_served(url: str) -> None:
    tools: Any = [{"name": "get_weather", "description": "The weather of a city.", "input_schema": CITY}]
    with anthropic.Anthropic(base_url=url, api_key="none", max_retries=0) as client:
        called = client.messages.create(
            model="smollm2",
            max_tokens=60,
            messages=ROME,
            tools=tools,
            tool_choice={"type": "any", "disable_parallel_tool_use": True},
            extra_body={"temperature": 0},
        )
        (use,) = [block for block in called.content if block.type == "tool_use"]
        assert ("get_weather", {"city"}, "tool_use") == (use.name, set(use.input), called.stop_reason)
        wanted: Any = {"format": {"type": "json_schema", "schema": PERSON}}
        with client.messages.stream(model="smollm2", max_tokens=48, messages=MARIA, output_config=wanted) as stream:
            text = stream.get_final_text()
        assert {"name", "age"} == set(json.loads(text))


def test_sixteen_at_once_keep_apart_and_half_of_them_may_leave(url: str, client: openai.OpenAI) -> None:
    async def ask(many: openai.AsyncOpenAI, name: str, leaves: bool) -> str:
        text = ""
        stream = await many.chat.completions.create(
            model="smollm2",
            messages=[{"role": "user", "content": f"Who are you? {name}"}],
            max_tokens=60,
            stream=True,
            extra_body={"regex": f"{name}: [a-z]{{12}}"},
        )
        async for chunk in stream:
            text += chunk.choices[0].delta.content or ""
            if leaves and text:
                await stream.close()
                break
        return text

    async def all_of_them() -> list[str]:
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as many:
            return await asyncio.gather(*(ask(many, f"r{one}s", one % 2 == 0) for one in range(16)))

    for one, text in enumerate(asyncio.run(all_of_them())):
        assert f"r{one}s: ".startswith(text[: len(f"r{one}s: ")])
        assert one % 2 == 0 or len(text) == len(f"r{one}s: ") + 12
    assert client.models.list().data[0].id == "smollm2"


SECONDS = float(os.environ.get("DOVETAIL_SECONDS", "4"))


def resident_kb() -> int:
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1])


def test_sixteen_clients_ask_on_and_on_while_half_of_them_leave(url: str) -> None:
    """Of both kinds, in turn for text, schemas and calls; half of the readers leave in the middle of their answers."""
    answers: list[str] = []
    sizes: list[int] = []

    async def text(many: openai.AsyncOpenAI, name: str, leaves: bool) -> None:
        asked: Any = [{"role": "user", "content": f"Who are you? {name}"}]
        stream = await many.chat.completions.create(
            model="smollm2", messages=asked, stream=True, max_tokens=40, extra_body={"regex": f"{name}: [a-z]{{6}}"}
        )
        said = ""
        async for chunk in stream:
            said += chunk.choices[0].delta.content or ""
            if leaves and said:
                await stream.close()
                return
        assert re.fullmatch(f"{name}: [a-z]{{6}}", said)

    async def schema(many: anthropic.AsyncAnthropic, name: str, leaves: bool) -> None:
        shape = {"type": "object", "properties": {name: {"type": "boolean"}}, "required": [name]}
        wanted: Any = {"format": {"type": "json_schema", "schema": shape | {"additionalProperties": False}}}
        async with many.messages.stream(model="smollm2", max_tokens=40, messages=MARIA, output_config=wanted) as stream:
            if leaves:
                await anext(aiter(stream))
                return
            assert [name] == list(json.loads(await stream.get_final_text()))

    async def tool(many: openai.AsyncOpenAI, name: str, leaves: bool) -> None:
        tools: Any = [{"type": "function", "function": {"name": name, "parameters": CITY}}]
        stream = await many.chat.completions.create(
            model="smollm2", messages=ROME, tools=tools, tool_choice="required", stream=True, max_tokens=60
        )
        called = ""
        async for chunk in stream:
            for call in chunk.choices[0].delta.tool_calls or ():
                called += (call.function and call.function.name) or ""
            if leaves and called:
                await stream.close()
                return
        assert called
        assert "" == called.replace(name, "")

    async def client(number: int, until: float) -> None:
        openai_way = openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0)
        anthropic_way = anthropic.AsyncAnthropic(base_url=url, api_key="none", max_retries=0)
        async with openai_way as one, anthropic_way as other:
            for turn in itertools.count(number):
                name, leaves = f"r{number}s{turn}", number % 2 == 0
                match turn % 3:
                    case 0:
                        await text(one, name, leaves)
                    case 1:
                        await schema(other, name, leaves)
                    case _:
                        await tool(one, name, leaves)
                answers.append(name)
                sizes.append(resident_kb())
                if time.monotonic() > until:
                    return

    async def all_of_them() -> None:
        until = time.monotonic() + SECONDS
        await asyncio.gather(*(client(number, until) for number in range(16)))

    asyncio.run(all_of_them())
    assert len(answers) >= 16
    if SECONDS >= 30:
        quarter = len(sizes) // 4
        early, late = sum(sizes[quarter : 2 * quarter]) / quarter, sum(sizes[-quarter:]) / quarter
        assert late < 1.03 * early, (early, late)
