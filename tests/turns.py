"""Random messages with the tools that they call, and ways to feed output to a parser."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from hypothesis import strategies as st

from dovetail.dialects import Dialect
from dovetail.engine.loaders import Loaded
from dovetail.messages import Message, ToolCall
from dovetail.models import Speaker
from dovetail.models.speaker import embedded_tokens
from dovetail.parsing import Event, StreamParser
from dovetail.templates.checks import features

NAMES = st.sampled_from(["get_weather", "search", "f", "run-code", "browser.open"])
KEYS = st.sampled_from(["city", "n", "items", "query_text", "x1", "deep"])
# Pieces that look like markup, JSON, white space or characters of several bytes, put together at random.
SPICE = [
    "<",
    ">",
    "</",
    "<tool_call>",
    "</tool_call>",
    "<|",
    "|>",
    '"',
    "'",
    "\\",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "=",
    ":",
]
SPICE += [
    ",",
    "\n",
    " ",
    "\t",
    "é",
    "猫",
    "🦊",
    "null",
    "true",
    "02134",
    "5",
    "-1.5e3",
    '{"name": "f"',
    "&amp;",
    "think",
]
SPICE += ["</parameter"]
TEXTS = st.lists(st.sampled_from(SPICE) | st.text(max_size=4), max_size=8).map("".join)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3), max_leaves=6
)
ARGUMENTS = st.dictionaries(KEYS, VALUES, max_size=4)
CALLS = st.builds(ToolCall.of, NAMES, ARGUMENTS)
MESSAGES = st.builds(
    Message,
    TEXTS.filter(lambda text: not text or bool(text.strip())),
    TEXTS,
    st.lists(CALLS, max_size=3, unique_by=lambda call: call.name).map(tuple),
)


def schema_of(value: Any) -> dict[str, Any]:
    """A schema that says no more than the types in a value."""
    match value:
        case bool() | int() | float() | str():
            return features.schema_of(value)
        case None:
            return {"type": "null"}
        case list():
            # Items of one array may differ, so each has its own place.
            return {"type": "array", "prefixItems": [schema_of(item) for item in value]}
        case _:
            return {"type": "object", "properties": {key: schema_of(item) for key, item in value.items()}}


def tools_of(message: Message) -> list[dict[str, Any]]:
    """The tools that a message calls, each declared by the arguments it is called with."""
    return [
        {"type": "function", "function": {"name": call.name, "parameters": schema_of(call.value)}}
        for call in message.tool_calls
    ]


def speaker_of(dialect: Dialect, seed: int = 7) -> Speaker:
    """A speaker whose vocabulary has the family's special tokens and a stop token of its own."""
    plain = [token for token in embedded_tokens().tokens if not (len(token) > 2 and token.startswith(b"<"))]
    tokens = [*plain, *(token.encode() for token in dialect.special_tokens), b"<stop>"]
    specials = {token: len(plain) + index for index, token in enumerate(dialect.special_tokens)}
    return Speaker(seed, Loaded(tokens, specials, [len(tokens) - 1]))


def said(message: Message) -> tuple[str, str, list[tuple[str, Any]]]:
    """What a message says, without ids and remarks."""
    return message.content, message.reasoning, [(call.name, call.value) for call in message.tool_calls]


def feed(parser: StreamParser, chunks: Iterable[str | bytes], finish: Any = "stop") -> tuple[Message, list[Event]]:
    """The message and all events of an output."""
    events: list[Event] = []
    for chunk in chunks:
        events += parser.feed(chunk)
    events += parser.close(finish)
    return parser.message, events


def check_tiling(events: list[Event], size: int) -> None:
    """Law 2: the spans tile the output."""
    at = 0
    for event in events:
        assert event.start == at <= event.end, f"{event} does not start at {at}"
        at = event.end
    assert at == size


def check_told(events: list[Event], message: Message) -> None:
    """The texts of the events are the message."""
    for region, text in (("content", message.content), ("reasoning", message.reasoning)):
        assert text == "".join(event.text for event in events if event.region == region)
    for index, call in enumerate(message.tool_calls):
        own = [event for event in events if event.call_index == index]
        assert ["open", "close"] == [event.kind for event in own if event.kind != "text"]
        assert call.arguments == "".join(event.text for event in own)
        assert call == own[-1].call


def prompts(dialect: Dialect, message: Message) -> list[tuple[str, bool]]:
    """Prompts before which a message can be said, and whether they have opened its first block."""
    found = [(dialect.turn.start, False)]
    reasoning, content = dialect.reasoning, dialect.content
    if content.prompt_opens and not message.reasoning:
        found.append((dialect.turn.start + content.begins[0], True))
    elif reasoning and reasoning.opened_by != "model":
        found.append((dialect.turn.start + reasoning.start, True))
    return found
