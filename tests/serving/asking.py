"""The same questions to every interface, through its official client, and the answers in one shape."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import anthropic
import httpx2
import jsonschema
import openai

from dovetail import dialects
from dovetail.messages import Message
from dovetail.serving import Models, Settings, create_app, in_background

WEATHER: dict[str, Any] = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}, "days": {"type": "integer"}},
    "required": ["city"],
    "additionalProperties": False,
}
TIME: dict[str, Any] = {
    "type": "object",
    "properties": {"zone": {"type": "string", "maxLength": 9}},
    "required": ["zone"],
}
ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string", "maxLength": 20}, "sure": {"type": "boolean"}},
    "required": ["answer", "sure"],
    "additionalProperties": False,
}
TOOLS = {"get_weather": WEATHER, "get_time": TIME}


@dataclass(frozen=True)
class Question:
    """What is asked of an answer, in no interface's words."""

    tools: dict[str, Any] = field(default_factory=dict)
    choice: str = "auto"  # or "required", "none", or the name of a tool
    parallel: bool = True
    reasoning: bool | None = None
    schema: dict[str, Any] | None = None
    max_tokens: int = 4000
    soft_limit: int = 60
    seed: int = 0
    stop: tuple[str, ...] = ()
    text: str = "Well?"


class Reply(NamedTuple):
    """What a client made of the answer."""

    message: Message
    finish: str
    tokens: int | None  # None where the client gave up before it was told


Ask = Callable[[str, str, Question], Reply]


_CLIENTS: dict[tuple[str, str], Any] = {}  # by their kind and the URL that they ask


def _client(kind: str, url: str, make: Callable[[], Any]) -> Any:
    if (kind, url) not in _CLIENTS:
        _CLIENTS[kind, url] = make()
    return _CLIENTS[kind, url]


def openai_client(url: str) -> openai.OpenAI:
    options: dict[str, Any] = {"api_key": "none", "base_url": f"{url}/v1", "max_retries": 0, "timeout": 60}
    made: openai.OpenAI = _client("openai", url, lambda: openai.OpenAI(**options))
    return made


def anthropic_client(url: str) -> anthropic.Anthropic:
    options: dict[str, Any] = {"api_key": "none", "base_url": url, "max_retries": 0, "timeout": 60}
    made: anthropic.Anthropic = _client("anthropic", url, lambda: anthropic.Anthropic(**options))
    return made


def http_client(url: str) -> httpx2.Client:
    made: httpx2.Client = _client("http", url, lambda: httpx2.Client(base_url=url, timeout=30))
    return made


def close_clients(url: str) -> None:
    """Close the clients of a server; another one may get its port."""
    for key in [key for key in _CLIENTS if key[1] == url]:
        _CLIENTS.pop(key).close()


def wait_until(true: Callable[[], object]) -> None:
    """Return when something has become true; a minute is long enough on any machine."""
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline, "it does not come true"
        time.sleep(0.01)


@contextmanager
def serving(models: Models, settings: Settings | None = None) -> Iterator[str]:
    """The URL of a server; the clients that asked it are closed before it is."""
    with in_background(create_app(models, settings)) as url:
        yield url
        close_clients(url)


def chat_request(model: str, question: Question) -> dict[str, Any]:
    request: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": question.text}],
        "max_tokens": question.max_tokens,
        "seed": question.seed,
        "extra_body": {"soft_limit": question.soft_limit},
    }
    if question.tools:
        functions = [{"name": name, "parameters": schema, "strict": True} for name, schema in question.tools.items()]
        request["tools"] = [{"type": "function", "function": function} for function in functions]
        named = {"type": "function", "function": {"name": question.choice}}
        request["tool_choice"] = named if question.choice in question.tools else question.choice
        request["parallel_tool_calls"] = question.parallel
    if question.reasoning is not None:
        request["reasoning_effort"] = "high" if question.reasoning else "none"
    if question.schema is not None:
        schema = {"name": "answer", "schema": question.schema, "strict": True}
        request["response_format"] = {"type": "json_schema", "json_schema": schema}
    if question.stop:
        request["stop"] = list(question.stop)
    return request


def responses_request(model: str, question: Question) -> dict[str, Any]:
    request: dict[str, Any] = {
        "model": model,
        "input": question.text,
        "max_output_tokens": question.max_tokens,
        "extra_body": {"seed": question.seed, "soft_limit": question.soft_limit},
    }
    if question.tools:
        request["tools"] = [
            {"type": "function", "name": name, "parameters": schema, "strict": True}
            for name, schema in question.tools.items()
        ]
        named = {"type": "function", "name": question.choice}
        request["tool_choice"] = named if question.choice in question.tools else question.choice
        request["parallel_tool_calls"] = question.parallel
    if question.stop:
        request["extra_body"]["stop"] = list(question.stop)
    if question.reasoning is not None:
        request["reasoning"] = {"effort": "high" if question.reasoning else "none"}
    if question.schema is not None:
        request["text"] = {
            "format": {"type": "json_schema", "name": "answer", "schema": question.schema, "strict": True}
        }
    return request


def messages_request(model: str, question: Question) -> dict[str, Any]:
    request: dict[str, Any] = {
        "model": model,
        "messages": [{"role": "user", "content": question.text}],
        "max_tokens": question.max_tokens,
        "extra_body": {"seed": question.seed, "soft_limit": question.soft_limit},
    }
    if question.tools:
        request["tools"] = [{"name": name, "input_schema": schema} for name, schema in question.tools.items()]
        choice: dict[str, Any] = {"type": {"required": "any"}.get(question.choice, question.choice)}
        if question.choice in question.tools:
            choice = {"type": "tool", "name": question.choice}
        if question.choice != "none":
            choice["disable_parallel_tool_use"] = not question.parallel
        request["tool_choice"] = choice
    if question.reasoning is not None:
        thinking = {"type": "enabled", "budget_tokens": 1024} if question.reasoning else {"type": "disabled"}
        request["thinking"] = thinking
    if question.schema is not None:
        request["output_config"] = {"format": {"type": "json_schema", "schema": question.schema}}
    if question.stop:
        request["stop_sequences"] = list(question.stop)
    return request


def chat(url: str, model: str, question: Question) -> Reply:
    done = openai_client(url).chat.completions.create(**chat_request(model, question))
    return _chat_reply(done)


def chat_stream(url: str, model: str, question: Question) -> Reply:
    request = chat_request(model, question) | {"stream_options": {"include_usage": True}}
    with openai_client(url).chat.completions.stream(**request) as stream:
        try:
            for _ in stream:
                pass
        except openai.LengthFinishReasonError:
            pass  # its way to say that an answer with a schema was cut off
        return _chat_reply(stream.current_completion_snapshot)


def _chat_reply(done: Any) -> Reply:
    choice = done.choices[0]
    extra = choice.message.model_extra or {}
    assert extra.get("reasoning") == extra.get("reasoning_content")
    return Reply(
        Message.from_openai(choice.message.to_dict()), choice.finish_reason, done.usage and done.usage.completion_tokens
    )


def responses(url: str, model: str, question: Question) -> Reply:
    return _response_reply(openai_client(url).responses.create(**responses_request(model, question)))


def responses_stream(url: str, model: str, question: Question) -> Reply:
    with openai_client(url).responses.stream(**responses_request(model, question)) as stream:
        last = [event for event in stream if event.type in ("response.completed", "response.incomplete")]
    return _response_reply(last[-1].response)


def _response_reply(done: Any) -> Reply:
    message = Message.from_responses([item.to_dict() for item in done.output])
    finish = "length" if done.status == "incomplete" else "tool_calls" if message.tool_calls else "stop"
    return Reply(message, finish, done.usage.output_tokens)


def messages(url: str, model: str, question: Question) -> Reply:
    return _messages_reply(anthropic_client(url).messages.create(**messages_request(model, question)))


def messages_stream(url: str, model: str, question: Question) -> Reply:
    with anthropic_client(url).messages.stream(**messages_request(model, question)) as stream:
        return _messages_reply(stream.get_final_message())


def _messages_reply(done: Any) -> Reply:
    finish = {"end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "tool_calls"}
    return Reply(Message.from_anthropic(done.to_dict()), finish[done.stop_reason], done.usage.output_tokens)


def check_answers(url: str, interface: str, **limits: int) -> None:
    """Ask the model `m` for an answer under a schema and for a call, whole and as a stream, and hold both to it."""
    for ask in INTERFACES[interface]:
        reply = ask(url, "m", Question(schema=ANSWER, reasoning=False, **limits))
        jsonschema.validate(json.loads(reply.message.content), ANSWER)
        tools = Question(tools={"get_weather": WEATHER}, choice="required", parallel=False, reasoning=False)
        reply = ask(url, "m", tools)
        [call] = reply.message.tool_calls
        jsonschema.validate(json.loads(call.arguments), WEATHER)
        assert (call.name, reply.finish) == ("get_weather", "tool_calls")


def interface_for(dialect: str) -> str:
    """One interface for each dialect, where asking through all of them would show nothing new."""
    return list(INTERFACES)[dialects.names().index(dialect) % len(INTERFACES)]


INTERFACES: dict[str, tuple[Ask, Ask]] = {
    "chat": (chat, chat_stream),
    "responses": (responses, responses_stream),
    "messages": (messages, messages_stream),
}
