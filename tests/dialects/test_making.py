"""The formats of turns: what each choice allows, in every family."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

import dovetail as dt
from dovetail.messages import Message, ToolCall
from dovetail.parsing.layouts import ARGUMENTS, ID, NAME, JsonCall, ToolCalls
from tests.dialects.requests_data import ANSWER, CALL, FULL, NAMED, PING, TOOLS
from tests.machines import byte_vocabulary

NAMES = dt.dialects.names()
TEXT, JSON = Message("Hello."), Message('{"ok": "yes"}')
ONE, TWO, OTHER = Message(tool_calls=(CALL,)), Message(tool_calls=(CALL, FULL)), Message(tool_calls=(PING,))

# tool_choice, parallel, answer: which of these messages may be said
TURNS = [
    ("auto", True, None, {"text", "json", "one", "two", "other"}),
    ("auto", False, None, {"text", "json", "one", "other"}),
    ("auto", True, ANSWER, {"json", "one", "two", "other"}),
    ("auto", False, ANSWER, {"json", "one", "other"}),
    ("none", True, ANSWER, {"json"}),
    ("required", True, None, {"one", "two", "other"}),
    ("required", False, None, {"one", "other"}),
    ("required", True, ANSWER, {"one", "two", "other"}),
    (NAMED, True, None, {"one"}),
    (NAMED, True, ANSWER, {"one"}),
]
MESSAGES = {"text": TEXT, "json": JSON, "one": ONE, "two": TWO, "other": OTHER}


def opened(dialect: dt.Dialect, message: Message, reasoning: str) -> str:
    """The turn as it goes on behind the prompt."""
    if reasoning == "auto":
        return dialect.render(message)
    if reasoning == "enabled":
        return dialect.render(message, opened=True)
    text = dialect.render(message, opened=dialect.content.prompt_opens)
    return dialect.reasoning.skipped + text if dialect.reasoning else text


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("choice", "parallel", "answer", "wanted"), TURNS)
def test_a_choice_allows_these_turns(name: str, choice: Any, parallel: bool, answer: Any, wanted: set[str]) -> None:
    dialect = dt.dialects.get(name)
    for reasoning in ("enabled", "disabled", "auto") if dialect.reasoning else ("enabled",):
        fmt = dialect.format(TOOLS, choice, reasoning, parallel_tool_calls=parallel, response_format=answer)
        thought = "Hm." if reasoning == "enabled" and dialect.reasoning else ""
        found = {
            kind
            for kind, message in MESSAGES.items()
            if dt.accepts(fmt, opened(dialect, replace(message, reasoning=thought), reasoning))
        }
        assert wanted == found, reasoning


@pytest.mark.parametrize("name", [name for name in NAMES if dt.dialects.get(name).reasoning])
def test_thinking_stays_possible_beside_a_schema(name: str) -> None:
    dialect = dt.dialects.get(name)
    for message, choice in itertools.product((JSON, ONE), ("auto", "none")):
        if message is JSON or choice == "auto":
            text = dialect.render(replace(message, reasoning="Hm."))
            assert dt.accepts(dialect.format(TOOLS, choice, "auto", response_format=ANSWER), text)


@pytest.mark.parametrize("name", [name for name in NAMES if dt.dialects.get(name).reasoning])
def test_without_reasoning_there_is_none(name: str) -> None:
    dialect = dt.dialects.get(name)
    assert not dt.accepts(dialect.format(TOOLS, reasoning=False), dialect.render(Message("Hello.", "Hm.")))


EXAMPLES = [
    # family, changed arguments, text, accepted
    ("qwen_3", {}, "a\n</think>\n\nb", True),
    ("qwen_3", {}, "<think>a</think>\n\nb", True),
    ("qwen_3", {}, "a</think>b", False),
    ("qwen_3", {"reasoning": "auto"}, "b", True),
    ("qwen_3", {"reasoning": False}, "b <think> c", False),
    ("qwen_3", {"reasoning": False, "exclude_special_tokens": False}, "b <think> c", True),
    ("qwen_3", {"reasoning": False}, "b <tool_call> c", False),
    ("qwen_3", {"reasoning": False, "tool_choice": "none"}, "b <tool_call> c", True),
    ("glm_4_7", {"reasoning": False, "tool_choice": "none"}, "b <tool_call> c", False),
    (
        "deepseek_v4_1",
        {"reasoning": False, "tool_choice": "none", "exclude_special_tokens": False},
        "<｜DSML｜ calls>",
        False,
    ),
    ("minimax", {"reasoning": False}, "\n</think>\n\n\n\nb", True),
    ("minimax_m3", {"reasoning": "auto"}, "</mm:think>b", True),
    ("mimo", {}, "<think>a</think>b", True),
    ("mimo", {}, "a</think>b", False),
    ("kimi_k3", {"reasoning": False}, "b<|close|>response<|sep|><|close|>message<|sep|>", True),
    ("cohere", {}, "a<|END_THINKING|>b", True),
    ("cohere", {}, "a<|END_THINKING|><|START_TEXT|>b<|END_TEXT|>", True),
    ("cohere", {"reasoning": False}, "b <|START_TEXT|> c", False),
    ("granite", {"reasoning": False, "exclude_special_tokens": False}, "<response>b", False),
    ("granite", {"reasoning": False}, '<|tool_call|>[{"name": "ping", "arguments": {}}]', True),
    ("nemotron", {"reasoning": False}, '<TOOLCALL>[{"name": "ping", "arguments": {}}]</TOOLCALL>', True),
    ("mistral", {}, '[TOOL_CALLS][{"name": "ping", "arguments": {}, "id": "abcdefgh"}]', False),
    ("mistral", {}, "[TOOL_CALLS]ping[CALL_ID]abcdefghi[ARGS]{}[TOOL_CALLS]ping[CALL_ID]000000000[ARGS]{}", True),
    ("llama", {}, 'Hi {"name": "ping", "parameters": {}} there', True),
    ("llama_4", {}, "a list [1, 2] and [ping] are prose", True),
    ("llama_4", {}, "[ping(), get_weather(city='Rome')] done", True),
    ("llama_4", {}, "[ping(1)]", False),
    ("harmony", {}, "<|channel|>final<|message|>Hi.<|return|>", True),
    ("harmony", {}, "<|channel|>analysis<|message|>Hm.<|end|>", False),
    ("harmony", {}, "", False),
    ("harmony", {}, "<|channel|>commentary<|message|>One moment.<|end|>", False),
    ("harmony", {}, "<|channel|>final <|constrain|>json<|message|>{}<|return|>", True),
    ("harmony", {}, "<|channel|>analysis to=functions.ping<|message|>{}<|call|>", False),  # read, but not asked for
    ("harmony", {"tool_choice": "required"}, "<|channel|>analysis<|message|>Hm.<|end|>", False),
    ("harmony", {"reasoning": False}, " to=functions.ping<|channel|>commentary json<|message|>{}<|call|>", True),
    (
        "harmony",
        {"reasoning": False},
        "<|channel|>commentary to=functions.ping<|constrain|>json<|message|>{}<|call|>",
        True,
    ),
]


@pytest.mark.parametrize(("name", "changed", "text", "accepted"), EXAMPLES)
def test_families_have_their_ways(name: str, changed: dict[str, Any], text: str, accepted: bool) -> None:
    assert accepted == dt.accepts(dt.dialects.get(name).format(**{"tools": TOOLS, **changed}), text)


HOSTED = {"type": "web_search", "name": "browser.search", "parameters": {"type": "object", "properties": {}}}


def test_harmony_calls_hosted_tools_by_their_own_name() -> None:
    fmt = dt.dialects.get("harmony").format([*TOOLS, HOSTED], {"type": "web_search"})
    assert dt.accepts(fmt, "<|channel|>commentary to=browser.search code<|message|>{}<|call|>")
    assert not dt.accepts(
        fmt, "<|channel|>commentary to=functions.browser.search <|constrain|>json<|message|>{}<|call|>"
    )


def test_other_families_call_hosted_tools_like_functions() -> None:
    fmt = dt.dialects.get("hermes").format([HOSTED], {"type": "web_search"}, reasoning=False)
    assert dt.accepts(fmt, '<tool_call>\n{"name": "browser.search", "arguments": {}}\n</tool_call>')


ARGUMENT_OPTIONS = [
    # options, arguments, accepted
    ({}, '{"a": 1, "b": 2}', True),
    ({}, '{"b": 2, "a": 1}', False),
    ({"any_order": True}, '{"b": 2, "a": 1}', True),
    ({"max_whitespace_cnt": 1}, '{"a":  1, "b": 2}', False),
]


@pytest.mark.parametrize(("options", "arguments", "accepted"), ARGUMENT_OPTIONS)
def test_options_reach_the_arguments(options: dict[str, Any], arguments: str, accepted: bool) -> None:
    schema = {"type": "object", "properties": {"a": {}, "b": {}}}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    fmt = dt.dialects.get("hermes").format(tools, reasoning=False, **options)
    assert accepted == dt.accepts(fmt, f'<tool_call>\n{{"name": "f", "arguments": {arguments}}}\n</tool_call>')


def test_name_and_arguments_may_stand_in_an_object_of_their_own() -> None:
    fields = (("id", ID), ("type", "function"), ("name", NAME), ("arguments", ARGUMENTS))
    way = ToolCalls(JsonCall(fields, inside="function"), trigger='{"id": ', id_pattern=r"\d+")
    dialect = dt.Dialect("nested", (way,))
    text = '{"id": "0", "type": "function", "function": {"name": "ping", "arguments": {}}}'
    assert text == dialect.render(Message(tool_calls=(ToolCall.of("ping"),)))
    assert dt.accepts(dialect.format(TOOLS), text)


@pytest.mark.parametrize("name", NAMES)
def test_strings_under_any_keyword_are_taken_as_the_family_writes_them(name: str) -> None:
    texts = {
        "enum": ({"enum": ["utc", "cet"]}, "utc"),
        "const": ({"const": "x"}, "x"),
        "length": ({"type": "string", "minLength": 3, "maxLength": 3}, "abc"),
        "pattern": ({"type": "string", "pattern": "^ab+$"}, "abb"),
        "format": ({"type": "string", "format": "date"}, "2026-01-01"),
    }
    parameters = {"type": "object", "properties": {key: schema for key, (schema, _) in texts.items()}}
    dialect = dt.dialects.get(name)
    fmt = dialect.format(
        [{"type": "function", "function": {"name": "f", "parameters": parameters}}], "required", "auto"
    )
    for key, (_, text) in texts.items():
        said = dialect.render(Message(tool_calls=(ToolCall.of("f", {key: text}, CALL.id),)))
        assert dt.accepts(fmt, said), said


@pytest.mark.parametrize("name", ["qwen_3", "qwen_3_coder", "cohere", "command_r7b", "harmony", "kimi_k3", "mistral"])
def test_any_of_many_tools_is_called(name: str) -> None:
    tools = [{"type": "function", "function": {"name": f"tool_{i}", "parameters": {}}} for i in range(600)]
    dialect = dt.dialects.get(name)
    grammar = dt.compile(dialect.format(tools, "required", "auto"), byte_vocabulary())
    for number, known in ((59, True), (599, True), (600, False)):
        matcher = grammar.matcher()
        call = ToolCall.of(f"tool_{number}", {}, CALL.id)
        taken = matcher.accept_bytes(dialect.render(Message(tool_calls=(call,))).encode())
        assert known == (taken and matcher.is_complete)


def test_a_name_is_escaped_where_it_stands_in_json() -> None:
    tools = [{"type": "function", "function": {"name": 'say "hi"'}}]
    fmt = dt.dialects.get("hermes").format(tools, reasoning=False)
    assert dt.accepts(fmt, '<tool_call>\n{"name": "say \\"hi\\"", "arguments": {}}\n</tool_call>')


@pytest.mark.parametrize("answer", [{"type": "text"}, None])
def test_a_text_answer_is_free(answer: Any) -> None:
    assert dt.accepts(dt.dialects.get("llama").format(TOOLS, response_format=answer), "anything")


@pytest.mark.parametrize("answer", [{"type": "json_object"}, {"type": "regex", "pattern": "[{]}"}])
def test_an_answer_may_have_any_format(answer: Any) -> None:
    fmt = dt.dialects.get("llama").format(response_format=answer)
    assert dt.accepts(fmt, "{}")
    assert not dt.accepts(fmt, "x")


def test_tools_that_a_family_cannot_call_are_refused_where_they_have_to_be_called() -> None:
    mute = dt.Dialect("mute")
    assert dt.accepts(mute.format(TOOLS), "Hello.")
    with pytest.raises(dt.DialectError, match="no way to call"):
        mute.format(TOOLS, "required")


def test_a_level_that_does_not_exist_is_refused() -> None:
    with pytest.raises(dt.DialectError, match="level"):
        dt.dialects.get("llama").format(level="byte")  # type: ignore[arg-type]


def test_a_key_that_a_call_syntax_cannot_write_is_refused_where_it_stands() -> None:
    parameters = {"properties": {"a b": {}}}
    tools = [*TOOLS, {"type": "function", "function": {"name": "f", "parameters": parameters}}]
    with pytest.raises(dt.SchemaError, match="without quotes") as caught:
        dt.accepts(dt.dialects.get("lfm2").format(tools), "")
    assert caught.value.path.endswith("/json_schema/properties/a b")
