"""Law 8 (totality): turns that stop anywhere leave no markup in the text, lose no call, and raise nothing."""

from __future__ import annotations

import random
import re
from dataclasses import replace
from typing import Any

import pytest

from dovetail import dialects
from dovetail.dialects import Dialect
from dovetail.messages import Message, ToolCall
from tests.turns import check_tiling, check_told, feed

DIALECTS = [dialects.get(name) for name in dialects.names()]
every_dialect = pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)

PROPERTIES = {"city": {"type": "string"}, "days": {"type": "integer"}, "tags": {"type": "array"}}
TOOLS = [
    {
        "type": "function",
        "function": {"name": "get_weather", "parameters": {"type": "object", "properties": PROPERTIES}},
    },
    {"type": "function", "function": {"name": "ping", "parameters": {"type": "object", "properties": {}}}},
]
CALLS = (ToolCall.of("get_weather", {"city": "Oslo é", "days": 3, "tags": ["a", "b"]}), ToolCall.of("ping"))


def turns(dialect: Dialect) -> list[str]:
    """Turns with and without reasoning, content, calls and the end."""
    reasoning = "Let me see." if dialect.reasoning else ""
    said = [
        Message("One moment.", reasoning, CALLS),
        Message("", reasoning, CALLS[:1]),
        Message("", "", CALLS),
        Message("Nothing to call.", reasoning),
    ]
    written = [dialect.render(message) for message in said]
    return [*written, *(turn + dialect.turn.end for turn in written[:2])]


def markers(dialect: Dialect) -> list[str]:
    """The words of the family that are markup wherever they stand."""
    found: list[str] = [dialect.turn.end, dialect.turn.closing, *dialect.content.begins, *dialect.content.ends]
    if dialect.reasoning:
        found += [dialect.reasoning.start, dialect.reasoning.end]
    for way in dialect.calls:
        if not way.tolerated:
            found += [way.call_end, way.end]
    words = [word for text in found for word in text.split() if re.search(r"[<|\[]\W?\w{3}", word)]
    return words + [way.opens_with for way in dialect.calls if re.search(r"\w", way.opens_with) and not way.named]


@every_dialect
def test_every_cut_leaks_no_markup_and_loses_no_call(dialect: Dialect) -> None:
    marks = markers(dialect)
    for turn in turns(dialect):
        whole, _ = feed(dialect.parser(TOOLS, dialect.turn.start), [turn])
        for cut in range(len(turn) + 1):
            for reason in ("stop", "length"):
                read, events = feed(dialect.parser(TOOLS, dialect.turn.start), [turn[:cut]], reason)
                where = f"{reason} {turn[:cut]!r} {read}"
                check_tiling(events, len(turn[:cut].encode()))
                check_told(events, read)
                assert [] == [mark for mark in marks if mark in read.content + read.reasoning], where
                check_calls(turn[:cut], read, whole, where)


def check_calls(output: str, read: Message, whole: Message, where: str) -> None:
    """A call whose arguments stand in the output with what closes them is there, with these arguments."""
    assert len(read.tool_calls) <= len(whole.tool_calls), where
    for call, meant in zip(read.tool_calls, whole.tool_calls, strict=False):
        assert call.name == meant.name, where
        assert call.value == meant.value or not call.complete, where
    complete = [call for call in whole.tool_calls if call.arguments in output and call.arguments != "{}"]
    assert len(complete) <= len(read.tool_calls), where


@every_dialect
def test_chunks_change_nothing_wherever_a_turn_stops(dialect: Dialect) -> None:
    turn = turns(dialect)[0].encode()
    for cut in range(0, len(turn), 5):
        for reason in ("stop", "length"):
            for options in ({"prompt": dialect.turn.start}, {}):
                whole, _ = feed(dialect.parser(TOOLS, **options), [turn[:cut]], reason)
                for size in (1, 4):
                    pieces = [turn[i : min(i + size, cut)] for i in range(0, cut, size)]
                    assert whole == feed(dialect.parser(TOOLS, **options), pieces, reason)[0]


@every_dialect
def test_a_call_in_reasoning_is_told_where_the_block_stays_open_and_is_text_where_it_is_closed(
    dialect: Dialect,
) -> None:
    block = dialect.reasoning
    if block is None or not block.start or dialect.turn.between or dialect.content.always:
        return
    call = dialect.render(Message(tool_calls=CALLS[:1]))
    opened = f"{block.start}{block.pad}I call.\n{call}"
    for end in ("", dialect.turn.end):
        read, _ = feed(dialect.parser(TOOLS, dialect.turn.start), [opened + end])
        assert [CALLS[0].value] == [found.value for found in read.tool_calls], read
        assert ("", "I call.") == (read.content, read.reasoning.strip())
        assert "reasoning" in [remark.code for remark in read.diagnostics]
    if not block.ends_at_calls:
        read, _ = feed(dialect.parser(TOOLS, dialect.turn.start), [f"{opened}{block.pad}{block.end}{block.after}Yes."])
        assert ("Yes.", ()) == (read.content, read.tool_calls)


@every_dialect
def test_the_end_of_the_turn_ends_reasoning_and_arguments(dialect: Dialect) -> None:
    end = dialect.turn.end
    turn = dialect.render(Message("", "Hm." if dialect.reasoning else "", CALLS[:1]))
    for cut in range(len(turn)):
        for chunks in ([turn[:cut] + end], [*turn[:cut], *end]):
            read, _ = feed(dialect.parser(TOOLS, dialect.turn.start), chunks)
            told = read.content + read.reasoning + "".join(call.arguments for call in read.tool_calls)
            assert end.strip() not in told, (turn[:cut], read)


def damaged(turn: str, draw: random.Random) -> bytes:
    """A turn with a few bytes lost, doubled, swapped or replaced."""
    data = bytearray(turn.encode())
    for _ in range(draw.randint(1, 4)):
        start = draw.randrange(len(data))
        end = min(len(data), start + draw.choice((1, 1, 2, 8, 30)))
        piece = bytes(data[start:end])
        data[start:end] = draw.choice((b"", piece * 2, piece[::-1], draw.randbytes(2), b"<", b'"', b"}", b"\n"))
        if not data:
            break
    return bytes(data)


@every_dialect
def test_damaged_turns_are_read_without_an_exception(dialect: Dialect) -> None:
    draw = random.Random(dialect.name)
    options: tuple[dict[str, Any], ...] = ({"prompt": dialect.turn.start}, {"in_reasoning": None})
    options = options[:1] if dialect.turn.opened else options  # there the prompt has begun the message
    for turn in turns(dialect):
        for _ in range(30):
            output = damaged(turn, draw)
            for chosen in options:
                read, events = feed(dialect.parser(TOOLS, **chosen), [output])
                check_tiling(events, len(output))
                check_told(events, read)
                pieces = [output[i : i + 3] for i in range(0, len(output), 3)]
                assert read == feed(dialect.parser(TOOLS, **chosen), pieces)[0], output


@pytest.mark.parametrize("part", ["begin", "call_begin", "call_end", "end", "separator"])
@every_dialect
def test_layouts_with_a_part_left_out_read_anything(dialect: Dialect, part: str) -> None:
    """Analysis makes layouts that no family has, such as sections without an end."""
    left_out: dict[str, Any] = {part: ""}
    odd = replace(dialect, calls=tuple(replace(way, **left_out) for way in dialect.calls))
    draw = random.Random(dialect.name + part)
    for turn in turns(dialect):
        for output in (turn.encode(), *(damaged(turn, draw) for _ in range(8))):
            _, events = feed(odd.parser(TOOLS, odd.turn.start), [output], "length")
            check_tiling(events, len(output))
