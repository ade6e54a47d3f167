"""The streaming parser: its events, what it does with what does not fit, and its bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dovetail as dt
from dovetail.response_templates import Diagnostic, Span
from tests.response_templates.samples import SMOL

CALL = '{"name": "f", "arguments": {}}'
PROMPT = "<|im_start|>assistant\nHello!<|im_end|>\n<|im_start|>user\nAgain?<|im_end|>\n<|im_start|>assistant\n"


def field(**keys: Any) -> dict[str, Any]:
    return {"start_anchor": "Z", "fields": {"x": {"open": "<x>", "close": "</x>", **keys}}}


def test_events_arrive_as_soon_as_nothing_can_change_them() -> None:
    parser = dt.ResponseParser(SMOL, PROMPT)
    chunk = {"type": "region_chunk", "field": "thinking", "dirty": False}
    assert [] == parser.feed("<thi")
    assert [{"type": "region_open", "field": "thinking"}, chunk | {"text": "a"}] == parser.feed("nk>a</")
    assert [chunk | {"text": "</b"}] == parser.feed("b")
    assert [{"type": "region_close", "field": "thinking", "value": "a</b"}] == parser.feed("</think>")
    assert {"role": "assistant", "thinking": "a</b"} == parser.message
    message, final = parser.finalize()
    assert ({"role": "assistant", "thinking": "a</b"}, []) == (message, final)


def test_only_the_last_turn_of_the_prompt_is_part_of_the_message() -> None:
    parser = dt.ResponseParser(SMOL, PROMPT + "<think>I ")
    assert ["region_open", "region_chunk"] == [event["type"] for event in parser.initial_events]
    assert "thinking" == parser.open_field
    parser.feed("see</think>Hi")
    assert {"role": "assistant", "thinking": "I see", "content": "Hi"} == parser.finalize()[0]


def test_without_the_anchor_the_whole_prefix_is_read() -> None:
    assert {"role": "assistant", "content": "ab"} == dt.parse_response("b", SMOL, prefix="a")


def test_the_prefix_must_be_given() -> None:
    with pytest.raises(dt.InputError, match="together with the prompt"):
        dt.ResponseParser(SMOL)


def test_a_parser_serves_one_response() -> None:
    parser = dt.ResponseParser(SMOL, "")
    parser.finalize()
    with pytest.raises(dt.InputError, match="finalized already"):
        parser.feed("a")
    with pytest.raises(dt.InputError, match="finalized already"):
        parser.finalize()


def test_a_wrong_mode_is_named() -> None:
    with pytest.raises(dt.InputError, match="on_malformed is 'drop'"):
        dt.ResponseParser(SMOL, "", on_malformed="drop")  # type: ignore[arg-type]


def test_an_error_carries_the_message_the_events_and_the_text_and_the_rest_is_read_on() -> None:
    parser = dt.ResponseParser(SMOL, "")
    with pytest.raises(dt.ResponseError, match="the region of tool_calls cannot be read: not JSON") as caught:
        parser.feed(f"Hi<tool_call>bad</tool_call><tool_call>{CALL}</tool_call>")
    error = caught.value
    assert ("/fields/tool_calls", "bad") == (error.path, error.raw)
    assert {"role": "assistant", "content": "Hi"} == error.message
    assert ["content", "content", "content", "tool_calls", "tool_calls"] == [event["field"] for event in error.events]
    assert ["region_open", "region_chunk", "region_close"] == [event["type"] for event in parser.feed("")]
    assert [json.loads(CALL)] == [call["function"] for call in parser.finalize()[0]["tool_calls"]]


def test_behind_an_error_every_delimiter_counts_again() -> None:
    template = {"start_anchor": "Z", "fields": {"x": {"open": "<", "close": "]", "content": "int"}, "content": {}}}
    parser = dt.ResponseParser(template, "")
    parser.feed("<a")
    with pytest.raises(dt.ResponseError):
        parser.feed("]b<")
    parser.feed("7")
    parser.feed("]")
    assert {"content": "b", "x": 7} == parser.finalize()[0]


def test_a_long_chunk_is_read_on_behind_an_error() -> None:
    template = {"start_anchor": "Z", "fields": {"x": {"open": "<", "close": ">", "content": "int"}, "content": {}}}
    parser = dt.ResponseParser(template, "", max_held=8)
    with pytest.raises(dt.ResponseError):
        parser.feed("<a>" + "b" * 20)
    parser.feed("<7>")
    assert {"content": "b" * 20, "x": 7} == parser.finalize()[0]


def test_kept_text_stands_in_place_of_the_value() -> None:
    parser = dt.ResponseParser(SMOL, "", on_malformed="keep")
    events = parser.feed(f"<tool_call>bad</tool_call>Hi<tool_call>{CALL}</tool_call>")
    assert {"type": "region_close", "field": "tool_calls", "value": "bad"} in events
    message, _ = parser.finalize()
    assert ["bad", {"type": "function", "function": json.loads(CALL)}] == message["tool_calls"]
    (found,) = parser.diagnostics
    assert isinstance(found, Diagnostic)
    assert ("tool_calls", "bad", 11, 14) == (found.field, found.raw, found.start, found.end)


MALFORMED = [
    # the keys of the field, its text, words of the problem
    ({"content": "int"}, "1.5", "invalid literal"),
    ({"content": "json"}, "[" * 100_000, "nested too deep"),
    ({"content": "json", "repeats": True, "join": ""}, "1", "join needs texts, and this is a int"),
    ({"content": "json", "transform": "{content.a}"}, "[]", "looks for 'a' in a list"),
    ({"content": "json", "transform": "{content.a}"}, "{}", "'a' is not among"),
    ({"content": "json", "transform": "{a}", "transform_each": True}, "{}", "needs a list of objects"),
    ({"content": "xml-inline", "content_args": {"tag_pattern": "(?P<key>a)?b"}}, "b", "has no key"),
    (
        {"content": "xml-inline", "content_args": {"tag_pattern": "(?P<key>(?:a|aa)+)c"}},
        "a" * 60,
        "takes more than 0.1 s",
    ),
]


@pytest.mark.parametrize(("keys", "text", "words"), MALFORMED)
def test_text_that_does_not_fit_is_told_or_kept(keys: dict[str, Any], text: str, words: str) -> None:
    whole = f"<x>{text}</x>"
    with pytest.raises(dt.ResponseError, match=words):
        dt.ResponseParser(field(**keys), "", time_limit=0.1).feed(whole)
    parser = dt.ResponseParser(field(**keys), "", on_malformed="keep", time_limit=0.1)
    parser.feed(whole)
    message, _ = parser.finalize()
    assert message["x"] in (text, [text])
    assert words in parser.diagnostics[0].problem


def test_a_missing_field_is_told_or_noted() -> None:
    with pytest.raises(dt.ResponseError, match="required fields are missing: x"):
        dt.parse_response("", field(optional=False), prefix="")
    parser = dt.ResponseParser(field(optional=False), "", on_malformed="keep")
    assert {} == parser.finalize()[0]
    assert "required fields are missing: x" == parser.diagnostics[0].problem


def test_groups_of_both_delimiters_reach_the_transform_and_the_opening_event() -> None:
    delimiters = {"open_pattern": "<(?P<a>\\w)>", "close_pattern": "</(?P<b>\\w)>"}
    template = {"start_anchor": "Z", "fields": {"x": {**delimiters, "transform": ["{a}", "{content}", "{b}"]}}}
    assert {"x": ["1", "2", "3"]} == dt.parse_response("<1>2</3>", template, prefix="")
    parser = dt.ResponseParser(template, "", spans=True)
    opening = {"type": "region_open", "field": "x", "captures": {"a": "1"}, "start": 0, "end": 3}
    assert opening == parser.feed("<1>2</3> ")[0]


def test_text_that_no_field_takes_is_remembered() -> None:
    parser = dt.ResponseParser(field(), "")
    parser.feed("ab<x>c</x>d")
    parser.finalize()
    assert [Span(0, 2, "ab"), Span(10, 11, "d")] == parser.unclaimed


STUCK = [
    # the fields of a template that matches nothing again and again, a text, the message
    ({"x": {"open_pattern": "", "close_pattern": "", "repeats": True}}, "ab", {"x": ["", ""]}),
    (
        {"x": {"open_pattern": "(?=a)", "close_pattern": "(?=a)"}, "content": {"repeats": True}},
        "aba",
        {"content": ["ab", "a"]},
    ),
    ({"x": {"open_pattern": "^", "close_pattern": "(?=b)"}, "content": {}}, "b", {"content": "b"}),
    ({"content": {"close_pattern": "(?=b)"}}, "abc", {"content": "a"}),
    ({"x": {"open": "<", "close_pattern": "(?=<)", "repeats": True}}, "<<", {"x": ["", ""]}),
]


@pytest.mark.parametrize(("fields", "text", "message"), STUCK)
def test_empty_matches_make_progress(fields: dict[str, Any], text: str, message: dict[str, Any]) -> None:
    template = {"start_anchor": "Z", "fields": fields}
    assert message == dt.parse_response(text, template, prefix="")


def test_a_search_without_end_is_given_up_and_nothing_is_lost() -> None:
    template = {"start_anchor": "Z", "fields": {"x": {"open": "<x>", "close_pattern": "(?:a|aa)+c"}}}
    text = "<x>" + "a" * 60 + "bc"
    with pytest.raises(dt.ResponseError, match=r"takes more than 0.1 s; no delimiter is looked for any more"):
        dt.ResponseParser(template, "", time_limit=0.1).feed(text)
    parser = dt.ResponseParser(template, "", time_limit=0.1, on_malformed="keep")
    for chunk in (text[:20], text[20:], "d"):
        parser.feed(chunk)
    assert {"x": text[3:] + "d"} == parser.finalize()[0]


def test_a_slow_anchor_is_refused() -> None:
    template = {"start_anchor_pattern": "(?:a|aa)+c", "fields": {"x": {"open": "<x>"}}}
    with pytest.raises(dt.LimitError, match="the start anchor takes more than"):
        dt.ResponseParser(template, "a" * 60, time_limit=0.1)


@pytest.mark.parametrize(
    "opening",
    [
        {"open_pattern": "(?=[\\s\\S]*?</think>)"},  # everything waits for something that never comes
        {"open_pattern": "<x[^>]*>"},
        {"open_pattern": "\\s*<x>"},
        {"open": "<x>"},
    ],
)
def test_a_long_output_is_read_in_time(opening: dict[str, Any]) -> None:
    template = {"start_anchor": "Z", "fields": {"x": {**opening, "close": "</think>"}, "content": {}}}
    parser = dt.ResponseParser(template, "")
    parser.feed("<x")
    for _ in range(40_000):
        parser.feed(" a few words and\n\n so on")
    message, _ = parser.finalize()
    assert 2 + 40_000 * 24 == len(message["content"])


def test_a_pattern_that_cannot_be_told_from_a_part_waits_for_the_end() -> None:
    template = {"start_anchor": "Z", "fields": {"x": {"open_pattern": "(?m)^>", "close": ";"}, "content": {}}}
    parser = dt.ResponseParser(template, "")
    assert [] == parser.feed("a\n>b;c")
    assert {"content": "c", "x": "b"} == parser.finalize()[0]
