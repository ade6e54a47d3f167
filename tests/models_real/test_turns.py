"""Turns of a real model: answers that fit and end, tools that its template does not know, odds that are asked for."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterator
from typing import Any

import jsonschema_rs
import pytest

import dovetail as dt
from dovetail.models import Model, Sampling, Step, load, plan_turn
from dovetail.models.smollm2 import as_transformers

pytestmark = pytest.mark.real_model

SEEDS = int(os.environ.get("DOVETAIL_SEEDS", "2"))
TEXT, COUNT, FLAG = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}


def record(**fields: Any) -> dict[str, Any]:
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


# Everyday schemas, each with what is asked.
ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "person": ("Maria is 34 years old. Who is it?", record(first_name=TEXT, age=COUNT)),
    "mood": ("I love this phone! Positive or negative?", record(mood={"enum": ["positive", "negative"]}, sure=FLAG)),
    "story": ("Tell the story of a fisher.", record(title=TEXT, story=TEXT, moral=TEXT)),
    "list": ("Name fruits, with prices.", {"type": "array", "items": record(name=TEXT, price={"type": "number"})}),
    "address": ("Where is the town hall?", record(street=TEXT, zip={"type": "string", "pattern": "^[0-9]{5}$"})),
    "event": ("When is the party?", record(day={"type": "string", "format": "date"}, guests={**COUNT, "minimum": 1})),
    "tree": (
        "Draw a family tree.",
        {"$defs": {"p": record(name=TEXT, children={"type": "array", "items": {"$ref": "#/$defs/p"}})}}
        | {"$ref": "#/$defs/p"},
    ),
    "any of": ("A number or a name?", {"anyOf": [record(number=COUNT), record(name=TEXT, nickname=TEXT)]}),
}
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather of a city.",
        "parameters": record(city=TEXT),
    },
}
ODD = re.compile(r"\\u00[2-7]|[^\\]\\/|-0\b|\d[eE]|\n\n|[\t\r]|\s[:,]")


@pytest.fixture(scope="module", params=["llama.cpp", "transformers"])
def either(request: pytest.FixtureRequest) -> Iterator[Model]:
    made = load("smollm2" if request.param == "llama.cpp" else as_transformers())
    yield made
    made.close()


async def take(turn: Any, **sampling: Any) -> list[Step]:
    return [step async for step in turn.steps(Sampling(**sampling))]


def text_of(steps: list[Step]) -> str:
    return b"".join(step.data for step in steps).decode()


def outside_strings(text: str) -> str:
    """What stands between strings; what is empty has white space of its own kind."""
    return re.sub(r"\[\s*\]|\{\s*\}", "[]", re.sub(r'"(?:[^"\\]|\\.)*"', '""', text))


def test_answers_to_everyday_schemas_fit_and_end(either: Model) -> None:
    async def all_of_them() -> list[tuple[str, list[Step]]]:
        drawn = [{"temperature": 0.0}, *({"temperature": 0.7, "seed": seed} for seed in range(SEEDS))]
        names, asked = [], []
        for name, (question, schema) in ASKED.items():
            turn = plan_turn(either, [{"role": "user", "content": question}], response_format=described(schema))
            for sampling in drawn:
                names.append(f"{name}, {sampling}")
                asked.append(take(turn, max_tokens=64, **sampling))
        return list(zip(names, await asyncio.gather(*asked), strict=True))

    for name, steps in asyncio.run(all_of_them()):
        text, schema = text_of(steps), ASKED[name.split(", {")[0]][1]
        assert "stop" == steps[-1].finish, (name, text)
        jsonschema_rs.validator_for(schema, validate_formats=True).validate(json.loads(text))
        assert not ODD.search(outside_strings(text)), (name, text)
        for spelled in re.findall(r'"(?:[^"\\]|\\.)*"', text):
            assert json.dumps(json.loads(spelled), ensure_ascii=False) == spelled, (name, text)


def described(schema: dict[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": schema}


@pytest.mark.parametrize("limit", [32, 40])
def test_a_long_answer_is_led_to_its_end_and_says_so(model: Model, limit: int) -> None:
    question, schema = ASKED["story"]
    turn = plan_turn(model, [{"role": "user", "content": question}], response_format=described(schema))
    steps = asyncio.run(take(turn, temperature=0.0, max_tokens=limit))
    assert ("stop", True) == (steps[-1].finish, steps[-1].led)
    assert {"title", "story", "moral"} == set(json.loads(text_of(steps)))


def test_text_beside_tools_is_not_cut_short(model: Model) -> None:
    turn = plan_turn(model, [{"role": "user", "content": "Tell a long story."}], tools=[TOOL])
    steps = asyncio.run(take(turn, temperature=0.0, max_tokens=24))
    assert (24, "length", False) == (len(steps), steps[-1].finish, steps[-1].led)


def test_tools_are_told_in_the_prompt_and_calls_are_read(model: Model) -> None:
    chat: list[dict[str, Any]] = [{"role": "user", "content": "What is the weather in Rome?"}]
    turn = plan_turn(model, chat, tools=[TOOL], tool_choice="required", parallel_tool_calls=False)
    assert ["tools_in_prompt"] == [note.code for note in turn.notes]
    assert '"name": "get_weather"' in turn.prompt.text
    parser = turn.parser()
    for step in asyncio.run(take(turn, temperature=0.0, max_tokens=60)):
        parser.feed(step.data)
    (call,) = parser.finish().tool_calls
    assert ("get_weather", {"city": "Rome"}) == (call.name, call.value)
    chat += [parser.message.to_openai(), {"role": "tool", "tool_call_id": call.id, "content": "sunny, 31 degrees"}]
    then = plan_turn(model, chat, tools=[TOOL])
    assert "<tool_response>\nsunny, 31 degrees\n</tool_response>" in then.prompt.text
    assert "sunny" in text_of(asyncio.run(take(then, temperature=0.0, max_tokens=40)))


def test_without_tools_nothing_is_told(model: Model) -> None:
    chat = [{"role": "user", "content": "Hi"}]
    assert () == plan_turn(model, chat).notes == plan_turn(model, chat, tools=[TOOL], tool_choice="none").notes
    assert "get_weather" not in plan_turn(model, chat, tools=[TOOL], tool_choice="none").prompt.text


def test_a_dialect_named_by_hand_does_not_think_unless_asked() -> None:
    named = load("smollm2", dialect="qwen_3")
    chat = [{"role": "user", "content": "Hi"}]
    assert named.tools_in_prompt
    assert ["disabled", "enabled"] == [plan_turn(named, chat, reasoning=mode).reasoning for mode in ("auto", "enabled")]
    assert not dt.accepts(plan_turn(named, chat).format, "<think>\nHm.\n</think>\n\nHello")
    named.close()


def test_penalties_and_biases_work_beside_a_mask(either: Model) -> None:
    words = {"type": "regex", "pattern": "((red|blue|green) ){12}"}
    turn = plan_turn(either, [{"role": "user", "content": "Colors?"}], response_format=words)

    def said(**sampling: Any) -> list[str]:
        steps = asyncio.run(take(turn, temperature=0.0, max_tokens=60, **sampling))
        assert "stop" == steps[-1].finish
        return text_of(steps).split()

    assert 12 == len(said()) == len(said(top_k=1)) == len(said(min_p=0.9))
    assert len(set(said(presence_penalty=5.0, frequency_penalty=10.0))) == 3
    assert said(repetition_penalty=3.0) != said()
    (red,) = either.encode(" red") if len(either.encode(" red")) == 1 else (None,)
    assert red is not None
    assert said(logit_bias={red: -100.0}).count("red") < said(logit_bias={red: 100.0}).count("red")


def test_generate_and_call_on_a_real_model(model: Model) -> None:
    assert {"name", "age"} <= set(dt.generate(model, "Maria is 34. Who?", record(name=TEXT, age=COUNT)))
    assert dt.generate(model, "Is the sky blue?", ["yes", "no"]) in ("yes", "no")

    def get_weather(city: str) -> str:
        """The weather of a city."""
        return f"{city} has rain"

    done = dt.call(model, "What is the weather in Rome?", [get_weather], tool_choice="required", max_tokens=80)
    assert "Rome has rain" == done.calls[0].value
