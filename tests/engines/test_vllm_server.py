"""A real vLLM with Dovetail's masks and parsers answers as asked: alone, 32 at once, with clients that die."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import httpx
import openai
import pytest

from tests.engines.cases import MORE, TOUR, Case
from tests.engines.conftest import Server

CASES = [*TOUR, *MORE]
AT_ONCE = 32


@pytest.fixture(scope="module")
def client(server: Server) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key="none", timeout=300, max_retries=0) as made:
        yield made


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_request_is_answered_as_asked(client: openai.OpenAI, case: Case) -> None:
    case.run(client)


def test_many_requests_at_once_are_answered_as_asked(client: openai.OpenAI) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(case.run, client) for case in CASES]:
            done.result()


def test_clients_that_die_take_nothing_from_the_others(client: openai.OpenAI) -> None:
    def die(case: Case) -> None:
        asked = {"max_tokens": 160, "messages": [{"role": "user", "content": case.question}]} | case.asked
        stream = client.chat.completions.create(model="m", stream=True, **asked)  # type: ignore[call-overload]
        next(iter(stream))
        stream.close()

    answered = [case for case in CASES if not case.refused][:AT_ONCE]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        made = [
            pool.submit(die if at % 2 else case.run, *((case,) if at % 2 else (client,)))
            for at, case in enumerate(answered)
        ]
        for done in made:
            done.result()
    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(lambda case: case.run(client), answered[1::2]))


def test_completions_take_constraints_too(client: openai.OpenAI) -> None:
    asked = {"structured_outputs": {"regex": "[0-9]{4}"}}
    made = client.completions.create(model="m", prompt="The year is", max_tokens=20, extra_body=asked)
    assert made.choices[0].text.isdigit()
    assert len(made.choices[0].text) == 4


def test_responses_call_tools(client: openai.OpenAI) -> None:
    parameters = {"type": "object", "properties": {"city": {"enum": ["Rome"]}}, "required": ["city"]}
    made = client.responses.create(
        model="m",
        input="What is the weather in Rome?",
        tools=[{"type": "function", "name": "get_weather", "parameters": parameters, "strict": True}],
        tool_choice="required",
        parallel_tool_calls=False,
        max_output_tokens=100,
        temperature=0.0,
    )
    [call] = [item for item in made.output if item.type == "function_call"]
    assert call.name == "get_weather"
    assert '"Rome"' in call.arguments


@pytest.mark.parametrize("name", ["schema", "tools, required", "tools, one call", "tools and a schema"])
def test_a_stream_says_what_the_whole_answer_says(client: openai.OpenAI, name: str) -> None:
    [case] = [case for case in TOUR if case.name == name]
    [whole] = case.answers(client)
    [streamed] = replace(case, stream=True).answers(client)
    assert whole == streamed


def test_a_prompt_that_is_cached_is_answered_as_before(client: openai.OpenAI, server: Server) -> None:
    def cached() -> float:
        shown = httpx.get(f"{server.url}/metrics", timeout=30).text
        return sum(float(line.split()[-1]) for line in shown.splitlines() if line.startswith("vllm:prefix_cache_hits"))

    [case] = [case for case in TOUR if case.name == "tools and a schema"]
    asked = replace(case, question="Remember all of these: " + " ".join(map(str, range(200))) + ". " + case.question)
    first = asked.answers(client)
    before = cached()
    assert asked.answers(client) == first
    assert cached() - before >= 200
