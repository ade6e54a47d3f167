"""What a response template reads as the message that all readers share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

import dovetail as dt
from dovetail.response_templates.outcome import to_message
from tests.dialects.requests_data import MESSAGES, TOOLS
from tests.dialects.test_response_template import EXPRESSIBLE, without_ids


@pytest.mark.parametrize("name", EXPRESSIBLE)
def test_the_reader_of_a_dialect_and_that_of_its_template_give_the_same_message(name: str) -> None:
    dialect = dt.dialects.get(name)
    for message in MESSAGES.values():
        message = message if dialect.reasoning else replace(message, reasoning="")
        text = dialect.render(message) + dialect.turn.end
        parser = dt.ResponseParser(dialect.response_template(), "", tools=TOOLS)
        parser.feed(text)
        parser.finalize()
        read = dialect.parse(text, TOOLS, prompt="")
        assert without_ids(replace(read, finish_reason=None)) == without_ids(parser.to_message())


def call(name: Any, arguments: Any, **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


SHAPES: list[tuple[dict[str, Any], dt.Message]] = [
    # the fields of a response, the message
    ({"role": "assistant"}, dt.Message()),
    ({"content": "a", "thinking": "b"}, dt.Message("a", "b")),
    ({"content": ["a", "b"], "reasoning_content": "c"}, dt.Message("ab", "c")),
    ({"content": {"é": 1}}, dt.Message('{"é": 1}')),
    ({"content": ["a", 1]}, dt.Message('["a", 1]')),
    (
        {"tool_calls": [call("f", {"a": 1}, id="7")]},
        dt.Message(tool_calls=(dt.ToolCall("f", '{"a": 1}', {"a": 1}, "7"),)),
    ),
    ({"tool_calls": [call("f", "[1]")]}, dt.Message(tool_calls=(dt.ToolCall("f", "[1]", [1]),))),
    ({"tool_calls": [call("f", "{a")]}, dt.Message(tool_calls=(dt.ToolCall("f", "{a", complete=False),))),
    ({"tool_calls": call("f", None)}, dt.Message(tool_calls=(dt.ToolCall.of("f"),))),
    ({"tool_calls": [{"name": "f"}]}, dt.Message(tool_calls=(dt.ToolCall.of("f"),))),
    (
        {"tool_calls": [[call("f", {})], [call("g", {})]]},
        dt.Message(tool_calls=(dt.ToolCall.of("f"), dt.ToolCall.of("g"))),
    ),
    ({"tool_calls": ["{bad"]}, dt.Message(tool_calls=(dt.ToolCall("", "{bad", complete=False),))),
    ({"tool_calls": [{"function": 1}]}, dt.Message(tool_calls=(dt.ToolCall("", '{"function": 1}', complete=False),))),
    (
        {"tool_calls": [call(3, {})]},
        dt.Message(tool_calls=(dt.ToolCall("", dt.messages.to_json(call(3, {})), None, "", False),)),
    ),
]


@pytest.mark.parametrize(("fields", "message"), SHAPES)
def test_fields_become_a_message(fields: dict[str, Any], message: dt.Message) -> None:
    assert message == to_message(fields, ())


def test_values_as_deep_as_can_be_read_are_written() -> None:
    fields = {"content": {"open": "<t>", "close": "</t>", "content": "json"}}
    parser = dt.ResponseParser({"start_anchor": "Z", "fields": fields}, "")
    nested = "[" * 900 + "]" * 900
    parser.feed(f"<t>{nested}</t>")
    assert nested == parser.to_message().content


def test_what_was_kept_is_told_in_the_message() -> None:
    fields = {"tool_calls": {"open": "<c>", "close": "</c>", "repeats": True, "content": "json"}, "content": {}}
    parser = dt.ResponseParser({"start_anchor": "Z", "fields": fields}, "", on_malformed="keep")
    parser.feed("é<c>{bad</c>ok")
    assert dt.Message("é", tool_calls=(dt.ToolCall("", "{bad", complete=False),)) == replace(
        parser.to_message(), diagnostics=()
    )
    parser.finalize()
    (found,) = parser.to_message().diagnostics
    assert isinstance(found, dt.Diagnostic)
    assert ("malformed", 4, 8) == (found.code, found.start, found.end)
