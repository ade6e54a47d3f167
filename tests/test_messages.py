"""Messages keep what they say through every shape they can take."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.errors import MessageError
from dovetail.messages import Message, ToolCall

WORDS = st.text(max_size=20)
NAMES = st.text(min_size=1, max_size=10)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=5,
)
CALLS = st.builds(ToolCall.of, NAMES, st.dictionaries(WORDS, VALUES, max_size=3), st.uuids().map(str))
MESSAGES = st.builds(Message, WORDS, WORDS, st.lists(CALLS, max_size=3).map(tuple))


@given(MESSAGES)
def test_a_message_comes_back_from_every_shape(message: Message) -> None:
    assert message == Message.from_openai(message.to_openai())
    assert message == Message.from_hf(message.to_hf())
    assert message == Message.from_hf(message.to_hf("thinking"))
    assert message == Message.from_anthropic(message.to_anthropic())
    assert message == Message.from_responses(message.to_responses())


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content", "thinking"])
def test_reasoning_is_read_under_every_name(field: str) -> None:
    assert "why" == Message.from_openai({"role": "assistant", "content": "x", field: "why"}).reasoning


def test_content_may_be_a_list_of_parts() -> None:
    parts = [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "a"}, "b"]
    assert Message("ab", "hm") == Message.from_openai({"content": parts})


def test_content_is_null_beside_calls_and_empty_without() -> None:
    assert None is Message(tool_calls=(ToolCall.of("f"),)).to_openai()["content"]
    assert "" == Message().to_openai()["content"]


def test_calls_without_an_id_get_one_by_their_place() -> None:
    message = Message(tool_calls=(ToolCall.of("f"), ToolCall.of("f", id="x"), ToolCall.of("g")))
    assert ["call_0", "x", "call_2"] == [call["id"] for call in message.to_openai()["tool_calls"]]


def test_arguments_that_are_no_json_are_kept_and_flagged() -> None:
    call = ToolCall.written("f", '{"a": ')
    assert ('{"a": ', None, False) == (call.arguments, call.value, call.complete)
    assert {} == Message(tool_calls=(call,)).to_anthropic()["content"][0]["input"]


def test_not_a_number_is_no_json() -> None:
    assert not ToolCall.written("f", '{"a": NaN}').complete


def test_half_a_surrogate_pair_is_escaped() -> None:
    assert '{"a": "\\ud800"}' == ToolCall.of("f", {"a": "\ud800"}).arguments


MALFORMED: list[tuple[Any, str]] = [
    # message, path
    ([], ""),
    ({"content": 5}, "/content"),
    ({"content": [5]}, "/content/0"),
    ({"tool_calls": {}}, "/tool_calls"),
    ({"tool_calls": [5]}, "/tool_calls/0"),
    ({"tool_calls": [{"function": {"arguments": "{}"}}]}, "/tool_calls/0/function/name"),
    ({"tool_calls": [{"function": {"name": 5}}]}, "/tool_calls/0/function/name"),
]


@pytest.mark.parametrize(("message", "path"), MALFORMED)
def test_a_malformed_message_is_refused_with_its_place(message: Any, path: str) -> None:
    with pytest.raises(MessageError) as caught:
        Message.from_openai(message)
    assert path == caught.value.path
