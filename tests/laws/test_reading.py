"""The laws of reading, for every dialect: agreement, conservation, chunk invariance, totality."""

from __future__ import annotations

import zlib

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail import dialects
from dovetail.dialects import Dialect
from dovetail.engine import compile
from dovetail.errors import DialectError
from dovetail.formats import Format
from dovetail.messages import Message
from dovetail.models import Speaker
from tests.turns import MESSAGES, check_tiling, check_told, feed, prompts, said, tools_of

DIALECTS = [dialects.get(name) for name in dialects.names()]
every_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)


@every_dialect
@settings(max_examples=60)
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


@every_dialect
def test_what_the_format_allows_is_read_without_a_remark(dialect: Dialect) -> None:
    speaker = Speaker(seed=zlib.crc32(dialect.name.encode()))
    schemas = {tool["function"]["name"]: tool["function"]["parameters"] for tool in TOOLS}
    for request in REQUESTS:
        made = dialect.format(TOOLS, **request).format
        utterance = speaker.speak(made, max_tokens=600)
        if not utterance.complete:
            continue
        # Its stop token is a marker of some dialects, so only the last one is none of the output.
        output = b"".join(speaker.tokens[token] for token in utterance.token_ids[:-1])
        prompt = prompt_for(dialect, request["reasoning"])
        parser = dialect.parser(TOOLS, prompt, response_format=request["response_format"])
        read, events = feed(parser, [output[i : i + 3] for i in range(0, len(output), 3)])
        where = f"{request} {output!r} {read}"
        assert () == read.diagnostics, where
        check_tiling(events, len(output))
        check_told(events, read)
        assert captured(speaker, made, utterance.token_ids, output) == _packed(read), where
        for call in read.tool_calls:
            assert call.complete, where
            assert jsonschema.Draft202012Validator(schemas[call.name]).is_valid(call.value), where


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
