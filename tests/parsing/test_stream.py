"""The streaming parser: what users were hurt by elsewhere, prompts, tokens, strictness and the end of a turn."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dovetail as dt
from dovetail import dialects
from dovetail.errors import InputError, ParseError
from dovetail.messages import Message
from dovetail.parsing.codes import CODES
from tests.turns import check_tiling, check_told, feed


def tool(name: str, **properties: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {"type": "object", "properties": properties}}}


TOOLS = [tool("f", a={"type": "string"}, n={"type": "integer"}), tool("g")]
CALL = '<tool_call>\n{"name": "f", "arguments": {"a": "x"}}\n</tool_call>'


def read(name: str, output: str, **options: Any) -> Message:
    """The message of an output, the same whole, in pieces and byte by byte."""
    dialect = dialects.get(name)
    options = {"tools": TOOLS, "prompt": ""} | options
    finish = options.pop("finish", "stop")
    data = output.encode()
    message, events = feed(dialect.parser(**options), [output], finish)
    check_tiling(events, len(data))
    check_told(events, message)
    for size in (1, 3):
        pieces = [data[i : i + size] for i in range(0, len(data), size)]
        assert message == feed(dialect.parser(**options), pieces, finish)[0]
    for cut in range(len(data) + 1):
        assert message == feed(dialect.parser(**options), [data[:cut], data[cut:]], finish)[0]
    return message


def shape(message: Message) -> tuple[str, str, list[tuple[str, str, bool]]]:
    calls = [(call.name, call.arguments, call.complete) for call in message.tool_calls]
    return message.content, message.reasoning, calls


CASES: list[tuple[str, str, str, str, list[tuple[str, str, bool]], list[str]]] = [
    # dialect, output, content, reasoning, calls, codes of diagnostics
    # An empty call does not break the next one.
    (
        "hermes",
        '<tool_call>{"name": "g", "arguments": {}}</tool_call>'
        '<tool_call>{"name": "f", "arguments": {"a": "x"}}</tool_call>',
        "",
        "",
        [("g", "{}", True), ("f", '{"a": "x"}', True)],
        [],
    ),
    # A marker inside an argument is an argument.
    (
        "qwen_3",
        '<tool_call>\n{"name": "f", "arguments": {"a": "</tool_call>\\"<think>"}}\n</tool_call>',
        "",
        "",
        [("f", '{"a": "</tool_call>\\"<think>"}', True)],
        [],
    ),
    # Text before, between and behind regions stays.
    ("qwen_3", "hello <think>x</think> world", "hello  world", "x", [], []),
    ("qwen_3", f"one\n{CALL}\ntwo", "one\ntwo", "", [("f", '{"a": "x"}', True)], []),
    # A trigger in prose is prose.
    (
        "qwen_3",
        "Use <tool_call> to call, and <tool_call>{not json",
        "Use <tool_call> to call, and <tool_call>{not json",
        "",
        [],
        [],
    ),
    ("llama", 'Say {"name": "Bob", "age": 3}', 'Say {"name": "Bob", "age": 3}', "", [], []),
    ("llama", 'Say {"name": "h", "parameters": {}}', 'Say {"name": "h", "parameters": {}}', "", [], []),
    ("llama_4", "an [aside(really)] of f(x)", "an [aside(really)] of f(x)", "", [], []),
    ("glm_4_7", "<tool_call>no call", "<tool_call>no call", "", [], []),
    # An unknown tool is a call with a remark.
    (
        "qwen_3",
        '<tool_call>\n{"name": "h", "arguments": {}}\n</tool_call>',
        "",
        "",
        [("h", "{}", True)],
        ["unknown_tool"],
    ),
    # Fields come in any order, under a name that many models use instead, and without arguments.
    ("qwen_3", '<tool_call>{"arguments": {"n": 1}, "name": "f"}</tool_call>', "", "", [("f", '{"n": 1}', True)], []),
    ("qwen_3", '<tool_call>{"name": "f", "parameters": {"n": 1}}</tool_call>', "", "", [("f", '{"n": 1}', True)], []),
    ("qwen_3", '<tool_call>{"name": "g"}</tool_call>', "", "", [("g", "{}", True)], []),
    # Whitespace between parts is free.
    ("qwen_3", '<tool_call> { "name" :\n"g" , "arguments" : { } }  </tool_call>', "", "", [("g", "{ }", True)], []),
    # Brackets that are missing at the end of the call are put there, and ends that are missing are noted.
    (
        "qwen_3",
        '<tool_call>{"name": "f", "arguments": {"n": 1</tool_call>',
        "",
        "",
        [("f", '{"n": 1}', True)],
        ["brackets", "call"],
    ),
    (
        "qwen_3",
        '<tool_call>{"name": "f", "arguments": {"n": 1}}}</tool_call>',
        "",
        "",
        [("f", '{"n": 1}', True)],
        ["call"],
    ),
    ("qwen_3", '<tool_call>{"name": "f", "arguments": {"n": 1}}', "", "", [("f", '{"n": 1}', True)], ["call"]),
    ("ministral", "[TOOL_CALLS]f[ARGS]nonsense", "", "", [("f", "nonsense", False)], ["arguments"]),
    # Values are of their declared type.
    (
        "qwen_3_coder",
        "<tool_call>\n<function=f>\n<parameter=a>\n02134\n</parameter>\n"
        "<parameter=n>\n7\n</parameter>\n</function>\n</tool_call>",
        "",
        "",
        [("f", '{"a": "02134", "n": 7}', True)],
        [],
    ),
    (
        "qwen_3_coder",
        '<tool_call>\n<function=f>\n<parameter=n>\n"30"\n</parameter>\n</function>\n</tool_call>',
        "",
        "",
        [("f", '{"n": 30}', True)],
        ["type"],
    ),
    # A call whose beginning the model forgot.
    (
        "qwen_3_coder",
        "Go.\n<function=f>\n<parameter=a>\nx\n</parameter>\n</function>\n</tool_call>",
        "Go.",
        "",
        [("f", '{"a": "x"}', True)],
        ["section"],
    ),
    # The end of the turn ends it.
    ("qwen_3", "yes<|im_end|>\n<|im_start|>user\nhm", "yes", "", [], ["after_end"]),
    # Reasoning that nothing opened, or that a call ended.
    ("qwen_3", "so</think>\n\nyes", "so</think>\n\nyes", "", [], ["reasoning"]),
    (
        "qwen_3_5",
        f"<think>hm\n{CALL[:11]}<function=g></function></tool_call>",
        "",
        "hm",
        [("g", "{}", True)],
        ["reasoning"],
    ),
    # Harmony, with headers as models write them now and then.
    (
        "harmony",
        '<|channel|>final to=functions.f <|constrain|>json<|message|>{"a": "x"}<|call|>',
        "",
        "",
        [("f", '{"a": "x"}', True)],
        ["header"],
    ),
    ("harmony", "<|channel|>final code<|message|>{}<|return|>", "{}", "", [], ["header"]),
    ("harmony", "plain words", "plain words", "", [], ["outside"]),
]


@pytest.mark.parametrize(("name", "output", "content", "reasoning", "calls", "codes"), CASES)
def test_an_output_says(name: str, output: str, content: str, reasoning: str, calls: Any, codes: list[str]) -> None:
    message = read(name, output)
    assert (content, reasoning, calls) == shape(message)
    assert codes == [remark.code for remark in message.diagnostics]


def test_emoji_come_through_byte_by_byte() -> None:
    parser = dialects.get("qwen_3").parser(prompt="")
    texts = [event.text for byte in "a🦊é".encode() for event in parser.feed(bytes([byte])) if event.kind == "text"]
    assert ["a", "🦊", "é"] == texts


def test_bytes_that_are_no_text_become_replacement_characters() -> None:
    assert "a\ufffdb\ufffd" == dialects.get("qwen_3").parse(b"a\xffb\xe7\x8c").content


def test_arguments_stream_before_the_call_ends() -> None:
    parser = dialects.get("qwen_3_coder").parser(TOOLS, "")
    parser.feed("<tool_call>\n<function=f>\n<parameter=a>\nhel")
    assert '{"a": "hel' == parser.message.tool_calls[0].arguments
    assert {"a": "hel"} == parser.message.tool_calls[0].value


# The end of a turn.


@pytest.mark.parametrize(
    ("output", "finish", "reason", "complete"),
    [
        ("hi", "stop", "stop", []),
        ("hi", "length", "length", []),
        (CALL, "stop", "tool_calls", [True]),
        (CALL, "length", "length", [True]),
        (CALL[:-25], "length", "length", [False]),
        (CALL[:-25], "stop", "length", [False]),
    ],
)
def test_a_cut_call_is_never_finished(output: str, finish: Any, reason: str, complete: list[bool]) -> None:
    message = read("qwen_3", output, finish=finish)
    assert (reason, complete) == (message.finish_reason, [call.complete for call in message.tool_calls])


def test_half_a_marker_is_text_where_the_model_stopped_and_nothing_where_it_was_cut() -> None:
    assert "1 <tool" == read("qwen_3", "1 <tool").content
    message = read("qwen_3", "1 <tool", finish="length")
    assert ("1 ", ["cut_off"]) == (message.content, [remark.code for remark in message.diagnostics])


def test_closing_twice_says_nothing_new() -> None:
    parser = dialects.get("qwen_3").parser()
    parser.feed("hi")
    assert parser.finish() == parser.finish("length")
    assert [] == parser.close()


def test_nothing_can_follow_the_end() -> None:
    parser = dialects.get("qwen_3").parser()
    parser.finish()
    with pytest.raises(InputError, match="ended already"):
        parser.feed("more")


# Prompts.

START, FINAL = "<|start|>assistant", "<|channel|>final<|message|>"
PROMPTS = [
    # dialect, prompt, output, content, reasoning
    (
        "qwen_3",
        "<|im_start|>user\n<think><|im_end|>\n<|im_start|>assistant\n<think>\n",
        "so\n</think>\n\nyes",
        "yes",
        "so",
    ),
    ("qwen_3", "<|im_start|>assistant\n", "yes", "yes", ""),
    ("qwen_3", "<|im_start|>assistant\n<think>\n\n</think>\n\n", "yes", "yes", ""),
    ("qwen_3", "<|im_start|>assistant\n<think>\nso", " far\n</think>\n\nyes", "yes", "so far"),
    ("qwen_3", "<|im_start|>assistant\nHel", "lo", "Hello", ""),
    ("deepseek_v3_1", "…<｜Assistant｜><think>", "so</think>yes", "yes", "so"),
    ("deepseek_v3_1", "…<｜Assistant｜></think>", "yes", "yes", ""),
    ("ministral", "[INST]hi[/INST]", "[THINK]so[/THINK]yes", "yes", "so"),
    ("harmony", f"{START}<|channel|>analysis<|message|>", f"so<|end|>{START}{FINAL}yes", "yes", "so"),
    ("harmony", f"<|end|>{START}<|channel|>analysis<|message|>so<|end|>{START}", f"{FINAL}yes", "yes", "so"),
]


@pytest.mark.parametrize(("name", "prompt", "output", "content", "reasoning"), PROMPTS)
def test_the_reader_starts_where_the_prompt_left(
    name: str, prompt: str, output: str, content: str, reasoning: str
) -> None:
    parser = dialects.get(name).parser(prompt=prompt)
    parser.feed(output)
    message = parser.finish()
    assert (content, reasoning) == (message.content, message.reasoning)


def test_what_the_prompt_said_is_told_by_its_own_events() -> None:
    parser = dialects.get("qwen_3").parser(prompt="<|im_start|>assistant\n<think>\nso")
    told = [(event.kind, event.text) for event in parser.initial_events if event.region]
    assert [("open", ""), ("text", "so")] == told
    assert [-10, 0] == [parser.initial_events[0].start, parser.initial_events[-1].end]
    assert [(0, 4, " far")] == [(event.start, event.end, event.text) for event in parser.feed(" far")]


def test_without_a_prompt_the_family_says_where_output_begins() -> None:
    assert "so" == dialects.get("deepseek_v3_1").parse("so</think>yes").reasoning
    assert "" == dialects.get("qwen_3").parse("yes").reasoning
    assert "yes" == dialects.get("deepseek_v3_1").parse("yes", reasoning=False).content


def test_reasoning_can_stay_in_the_content() -> None:
    message = read("qwen_3", "<think>\nso\n</think>\n\nyes", inline_reasoning=True)
    assert ("<think>\nso\n</think>\n\nyes", "") == (message.content, message.reasoning)


# Answers in JSON.

ANSWER = {"type": "json_schema", "json_schema": {"type": "object"}}


def test_markers_inside_the_strings_of_an_answer_are_text() -> None:
    answer = json.dumps({"a": '<think> <tool_call>\n{"name": "f", "arguments": {}} <|im_end|>'})
    assert (answer, "", []) == shape(read("qwen_3", answer, response_format=ANSWER))


def test_a_fence_around_an_answer_is_markup() -> None:
    message = read("qwen_3", '```json\n{"a": 1}\n```', response_format=ANSWER)
    assert ('{"a": 1}', ["fence"]) == (message.content, [remark.code for remark in message.diagnostics])


def test_with_an_answer_and_tools_a_turn_is_one_or_the_other() -> None:
    assert '{"name": "Bob"}' == read("llama", '{"name": "Bob"}', response_format=ANSWER).content
    assert ["f"] == [
        c.name for c in read("llama", '{"name": "f", "parameters": {}}', response_format=ANSWER).tool_calls
    ]


# Tokens.

WORDS = [b"<think>", b"</think>", b"<tool_call>", b"</tool_call>", b"<|im_end|>", b"the ", b"\xf0\x9f", b"\xa6\x8a"]
WORDS += [bytes([byte]) for byte in range(256)]
SPECIAL = {word.decode(): index for index, word in enumerate(WORDS[:5])}
VOCABULARY = dt.Vocabulary(WORDS, SPECIAL, [4])


def ids(text: str) -> list[int]:
    """The token ids of a text, special tokens in brackets of their own: ⟦<think>⟧."""
    found: list[int] = []
    for number, part in enumerate(text.replace("⟧", "⟦").split("⟦")):
        found += [SPECIAL[part]] if number % 2 else [8 + byte for byte in part.encode()]
    return found


def test_token_ids_are_read_with_their_special_tokens() -> None:
    parser = dialects.get("qwen_3").parser(vocabulary=VOCABULARY, prompt="")
    parser.feed(np.array([0, 5, 6]))
    parser.feed([7, *ids("⟦</think>⟧yes⟦<|im_end|>⟧")])
    assert ("yes", "the 🦊") == shape(parser.finish())[:2]


def test_at_token_level_only_tokens_are_markers() -> None:
    call = '⟦<tool_call>⟧\n{"name": "f", "arguments": {"a": "</tool_call>"}}\n⟦</tool_call>⟧⟦<|im_end|>⟧'
    output = ids(f"⟦<think>⟧a </think> in prose⟦</think>⟧a <tool_call> in prose ÿ\n{call}")
    dialect = dialects.get("qwen_3")
    for size in (1, 5, len(output)):
        parser = dialect.parser(TOOLS, "", vocabulary=VOCABULARY, level="token")
        events = [event for i in range(0, len(output), size) for event in parser.feed(output[i : i + size])]
        events += parser.close()
        check_tiling(events, sum(len(WORDS[token]) for token in output))
        assert ("a <tool_call> in prose ÿ", "a </think> in prose") == shape(parser.message)[:2]
        assert [("f", '{"a": "</tool_call>"}', True)] == shape(parser.message)[2]


def test_a_special_token_in_prose_keeps_its_text() -> None:
    parser = dialects.get("llama").parser(vocabulary=VOCABULARY, level="token", prompt="")
    parser.feed([*ids("a ⟦<think>⟧ b "), 8 + 0xFF])
    assert "a <think> b \ufffd" == parser.finish().content


def test_token_ids_and_token_level_need_a_vocabulary() -> None:
    with pytest.raises(InputError, match="vocabulary"):
        dialects.get("qwen_3").parser().feed([1, 2])
    with pytest.raises(InputError, match="vocabulary"):
        dialects.get("qwen_3").parser(level="token")
    with pytest.raises(InputError, match="level"):
        dialects.get("qwen_3").parser(level="word")  # type: ignore[arg-type]


# Strict reading.


def test_a_strict_reader_raises_where_the_format_ends() -> None:
    dialect = dialects.get("qwen_3")
    parser = dialect.parser(TOOLS, "", strict=True, reasoning=False)
    parser.feed("Hello <tool_call>\n")
    with pytest.raises(ParseError) as caught:
        parser.feed('{"name": "h", "arguments": {}}')
    assert 18 + len('{"name": "') == caught.value.position
    with pytest.raises(ParseError, match="ends too early"):
        feed(dialect.parser(TOOLS, "", strict=True, reasoning=False), ["<tool_call>"])


def test_a_strict_reader_reads_what_its_format_allows() -> None:
    parser = dialects.get("qwen_3").parser(TOOLS, "", strict=True, reasoning=False)
    message, _ = feed(parser, [CALL[i : i + 4] for i in range(0, len(CALL), 4)])
    assert ("", "", [("f", '{"a": "x"}', True)]) == shape(message)


def test_a_strict_reader_takes_tokens() -> None:
    dialect = dialects.get("qwen_3")
    options: dict[str, Any] = {"strict": True, "vocabulary": VOCABULARY, "level": "token", "reasoning": False}
    parser = dialect.parser(TOOLS, "", **options)
    parser.feed(ids('⟦<tool_call>⟧\n{"name": "g", "arguments": {}}\n⟦</tool_call>⟧⟦<|im_end|>⟧'))
    assert ["g"] == [call.name for call in parser.finish().tool_calls]
    with pytest.raises(ParseError, match="token") as caught:
        dialect.parser(TOOLS, "", **options).feed(ids("a ⟦<tool_call>⟧x"))
    assert len("a <tool_call>") == caught.value.position


def test_reasoning_that_is_left_out_behind_a_prompt_leaves_no_space_in_the_content() -> None:
    minimax = dialects.get("minimax")
    assert minimax.reasoning is not None
    message = minimax.parse(minimax.reasoning.skipped + "Hello", prompt=minimax.turn.start + "<think>\n")
    assert ("", "Hello", ()) == (message.reasoning, message.content, message.diagnostics)


# Diagnostics.


def test_every_code_is_in_the_table_of_the_docs() -> None:
    page = (Path(__file__).resolve().parent.parent.parent / "docs" / "parsing.md").read_text()
    listed = re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)
    assert sorted(CODES) == listed


REPAIRS = [
    # family, output, arguments, codes
    ("hermes", "<tool_call>{'name': 'f'}</tool_call>", None, []),
    (
        "hermes",
        "<tool_call>{\"name\": \"f\", \"arguments\": {'a': 'x', 'n': None}}</tool_call>",
        '{"a": "x", "n": null}',
        ["quotes"],
    ),
    (
        "hermes",
        '<tool_call>{"name": "f", "arguments": {"a": 12, "n": True}}</tool_call>',
        '{"a": "12", "n": true}',
        ["type", "type"],
    ),
    (
        "hermes",
        '<tool_call>{"name": "f", "arguments": "{\\"a\\": \\"x\\"}"}</tool_call>',
        '{"a": "x"}',
        ["encoded"],
    ),
    ("hermes", '<tool_call>{"name": "f", "arguments": {"n": [1</tool_call>', '{"n": [1]}', ["brackets", "call"]),
    ("hermes", '<tool_call>{"name": "f", "arguments": {"n": 1}}', '{"n": 1}', ["call"]),
    ("hermes", '<tool_call>{"name": "h", "arguments": {}}</tool_call>', "{}", ["unknown_tool"]),
    ("hermes", "<tool_call></tool_call>", None, ["empty"]),
    (
        "deepseek_v4",
        '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="f">\n{"a": "x"}\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>',
        '{"a": "x"}',
        ["style"],
    ),
    ("deepseek_v4", '<｜DSML｜tool_calls>\n<｜DSML｜invoke name="g"/>\n</｜DSML｜tool_calls>', "{}", []),
    (
        "qwen_3_coder",
        "<tool_call>\n<function=f>\n<parameter=a>\nx\n<parameter=n>\n7\n</parameter>\n</function>\n</tool_call>",
        '{"a": "x", "n": 7}',
        ["parameter"],
    ),
    (
        "qwen_3_coder",
        "<tool_call>\n<function=f>\n<parameter=a>\nx\n</function>\n</tool_call>",
        '{"a": "x"}',
        ["parameter"],
    ),
    ("gemma_4", "<|tool_call>call:f{a:12}<tool_call|>", '{"a": "12"}', ["type"]),
    ("llama", '<|python_tag|>{"name": "g", "parameters": {}}; {"name": "g", "parameters": {}}', "{}", []),
    # A key without a value is left out; one that holds all of the arguments is taken away.
    (
        "poolside_v1",
        "<tool_call>f\n<arg_key>a</arg_key><arg_key>n</arg_key>\n<arg_value>3</arg_value>\n</tool_call>",
        '{"n": 3}',
        ["parameter"],
    ),
    ("glm_4_7", "<tool_call>f<arg_key>a</arg_key></tool_call>", "{}", ["parameter"]),
    (
        "minicpm_5",
        """<function name="f"><param name="properties">{'a': 'x', 'n': 7}</param></function>""",
        '{"a": "x", "n": 7}',
        ["style", "quotes"],
    ),
    (
        "qwen_3_coder",
        '<tool_call>\n<function=f>\n<parameter=arguments>\n{"a": "x"}\n</parameter>\n</function>\n</tool_call>',
        '{"a": "x"}',
        ["style"],
    ),
    # Markers with space between them, without brackets, of an older spelling, in a fence, or left out.
    ("internlm_2", '<|action_start|> <|plugin|>\n{"name": "g", "arguments": {}}<|action_end|>', "{}", []),
    ("lfm2", '<|tool_call_start|>f(a="x")<|tool_call_end|>', '{"a": "x"}', []),
    (
        "kimi",
        "<|tool_call_section_begin|><|tool_call_begin|>functions.g:0<|tool_call_argument_begin|>{}<|tool_call_end|>"
        "<|tool_call_section_end|>",
        "{}",
        [],
    ),
    ("xlam", '```\n[{"name": "g", "arguments": {}}]\n```', "{}", []),
    (
        "hy_v3",
        "<tool_calls><tool_call>f<arg_key>a</arg_key><arg_value>x</arg_value></tool_call></tool_calls>",
        '{"a": "x"}',
        [],
    ),
    ("llama", '{"type": "function", "name": "f", "parameters": {"a": "x"}}', '{"a": "x"}', []),
    ("mimo", "<tool_call>\n<function=f>\n<parameter=a>x</parameter>\n</function>\n</tool_call>", '{"a": "x"}', []),
    ("seed_oss", "<seed:tool_call></seed:tool_call>", None, ["empty"]),
    # Text at the start of a section, what stands before the arguments, and the end of the call.
    (
        "kimi",
        "<|tool_calls_section_begin|> hm <|tool_call_begin|>functions.g:0<|tool_call_argument_begin|>{}"
        "<|tool_call_end|><|tool_calls_section_end|>",
        "{}",
        ["section"],
    ),
    (
        "kimi",
        '<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0{"a": "x"}'
        "<|tool_call_end|><|tool_calls_section_end|>",
        '{"a": "x"}',
        ["call"],
    ),
    (
        "deepseek_r1",
        "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```\n"
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>g\n```json\n{}\n```<｜tool▁call▁end｜><｜tool▁calls▁end｜>",
        "{}",
        ["call"],
    ),
    # Quotes inside a string, and a number that JSON spells otherwise.
    (
        "lfm2",
        "<|tool_call_start|>[f(a='sed -n '3,4p' x.py')]<|tool_call_end|>",
        """{"a": "sed -n '3,4p' x.py"}""",
        ["quotes"] * 2,
    ),
    ("lfm2", "<|tool_call_start|>[f(n=07)]<|tool_call_end|>", '{"n": 7}', ["type"]),
    # No name at all, where the arguments tell it.
    ("ministral", '[TOOL_CALLS]{"a": "x"}', '{"a": "x"}', ["unknown_tool"]),
    ("mistral", '[TOOL_CALLS][ARGS]{"a": "x"}', '{"a": "x"}', ["unknown_tool"]),
    # Names with a namespace that no tool has.
    ("qwen_3", '<tool_call>\n{"name": "tools.g", "arguments": {}}\n</tool_call>', "{}", ["unknown_tool"]),
    ("inkling", '<|content_invoke_tool_json|>{"name":"g","arguments":{}}<|end_message|>', "{}", []),
    (
        "minicpm_5",
        '<function name="f"><param name="a"><![CDATA[<b> & ]] ]]></param></function>',
        '{"a": "<b> & ]] "}',
        [],
    ),
]


@pytest.mark.parametrize(("name", "output", "arguments", "codes"), REPAIRS)
def test_a_slip_is_mended_and_noted(name: str, output: str, arguments: str | None, codes: list[str]) -> None:
    message = read(name, output)
    assert codes == [remark.code for remark in message.diagnostics]
    if arguments is not None:
        assert arguments == message.tool_calls[0].arguments
        assert message.tool_calls[0].complete
        assert "" == message.content


def test_arguments_whose_quotes_are_torn_do_not_swallow_the_next_call() -> None:
    torn = '{"a": "x", n": "y"}'
    call = "<|tool_call_begin|>functions.{}:{}<|tool_call_argument_begin|>{}<|tool_call_end|>"
    section = call.format("f", 0, torn) + call.format("g", 1, "{}")
    message = read("kimi", f"<|tool_calls_section_begin|>{section}<|tool_calls_section_end|>")
    assert [("f", torn, False), ("g", "{}", True)] == [
        (made.name, made.arguments, made.complete) for made in message.tool_calls
    ]
    assert "" == message.content


@pytest.mark.parametrize("torn", ['{a: 1, b: "x}y"}', '{a: 1, b: "\\"}"}'])
def test_brackets_in_strings_do_not_count_in_torn_arguments(torn: str) -> None:
    message = read("hermes", f'<tool_call>\n{{"name": "f", "arguments": {torn}}}\n</tool_call> Done.')
    assert (torn, " Done.") == (message.tool_calls[0].arguments, message.content)


def test_types_that_people_write_mean_what_they_seem_to() -> None:
    tools = [
        tool("f", a={"type": "str"}, n={"type": "int"}, x={"type": "float"}, y={"type": "bool"}, z={"type": "dict"})
    ]
    values = {"a": "1", "n": 1, "x": 1.5, "y": True, "z": {"k": True}}
    written = {"a": "1", "n": "1", "x": "1.5", "y": "True", "z": "{'k': True}"}
    parameters = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in written.items())
    output = f"<tool_call>\n<function=f>\n{parameters}</function>\n</tool_call>"
    assert values == json.loads(read("qwen_3_coder", output, tools=tools).tool_calls[0].arguments)


def test_where_no_tool_may_be_called_calls_are_text() -> None:
    message = read("qwen_3", f"Look: {CALL}", tool_choice="none")
    assert (f"Look: {CALL}", "", []) == shape(message)


def test_where_there_is_no_tool_calls_are_text_and_end_reasoning() -> None:
    message = read("qwen_3", f"<think>\nHm.\n{CALL}", tools=[])
    assert (CALL, "Hm.", []) == shape(message)
    half = "<|tool_calls_section_begin|><|tool_call_begin|>functions.f"
    assert (half, "Hm.", []) == shape(read("kimi", f"<think>Hm.{half}", tools=[]))
    closed = f"<think>\n{CALL}\n</think>\n\nYes."
    assert ("Yes.", CALL, []) == shape(read("qwen_3", closed, tools=[]))


@pytest.mark.parametrize("options", [{}, {"tools": []}])
def test_a_marker_of_calls_in_reasoning_that_is_closed_behind_it_is_text(options: Any) -> None:
    thought = 'Then <minimax:tool_call>\n<invoke name="look'
    assert ("Yes.", thought, []) == shape(read("minimax", f"<think>{thought}</think>Yes.", **options))
    assert ("", thought, []) == shape(read("minimax", f"<think>{thought}</think>", **options))


def test_a_name_in_quotes_may_hold_any_other_sign() -> None:
    for name in ("a<b", "a{b}", "a b", "a.b"):
        call = f'<function name="{name}"><param name="a">x</param></function>'
        assert [name] == [call.name for call in read("minicpm_5", call, tools=[tool(name)]).tool_calls]
        call = f'<|open|>call tool="{name}" index="1"<|sep|><|close|>call<|sep|>'
        message = read("kimi_k3", f"<|open|>tools<|sep|>{call}<|close|>tools<|sep|>")
        assert [name] == [call.name for call in message.tool_calls]


NUMBERED = "<|tool_calls_section_begin|><|tool_call_begin|>3<|tool_call_argument_begin|>{}<|tool_call_end|>"
GUESSES = [
    ([tool("f")], "{}", "f"),
    (TOOLS, '{"n": 1}', "f"),
    (TOOLS, '{"x": 1}', "3"),
    ([*TOOLS, tool("h", n={"type": "integer"})], '{"n": 1}', "3"),
    ([*TOOLS, tool("h", n={"type": "integer"})], '{"n": 1, "a": ""}', "f"),
    (TOOLS, '{"n": ', "3"),
]


@pytest.mark.parametrize(("tools", "arguments", "name"), GUESSES)
def test_a_number_is_the_name_of_the_only_tool_that_can_be_meant(tools: Any, arguments: str, name: str) -> None:
    message = read("kimi", NUMBERED.replace("{}", arguments), tools=tools, keeps_unknown=True)
    assert [(name, arguments.startswith("{") and arguments.endswith("}"))] == [
        (call.name, call.complete) for call in message.tool_calls
    ]
    assert "" == message.content


def test_a_header_may_lack_its_role() -> None:
    output = "<|start|><|channel|>analysis<|message|>so<|end|><|start|><|channel|>final<|message|>yes"
    message = read("harmony", output, prompt=None)
    assert ("yes", "so") == (message.content, message.reasoning)
    assert {"header"} == {remark.code for remark in message.diagnostics}


def test_tokens_that_say_what_a_message_holds_are_no_text() -> None:
    message = read("inkling", "<|content_invoke_tool_text|>see <|content_text|>this<|message_user|><|end_message|>")
    assert "see this" == message.content


def test_citations_are_no_text() -> None:
    message = read("command_r7b", "<|START_RESPONSE|>It is <co>warm</co: 0:[1]> now.<|END_RESPONSE|>")
    assert "It is warm now." == message.content


STARTS = [
    # family, output, content, reasoning, calls
    ("qwen_3", "so</think>yes", "yes", "so", 0),
    ("qwen_3", "<think>so</think>yes", "yes", "so", 0),
    ("qwen_3", f"so\n{CALL}", "so", "", 1),
    ("qwen_3", "yes", "yes", "", 0),
    ("qwen_3", "yes<|im_end|>", "yes", "", 0),
    ("minimax", "so", "", "so", 0),
    ("ministral", "yes", "yes", "", 0),
    ("deepseek_v4", 'So.\n<｜DSML｜invoke name="g">\n</｜DSML｜invoke>', "So.", "", 1),
    ("granite", "Here is my thought process: so Here is my response: yes", " yes", " so ", 0),
]


@pytest.mark.parametrize(("name", "output", "content", "reasoning", "calls"), STARTS)
def test_without_a_prompt_the_output_says_where_it_began(
    name: str, output: str, content: str, reasoning: str, calls: int
) -> None:
    message = read(name, output, prompt=None)
    assert (content, reasoning, calls) == (message.content, message.reasoning, len(message.tool_calls))


def test_a_caller_may_say_where_the_output_begins() -> None:
    dialect = dialects.get("qwen_3")
    assert "so" == dialect.parse("so", in_reasoning=True).reasoning
    parser = dialect.parser(in_reasoning=False)
    assert ["so"] == [event.text for event in parser.feed("so") if event.text]
    assert "" == dialects.get("llama").parse("so", in_reasoning=True).reasoning
    parser = dialect.parser(in_reasoning=True)
    seen = [parser.in_reasoning for piece in ("so", "</think>", "yes") if parser.feed(piece) is not None]
    assert [True, False, False] == seen


def test_a_strict_reader_raises_what_others_note() -> None:
    parser = dialects.get("qwen_3").parser(TOOLS, "", strict=True, reasoning=False)
    with pytest.raises(ParseError):
        parser.feed('<tool_call>\n{"name": "f", "arguments": {"a": 1')


def test_tokens_are_told_beside_bytes() -> None:
    parser = dialects.get("qwen_3").parser(vocabulary=VOCABULARY, level="token", prompt="")
    parser.feed(ids("⟦<think>⟧"))
    events = [event for token in (5, 6, 7, *ids("⟦</think>⟧yes")) for event in parser.feed([token])]
    spans = {event.text: parser.token_span(event.start, event.end) for event in events if event.text}
    assert {"the ": (1, 2), "🦊": (2, 4), "y": (5, 6), "e": (6, 7), "s": (7, 8)} == spans
    with pytest.raises(InputError, match="no span"):
        parser.token_span(0, 10_000)
    with pytest.raises(InputError, match="vocabulary"):
        dialects.get("qwen_3").parser().token_span(0, 0)


REQUIRED = {"a": {"type": "string"}, "n": {"type": "integer"}}
STRICT = [tool("f") | {"function": {"name": "f", "parameters": {"properties": REQUIRED, "required": ["a"]}}}]
LEFT_OUT = [
    # dialect, a call of a tool that is not there
    ("kimi", NUMBERED.replace("{}", '{"x": 1}')),
    ("minimax", '<minimax:tool_call><invoke name="h"><parameter name="a">x</parameter></invoke></minimax:tool_call>'),
    ("lfm2", '<|tool_call_start|>[h(a="x")]<|tool_call_end|>'),
    (
        "hy_v3",
        "<tool_calls><tool_call>h<tool_sep><arg_key>a</arg_key><arg_value>x</arg_value></tool_call></tool_calls>",
    ),
]


@pytest.mark.parametrize(("name", "call"), LEFT_OUT)
def test_some_families_leave_out_calls_of_tools_that_are_not_there(name: str, call: str) -> None:
    message = read(name, f"So.{call}")
    assert ("So.", "", []) == shape(message)
    assert (["unknown_tool"], "stop") == ([remark.code for remark in message.diagnostics][:1], message.finish_reason)
    kept = read(name, f"So.{call}", keeps_unknown=True)
    assert ("So.", 1, "tool_calls") == (kept.content, len(kept.tool_calls), kept.finish_reason)


def parameters_of(*pairs: tuple[str, str]) -> str:
    inside = "".join(f'<param name="{key}">{value}</param>' for key, value in pairs)
    return f'<function name="f">{inside}</function>'


CHECKED = [
    # output, content, the arguments of the call
    (parameters_of(("a", "x"), ("n", "2")), "", '{"a": "x", "n": 2}'),
    (parameters_of(("a", "x"), ("other", "</function y")), "", '{"a": "x"}'),
    (parameters_of(("a", "x"), ("a", "y")), parameters_of(("a", "x"), ("a", "y")), None),
    (parameters_of(("n", "2")), parameters_of(("n", "2")), None),
    (parameters_of(("A", "x")), parameters_of(("A", "x")), None),
    ('<function name="f"><param>x</param></function> ?', '<function name="f"><param>x</param></function> ?', None),
    ('<function name="f"><param name="a">x', "", '{"a": "x'),
]


@pytest.mark.parametrize("finish", ["stop", "length"])
@pytest.mark.parametrize(("output", "content", "arguments"), CHECKED)
def test_a_checked_call_is_text_where_its_tool_could_not_take_it(
    output: str, content: str, arguments: str | None, finish: str
) -> None:
    message = read("minicpm_5", output, tools=STRICT, finish=finish)
    assert (content, [] if arguments is None else [arguments]) == (
        message.content,
        [call.arguments for call in message.tool_calls],
    )


@pytest.mark.parametrize(("finish", "arguments"), [("stop", '{"n": 3}'), ("length", '{"n": 3')])
@pytest.mark.parametrize(
    ("name", "output"),
    [
        ("glm_4_7", "<tool_call>f<arg_key>n</arg_key><arg_value>3</arg_value>"),
        ("seed_oss", "<seed:tool_call>\n<function=f>\n<parameter=n>3</parameter>\n</func"),
    ],
)
def test_arguments_are_closed_where_the_output_stops_between_two_and_the_call_stays_incomplete(
    name: str, output: str, finish: str, arguments: str
) -> None:
    message = read(name, output, finish=finish)
    call = message.tool_calls[0]
    assert (arguments, False, "", "length") == (call.arguments, call.complete, message.content, message.finish_reason)


def test_a_call_of_which_only_the_name_came_is_told_without_arguments_as_incomplete() -> None:
    for output in ("[TOOL_CALLS]g", "[TOOL_CALLS]g\n", "[TOOL_CALLS]g</s>", "[TOOL_CALLS]f[ARGS]{}[TOOL_CALLS]g"):
        message = read("mistral", output)
        assert ("", "g", "{}", False) == (
            message.content,
            message.tool_calls[-1].name,
            message.tool_calls[-1].arguments,
            message.tool_calls[-1].complete,
        )
    assert ["cut_off"] == [remark.code for remark in read("mistral", "[TOOL_CALLS]g", finish="length").diagnostics]
    assert () == read("mistral", "[TOOL_CALLS]gg").tool_calls


def test_a_marker_of_calls_alone_says_nothing() -> None:
    assert "so it is" == read("mistral", "so[TOOL_CALLS] it is").content
    assert 'so[TOOL_CALLS]f{"a": "x"}' == read("mistral", 'so[TOOL_CALLS]f{"a": "x"}', tools=[]).content


@pytest.mark.parametrize("name", ["qwen_3", "minimax_m3", "deepseek_v3_1"])
def test_the_end_of_reasoning_behind_text_is_text_where_nothing_was_reasoned(name: str) -> None:
    end = dialects.get(name).reasoning.end  # type: ignore[union-attr]
    assert f"Write {end} there." == read(name, f"Write {end} there.").content
    assert "Fine." == read(name, f"{end}Fine.").content


def test_signs_for_white_space_between_the_words_of_markup_are_white_space() -> None:
    for sign in "ĠĊ▁":
        output = f'<function{sign}name="f"><param{sign}name="a">x{sign}y</param></function>'
        assert [("f", f'{{"a": "x{sign}y"}}', True)] == shape(read("minicpm_5", output))[2]
        assert f'<function{sign}title="f">' == read("minicpm_5", f'<function{sign}title="f">').content


def test_a_channel_without_its_name_is_reasoning() -> None:
    assert ("Yes.", "Hm.") == shape(read("gemma_4", "<|channel>Hm.<channel|>Yes."))[:2]
