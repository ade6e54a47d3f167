"""One answer as it grows, whichever way it is cut."""

from __future__ import annotations

from typing import Any

import pytest

from dovetail import dialects
from dovetail.messages import Message, ToolCall
from dovetail.parsing import Event
from dovetail.serving.turns import Odds, Turn

CALLS = (ToolCall.of("f", {"a": "é"}, "x1y2z3abc"), ToolCall.of("g", {}, "x1y2z3abd"))


def read(turn: Turn, output: bytes, size: int = 1, finish: Any = "stop") -> list[Event]:
    events = turn.start()
    for at in range(0, len(output), size):
        events += turn.feed(output[at : at + size]).events
    return events + turn.close(finish).events


@pytest.mark.parametrize("name", ["qwen_3", "mistral", "kimi", "harmony", "deepseek_v3_1", "glm_4_7"])
@pytest.mark.parametrize("size", [1, 3, 1000])
def test_a_turn_tells_the_message_that_the_parser_reads(name: str, size: int) -> None:
    dialect = dialects.get(name)
    output = dialect.render(Message("", "Hm." if dialect.reasoning else "", CALLS)).encode()
    turn = Turn(dialect.parser())
    events = read(turn, output, size)
    whole = dialect.parse(output)
    assert (whole.content, whole.reasoning, whole.finish_reason) == (
        turn.message.content,
        turn.message.reasoning,
        turn.message.finish_reason,
    )
    assert [(call.name, call.arguments) for call in whole.tool_calls] == [
        (call.name, call.arguments) for call in turn.message.tool_calls
    ]
    ids = {event.call_index: event.call.id for event in events if event.kind == "open" and event.call}
    assert ids == {event.call_index: event.call.id for event in events if event.kind == "close" and event.call}
    assert len(set(ids.values())) == 2


def test_ids_that_the_model_writes_are_kept_also_behind_the_name() -> None:
    dialect = dialects.get("mistral")
    turn = Turn(dialect.parser())
    events = read(turn, b'[TOOL_CALLS]f[CALL_ID]x1y2z3abc[ARGS]{"a": 1}')
    assert ["x1y2z3abc", "x1y2z3abc"] == [event.call.id for event in events if event.call]


def test_a_call_without_an_id_gets_one_that_no_other_turn_has() -> None:
    output = dialects.get("qwen_3").render(Message(tool_calls=(ToolCall.of("f"), ToolCall.of("f")))).encode()
    turns = [Turn(dialects.get("qwen_3").parser()) for _ in range(2)]
    for turn in turns:
        read(turn, output)
    ids = [call.id for turn in turns for call in turn.message.tool_calls]
    assert 4 == len(set(ids))


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_text_behind_a_stop_string_is_not_told(size: int) -> None:
    turn = Turn(dialects.get("qwen_3").parser(), stops=["STOP", "never"])
    output, events = b"<think>\nSTOP\n</think>\n\nOne STO two STOP three", list[Event]()
    for at in range(0, len(output), size):
        if not turn.done:
            events += turn.feed(output[at : at + size]).events
    events += turn.close("length").events
    assert ("One STO two ", "STOP", "STOP", "stop") == (
        turn.message.content,
        turn.message.reasoning,
        turn.stop,
        turn.finish_reason,
    )
    assert [] == [region for region in opened(events) if region]


def opened(events: list[Event]) -> list[str]:
    """The regions that are still open behind these events."""
    still: list[str] = []
    for event in events:
        if event.kind == "open":
            still.append(event.region)
        elif event.kind == "close":
            assert still.pop() == event.region
    return still


def test_reasoning_can_be_kept_back() -> None:
    turn = Turn(dialects.get("qwen_3").parser(), show_reasoning=False)
    events = read(turn, b"<think>\nHm.\n</think>\n\nYes.")
    assert {"content"} == {event.region for event in events}
    assert ("", "Yes.") == (turn.message.reasoning, turn.message.content)
    assert 0 < turn.counts.reasoning < turn.counts.completion


def test_what_the_prompt_has_said_is_not_said_again() -> None:
    prompt = "<|im_start|>assistant\n<think>\nHm.\n</think>\n\nYes, "
    turn = Turn(dialects.get("qwen_3").parser(prompt=prompt))
    events = read(turn, b"and no.")
    assert ("open", "content") == events[0][:2]
    assert ("and no.", "") == (turn.message.content, turn.message.reasoning)


def test_odds_belong_to_the_tokens_of_the_content() -> None:
    turn = Turn(dialects.get("qwen_3").parser())
    output = b"<think>\nHm.\n</think>\n\nYes <t no."
    odds = [odd for byte in output for odd in turn.feed(bytes([byte]), Odds(bytes([byte]), -1.0)).odds]
    odds += turn.close("stop").odds
    assert b"Yes <t no." == b"".join(odd.data for odd in odds)
    assert (len(output), 3) == (turn.counts.completion, turn.counts.reasoning)
