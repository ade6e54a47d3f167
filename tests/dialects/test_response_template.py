"""Response templates, read by Transformers' own parser."""

from __future__ import annotations

from dataclasses import replace

import pytest

import dovetail as dt
from dovetail.messages import Message, ToolCall
from tests.dialects.requests_data import MESSAGES, TOOLS

# Families whose calls end at a bracket, nest in their own markup, or stand in markers or without.
NOT_EXPRESSIBLE = {
    "apertus",
    "cohere",
    "ernie_4_5",
    "gigachat_3",
    "granite",
    "granite_20b_fc",
    "hunyuan_a13b",
    "kimi_k3",
    "lfm2",
    "llama",
    "llama_4",
    "minimax_m3",
    "ministral",
    "mistral",
    "olmo_3",
    "xlam",
}
EXPRESSIBLE = [name for name in dt.dialects.names() if name not in NOT_EXPRESSIBLE]
TYPED = Message(tool_calls=(ToolCall.of("get_weather", {"city": "02134", "days": 2}), ToolCall.of("ping")))


@pytest.mark.parametrize("name", EXPRESSIBLE)
def test_another_parser_reads_the_same_message(name: str) -> None:
    from transformers.utils.chat_parsing import parse_response

    dialect = dt.dialects.get(name)
    template = dialect.response_template()
    for message in (*MESSAGES.values(), TYPED):
        message = message if dialect.reasoning else replace(message, reasoning="")
        text = dialect.render(message) + dialect.turn.end
        read = Message.from_hf(parse_response(text, template, prefix="", tools=TOOLS))
        assert without_ids(message) == without_ids(read)


def without_ids(message: Message) -> Message:
    return replace(message, tool_calls=tuple(ToolCall.of(call.name, call.value) for call in message.tool_calls))


@pytest.mark.parametrize("name", sorted(NOT_EXPRESSIBLE))
def test_what_no_template_can_read_is_refused(name: str) -> None:
    with pytest.raises(dt.ExportError, match=name):
        dt.dialects.get(name).response_template()


def test_ids_are_read_where_they_are_written() -> None:
    assert (
        "{tool_call_id}"
        == dt.dialects.get("command_r7b").response_template()["fields"]["tool_calls"]["transform"]["id"]
    )
