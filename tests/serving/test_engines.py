"""A server in front of engines: whom it asks, what it does when they fail, and what its clients see of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import httpx2
import jsonschema
import pytest

import dovetail as dt
from dovetail.models.engines import PoolLimits, connect
from dovetail.serving import Settings
from dovetail.serving.models import engines
from tests.models.engines.fake import Fake
from tests.serving.asking import ANSWER, INTERFACES, WEATHER, Question, check_answers, http_client, serving, wait_until

HELLO = {"messages": [{"role": "user", "content": "Hello?"}], "max_tokens": 60}
SCHEMA = {"type": "json_schema", "json_schema": {"name": "a", "schema": ANSWER, "strict": True}}
DIGIT = {"type": "regex", "pattern": "[0-9]"}
FAST = PoolLimits(check_every_s=0.05, connect_s=2, silence_s=20)


@contextmanager
def gateway(*fakes: Fake, dialect: str = "qwen_3", limits: PoolLimits = FAST, settings: Any = None) -> Iterator[str]:
    """The URL of a server in front of these replicas, which are started, too."""
    with ExitStack() as stack:
        for fake in fakes:
            if not fake.url:
                stack.enter_context(fake.up())
        model = connect([fake.engine for fake in fakes], dialect=dialect, name="m", limits=limits)
        yield stack.enter_context(serving(engines(model), settings))


def chat(url: str, **more: Any) -> httpx2.Response:
    return http_client(url).post("/v1/chat/completions", json=HELLO | more)


def said(response: httpx2.Response) -> str:
    assert response.status_code == 200, response.text
    text: str = response.json()["choices"][0]["message"]["content"]
    return text


def _retried_each(url: str, bad: Fake) -> bool:
    return metric(url, "dovetail_replica_retries_total") == len(bad.bodies)


def metric(url: str, name: str, *labels: str) -> float:
    lines = http_client(url).get("/metrics").text.splitlines()
    found = [line for line in lines if line.startswith(name) and all(label in line for label in labels)]
    return sum(float(line.rpartition(" ")[2]) for line in found)


@pytest.mark.parametrize("kind", ["vllm", "sglang", "llama"])
@pytest.mark.parametrize(("dialect", "interface"), [*zip(("qwen_3", "llama", "harmony"), INTERFACES, strict=True)])
def test_clients_get_what_they_ask_for(kind: str, dialect: str, interface: str) -> None:
    with gateway(Fake(kind, dialect), dialect=dialect) as url:
        check_answers(url, interface, soft_limit=300)
        for ask in INTERFACES[interface]:
            text = ask(url, "m", Question())
            assert text.message.content or text.message.reasoning


def test_a_limit_is_told_as_such_and_no_token_is_counted_twice() -> None:
    for kind in ("vllm", "sglang", "llama"):
        with gateway(Fake(kind)) as url:
            done = chat(url, max_tokens=5, response_format=SCHEMA).json()
            assert (kind, done["choices"][0]["finish_reason"], done["usage"]["completion_tokens"]) == (
                kind,
                "length",
                5,
            )
            assert done["usage"]["prompt_tokens"] > 5


def test_the_replica_with_least_to_do_is_asked() -> None:
    fakes = [Fake("vllm"), Fake("llama"), Fake("sglang")]
    for fake in fakes:
        fake.script, fake.pace_s = ["and so on "] * 10_000, 0.05
    lines: list[Iterator[str]] = []
    with gateway(*fakes) as url, ExitStack() as streams:
        for asked in range(1, 10):
            stream = http_client(url).stream("POST", "/v1/chat/completions", json=HELLO | {"stream": True})
            lines.append(streams.enter_context(stream).iter_lines())  # which end their stream when they are dropped
            next(lines[-1])
            assert sum(fake.running for fake in fakes) == asked
            assert max(fake.running for fake in fakes) - min(fake.running for fake in fakes) <= 1
        assert metric(url, "dovetail_replica_running") == 9


def _leave(url: str) -> None:
    """Ask for a stream, and go away after a second."""
    with suppress(httpx2.TransportError):
        httpx2.post(f"{url}/v1/chat/completions", json=HELLO | {"stream": True}, timeout=1)


def test_a_request_goes_on_to_another_replica_until_one_has_begun() -> None:
    for fault in ("broken", "status 500", "status 503", "status 429", "says data: {", "endless"):
        bad, good = Fake("vllm"), Fake("llama")
        bad.fault, good.script = fault, ["fine"]
        bad.script = [] if fault == "endless" else None
        with gateway(bad, good) as url:
            assert {said(chat(url)) for _ in range(6)} == {"fine"}, fault
            wait_until(partial(_retried_each, url, bad))
            assert good.ended == 6


def test_an_answer_that_has_begun_is_not_begun_again() -> None:
    bad, good = Fake("vllm"), Fake("vllm")
    bad.fault = good.fault = "breaks"
    with gateway(bad, good) as url:
        with http_client(url).stream("POST", "/v1/chat/completions", json=HELLO | {"stream": True}) as response:
            events = [json.loads(line[6:]) for line in response.iter_lines() if line.startswith("data: {")]
        assert events[-1]["error"]["code"] == "engine_failed"
        assert len(bad.bodies) + len(good.bodies) == 1
        assert chat(url).status_code == 503
        assert metric(url, "dovetail_replica_answers_total", "failed") == 2


def test_without_a_replica_that_answers_requests_end_at_once() -> None:
    sick = Fake("vllm")
    with sick.up():
        pass  # it is gone now
    with gateway(sick) as url:
        wait_until(lambda: http_client(url).get("/health").status_code == 503)
        refused = chat(url)
        assert refused.status_code == 503
        assert refused.headers["retry-after"]
        assert "127.0.0.1" not in refused.text
        assert metric(url, "dovetail_replica_up") == 0


def test_a_replica_that_is_well_again_is_asked_again() -> None:
    one, other = Fake("vllm"), Fake("vllm")
    one.script, other.script = ["one"], ["other"]
    one.fault = "sick"
    with gateway(one, other) as url:
        wait_until(lambda: metric(url, "dovetail_replica_up") == 1)
        assert {said(chat(url)) for _ in range(8)} == {"other"}
        one.fault = ""
        wait_until(lambda: metric(url, "dovetail_replica_up") == 2)
        wait_until(lambda: said(chat(url)) == "one")
        assert http_client(url).get("/health").status_code == 200


@pytest.mark.parametrize("kind", ["vllm", "sglang", "llama"])
def test_a_client_that_goes_away_ends_the_answer_in_the_engine(kind: str) -> None:
    fake = Fake(kind)
    fake.script, fake.pace_s = ["and so on "] * 10_000, 0.01
    with gateway(fake) as url:
        with http_client(url).stream("POST", "/v1/chat/completions", json=HELLO | {"stream": True}) as response:
            next(response.iter_lines())
        wait_until(lambda: fake.left == 1)
        assert fake.running == 0
        wait_until(lambda: metric(url, "dovetail_replica_answers_total", "left") == 1)
        assert metric(url, "dovetail_replica_running") == 0


def test_requests_wait_for_a_place_and_beyond_a_number_of_them_are_refused() -> None:
    fake = Fake("vllm")
    fake.fault = "waits"
    limits = PoolLimits(max_running=1, check_every_s=0.05)
    with gateway(fake, limits=limits, settings=Settings(max_requests=3)) as url:
        threads = [threading.Thread(target=_leave, args=(url,)) for _ in range(3)]
        for thread in threads:
            thread.start()
        wait_until(lambda: metric(url, "dovetail_replicas_waiting") == 2)
        assert fake.running == 1
        assert chat(url).status_code == 429
        for thread in threads:
            thread.join()
        wait_until(lambda: metric(url, "dovetail_requests_running") == 0)
        assert metric(url, "dovetail_replicas_waiting") == 0
        fake.fault, fake.script = "", ["at last"]
        assert said(chat(url)) == "at last"


EVENTS = [
    *("data: {", "data: []", "data: 1", "data: {}", 'data: {"choices": 1}', 'data: {"choices": [{}]}'),
    *('data: {"error": {"message": "oh"}}', 'error: {"message": "oh"}', "data: [DONE]", "", ": nothing", "\0\0\0"),
    *('data: {"choices": [{"text": "x", "finish_reason": "abort"}]}', "data: " + "[" * 5000, "data: \x80", "nonsense"),
    *('data: {"content": "x", "stop": true, "stop_type": 3}', 'data: {"content": 1}'),
    'data: {"choices": [{"text": null, "finish_reason": []}], "usage": 3}',
    'data: {"choices": [{"text": null, "finish_reason": "stop"}]}',
    'data: {"choices": [{"text": "", "finish_reason": "stop"}], "usage": {"completion_tokens": 10000000000}}',
    'data: {"choices": [{"text": "", "finish_reason": "stop"}], "usage": {"completion_tokens": "3"}}',
]


def test_a_refusal_behind_the_beginning_is_a_failure_and_asked_no_second_time() -> None:
    fake = Fake("vllm")
    begun = 'data: {"choices": [{"index": 0, "text": "{", "finish_reason": null}]}'
    fake.fault = f'says {begun}\n\ndata: {{"error": {{"message": "oh", "code": 400}}}}'
    with gateway(fake) as url:
        assert chat(url, response_format=SCHEMA, reasoning_effort="none").status_code == 503
        assert len(fake.bodies) == 1
        fake.fault = 'says data: {"error": {"message": "too long", "code": 400}}'
        assert "too long" in chat(url).json()["error"]["message"]


@pytest.mark.parametrize("kind", ["vllm", "sglang", "llama"])
def test_streams_that_make_no_sense_are_failures_of_the_engine(kind: str) -> None:
    fake = Fake(kind)
    with gateway(fake) as url:
        for event in EVENTS:
            fake.fault = "says " + event
            assert (event, chat(url).status_code) == (event, 503)
        fake.fault = ""
        assert chat(url).status_code == 200


def test_what_an_engine_refuses_is_spelled_otherwise_or_told() -> None:
    fake = Fake("vllm")
    fake.refuses = ("structural_tag",)
    with gateway(fake) as url:
        jsonschema.validate(json.loads(said(chat(url, response_format=SCHEMA, reasoning_effort="none"))), ANSWER)
        assert [list(fake.constraint(body)) for body in fake.bodies] == [["structural_tag"], ["grammar"]]
        fake.refuses = ("structural_tag", "grammar")
        refused = chat(url, response_format=SCHEMA)
        assert (refused.status_code, "no such grammar" in refused.text) == (400, True)
        fake.fault = "status 400"
        assert "told by the engine" in chat(url).text


def test_a_spelling_that_there_is_not_is_left_out() -> None:
    fake = Fake("vllm")
    fake.refuses = ("structural_tag",)
    budget = {"type": "sequence", "elements": [{"type": "any_text", "max_tokens": 3}, DIGIT]}
    with gateway(fake) as url:
        refused = chat(url, structured_outputs={"structural_tag": {"format": budget}}, reasoning_effort="none")
        assert (refused.status_code, "no such grammar" in refused.text) == (400, True)
        assert len(fake.bodies) == 1


def test_what_no_engine_holds_is_told_in_notes() -> None:
    fake = Fake("llama")
    with gateway(fake) as url:
        many = {"type": "object", "properties": {f"p{i}": {"type": "integer"} for i in range(9)}}
        tag = {"type": "json_schema", "json_schema": many, "any_order": True}
        done = chat(url, structured_outputs={"structural_tag": {"format": tag}}, soft_limit=20).json()
        codes = {note["code"]: note for note in done["notes"]}
        assert set(codes) == {"not_held_by_engine", "not_led"}
        assert "any order" in codes["not_held_by_engine"]["message"]
        assert fake.constraint(fake.bodies[-1]) == {}


def test_that_keys_may_come_twice_is_told_with_the_place_of_the_schema() -> None:
    free = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
    strict = {"type": "function", "function": {"name": "g", "parameters": WEATHER}}
    for kind in ("vllm", "sglang", "llama"):
        with gateway(Fake(kind)) as url:
            [note] = chat(url, tools=[strict, free], tool_choice="required").json()["notes"]
            assert (note["code"], note["param"]) == ("not_held_by_engine", "/tools/1/function/parameters")
            assert "come twice" in note["message"]


def test_schemas_that_engines_read_in_their_own_way_are_sent_as_grammars() -> None:
    fake = Fake("vllm")
    odd = {"type": "array", "items": {"enum": [1, 2, 3]}, "uniqueItems": True, "minItems": 3}
    with gateway(fake) as url:
        asked = {"type": "json_schema", "json_schema": {"name": "a", "schema": odd}}
        done = chat(url, response_format=asked, reasoning_effort="none")
        assert sorted(json.loads(said(done))) == [1, 2, 3]
        sent = json.loads(fake.constraint(fake.bodies[-1])["structural_tag"])
        assert sent["format"]["type"] == "grammar"
        assert "notes" not in done.json()


def test_an_answer_that_has_begun_in_the_prompt_is_continued_under_the_format() -> None:
    begun = {"role": "assistant", "content": '{"answer": "y'}
    for kind in ("vllm", "sglang", "llama"):
        fake = Fake(kind)
        with gateway(fake) as url:
            asked = {
                "messages": [*HELLO["messages"], begun],
                "continue_final_message": True,
                "reasoning_effort": "none",
            }
            rest = said(chat(url, **asked, response_format=SCHEMA))
            jsonschema.validate(json.loads(begun["content"] + rest), ANSWER)


def test_what_engines_are_not_asked_for_is_refused() -> None:
    fake = Fake("vllm")
    fake.context = 120
    with gateway(fake) as url:
        assert chat(url, logprobs=True).json()["error"]["param"] == "/logprobs"
        assert chat(url, max_tokens=500).status_code == 200
        count = http_client(url).post("/v1/messages/count_tokens", json=HELLO).json()["input_tokens"]
        assert fake.bodies[-1]["max_tokens"] == 120 - count
        long = [{"role": "user", "content": "word " * 60}]
        assert "shorten the conversation" in chat(url, messages=long).text


def test_a_headless_run_asks_engines_through_the_server(tmp_path: Path) -> None:
    fake = Fake("vllm")
    with gateway(fake) as url:
        given = {"model": "m", "base_url": f"{url}/v1", "api_key": "none"}
        done = dt.run("Sure?", schema=ANSWER, **given, workspace=tmp_path, builtin_tools=[], max_turns=20)
    jsonschema.validate(done.value, ANSWER)
    assert {key for body in fake.bodies for key in fake.constraint(body)} == {"structural_tag"}
