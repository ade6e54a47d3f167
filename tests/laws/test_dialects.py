"""Law 7 (agreement): a random model talks under every format, and what it says is read as the captures promise."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

import dovetail as dt
from tests.dialects.requests_data import ANSWER, NAMED, TOOLS
from tests.turns import speaker_of

NAMES = dt.dialects.names()
CHOICES = ("auto", "none", "required", NAMED)
REQUESTS = list(itertools.product(CHOICES, (True, False, "auto"), (True, False), (None, ANSWER)))
INSIDE_A_CALL = {"name", "id", "arguments"}


def calls_in(events: list[dt.CaptureEvent], data: bytes) -> list[dict[str, str]]:
    """The calls that the events tell of; captures other than those of a call stand alone."""
    found: list[dict[str, str]] = []
    names: list[str] = []
    for event in events:
        text = data[event.start : event.end].decode()
        if event.kind == "open":
            names.append(event.name)
            assert names in (["reasoning"], ["content"], ["tool_call"]) or (
                names[0] == "tool_call" and event.name in INSIDE_A_CALL
            )
            if event.name == "tool_call":
                found.append({})
            elif names[0] == "tool_call":
                assert event.name not in found[-1]
                found[-1][event.name] = ""
        elif event.kind == "close":
            assert event.name == names.pop()
        elif names[1:]:
            found[-1][names[1]] += text
    assert not names
    return found


@pytest.mark.parametrize("level", ["text", "token"])
@pytest.mark.parametrize("name", NAMES)
def test_a_random_model_talks_under_every_format(name: str, level: Any) -> None:
    dialect = dt.dialects.get(name)
    speaker = speaker_of(dialect)
    finished = 0
    for choice, reasoning, parallel, answer in REQUESTS:
        fmt = dialect.format(
            TOOLS, choice, reasoning, parallel_tool_calls=parallel, response_format=answer, level=level
        )
        said = speaker.speak(fmt, max_tokens=600)
        if not said.complete:
            continue  # nobody told it how to end: it says only what the mask allows, to the last token
        finished += 1
        matcher = dt.compile(fmt, speaker.vocabulary).matcher()
        assert len(said.token_ids) == matcher.validate(said.token_ids)
        for token in said.token_ids:
            matcher.accept(token)
        calls = calls_in(matcher.events(), said.data)
        assert all(call["name"] in ("get_weather", "ping") for call in calls)
        assert all(call.get("arguments") for call in calls if call["name"] == "get_weather")
        assert choice != "required" or calls
        assert choice != "none" or not calls
        assert parallel or len(calls) <= 1
        if choice == NAMED:
            assert ["get_weather"] == [call["name"] for call in calls]
        if answer and not calls:
            content = [data_of(event, said.data) for event in matcher.events() if event.name == "content"]
            assert json.loads("".join(content))["ok"] in ("yes", "no")
        if level == "text":
            assert dt.accepts(fmt, said.data)
    assert finished >= len(REQUESTS) / 2


def data_of(event: dt.CaptureEvent, data: bytes) -> str:
    return data[event.start : event.end].decode()


def test_at_token_level_the_characters_of_a_marker_are_prose() -> None:
    dialect = dt.dialects.get("qwen_3")
    vocabulary = speaker_of(dialect).vocabulary
    fmt = dialect.format(TOOLS, reasoning=False, level="token")
    matcher = dt.compile(fmt, vocabulary).matcher()
    prose = b"Write <tool_call> and </think> as they are."
    assert matcher.accept_bytes(prose)
    assert matcher.is_complete
    assert matcher.accept(vocabulary.special_tokens["<tool_call>"])
    assert not matcher.is_complete
    assert not matcher.accept_bytes(b"prose")
    assert matcher.accept_bytes(b'\n{"name": "ping", "arguments": {}}\n')
    assert matcher.accept(vocabulary.special_tokens["</tool_call>"])
    assert [("content", prose.decode())] == [
        (event.name, prose.decode()) for event in matcher.events() if event.kind == "text" and event.name == "content"
    ]


STYLES = """llama kimi kimi_k3 deepseek_r1 deepseek_v3_1 deepseek_v3_2 deepseek_v4 deepseek_v4_1 qwen_3 qwen_3_5
qwen_3_coder mimo minimax minimax_m3 glm_4_7 cohere exaone""".split()


@pytest.mark.parametrize("name", STYLES)
def test_what_can_be_said_under_the_style_of_xgrammar_can_be_said_under_ours(name: str) -> None:
    import xgrammar

    speaker = speaker_of(dt.dialects.get(name))
    for choice, reasoning, parallel, _ in REQUESTS[::2]:
        mode = {True: "enabled", False: "disabled"}.get(reasoning, reasoning)
        theirs = xgrammar.get_model_structural_tag(
            name, tools=TOOLS, tool_choice=choice, reasoning=mode, parallel_tool_calls=parallel
        )
        said = speaker.speak(theirs.model_dump_json())
        if said.complete and not calls_in_reasoning(dt.dialects.get(name), said.data):
            assert dt.accepts(
                dt.get_model_structural_tag(name, TOOLS, choice, mode, parallel_tool_calls=parallel), said.data
            )


def calls_in_reasoning(dialect: dt.Dialect, data: bytes) -> bool:
    """Whether reasoning holds what begins a call, which our formats leave out: a reader would take it for a call."""
    block = dialect.reasoning
    if block is None:
        return False
    reasoning, end, _ = data.partition(block.end.encode())
    return bool(end) and any(way.opens_with.encode() in reasoning for way in dialect.calls)
