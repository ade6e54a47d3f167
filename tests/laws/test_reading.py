"""Law 2 (conservation), law 3 (chunk invariance), law 7 (agreement) and law 8 (totality), for every dialect."""

from __future__ import annotations

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail import dialects
from dovetail.dialects import Dialect
from dovetail.engine import compile
from dovetail.errors import DialectError
from dovetail.formats import Format
from dovetail.messages import Message, ToolCall
from dovetail.models import Speaker
from tests.turns import MESSAGES, check_tiling, check_told, feed, prompts, said, speaker_of, tools_of

DIALECTS = [dialects.get(name) for name in dialects.names()]
every_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)


@every_dialect
@settings(max_examples=30)
@given(message=MESSAGES, data=st.data())
def test_a_rendered_message_is_read_back_equal(dialect: Dialect, message: Message, data: st.DataObject) -> None:
    prompt, opened = data.draw(st.sampled_from(prompts(dialect, message)))
    try:
        output = dialect.render(message, opened).encode()
    except DialectError:
        return  # a message that the family cannot carry
    cuts = sorted(data.draw(st.lists(st.integers(0, len(output)), max_size=6)))
    chunks = [output[i:j] for i, j in zip([0, *cuts], [*cuts, len(output)], strict=True)]
    read, events = feed(dialect.parser(tools_of(message), prompt), chunks)
    assert (said(message), ()) == (said(read), read.diagnostics)
    check_tiling(events, len(output))
    check_told(events, read)
    assert all(call.complete for call in read.tool_calls)


TOOLS = [
    {
        "type": "function",
        "function": {
            "name": "get_weather",
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "days": {"type": "integer"},
                    "unit": {"enum": ["C", "F"]},
                    "note": {"type": "string", "maxLength": 5},
                },
                "required": ["city"],
            },
        },
    },
    {
        "type": "function",
        "function": {
            "name": "search",
            "parameters": {
                "type": "object",
                "properties": {
                    "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
                    "where": {"$ref": "#/$defs/place"},
                    "exact": {"type": "boolean"},
                    "limit": {"anyOf": [{"type": "number"}, {"type": "null"}]},
                },
                "required": ["where"],
                "$defs": {
                    "place": {"type": "object", "properties": {"x": {"type": "number"}, "name": {"type": "string"}}}
                },
            },
        },
    },
]
NAMED = {"type": "function", "function": {"name": "search"}}
ANSWER = {"type": "json_schema", "json_schema": TOOLS[0]["function"]["parameters"]}
REQUESTS = [
    {"tool_choice": choice, "reasoning": reasoning, "parallel_tool_calls": parallel, "response_format": answer}
    for choice in ("auto", "none", "required", NAMED)
    for reasoning in (True, False, "auto")
    for parallel in (True, False)
    for answer in (None, ANSWER)
]


def prompt_for(dialect: Dialect, reasoning: bool | str) -> str:
    """The prompt after which a dialect's format for this request begins."""
    start, block = dialect.turn.start, dialect.reasoning
    if reasoning is False and dialect.content.prompt_opens:
        return start + dialect.content.begins[0]
    if block is None or reasoning == "auto" or block.opened_by == "model":
        return start
    return start + block.start if reasoning is True or block.skipped else start


@pytest.mark.parametrize("level", ["text", "token"])
@every_dialect
def test_what_the_format_allows_is_read_without_a_remark(dialect: Dialect, level: Any) -> None:
    speaker = speaker_of(dialect)
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
    finished = 0
    for request in REQUESTS:
        made = dialect.format(TOOLS, level=level, **request).format
        utterance = speaker.speak(made, max_tokens=600)
        if not utterance.complete:
            continue
        finished += 1
        ids = utterance.token_ids[:-1]
        output = b"".join(speaker.tokens[token] for token in ids)
        options: dict[str, Any] = {"vocabulary": speaker.vocabulary, "level": level} if level == "token" else {}
        prompt = prompt_for(dialect, request["reasoning"])
        parser = dialect.parser(TOOLS, prompt, response_format=request["response_format"], **options)
        source: Any = ids if level == "token" else output
        read, events = feed(parser, [source[i : i + 3] for i in range(0, len(source), 3)])
        where = f"{request} {output!r} {read}"
        assert () == read.diagnostics, where
        check_tiling(events, len(output))
        check_told(events, read)
        assert captured(speaker, made, utterance.token_ids, output) == _packed(read), where
        for call in read.tool_calls:
            assert call.complete, where
            assert jsonschema.Draft202012Validator(schemas[call.name]).is_valid(call.value), where
    assert finished > len(REQUESTS) * 0.6


def captured(speaker: Speaker, made: Format, token_ids: tuple[int, ...], output: bytes) -> tuple[str, str, list[str]]:
    """Content, reasoning and the names of calls as the matcher saw them, without white space."""
    matcher = compile(made, speaker.vocabulary).matcher()
    assert all(matcher.accept(token) for token in token_ids)
    texts: dict[str, list[bytes]] = {"content": [], "reasoning": [], "name": []}
    for event in matcher.events():
        if event.kind == "text" and event.name in texts:
            texts[event.name].append(output[event.start : event.end])
    content, reasoning = (_pack(b"".join(texts[name]).decode("utf-8", "replace")) for name in ("content", "reasoning"))
    return content, reasoning, [name.decode() for name in texts["name"]]


def _packed(message: Message) -> tuple[str, str, list[str]]:
    return _pack(message.content), _pack(message.reasoning), [call.name for call in message.tool_calls]


def _pack(text: str) -> str:
    return "".join(text.split())


def samples(dialect: Dialect) -> list[bytes]:
    """Seven outputs of a random model, cut at a length at which every place in them can be tried."""
    speaker = speaker_of(dialect)
    formats = [dialect.format(TOOLS, **request).format for request in REQUESTS[:: len(REQUESTS) // 6]]
    return [speaker.speak(made).data[:150] for made in formats]


@every_dialect
def test_every_cut_gives_prefixes_of_the_whole(dialect: Dialect) -> None:
    for output in samples(dialect):
        whole, _ = feed(dialect.parser(TOOLS, ""), [output])
        for cut in range(len(output)):
            part, events = feed(dialect.parser(TOOLS, ""), [output[:cut]], "length")
            check_tiling(events, cut)
            assert part.finish_reason == "length"
            assert whole.content.startswith(part.content)
            assert whole.reasoning.startswith(part.reasoning)
            calls = list(zip(part.tool_calls, whole.tool_calls, strict=False))
            assert len(calls) == len(part.tool_calls)
            assert all(call.arguments.startswith(short.arguments) for short, call in calls)
            assert [short.name for short, _ in calls] == [call.name for _, call in calls]


@every_dialect
def test_every_two_way_split_and_single_bytes_say_the_same(dialect: Dialect) -> None:
    for output in samples(dialect)[:2]:
        whole, _ = feed(dialect.parser(TOOLS), [output])
        assert whole == feed(dialect.parser(TOOLS), [output[i : i + 1] for i in range(len(output))])[0]
        for cut in range(1, len(output)):
            assert whole == feed(dialect.parser(TOOLS), [output[:cut], output[cut:]])[0]


@every_dialect
def test_twenty_parallel_calls_are_read(dialect: Dialect) -> None:
    calls = tuple(ToolCall.of("search", {"where": {"x": number}}) for number in range(20))
    message = Message("", "", calls)
    read, _ = feed(dialect.parser(TOOLS, ""), [dialect.render(message)])
    assert (said(message), ()) == (said(read), read.diagnostics)


TRIP = ToolCall.of("trip", {"city": "Köln", "days": 14})
SPELLINGS = [
    ('"city":', r'"c\u0069ty":'),
    ('"Köln"', r'"K\u00f6l\u006E"'),
    ('"Köln"', r'"\u004b\u00F6ln"'),
    ("14", "14.0"),
    ("14", "14.000"),
    ("14", "1.4e1"),
    ("14", "140E-1"),
]


@every_dialect
@pytest.mark.parametrize(("plain", "other"), SPELLINGS)
def test_what_masks_never_spell_is_read_all_the_same(dialect: Dialect, plain: str, other: str) -> None:
    message = Message("", "", (TRIP,))
    output = dialect.render(message).replace(plain, other)
    read, _ = feed(dialect.parser(tools_of(message), ""), [output])
    assert (said(message), ()) == (said(read), read.diagnostics)
