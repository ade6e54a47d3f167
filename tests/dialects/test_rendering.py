"""Messages as the turns that say them."""

from __future__ import annotations

import tomllib
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import dovetail as dt
from dovetail.messages import Message, ToolCall
from tests.dialects.requests_data import MESSAGES, PING, TOOLS

TURNS = tomllib.loads((Path(__file__).parent / "turns.toml").read_text())
NAMES = dt.dialects.names()


def said_by(name: str, message: Message) -> Message:
    """The message without what the family cannot say."""
    return message if dt.dialects.get(name).reasoning else replace(message, reasoning="")


def test_every_family_has_its_turn_in_the_table() -> None:
    assert NAMES == sorted(TURNS)


@pytest.mark.parametrize("name", NAMES)
def test_a_turn_is_written_as_the_family_writes_it(name: str) -> None:
    assert TURNS[name] == dt.dialects.get(name).render(said_by(name, MESSAGES["text and calls"]))


@pytest.mark.parametrize("kind", MESSAGES)
@pytest.mark.parametrize("name", NAMES)
def test_a_rendered_turn_is_accepted(name: str, kind: str) -> None:
    dialect, message = dt.dialects.get(name), said_by(name, MESSAGES[kind])
    whole = dialect.render(message)
    assert dt.accepts(dialect.format(TOOLS, reasoning="auto"), whole)
    if message.tool_calls and not message.content:
        assert dt.accepts(dialect.format(TOOLS, "required", "auto"), whole)
    if message.reasoning:
        assert dt.accepts(dialect.format(TOOLS), dialect.render(message, opened=True))


K3_ANSWER = "Hi.<|close|>response<|sep|><|close|>message<|sep|>"
OPENED = [
    # family, reasoning, the rest of the turn behind what the prompt wrote
    ("qwen_3", "Hm.", "\nHm.\n</think>\n\nHi."),
    ("deepseek_v3_1", "", "</think>Hi."),
    ("mimo", "Hm.", "<think>Hm.</think>Hi."),
    (
        "kimi_k3",
        "Hm.",
        "Hm.<|close|>think<|sep|><|open|>response<|sep|>Hi.<|close|>response<|sep|><|close|>message<|sep|>",
    ),
    ("kimi_k3", "", "Hi.<|close|>response<|sep|><|close|>message<|sep|>"),
    ("llama", "", "Hi."),
]


@pytest.mark.parametrize(("name", "reasoning", "text"), OPENED)
def test_what_the_prompt_has_opened_is_not_written_again(name: str, reasoning: str, text: str) -> None:
    dialect = dt.dialects.get(name)
    assert text == dialect.render(Message("Hi.", reasoning), opened=True)
    assert dt.accepts(dialect.format(TOOLS, reasoning=bool(reasoning) or name != "kimi_k3"), text)


IDS = [
    # family, id, the written id
    ("mistral", "abcDEF123", "abcDEF123"),
    ("mistral", "call_17", "000000000"),
    ("kimi", "functions.ping:7", ":7<"),
    ("kimi", "functions.other:7", ":0<"),
    ("kimi_k3", "", 'index="1"'),
    ("cohere", "", 'id="0"'),
    ("command_r7b", "5", '"tool_call_id": "5"'),
]


@pytest.mark.parametrize(("name", "id", "written"), IDS)
def test_an_id_is_written_where_the_family_has_ids_like_it(name: str, id: str, written: str) -> None:
    assert written in dt.dialects.get(name).render(Message(tool_calls=(ToolCall.of("ping", {}, id),)))


REFUSED = [
    # family, message, words of the error, path
    ("llama", Message("Hi.", "Hm."), "does not reason", "/reasoning"),
    ("qwen_3", Message("Hi <tool_call> there."), "takes for markup", "/content"),
    ("qwen_3", Message("Hi.", "a </think> b"), "takes for markup", "/reasoning"),
    ("harmony", Message("Hi <|end|> there."), "takes for markup", "/content"),
    (
        "qwen_3_coder",
        Message(tool_calls=(ToolCall.of("f", {"a": "x</parameter>"}),)),
        "markup",
        "/tool_calls/0/arguments/a",
    ),
    ("gemma_4", Message(tool_calls=(ToolCall.of("f", {"a": ['<|"|>']}),)), "markup", "/tool_calls/0/arguments/a/0"),
    ("lfm2", Message(tool_calls=(ToolCall.of("f", [1]),)), "no object", "/tool_calls/0/arguments"),
]


@pytest.mark.parametrize(("name", "message", "words", "path"), REFUSED)
def test_what_a_family_cannot_say_is_refused(name: str, message: Message, words: str, path: str) -> None:
    with pytest.raises(dt.DialectError, match=words) as caught:
        dt.dialects.get(name).render(message)
    assert path == caught.value.path


def test_arguments_that_are_no_json_are_written_as_they_are() -> None:
    message = Message(tool_calls=(ToolCall.written("f", '{"a": tru'),))
    assert '"arguments": {"a": tru}' in dt.dialects.get("hermes").render(message)


def test_a_family_without_tools_writes_no_calls() -> None:
    with pytest.raises(dt.DialectError, match="does not call tools"):
        dt.Dialect("mute").render(Message(tool_calls=(PING,)))


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=6,
)
OPEN_TOOLS: list[dict[str, Any]] = [
    {"type": "function", "function": {"name": "f", "parameters": {"type": "object", "additionalProperties": True}}}
]
# Keys that a schema does not declare cannot be tags of their own.
OPEN_NAMES = [name for name in NAMES if name != "minimax_m3"]


@given(
    name=st.sampled_from(OPEN_NAMES),
    content=st.text(max_size=12),
    values=st.lists(st.dictionaries(st.sampled_from(["key", "x_1"]), VALUES, max_size=2), max_size=20),
)
def test_random_messages_are_accepted_where_they_can_be_said(
    name: str, content: str, values: list[dict[str, Any]]
) -> None:
    message = Message(content, "", tuple(ToolCall.of("f", value) for value in values))
    dialect = dt.dialects.get(name)
    try:
        text = dialect.render(message)
    except dt.DialectError:
        assume(False)
    assert dt.accepts(dialect.format(OPEN_TOOLS, reasoning="auto"), text)
