"""The real clients add our streams up to the message that the parser read."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers.utils.chat_parsing import ResponseParser

from dovetail import dialects
from dovetail.errors import DialectError
from dovetail.messages import Message, ToolCall, Wire
from dovetail.parsing.adapters import AnthropicEvents, ChatDeltas, RegionEvents, ResponseEvents
from tests.turns import MESSAGES

OUTPUTS = [
    # dialect, output, finish
    ("qwen_3", "Hello, <b>world</b>!", "stop"),
    ("qwen_3", "<think>\nhm\n</think>\n\nLet me see.", "stop"),
    (
        "qwen_3",
        '<think>\nhm\n</think>\n\nBoth:\n<tool_call>\n{"name": "f", "arguments": {"a": "é"}}\n</tool_call>\n'
        '<tool_call>\n{"name": "g", "arguments": {}}\n</tool_call>',
        "stop",
    ),
    ("qwen_3", '<tool_call>\n{"name": "f", "arguments": {"a": 1}}\n</tool_call>\nand then', "stop"),
    ("qwen_3", '<tool_call>\n{"name": "f", "arguments": {"a": "cut', "length"),
    (
        "kimi",
        "<think>x</think><|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>"
        '{"q": "v"}<|tool_call_end|><|tool_calls_section_end|>',
        "stop",
    ),
    (
        "qwen_3_coder",
        "<tool_call>\n<function=f>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\nx\n</parameter>\n</function>\n</tool_call>",
        "stop",
    ),
]
cases = pytest.mark.parametrize(("name", "output", "finish"), OUTPUTS)


def stream(wire: Any, name: str, output: str, finish: Any, size: int = 3) -> tuple[Message, list[Wire]]:
    """A message, and all that an adapter sends while it is read."""
    parser = dialects.get(name).parser(prompt="")
    sent = list(wire.start()) if hasattr(wire, "start") else []
    for at in range(0, len(output), size):
        sent += wire.feed(parser.feed(output[at : at + size]))
    sent += wire.feed(parser.close(finish))
    if hasattr(wire, "finish"):
        sent += wire.finish(parser.message)
    return parser.message, sent


def server(body: str) -> httpx2.Client:
    """An HTTP client to which everything is answered with this stream."""

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, headers={"content-type": "text/event-stream"}, text=body)

    return httpx2.Client(transport=httpx2.MockTransport(answer))


def lines(sent: list[Wire], named: bool) -> str:
    events = (f"event: {wire['type']}\n" if named else "" for wire in sent)
    return "".join(f"{event}data: {json.dumps(wire)}\n\n" for event, wire in zip(events, sent, strict=True))


def openai_client(body: str) -> openai.OpenAI:
    return openai.OpenAI(api_key="none", base_url="http://test.invalid/v1", http_client=server(body), max_retries=0)


def through_chat(sent: list[Wire]) -> Message:
    client = openai_client(lines(sent, named=False) + "data: [DONE]\n\n")
    with client.chat.completions.stream(model="m", messages=[]) as chunks:
        for _ in chunks:
            pass
        choice = chunks.current_completion_snapshot.choices[0]
    message = Message.from_openai(choice.message.to_dict())
    return Message(message.content, message.reasoning, message.tool_calls, choice.finish_reason)  # type: ignore[arg-type]


def through_responses(sent: list[Wire]) -> Message:
    client = openai_client(lines(sent, named=True))
    with client.responses.stream(model="m", input="") as events:
        last = [event for event in events if event.type in ("response.completed", "response.incomplete")]
    return Message.from_responses([item.to_dict() for item in last[-1].response.output])


def through_anthropic(sent: list[Wire]) -> tuple[Message, str | None]:
    client = anthropic.Anthropic(
        api_key="none", base_url="http://test.invalid", http_client=server(lines(sent, named=True)), max_retries=0
    )
    with client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "?"}]) as events:
        message = events.get_final_message()
    return Message.from_anthropic(message.to_dict()), message.stop_reason


def plain(message: Message) -> tuple[str, str, list[tuple[str, str, str]]]:
    calls = Message.from_openai(message.to_openai()).tool_calls
    return message.content, message.reasoning, [(call.id, call.name, call.arguments) for call in calls]


def values(message: Message) -> tuple[str, str, list[tuple[str, str, Any]]]:
    calls = Message.from_openai(message.to_openai()).tool_calls
    return message.content, message.reasoning, [(call.id, call.name, call.value) for call in calls]


@cases
@pytest.mark.parametrize("size", [1, 4, 1000])
def test_the_openai_client_adds_up_chat_deltas(name: str, output: str, finish: str, size: int) -> None:
    message, sent = stream(ChatDeltas(model="m"), name, output, finish, size)
    rebuilt = through_chat(sent)
    assert (plain(message), message.finish_reason) == (plain(rebuilt), rebuilt.finish_reason)


@cases
def test_the_openai_client_adds_up_response_events(name: str, output: str, finish: str) -> None:
    message, sent = stream(ResponseEvents(model="m"), name, output, finish)
    assert plain(message) == plain(through_responses(sent))
    assert list(range(len(sent))) == [wire["sequence_number"] for wire in sent]


@cases
def test_the_anthropic_client_adds_up_blocks(name: str, output: str, finish: str) -> None:
    message, sent = stream(AnthropicEvents(model="m"), name, output, finish)
    rebuilt, reason = through_anthropic(sent)
    if finish == "stop":
        assert values(message) == values(rebuilt)
    wanted = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}
    assert wanted[message.finish_reason or ""] == reason


@cases
def test_region_events_carry_the_message(name: str, output: str, finish: str) -> None:
    message, sent = stream(RegionEvents(), name, output, finish)
    closed = [wire for wire in sent if wire["type"] == "region_close"]
    assert message.content == "".join(wire["value"] for wire in closed if wire["field"] == "content")
    assert message.reasoning == "".join(wire["value"] for wire in closed if wire["field"] == "thinking")
    calls = [wire["value"]["function"] for wire in closed if wire["field"] == "tool_calls"]
    assert [(call.name, call.value) for call in message.tool_calls] == [(c["name"], c["arguments"]) for c in calls]


THROUGH: list[tuple[Callable[[], Any], Callable[[list[Wire]], Message]]] = [
    (ChatDeltas, through_chat),
    (ResponseEvents, through_responses),
    (AnthropicEvents, lambda sent: through_anthropic(sent)[0]),
]


@pytest.mark.parametrize(("adapter", "through"), THROUGH)
@settings(max_examples=25)
@given(message=MESSAGES, size=st.integers(1, 40))
def test_any_message_comes_through(adapter: Any, through: Any, message: Message, size: int) -> None:
    try:
        output = dialects.get("deepseek_v3_1").render(message)
    except DialectError:
        return
    read, sent = stream(adapter(), "deepseek_v3_1", output, "stop", size)
    assert values(read) == values(through(sent))


def test_twenty_calls_keep_their_places() -> None:
    calls = tuple(ToolCall.of(f"f{i}", {"i": i}) for i in range(20))
    output = dialects.get("qwen_3").render(Message(tool_calls=calls))
    _, sent = stream(ChatDeltas(), "qwen_3", output, "stop", 5)
    rebuilt = through_chat(sent)
    assert [(f"call_{i}", f"f{i}", {"i": i}) for i in range(20)] == values(rebuilt)[2]


def test_region_events_are_those_of_transformers() -> None:
    dialect = dialects.get("qwen_3")
    output = dialect.render(Message("Let me see.", "Hm.", (ToolCall.of("f", {"a": "é"}), ToolCall.of("g"))))
    peer = ResponseParser(dialect.response_template(), prefix=dialect.turn.start)
    theirs = [event for at in range(0, len(output), 3) for event in peer.feed(output[at : at + 3])]
    theirs += peer.finalize()[1]
    _, ours = stream(RegionEvents(), "qwen_3", output, "stop")
    assert regions(theirs) == regions(ours)
    assert {tuple(event) for event in theirs} == {tuple(event) for event in ours}


def regions(events: list[Wire]) -> list[tuple[str, Any]]:
    return [(event["field"], event["value"]) for event in events if event["type"] == "region_close"]
