"""The format of an answer begins where its prompt ends, whatever the template made of the request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

import jsonschema
import pytest

from dovetail import dialects
from dovetail.messages import Message
from dovetail.models import Prompt, Speaker
from dovetail.serving.chat import read_chat
from dovetail.serving.generation import Limits, prepare, run
from dovetail.serving.requests import Ask
from tests.serving.asking import ANSWER

HELLO = [{"role": "user", "content": "Well?"}]
SCHEMA = {"type": "json_schema", "json_schema": {"name": "answer", "schema": ANSWER}}


class Templated(Speaker):
    """A speaker whose template writes the same prompt whatever it is asked."""

    def __init__(self, dialect: str, end: str) -> None:
        super().__init__(3, dialect=dialect)
        self._end = end

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        reasoning: bool = True,
        continue_final: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> Prompt:
        return Prompt(f"user: <think> is a word{self.dialect.turn.end}{self.dialect.turn.start}{self._end}")


def answered(ask: Ask, model: Speaker) -> Message:
    async def last() -> Message:
        turns = [piece.turn async for piece in run(prepare(ask, model, Limits()))]
        assert turns[-1] is not None
        return turns[-1].message

    return asyncio.run(last())


@pytest.mark.parametrize("effort", ["none", "high", None])
@pytest.mark.parametrize(
    ("dialect", "end"),
    [
        ("qwen_3", "<think>\n"),
        ("qwen_3", "<think>\n\n</think>\n\n"),
        ("qwen_3", ""),
        ("deepseek_r1", "<think>\n"),
        ("deepseek_v3_1", "<think>"),
        ("deepseek_v3_1", "</think>"),
        ("glm_4_7", "<think>"),
        ("glm_4_7", "</think>"),
        ("nemotron", "<think>\n"),
        ("kimi", "<think>"),
    ],
)
def test_a_schema_holds_whatever_the_prompt_has_opened(dialect: str, end: str, effort: str | None) -> None:
    body: dict[str, Any] = {"messages": HELLO, "response_format": SCHEMA, "seed": 5, "soft_limit": 30}
    message = answered(read_chat(body | {"reasoning_effort": effort}), Templated(dialect, end))
    assert "stop" == message.finish_reason
    jsonschema.validate(json.loads(message.content), ANSWER)
    if "</think>" in end:
        assert "" == message.reasoning


@pytest.mark.parametrize("dialect", dialects.names())
def test_the_prompts_of_every_dialect_leave_its_format_at_the_beginning(dialect: str) -> None:
    for effort in ("none", "high"):
        ask = read_chat({"messages": HELLO, "reasoning_effort": effort})
        job = prepare(ask, Speaker(dialect=dialect), Limits())
        assert ("", "enabled" if effort == "high" else "disabled") == (job.local.prompt.prefix, job.local.reasoning)
