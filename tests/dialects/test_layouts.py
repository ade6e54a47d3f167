"""Layouts that no built-in family has: what they write is accepted and read back."""

from __future__ import annotations

import json
from typing import Any

import pytest

import dovetail as dt
from dovetail.dialects import (
    ARGUMENTS,
    ID,
    NAME,
    Content,
    Dialect,
    JsonCall,
    Literals,
    Reasoning,
    TaggedCall,
    ToolCalls,
    Turn,
)
from dovetail.layouts.styles import CONTROLS, KINDS, PYTHON_DICT, Layout
from dovetail.messages import Message, ToolCall
from dovetail.parsing.layouts import CallLayout

PARAMETERS = {
    "type": "object",
    "properties": {
        "city": {"type": "string"},
        "days": {"type": "integer"},
        "wet": {"type": "boolean"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
}
TOOLS = [{"type": "function", "function": {"name": "weather", "parameters": PARAMETERS}}]
VALUE = {"city": 'It\'s "São"', "days": 3, "wet": True, "tags": ["a'b", 'c"d']}
TAGS = Layout("<p k=", dict.fromkeys(KINDS, (">",)), "</p>")
PYTHON_TAGS = Layout("<p k=", dict.fromkeys(KINDS, (">",)), "</p>", python=("boolean", "null", "object", "array"))
SINGLE = Literals("(", ")", "=", ", ", ("'", '"'), True, False, "True", "False", "None", raw=CONTROLS)


def dialect(call: CallLayout, **fields: Any) -> Dialect:
    way = ToolCalls(call, call_begin="<c>", call_end="</c>", id_pattern="[a-z0-9]+", **fields)
    return Dialect("made up", (way,), turn=Turn("<a>", "<e>"))


# The layout of a call, and what it writes.
CALLS: list[tuple[CallLayout, str]] = [
    (
        JsonCall((("fn", NAME), ("in", ARGUMENTS)), spelling=("{\n ", ",\n ", ":", "\n}")),
        '<c>{\n "fn":"weather",\n "in":' + json.dumps(VALUE, ensure_ascii=False) + "\n}</c>",
    ),
    (
        JsonCall((("n", ID), ("fn", NAME), ("in", ARGUMENTS)), inside="call", bare_id=True),
        '<c>{"n": 7, "call": {"fn": "weather", "in": ' + json.dumps(VALUE, ensure_ascii=False) + "}}</c>",
    ),
    (
        TaggedCall((NAME, "|", ARGUMENTS, "#", ID)),
        "<c>weather|" + json.dumps(VALUE, ensure_ascii=False) + "#7</c>",
    ),
    (
        TaggedCall((NAME, "/", NAME, ":", ARGUMENTS), TAGS),
        '<c>weather/weather:<p k=city>It\'s "São"</p><p k=days>3</p><p k=wet>true</p>'
        '<p k=tags>["a\'b", "c\\"d"]</p></c>',
    ),
    (
        TaggedCall((NAME, ":", ARGUMENTS), Layout("<p k=", dict.fromkeys(KINDS, (">",)), "</p>", quoted=True)),
        '<c>weather:<p k=city>"It\'s \\"São\\""</p><p k=days>3</p><p k=wet>true</p><p k=tags>["a\'b", "c\\"d"]</p></c>',
    ),
    (
        TaggedCall(("{'fn': '", NAME, "', 'in': ", ARGUMENTS, "}"), PYTHON_DICT),
        "<c>{'fn': 'weather', 'in': {'city': 'It\\'s \"São\"', 'days': 3, 'wet': True, 'tags': ['a\\'b', 'c\"d']}}</c>",
    ),
    (
        TaggedCall((NAME, ARGUMENTS), SINGLE),
        "<c>weather(city='It\\'s \"São\"', days=3, wet=True, tags=['a\\'b', 'c\"d'])</c>",
    ),
]
# Other spellings that are accepted and read too.
SPELLINGS: list[tuple[CallLayout, str]] = [
    (
        TaggedCall((NAME, ":", ARGUMENTS), PYTHON_TAGS),
        '<c>weather:<p k=city>It\'s "São"</p><p k=days>3</p><p k=wet>True</p><p k=tags>["a\'b", \'c"d\']</p></c>',
    ),
    (
        TaggedCall((NAME, ARGUMENTS), SINGLE),
        '<c>weather(city="It\'s \\"São\\"", days=3, wet=True, tags=["a\'b", \'c"d\'])</c>',
    ),
]


@pytest.mark.parametrize(("call", "text"), CALLS)
def test_a_call_is_written_accepted_and_read_back(call: CallLayout, text: str) -> None:
    made = dialect(call)
    written = made.render(Message(tool_calls=(ToolCall.of("weather", VALUE, "7"),)))
    assert text == written
    check_read(made, text)


@pytest.mark.parametrize(("call", "text"), SPELLINGS)
def test_other_spellings_are_accepted_and_read(call: CallLayout, text: str) -> None:
    check_read(dialect(call), text)


def check_read(made: Dialect, text: str) -> None:
    assert dt.accepts(made.format(TOOLS), text)
    for parts in ([text], list(text)):
        parser = made.parser(TOOLS, prompt="<a>")
        for part in parts:
            parser.feed(part)
        message = parser.finish()
        assert ([("weather", VALUE, True)], ()) == (
            [(found.name, found.value, found.complete) for found in message.tool_calls],
            message.diagnostics,
        )


def test_a_value_in_pythons_spelling_may_hold_the_markup_that_ends_it() -> None:
    made = dialect(TaggedCall((NAME, ":", ARGUMENTS), PYTHON_TAGS))
    text = "<c>weather:<p k=tags>['</p>', \"x]\"]</p></c>"
    message = made.parse(text, TOOLS, prompt="<a>")
    assert {"tags": ["</p>", "x]"]} == message.tool_calls[0].value
    assert dt.accepts(made.format(TOOLS), text)


def test_a_constant_has_one_other_spelling() -> None:
    made = dialect(TaggedCall((NAME, ":", ARGUMENTS), PYTHON_TAGS))
    schema = {"type": "object", "properties": {"wet": {"const": True}}}
    tools = [{"type": "function", "function": {"name": "weather", "parameters": schema}}]
    made_format = made.format(tools)
    answers = {
        word: dt.accepts(made_format, f"<c>weather:<p k=wet>{word}</p></c>") for word in ("true", "True", "False")
    }
    assert {"true": True, "True": True, "False": False} == answers


def test_a_style_may_be_given_as_markup() -> None:
    tag = {
        "type": "json_schema",
        "json_schema": PARAMETERS,
        "style": {"begin": "<p k=", "middle": {kind: [">"] for kind in KINDS}, "stop": "</p>"},
    }
    loaded = dt.load_format(tag)
    assert dt.accepts(loaded, "<p k=city>Rome</p><p k=days>3</p>")
    assert not dt.accepts(loaded, "<p k=city>Rome</p><p k=days>three</p>")
    assert dt.load_format(loaded.to_dict()) == loaded


def test_a_style_that_is_no_markup_is_refused() -> None:
    with pytest.raises(dt.FormatError) as error:
        dt.load_format({"type": "json_schema", "json_schema": PARAMETERS, "style": {"begin": "<p>"}})
    assert "/style/middle" == error.value.path
    middle = {"string": [">"]}
    with pytest.raises(dt.FormatError) as error:
        dt.load_format(
            {"type": "json_schema", "json_schema": {}, "style": {"begin": "<", "middle": middle, "stop": "<"}}
        )
    assert "/style" == error.value.path


def test_a_turn_has_other_ends_and_white_space_before_its_end() -> None:
    made = Dialect("made up", turn=Turn("<a>", "\n<e>", other_ends=("<stop>",)))
    assert "Hi" == made.parse("Hi\n<e>", prompt="<a>").content
    assert "Hi" == made.parse("Hi<stop>", prompt="<a>").content


def test_a_block_that_the_prompt_begins_is_gone_on_with() -> None:
    way = ToolCalls(TaggedCall((NAME, "\n", ARGUMENTS)), call_begin=">>>")
    made = Dialect("made up", (way,), content=Content((">>>all\n",), ("",)), turn=Turn("<a>", "<e>", opened=">>>"))
    message = Message("Hello.", tool_calls=(ToolCall.of("weather", {"days": 1}),))
    output = made.render(message, opened=True)
    assert 'all\nHello.>>>weather\n{"days": 1}' == output
    assert dt.accepts(made.format(TOOLS), output)
    for prompt in (None, "<a>>>>"):
        read = made.parse(output, TOOLS, prompt=prompt)
        assert ("Hello.", [{"days": 1}], ()) == (
            read.content,
            [call.value for call in read.tool_calls],
            read.diagnostics,
        )


def test_reasoning_without_a_start_begins_with_what_the_prompt_says() -> None:
    made = Dialect(
        "made up", reasoning=Reasoning("", "[DONE]", "prompt", pad="\n", after="\n"), turn=Turn("<a>", "<e>")
    )
    for prompt, output in ((None, "Hm.\n[DONE]\nYes."), ("<a>Steps: ", "Hm.\n[DONE]\nYes.")):
        read = made.parse(output, prompt=prompt)
        assert ("Yes.", True) == (read.content, read.reasoning.endswith("Hm."))
    assert "Yes." == made.parse("Yes.", prompt="<a>").content
    assert dt.accepts(made.format(), "Hm.\n[DONE]\nYes.")
