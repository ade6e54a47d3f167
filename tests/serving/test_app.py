"""The server beside its answers: keys, limits, errors, readers that go away, and the end."""

from __future__ import annotations

import json
import logging
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
import openai
import pytest

from dovetail import dialects
from dovetail.serving import Limits, Settings, create_app, in_background, speakers
from tests.serving.asking import (
    ANSWER,
    INTERFACES,
    TOOLS,
    Question,
    anthropic_client,
    chat_request,
    close_clients,
    http_client,
    interface_for,
    messages_request,
    openai_client,
    responses_request,
    serving,
    wait_until,
)

PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}
REQUESTS: dict[str, Callable[[str, Question], dict[str, Any]]] = {
    "chat": chat_request,
    "responses": responses_request,
    "messages": messages_request,
}
HELLO = {"messages": [{"role": "user", "content": "Well?"}]}


def post(url: str, body: Any, path: str = "/v1/chat/completions", **options: Any) -> httpx2.Response:
    return http_client(url).post(path, json=body, **options)


def count(url: str, name: str) -> float:
    """A number out of /metrics, summed over its labels."""
    lines = http_client(url).get("/metrics").text.splitlines()
    return sum(float(line.split()[-1]) for line in lines if line.split("{")[0].split(" ")[0] == name)


@pytest.fixture(scope="module")
def slow() -> Iterator[str]:
    """A server whose speaker takes a while."""
    with serving(speakers(pace_s=0.02)) as url:
        yield url


BAD = {"type": "object", "properties": {"pin": {"minLength": 8, "maxLength": 5, "type": "string"}}, "required": ["pin"]}
REFUSED = [
    # path, what is added to a good request, param, words of the message
    ("chat", {"messages": []}, "/messages", "no messages"),
    ("chat", {"messages": [{"role": "poet", "content": ""}]}, "/messages/0/role", "poet"),
    ("chat", {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, "/messages/0/content/0", "no text"),
    ("chat", {"n": 0}, "/n", "greater"),
    ("chat", {"temperature": "hot"}, "/temperature", "number"),
    ("chat", {"logit_bias": {"five": 1}}, "/logit_bias/five", "pattern"),
    ("chat", {"logit_bias": {"5": 101}}, "/logit_bias/5", "100"),
    ("chat", {"top_k": -2}, "/top_k", "-1"),
    ("chat", {"repetition_penalty": 0}, "/repetition_penalty", "greater"),
    ("chat", {"best_of": 2}, "/best_of", "not supported"),
    ("chat", {"top_logprobs": 3}, "/top_logprobs", "without logprobs"),
    ("chat", {"regex": "a("}, "/regex, offset 1", "not closed"),
    ("chat", {"ebnf": "root ::= x"}, "/ebnf, line 1, column 10", "not defined"),
    ("chat", {"regex": "a", "ebnf": 'root ::= "a"'}, "/ebnf", "send one of them"),
    ("chat", {"structured_outputs": {"regex": "a", "choice": ["b"]}}, "/structured_outputs", "2 constraints"),
    ("chat", {"structured_outputs": {"json": BAD}}, "/structured_outputs/json", "no value"),
    ("chat", {"tool_choice": "required"}, "/tools", "no tool"),
    (
        "chat",
        {"response_format": {"type": "json_schema", "json_schema": {"name": "x", "schema": BAD}}},
        "/response_format/json_schema/schema",
        "no value",
    ),
    (
        "chat",
        {"response_format": {"type": "structural_tag", "format": {"type": "tag"}}},
        "/response_format/format/begin",
        "missing",
    ),
    (
        "chat",
        {
            "tools": [
                {"type": "function", "function": {"name": "ok"}},
                {"type": "function", "function": {"name": "f", "parameters": BAD}},
            ]
        },
        "/tools/1/function/parameters",
        "no value",
    ),
    ("chat", {"continue_final_message": True}, "/messages/0", "no answer to continue"),
    ("responses", {"tools": [{"type": "function", "name": "f", "parameters": BAD}]}, "/tools/0/parameters", "no value"),
    (
        "responses",
        {"text": {"format": {"type": "json_schema", "name": "x", "schema": BAD}}},
        "/text/format/schema",
        "no value",
    ),
    ("responses", {"previous_response_id": "resp_1"}, "/previous_response_id", "not supported"),
    ("responses", {"input": [{"type": "item_reference", "id": "x"}]}, "/input/0/type", "not known"),
    ("messages", {"tools": [{"name": "f", "input_schema": BAD}]}, "/tools/0/input_schema", "no value"),
    (
        "messages",
        {"output_config": {"format": {"type": "json_schema", "schema": BAD}}},
        "/output_config/format/schema",
        "no value",
    ),
    (
        "messages",
        {"tool_choice": {"type": "tool", "name": "g"}, "tools": [{"name": "f", "input_schema": {}}]},
        "/tool_choice",
        "'g'",
    ),
]


@pytest.mark.parametrize(("interface", "added", "param", "words"), REFUSED, ids=[str(case[2]) for case in REFUSED])
def test_a_wrong_request_is_told_where_it_is_wrong(
    url: str, interface: str, added: dict[str, Any], param: str, words: str
) -> None:
    body = ({"input": "Well?"} if interface == "responses" else HELLO) | {"model": "speaker"} | added
    response = post(url, body, PATHS[interface])
    error = response.json()["error"]
    assert (400, param) == (response.status_code, error["param"])
    assert words in error["message"]


def test_a_body_that_is_no_json_is_refused(url: str) -> None:
    for body in (b"", b"[]", b"{", b"\xff", b'{"messages": NaN}', b'{"a": "\\ud800"}', b"[" * 5000):
        response = http_client(url).post("/v1/chat/completions", content=body)
        assert 400 == response.status_code
        assert "body" in response.json()["error"]["message"]


def test_unknown_models_and_paths_are_not_found(url: str) -> None:
    response = post(url, HELLO | {"model": "parrot"})
    assert (404, "model_not_found") == (response.status_code, response.json()["error"]["code"])
    assert 404 == http_client(url).get("/v1/models/parrot").status_code
    assert 404 == http_client(url).get("/v2").status_code
    assert 405 == http_client(url).get("/v1/chat/completions").status_code


def test_errors_have_the_shape_of_their_interface(url: str) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        openai_client(url).chat.completions.create(model="speaker", messages=[])
    assert "/messages" == caught.value.param
    told = post(url, {"messages": []}, "/v1/messages").json()
    assert ("error", "invalid_request_error") == (told["type"], told["error"]["type"])


def test_the_models_are_the_speaker_in_every_dialect(url: str) -> None:
    names = {model.id for model in openai_client(url).models.list()}
    assert {"speaker", *(f"speaker/{name}" for name in dialects.names())} == names
    assert names == {model.id for model in anthropic_client(url).models.list()}
    assert "speaker/qwen_3" == openai_client(url).models.retrieve("speaker/qwen_3").id


def test_health_and_metrics(url: str) -> None:
    assert {"status": "ok"} == http_client(url).get("/health").json()
    before = count(url, "dovetail_answers_total")
    post(url, HELLO)
    assert before + 1 == count(url, "dovetail_answers_total")
    assert 0 < count(url, "dovetail_token_seconds_count")


def test_a_key_is_asked_for() -> None:
    with serving(speakers(), Settings(api_keys=("first", "second"))) as url:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": "first"}, {"x-api-key": ""}):
            response = post(url, HELLO, headers=headers)
            assert (401, "invalid_api_key") == (response.status_code, response.json()["error"]["code"])
        assert 401 == http_client(url).get("/metrics").status_code
        assert 200 == http_client(url).get("/health").status_code
        for headers in ({"authorization": "Bearer first"}, {"authorization": "bearer second"}, {"x-api-key": "second"}):
            assert 200 == post(url, HELLO, headers=headers).status_code


def test_web_pages_of_other_sites_are_refused(url: str) -> None:
    for origin in ("https://example.org", "null", "http://127.0.0.1:1"):
        response = post(url, HELLO, headers={"origin": origin})
        assert (403, "foreign_origin") == (response.status_code, response.json()["error"]["code"])
    assert 200 == post(url, HELLO, headers={"origin": url}).status_code


def test_a_reader_who_does_not_read_makes_only_its_own_answer_wait(url: str) -> None:
    host, port = url.removeprefix("http://").split(":")
    body = json.dumps(HELLO | {"regex": "[0-9]{3500}", "reasoning_effort": "none", "stream": True}).encode()
    head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
    with socket.socket() as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.connect((host, int(port)))
        connection.sendall(head.encode() + body)
        for _ in range(5):
            assert 200 == post(url, HELLO).status_code
        data = b""
        while piece := connection.recv(65536):
            data += piece
    assert b"data: [DONE]" in data
    deltas = [json.loads(line[6:])["choices"] for line in data.splitlines() if line.startswith(b"data: {")]
    assert 3500 == sum(len(choice["delta"].get("content") or "") for choices in deltas for choice in choices)


def test_a_body_that_is_too_long_is_refused_before_it_is_read() -> None:
    with serving(speakers(), Settings(limits=Limits(max_body=1000))) as url:
        assert 413 == post(url, HELLO | {"user": "x" * 1000}).status_code

        def endless() -> Iterator[bytes]:
            while True:
                yield b" " * 100

        try:
            response = http_client(url).post("/v1/chat/completions", content=endless())
        except httpx2.TransportError:
            return  # the server has hung up
        assert 413 == response.status_code


def test_a_body_that_does_not_arrive_is_given_up() -> None:
    with serving(speakers(), Settings(limits=Limits(body_timeout_s=0.05))) as url:
        host, port = url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as connection:
            connection.sendall(b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n{")
            assert b"408" in connection.recv(100)


def test_time_is_a_limit_like_tokens() -> None:
    with serving(speakers(pace_s=0.05), Settings(limits=Limits(answer_timeout_s=0.2))) as url:
        for interface in INTERFACES:
            reply = INTERFACES[interface][1](url, "speaker", Question(TOOLS, "required"))
            assert "length" == reply.finish


def test_a_server_that_is_full_says_so_at_once() -> None:
    with serving(speakers(pace_s=0.2), Settings(max_requests=1)) as url:
        with http_client(url).stream("POST", "/v1/chat/completions", json=HELLO | {"stream": True}) as first:
            assert 200 == first.status_code
            response = post(url, HELLO)
            assert (429, "1") == (response.status_code, response.headers["retry-after"])
        wait_until(lambda: count(url, "dovetail_requests_running") == 0)
        assert 400 == post(url, {}).status_code


@pytest.mark.parametrize("dialect", dialects.names())
def test_a_reader_who_goes_away_ends_the_answer(slow: str, dialect: str) -> None:
    interface = interface_for(dialect)
    question = Question(TOOLS, "required", reasoning=True)
    body = REQUESTS[interface](f"speaker/{dialect}", question) | {"stream": True}
    cancelled = count(slow, "dovetail_requests_cancelled_total")
    with http_client(slow).stream("POST", PATHS[interface], json=body) as response:
        next(response.iter_lines())
    wait_until(lambda: count(slow, "dovetail_requests_running") == 0)
    assert cancelled + 1 == count(slow, "dovetail_requests_cancelled_total")


def test_a_client_that_cancels_a_stream_or_gives_up_waiting_ends_the_answer(slow: str) -> None:
    cancelled = count(slow, "dovetail_requests_cancelled_total")
    request = chat_request("speaker", Question(TOOLS, "required"))
    with openai_client(slow).chat.completions.create(**request, stream=True) as chunks:
        next(iter(chunks))
    with anthropic_client(slow).messages.stream(**messages_request("speaker", Question(TOOLS, "required"))) as events:
        next(iter(events))
    with pytest.raises(openai.APITimeoutError):
        openai_client(slow).with_options(timeout=0.1).chat.completions.create(**request)
    wait_until(lambda: count(slow, "dovetail_requests_running") == 0)
    assert cancelled + 3 == count(slow, "dovetail_requests_cancelled_total")


def test_an_answer_that_is_being_written_outlives_the_call_to_stop() -> None:
    read: list[str] = []
    with in_background(create_app(speakers(pace_s=0.02)), shutdown_s=30) as url:
        response = http_client(url).stream("POST", "/v1/chat/completions", json=HELLO | {"stream": True, "seed": 3})
        stream = response.__enter__()
        reader = threading.Thread(target=lambda: read.extend(stream.iter_lines()))
        reader.start()
        wait_until(lambda: bool(read))
    reader.join()
    response.__exit__(None, None, None)
    close_clients(url)
    assert "data: [DONE]" in read


def test_the_log_tells_nothing_of_what_is_said(url: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "dovetail"):
        post(url, {"messages": [{"role": "user", "content": "a secret"}], "model": "speaker"})
        post(url, {"messages": [{"role": "a secret", "content": "a secret"}], "stop": {"a secret": 1}})
        http_client(url).get("/a%20secret?a=secret")
        wait_until(lambda: len([record for record in caplog.records if record.name == "dovetail.serving"]) >= 3)
    assert "secret" not in caplog.text


def test_an_answer_can_be_an_object_of_the_clients_own_type(url: str) -> None:
    import pydantic

    class Answer(pydantic.BaseModel):
        answer: str
        sure: bool

    hello: Any = [{"role": "user", "content": "Well?"}]
    client = openai_client(url)
    done = client.chat.completions.parse(model="speaker", messages=hello, response_format=Answer, seed=1)
    assert isinstance(done.choices[0].message.parsed, Answer)
    parsed = client.responses.parse(model="speaker", input="Well?", text_format=Answer)
    assert isinstance(parsed.output_parsed, Answer)
    message = anthropic_client(url).messages.parse(
        model="speaker", max_tokens=2000, messages=hello, output_format=Answer
    )
    assert isinstance(message.parsed_output, Answer)
    tool = openai.pydantic_function_tool(Answer, name="reply")
    called = client.chat.completions.parse(model="speaker", messages=hello, tools=[tool], tool_choice="required")
    assert isinstance(called.choices[0].message.tool_calls[0].function.parsed_arguments, Answer)  # type: ignore[index]


def test_every_way_to_ask_for_a_schema_gives_an_answer_that_fits(url: str) -> None:
    asked: list[tuple[dict[str, Any], Callable[[str], Any]]] = [
        ({"response_format": {"type": "json_object"}}, json.loads),
        ({"structured_outputs": {"json": ANSWER}}, json.loads),
        ({"structured_outputs": {"json": json.dumps(ANSWER)}}, json.loads),
        ({"structured_outputs": {"json_object": True}}, json.loads),
        ({"structured_outputs": {"choice": ["yes", "no"]}}, {"yes": 1, "no": 1}.__getitem__),
        ({"structured_outputs": {"regex": "[0-9]{3}"}}, int),
        ({"regex": "[0-9]{3}"}, int),
        ({"ebnf": 'root ::= "4" [0-9]'}, int),
        ({"structured_outputs": {"grammar": 'root ::= "4" [0-9]'}}, int),
        ({"response_format": {"type": "structural_tag", "format": {"type": "regex", "pattern": "[0-9]+"}}}, int),
        ({"extra_body": {"regex": "[0-9]{3}"}}, int),
    ]
    for added, read in asked:
        done = post(url, HELLO | {"seed": 5, "chat_template_kwargs": {"enable_thinking": True}} | added).json()
        assert "stop" == done["choices"][0]["finish_reason"], added
        assert read(done["choices"][0]["message"]["content"]) is not None
