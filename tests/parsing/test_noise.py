"""Outputs with text where none has a place: between parameters and calls, and behind calls that are closed twice."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dovetail import dialects
from dovetail.messages import Message


def read(dialect: str, output: str, tools: Any = None) -> Message:
    """The message that the output says, which is the same however it is cut."""
    whole = dialects.get(dialect).parse(output, tools, "")
    for size in (1, 3):
        parser = dialects.get(dialect).parser(tools, "")
        for at in range(0, len(output), size):
            parser.feed(output[at : at + size])
        assert whole == parser.finish()
    return whole


def tool(**properties: Any) -> list[dict[str, Any]]:
    return [{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": properties}}}]


DSML = "<｜DSML｜function_calls>\n<｜DSML｜{}\n</｜DSML｜function_calls>"
DSML_CALL = 'invoke name="f">\n<｜DSML｜parameter name="a" string="{}">{}</｜DSML｜parameter>\n</｜DSML｜invoke>'
QWEN = "<tool_call>\n<function=f>{}</function>\n</tool_call>"
MINIMAX = "<minimax:tool_call>{}</minimax:tool_call>"
INVOKE = '<invoke name="{}"><parameter name="a">x</parameter></invoke>'
AB = {"a": "x", "b": "y"}

# What is written, the calls and the content that it says, and the codes of the remarks.
CASES: list[tuple[str, str, list[tuple[str, Any]], str, list[str]]] = [
    (
        "qwen_3_coder",
        QWEN.format("<parameter=a>x</parameter> well, <parameter=b>y</parameter>"),
        [("f", AB)],
        "",
        ["parameter"],
    ),
    ("qwen_3_coder", QWEN.format("<parameter=a>x</parameter></parameter>"), [("f", {"a": "x"})], "", ["parameter"]),
    ("qwen_3_coder", QWEN.format("so: <parameter=a>x</parameter>"), [("f", {"a": "x"})], "", ["parameter"]),
    (
        "qwen_3_coder",
        QWEN.format("<parameter=a>x</parameter>") + "</tool_call> Hm.",
        [("f", {"a": "x"})],
        "Hm.",
        ["call"],
    ),
    ("qwen_3_coder", QWEN.format("<parameter=a>x<parameter=b>y</parameter>"), [("f", AB)], "", ["parameter"]),
    ("hermes", '<tool_call>{"name": "f", "arguments": {"a": 1}} and </tool_call>', [("f", {"a": 1})], "", ["call"]),
    ("hermes", '<tool_call>{"name": "f", "arguments": {}}</tool_call></tool_call>', [("f", {})], "", ["call"]),
    (
        "minimax",
        MINIMAX.format(INVOKE.format("f") + " then " + INVOKE.format("g")),
        [("f", {"a": "x"}), ("g", {"a": "x"})],
        "",
        ["section"],
    ),
    ("minimax", MINIMAX.format(INVOKE.format("f") + "</invoke>"), [("f", {"a": "x"})], "", ["section"]),
    (
        "minimax",
        MINIMAX.format(INVOKE.format("f").removesuffix("</invoke>") + INVOKE.format("g")),
        [("f", {"a": "x"}), ("g", {"a": "x"})],
        "",
        ["call"],
    ),
    ("deepseek_v3_2", "<｜DSML｜" + DSML_CALL.format("true", "x") + " Hm.", [("f", {"a": "x"})], "Hm.", ["section"]),
    (
        "glm_4_7",
        "<tool_call>f<arg_key>a</arg_key>x</arg_value><arg_key>b</arg_key><arg_value>y</arg_value></tool_call>",
        [("f", {"b": "y"})],
        "",
        ["parameter"],
    ),
    ("lfm2", "<|tool_call_start|>f(a=1)]<|tool_call_end|>", [("f", {"a": 1})], "", ["section"]),
    ("gemma_4", "<|tool_call>call:f{a:1}<tool_call|><tool_call|>", [("f", {"a": 1})], "", ["call"]),
    ("gemma_4", "<|tool_call>call:f{a:{b:true<tool_call|>", [("f", {"a": {"b": True}})], "", ["brackets", "brackets"]),
    ("gemma_4", '<|tool_call>call:f{a:<|"|>x<tool_call|>', [("f", {"a": "x"})], "", ["quotes", "brackets"]),
]


@pytest.mark.parametrize(
    ("dialect", "output", "calls", "content", "codes"), CASES, ids=[f"{row[0]}-{n}" for n, row in enumerate(CASES)]
)
def test_text_without_a_place_is_left_out(
    dialect: str, output: str, calls: list[tuple[str, Any]], content: str, codes: list[str]
) -> None:
    message = read(dialect, output)
    assert calls == [(call.name, json.loads(call.arguments)) for call in message.tool_calls]
    assert all(call.complete for call in message.tool_calls)
    assert content == message.content.strip()
    assert codes == [remark.code for remark in message.diagnostics]


def test_a_call_whose_arguments_are_nothing_but_text_is_not_complete() -> None:
    (call,) = read("qwen_3_coder", QWEN.format("Tokyo</parameter>")).tool_calls
    assert (call.arguments, call.value, call.complete) == ("{}", {}, False)


@pytest.mark.parametrize(
    ("announced", "written", "declared", "wanted"),
    [
        ("true", '{"k":1}', {"type": "object"}, {"k": 1}),
        ("true", "5", {"type": "integer"}, 5),
        ("true", "null", {"type": ["object", "null"]}, None),
        ("true", "many", {"type": "integer"}, "many"),
        ("false", "02134", {"type": "string"}, "02134"),
        ("false", '"x"', {"type": "string"}, "x"),
        ("false", '{"k"', {"type": "string"}, '{"k"'),
    ],
)
def test_a_value_is_of_the_declared_kind_whatever_its_markup_says(
    announced: str, written: str, declared: dict[str, Any], wanted: Any
) -> None:
    output = DSML.format(DSML_CALL.format(announced, written))
    message = read("deepseek_v3_2", output, tool(a=declared))
    assert message.tool_calls[0].value == {"a": wanted}
    assert [remark.code for remark in message.diagnostics] == ["type"]


def test_half_of_an_end_is_no_part_of_a_value() -> None:
    whole = "<tool_call>f<arg_key>a</arg_key><arg_value>x</arg_value></tool_call>"
    start = whole.index("x</arg_value>") + 1
    for cut in range(start + 2, start + len("</arg_value>")):
        assert read("glm_4_7", whole[:cut]).tool_calls[0].value == {"a": "x"}
    assert read("glm_4_7", whole[: start - 1]).tool_calls[0].value == {}


def test_what_joins_blocks_is_text_where_no_block_follows() -> None:
    output = "<|message_model|><|content_text|>A header is <|message_model|> and more.<|end_message|>"
    assert read("inkling", output).content == "A header is <|message_model|> and more."
