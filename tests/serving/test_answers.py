"""What requests can ask for, seen in the answers of a model that says what it is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from dovetail.messages import Message, ToolCall
from dovetail.serving import Models
from tests.serving.asking import TOOLS, anthropic_client, http_client, openai_client, serving
from tests.serving.echo import Echo, request

SAID = Message("The answer is 42.", "Let me see.")
FUNCTIONS = [{"type": "function", "function": {"name": name, "parameters": schema}} for name, schema in TOOLS.items()]


@pytest.fixture(scope="module")
def echo() -> Iterator[str]:
    with serving(Models({name: partial(Echo, name) for name in ("qwen_3", "deepseek_v3_1")})) as url:
        yield url


def chat(url: str, said: Message = SAID, **added: Any) -> dict[str, Any]:
    """The first choice of an answer, and the usage beside it."""
    body = {"model": "qwen_3", "messages": [{"role": "user", "content": request(said)}]}
    response = http_client(url).post("/v1/chat/completions", json=body | added)
    assert 200 == response.status_code, response.text
    done: dict[str, Any] = response.json()
    return done["choices"][0] | {"usage": done["usage"]}


def test_both_names_of_reasoning_are_sent(echo: str) -> None:
    message = chat(echo)["message"]
    assert ("Let me see.", "Let me see.", SAID.content) == (
        message["reasoning"],
        message["reasoning_content"],
        message["content"],
    )


def test_reasoning_can_be_left_out_or_left_in_the_content(echo: str) -> None:
    hidden = chat(echo, include_reasoning=False)
    assert ("reasoning" in hidden["message"], SAID.content) == (False, hidden["message"]["content"])
    assert 0 < hidden["usage"]["completion_tokens_details"]["reasoning_tokens"]
    inline = chat(echo, separate_reasoning=False)["message"]
    assert "<think>\nLet me see.\n</think>\n\nThe answer is 42." == inline["content"]


UNIQUE = {"type": "object", "properties": {"tags": {"type": "array", "uniqueItems": True}}, "required": ["tags"]}
UNHELD: dict[str, tuple[str, dict[str, Any], str]] = {
    "chat": (
        "/v1/chat/completions",
        {
            "messages": [{"role": "user", "content": request(SAID)}],
            "tools": [{"type": "function", "function": {"name": "tag", "parameters": UNIQUE}}],
        },
        "/tools/0/function/parameters/properties/tags/uniqueItems",
    ),
    "responses": (
        "/v1/responses",
        {"input": request(SAID), "tools": [{"type": "function", "name": "tag", "parameters": UNIQUE}]},
        "/tools/0/parameters/properties/tags/uniqueItems",
    ),
    "messages": (
        "/v1/messages",
        {
            "messages": [{"role": "user", "content": request(SAID)}],
            "tools": [{"name": "tag", "input_schema": UNIQUE}],
            "max_tokens": 2000,
            "thinking": {"type": "enabled", "budget_tokens": 1024},
        },
        "/tools/0/input_schema/properties/tags/uniqueItems",
    ),
}


@pytest.mark.parametrize("interface", UNHELD)
def test_what_no_grammar_holds_is_told_in_a_header_and_a_field(echo: str, interface: str) -> None:
    route, body, path = UNHELD[interface]
    whole = http_client(echo).post(route, json={"model": "qwen_3"} | body)
    assert ("schema_widened", 200) == (whole.headers["x-dovetail-notes"], whole.status_code)
    (note,) = whole.json()["notes"]
    assert ("schema_widened", path) == (note["code"], note["param"])
    streamed = http_client(echo).post(route, json={"model": "qwen_3", "stream": True} | body)
    assert "schema_widened" == streamed.headers["x-dovetail-notes"]
    first = json.loads(next(line for line in streamed.text.splitlines() if line[:6] == "data: ").removeprefix("data: "))
    assert [note] == first.get("response", first.get("message", first))["notes"]
    held = http_client(echo).post(route, json={"model": "qwen_3"} | body | {"tools": []})
    assert ("x-dovetail-notes" in held.headers, "notes" in held.json()) == (False, False)


THINKING: list[tuple[dict[str, Any], bool]] = [
    ({"reasoning_effort": "high"}, True),
    ({"reasoning_effort": "none"}, False),
    ({"reasoning": {"effort": "low"}}, True),
    ({"reasoning": {"enabled": False}}, False),
    ({"chat_template_kwargs": {"enable_thinking": True}}, True),
    ({"chat_template_kwargs": {"enable_thinking": False}}, False),
    ({"chat_template_kwargs": {"thinking": False}}, False),
]


@pytest.mark.parametrize(("asked", "thinks"), THINKING)
def test_every_spelling_of_the_wish_to_think_is_heard(echo: str, asked: dict[str, Any], thinks: bool) -> None:
    message = chat(echo, Message("Yes.", "Hm." if thinks else ""), model="deepseek_v3_1", **asked)["message"]
    assert ("Hm." if thinks else None, "Yes.") == (message.get("reasoning"), message["content"])


def test_a_stop_string_ends_the_content_and_is_named(echo: str) -> None:
    choice = chat(echo, stop=["answer", "42"])
    assert ("The ", "stop", "answer") == (choice["message"]["content"], choice["finish_reason"], choice["stop_reason"])
    message = anthropic_client(echo).messages.create(
        model="qwen_3",
        max_tokens=100,
        messages=[{"role": "user", "content": request(Message("One, two."))}],
        stop_sequences=["two"],
    )
    assert ("stop_sequence", "two") == (message.stop_reason, message.stop_sequence)


def test_probabilities_are_those_of_the_content(echo: str) -> None:
    odds = chat(echo, logprobs=True, top_logprobs=2)["logprobs"]["content"]
    assert SAID.content == "".join(one["token"] for one in odds)
    assert ["T", "A"] == [one["token"] for one in odds[0]["top_logprobs"]]
    assert (-0.5, [84]) == (odds[0]["logprob"], odds[0]["bytes"])
    hello: Any = [{"role": "user", "content": request(SAID)}]
    chunks = openai_client(echo).chat.completions.create(model="qwen_3", messages=hello, logprobs=True, stream=True)
    streamed = [chunk.choices[0].logprobs for chunk in chunks]
    assert SAID.content == "".join(one.token for logprobs in streamed if logprobs for one in logprobs.content or [])
    response = openai_client(echo).responses.create(
        model="qwen_3", input=hello, include=["message.output_text.logprobs"], top_logprobs=1
    )
    part: Any = response.output[-1]
    assert SAID.content == "".join(one.token for one in part.content[0].logprobs)


def test_several_choices_come_side_by_side(echo: str) -> None:
    hello: Any = [{"role": "user", "content": request(SAID)}]
    client = openai_client(echo)
    whole = client.chat.completions.create(model="qwen_3", messages=hello, n=3)
    assert [(index, SAID.content) for index in range(3)] == [(one.index, one.message.content) for one in whole.choices]
    texts = ["", "", ""]
    for chunk in client.chat.completions.create(model="qwen_3", messages=hello, n=3, stream=True):
        for choice in chunk.choices:
            texts[choice.index] += choice.delta.content or ""
    assert [SAID.content] * 3 == texts


def test_usage_counts_and_comes_last_in_a_stream_that_asks_for_it(echo: str) -> None:
    usage = chat(echo)["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert len("Let me see.") == usage["completion_tokens_details"]["reasoning_tokens"]
    hello: Any = [{"role": "user", "content": request(SAID)}]
    for asked in (True, False):
        chunks = list(
            openai_client(echo).chat.completions.create(
                model="qwen_3", messages=hello, stream=True, stream_options={"include_usage": asked}
            )
        )
        assert asked == (chunks[-1].usage is not None) == (not chunks[-1].choices)
        assert all(chunk.usage is None for chunk in chunks[:-1])


def test_an_answer_goes_on_where_the_request_ends(echo: str) -> None:
    said = request(Message("The answer is 42."))
    history = [{"role": "user", "content": said}, {"role": "assistant", "content": "The answer"}]
    choice = chat(echo, messages=history, continue_final_message=True, reasoning_effort="none")
    assert " is 42." == choice["message"]["content"]
    message = anthropic_client(echo).messages.create(model="qwen_3", max_tokens=99, messages=history)  # type: ignore[arg-type]
    assert " is 42." == message.content[0].text  # type: ignore[union-attr]
    with anthropic_client(echo).messages.stream(model="qwen_3", max_tokens=99, messages=history) as stream:  # type: ignore[arg-type]
        assert " is 42." == stream.get_final_text()


def test_a_beginning_that_the_format_forbids_is_refused(echo: str) -> None:
    history = [{"role": "user", "content": request(SAID)}, {"role": "assistant", "content": "The answer"}]
    body = {"model": "qwen_3", "messages": history, "continue_final_message": True, "regex": "[0-9]+"}
    response = http_client(echo).post("/v1/chat/completions", json=body)
    assert (400, "/messages/1") == (response.status_code, response.json()["error"]["param"])


def test_only_the_allowed_tools_may_be_called(echo: str) -> None:
    said = Message(tool_calls=(ToolCall.of("get_time", {"zone": "utc"}),))
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "get_time"}}]}
    choice = chat(echo, said, tools=FUNCTIONS, tool_choice={"type": "allowed_tools", "allowed_tools": allowed})
    assert "get_time" == choice["message"]["tool_calls"][0]["function"]["name"]


def test_a_tool_that_is_not_strict_is_held_to_an_object_where_its_schema_is_too_much(echo: str) -> None:
    said = Message(tool_calls=(ToolCall.of("f", {"x": 1}),))
    odd = {"type": "object", "properties": {"x": False}, "required": ["x"]}
    tool = {"type": "function", "function": {"name": "f", "parameters": odd}}
    body = {"model": "qwen_3", "messages": [{"role": "user", "content": request(said)}], "tool_choice": "required"}
    assert 400 == http_client(echo).post("/v1/chat/completions", json=body | {"tools": [tool]}).status_code
    loose = {"type": "function", "function": tool["function"] | {"strict": False}}  # type: ignore[operator]
    choice = chat(echo, said, tools=[loose], tool_choice="required")
    assert '{"x": 1}' == choice["message"]["tool_calls"][0]["function"]["arguments"]


HISTORIES: list[tuple[str, dict[str, Any]]] = [
    (
        "/v1/chat/completions",
        {
            "messages": [
                {"role": "developer", "content": "Be brief."},
                {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
                {
                    "role": "assistant",
                    "content": None,
                    "reasoning_content": "hm",
                    "tool_calls": [{"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}],
                },
                {"role": "tool", "tool_call_id": "1", "content": "sunny"},
                {"role": "user", "content": request(Message("Fine."))},
            ]
        },
    ),
    (
        "/v1/responses",
        {
            "instructions": "Be brief.",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "ab"}]},
                {"type": "reasoning", "id": "r", "summary": [], "content": [{"type": "reasoning_text", "text": "hm"}]},
                {"type": "function_call", "call_id": "1", "name": "f", "arguments": '{"a": 1}'},
                {"type": "function_call_output", "call_id": "1", "output": "sunny"},
                {"role": "user", "content": request(Message("Fine."))},
            ],
            "tools": [{"type": "web_search"}],
        },
    ),
    (
        "/v1/messages",
        {
            "system": [{"type": "text", "text": "Be brief."}],
            "messages": [
                {"role": "user", "content": "ab"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm", "signature": ""},
                        {"type": "redacted_thinking", "data": "x"},
                        {"type": "tool_use", "id": "1", "name": "f", "input": {"a": 1}},
                    ],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "1", "content": "sunny"}]},
                {"role": "user", "content": request(Message("Fine."))},
            ],
            "tools": [{"type": "web_search_20250305", "name": "web_search"}],
        },
    ),
]


def test_the_same_conversation_is_the_same_prompt_in_every_interface(echo: str) -> None:
    counts = set()
    for path, body in HISTORIES:
        done = http_client(echo).post(path, json={"model": "qwen_3"} | body).json()
        assert "Fine." in json.dumps(done)
        counts.add(done["usage"].get("prompt_tokens", done["usage"].get("input_tokens")))
    assert 1 == len(counts)
    counted = http_client(echo).post("/v1/messages/count_tokens", json={"model": "qwen_3"} | HISTORIES[2][1]).json()
    assert counts == {counted["input_tokens"]}
