"""Templates as formats: what they allow, what both parsers read there, and what does not convert."""

from __future__ import annotations

import json
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import dovetail as dt
from dovetail.engine.loaders import Loaded
from dovetail.models import Speaker
from dovetail.models.speaker import embedded_tokens
from dovetail.response_templates import shapes
from tests.recorded import files
from tests.response_templates.samples import SMOL

WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
    "required": ["city"],
}
LIST = {"type": "array", "items": {"type": "string"}}
SUM = {"type": "object", "properties": {"a": {"type": "number"}, "b": LIST}, "required": ["a", "b"]}
TOOLS = [
    {"type": "function", "function": {"name": "get_weather", "parameters": WEATHER}},
    {"type": "function", "function": {"name": "add", "parameters": SUM}},
]
NAMED = {"type": "function", "function": {"name": "add"}}
CONVERTIBLE = """
    cohere ernie gemma4 gemma4_convert gpt_oss inkling muse_glimmer qwen3 serve_gemma4 serve_gemma4_snapshot
    serve_qwen2 serve_qwen2_snapshot serve_qwen3_5 serve_qwen3_5_snapshot smollm trl_glm4moe trl_gptoss
    trl_llama3 trl_nemotron_3 trl_qwen3 trl_qwen3_5
""".split()
REFUSED = {
    "trl_lfm2_2_5": ("/fields/tool_calls/open", "','"),
}


def load(conformance: Path, name: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((conformance / "transformers" / "templates" / f"{name}.json").read_text())
    return loaded


def peer(text: str, template: dict[str, Any], prefix: str = "") -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from transformers.utils.chat_parsing import parse_response
    return parse_response(text, template, prefix=prefix)


@cache
def tokens() -> Loaded:
    """The speaker's tokens, with more delimiters among the special ones, and a stop token that no template uses."""
    own, specials, _ = embedded_tokens()
    more = ['{"name":', "<|eot_id|>", "<|START_ACTION|>", '<|"|>', "<|tool_call>", "<stop>"]
    specials = {**specials, **{text: len(own) + index for index, text in enumerate(more)}}
    return Loaded([*own, *(text.encode() for text in more)], specials, [specials["<stop>"]])


def utterances(fmt: dt.StructuralTag, count: int, seed: int = 7) -> list[str]:
    speaker = Speaker(seed=seed, tokenizer=tokens())
    said = [speaker.speak(fmt, max_tokens=500, soft_limit=30) for _ in range(count)]
    return [one.data.decode() for one in said if one.complete]


@pytest.mark.parametrize("name", CONVERTIBLE)
def test_what_a_speaker_says_both_parsers_read_alike(conformance: Path, name: str) -> None:
    template = load(conformance, name)
    heard: set[str] = set()
    for seed in range(10):
        for prefix in prompts(template):
            texts = utterances(dt.ResponseTemplate.load(template).to_format(TOOLS, prefix=prefix), 20, seed)
            assert texts
            for text in texts:
                message = dt.parse_response(text, template, prefix=prefix)
                assert peer(text, template, prefix) == message
                heard |= message.keys()
        if template["fields"].keys() <= heard:
            return
    raise AssertionError(f"never said: {template['fields'].keys() - heard}")


def prompts(template: dict[str, Any]) -> list[str]:
    """No prompt, and one that has opened the reasoning, where one can."""
    fields = template["fields"]
    reasoning = fields.get("thinking", fields.get("reasoning_content"))
    anchor = template.get("start_anchor")
    if reasoning is None or anchor is None:
        return [""]
    spelled = shapes.spelling([shapes.read(reasoning.get("open_pattern", ""))])
    opening = reasoning.get("open", "".join(part for part in spelled if isinstance(part, str)))
    return ["", (anchor if isinstance(anchor, str) else anchor[0]) + opening]


CHOICES = [
    # options, how many calls there may be, which tools
    ({"tool_choice": "required"}, range(1, 99), {"get_weather", "add"}),
    ({"tool_choice": "required", "parallel_tool_calls": False}, range(1, 2), {"get_weather", "add"}),
    ({"parallel_tool_calls": False}, range(2), {"get_weather", "add"}),
    ({"tool_choice": NAMED}, range(1, 2), {"add"}),
    ({"tool_choice": "get_weather"}, range(1, 2), {"get_weather"}),
    ({"tool_choice": "none"}, range(1), set()),
]


@pytest.mark.parametrize("name", CONVERTIBLE)
def test_the_choice_of_tools_holds(conformance: Path, name: str) -> None:
    template = load(conformance, name)
    loaded = dt.ResponseTemplate.load(template)
    for options, counts, names in CHOICES:
        heard = [
            dt.parse_response(text, template, prefix="").get("tool_calls", [])
            for text in utterances(loaded.to_format(TOOLS, **options), 6)
        ]
        assert heard
        assert {len(calls) for calls in heard} <= set(counts), options
        called = {call["function"]["name"] for calls in heard for call in calls}
        assert called <= names
        assert called or 0 in counts


@pytest.mark.parametrize("name", CONVERTIBLE)
def test_arguments_fit_their_schema(conformance: Path, name: str) -> None:
    template = load(conformance, name)
    texts = utterances(dt.ResponseTemplate.load(template).to_format(TOOLS, "add"), 6)
    assert texts
    for text in texts:
        (call,) = dt.parse_response(text, template, prefix="", tools=TOOLS)["tool_calls"]
        assert {"a", "b"} == call["function"]["arguments"].keys()


@pytest.mark.parametrize("name", REFUSED)
def test_what_does_not_convert_is_named(conformance: Path, name: str) -> None:
    path, construct = REFUSED[name]
    with pytest.raises(dt.ResponseTemplateError, match="does not convert") as caught:
        dt.ResponseTemplate.load(load(conformance, name)).to_format(TOOLS)
    assert path == caught.value.path
    assert construct in caught.value.problem


def test_every_real_template_is_in_one_of_the_two_lists(conformance: Path) -> None:
    found = {path.stem for path in files(conformance / "transformers" / "templates", "*.json")} - {"INDEX"}
    assert found == {*CONVERTIBLE, *REFUSED}


QWEN = SMOL | {"fields": SMOL["fields"] | {"thinking": {"open": "<think>", "close_pattern": "</think>\\s*"}}}
CALL = '<tool_call>{"name": "get_weather", "arguments": {"city": "Rome"}}</tool_call>'
ACCEPTED = [
    # options, text, whether the format takes it
    ({}, "hello", True),
    ({}, "<think>hm</think>\n\nhello", True),
    ({}, f"hello{CALL}", True),
    ({}, f"{CALL}{CALL}", True),
    ({}, f"{CALL}hello", False),
    ({}, "hello<think>hm</think>", False),
    ({}, "<tool_call>{}</tool_call>", False),
    ({"tool_choice": "none"}, CALL, False),
    ({"tool_choice": "required"}, "hello", False),
    ({"parallel_tool_calls": False}, f"{CALL}{CALL}", False),
    ({"reasoning": False}, "<think>hm</think>hello", False),
    ({"prefix": "<|im_start|>assistant\n<think>"}, "hm</think>hello", True),
    ({"prefix": "<|im_start|>assistant\n<think>"}, "hello", False),
    ({"prefix": "<|im_start|>assistant\n<think>a</think>b"}, "hello", True),
]


@pytest.mark.parametrize(("options", "text", "wanted"), ACCEPTED)
def test_a_format_takes_what_its_request_allows(options: dict[str, Any], text: str, wanted: bool) -> None:
    assert wanted == dt.accepts(dt.ResponseTemplate.load(QWEN).to_format(TOOLS, **options).format, text)


AHEAD = {
    "start_anchor": "A",
    "fields": {
        "content": {},
        "tool_calls": QWEN["fields"]["tool_calls"],
        "thinking": {"open_pattern": "(?=.*?</think>)", "close": "</think>"},
    },
}
FROM_AFAR = [
    # text, whether the format takes it
    ("hm</think>hello", True),
    (f"hm</think>{CALL}", True),
    ("hello", True),
    ("hello</think>hm</think>", False),
    ("hm</think>" + CALL.replace("Rome", "</think>"), False),
]


@pytest.mark.parametrize(("text", "wanted"), FROM_AFAR)
def test_what_opens_a_region_from_afar_stands_nowhere_else(text: str, wanted: bool) -> None:
    assert wanted == dt.accepts(dt.ResponseTemplate.load(AHEAD).to_format(TOOLS).format, text)


GEMMA = {
    "open_pattern": "call:(?P<name>\\w+)",
    "close": "<end>",
    "content": "json",
    "content_args": {"unquoted_keys": True, "string_delims": [["'", "'"]]},
    "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}},
}
LITERALS = [
    # arguments, whether the format takes them
    ("{city:'Rome',days:2}", True),
    ("{city:''}", True),
    ('{city:"Rome"}', False),
    ("{'city':'Rome'}", False),
    ("{city:'<end>'}", False),
    ("{city:'a\x01'}", False),
    ("{days:2}", False),
]


@pytest.mark.parametrize(("arguments", "wanted"), LITERALS)
def test_strings_stand_between_their_own_delimiters(arguments: str, wanted: bool) -> None:
    template = {"start_anchor": "A", "fields": {"tool_calls": GEMMA, "content": {}}}
    text = f"hello call:get_weather{arguments}<end>"
    assert wanted == dt.accepts(dt.ResponseTemplate.load(template).to_format(TOOLS, "get_weather").format, text)


def field(**keys: Any) -> dict[str, Any]:
    close = {} if "close_pattern" in keys else {"close": "</x>"}
    return {"start_anchor": "A", "fields": {"x": {"open": "<x>", **close, **keys}}}


TOOL_FIELD = {"content": "json", "transform": {"type": "function", "function": "{content}"}}
NOT_CONVERTED = [
    # template, options, words of the message
    (field(content="int"), {}, "the content 'int'"),
    (field(), {"tools": TOOLS}, "no field of the template holds tool calls"),
    ({"start_anchor": "A", "fields": {"x": {"open": "<x>"}}}, {}, "a region without an end"),
    (field(**TOOL_FIELD), {"tools": TOOLS, "tool_choice": "other"}, "not among the tools"),
    (field(**TOOL_FIELD), {"tool_choice": "required"}, "there are no tools"),
    (field(**TOOL_FIELD), {"prefix": "A<x>"}, "a call that the prompt has begun"),
    (field(**TOOL_FIELD | {"content": "kv-lines"}), {"tools": TOOLS}, "arguments as 'kv-lines'"),
    (field(**TOOL_FIELD, content_args={"unquoted_keys": True}), {"tools": TOOLS}, "strings in plain quotes"),
    (field(**TOOL_FIELD, content_args={"string_delims": [["<", ">"]]}), {"tools": TOOLS}, "one for both ends"),
    (
        field(**TOOL_FIELD, content_args={"string_delims": [["''", "''"]], "unquoted_keys": True}),
        {"tools": TOOLS},
        "overlaps with itself",
    ),
    (field(close_pattern="(?=.*<y>)</x>"), {}, "a lookahead"),
    (
        field(**TOOL_FIELD | {"transform": {"function": {"name": "{content.f.n}", "arguments": "{content.a}"}}}),
        {"tools": TOOLS},
        "takes the name or the arguments from elsewhere",
    ),
    (
        {
            "start_anchor": "A",
            "fields": {
                "t": {
                    "open_pattern": r"<(?P<n>[a-z]+)>",
                    "close": "</>",
                    "content": "json",
                    "transform": {"function": {"name": "{n}", "arguments": "{content}"}},
                }
            },
        },
        {"tools": TOOLS},
        "the tool name 'get_weather'",
    ),
]


@pytest.mark.parametrize(("template", "options", "words"), NOT_CONVERTED)
def test_the_error_says_what_cannot_be_written(template: dict[str, Any], options: dict[str, Any], words: str) -> None:
    with pytest.raises(dt.InputError, match=words):
        dt.ResponseTemplate.load(template).to_format(**options)


SPELLINGS = [
    # pattern, one way to write it without names and white space, what announces it
    (r"<a>\s*<b=(?P<n>\w+)>", "<a><b=>", ["<a>"]),
    (r"\s*(?:<a>|<b>)", "<a>", ["<a>", "<b>"]),
    (r"(?:<m>)?[^<]*<t>", "<t>", ["<t>"]),
    (r"a{3}b?c+", "aaac", ["aaa"]),
    (r"\[x\]\.", "[x].", ["[x]."]),
    (r"(?:^|<t>)", "<t>", []),
    (r"(?=[\s\S]*?</t>)", "", ["</t>"]),
    (r"(?=.*</t>)<x>", "<x>", ["</t>"]),
]


@pytest.mark.parametrize(("pattern", "written", "heads"), SPELLINGS)
def test_a_pattern_has_a_spelling_and_heads(pattern: str, written: str, heads: list[str]) -> None:
    shape = shapes.read(pattern)
    assert written == "".join(part for part in shapes.spelling([shape]) if isinstance(part, str))
    assert heads == shapes.heads([shape])


@pytest.mark.parametrize(
    "pattern",
    [
        r"\w+",
        "(?=a)",
        "(?=.*a|b)",
        "(?=.*[ab])",
        "(?=.*)",
        r"\Aa",
        "a$",
        r"\R",
        "(*PRUNE)a",
        "(" * 60 + "a" + ")" * 60,
        "^",
    ],
)
def test_a_pattern_that_says_too_little_has_no_spelling(pattern: str) -> None:
    with pytest.raises(shapes.Unwritable):
        shapes.spelling([shapes.read(pattern)])
