"""A model that says what it is told to say: the last message of the user is the answer, as JSON."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from dovetail import dialects
from dovetail.engine import Vocabulary
from dovetail.messages import Message, ToolCall
from dovetail.models import Constraint, Prompt, Sampling, Step
from dovetail.models.chat import render_plainly
from dovetail.models.model import DEFAULT_SAMPLING, matcher_of

END = 256


class Echo:
    """Writes one byte at a time, each of which the grammar has to allow."""

    name = "echo"
    tools_in_prompt = False
    shows_reasoning = True

    def __init__(self, dialect: str) -> None:
        self.dialect = dialects.get(dialect)
        self.vocabulary = Vocabulary([*(bytes([byte]) for byte in range(256)), b"<end>"], {"<end>": END}, [END])

    def encode(self, text: str) -> list[int]:
        return list(text.encode())

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        reasoning: bool = True,
        continue_final: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> Prompt:
        self._said = answer(messages[0 if continue_final else -1]["content"])
        self._reasons = reasoning
        return render_plainly(self.dialect, messages, tools, reasoning=reasoning, continue_final=continue_final)

    async def generate(
        self,
        prompt: str | Sequence[int],
        constraint: Constraint | None = None,
        sampling: Sampling = DEFAULT_SAMPLING,
        *,
        prefix: str | bytes = "",
    ) -> AsyncGenerator[Step, None]:
        assert constraint is not None
        matcher = matcher_of(constraint, self.vocabulary, prefix)
        output = self._output().encode()
        tokens = [*output[len(prefix) :], END][: sampling.max_tokens]
        for index, token in enumerate(tokens):
            assert matcher.accept(token), f"{output[: index + 1]!r} leaves the format"
            finish = None if index < len(tokens) - 1 else "stop" if token == END else "length"
            yield Step(token, b"" if token == END else bytes([token]), -0.5, ((token, -0.5), (65, -1.5)), finish)

    def _output(self) -> str:
        block, content = self.dialect.reasoning, self.dialect.content
        if block is None or (self._reasons and block.opened_by != "prompt"):
            return self.dialect.render(self._said)
        if self._reasons:
            return self.dialect.render(self._said, opened=True).removeprefix(block.pad)  # which the prompt holds
        said = self.dialect.render(self._said)
        return block.skipped + (said.removeprefix(content.begins[0]) if content.prompt_opens else said)

    def close(self) -> None:
        pass


def request(message: Message) -> str:
    """What to tell the model to say."""
    calls = [[call.name, call.value, call.id] for call in message.tool_calls]
    return json.dumps([message.content, message.reasoning, calls])


def answer(text: str) -> Message:
    content, reasoning, calls = json.loads(text)
    return Message(content, reasoning, tuple(ToolCall.of(*call) for call in calls))
