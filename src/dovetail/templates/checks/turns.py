"""From a message to the output that says it, as the chat template writes it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from dovetail.errors import TemplateError
from dovetail.messages import Message
from dovetail.templates.analysis import Analysis
from dovetail.templates.render import ChatTemplate

_USER = "Zqcheckq"  # a word that no template writes by itself


@dataclass(frozen=True, slots=True)
class Turn:
    """The end of a prompt, and the output behind it."""

    prompt: str
    output: str


class Turns:
    """The turns of one template."""

    def __init__(self, source: str, analysis: Analysis, bos_token: str, eos_token: str) -> None:
        self._analysis = analysis
        self._runtimes = [
            ChatTemplate(source, bos_token, eos_token),
            ChatTemplate(source, bos_token, eos_token, lenient=True),
        ]

    def of(self, message: Message, tools: Any) -> Turn:
        """The turn that says `message`; a TemplateError where the template refuses it."""
        text = self._render([{"role": "user", "content": _USER}, self._wire(message)], tools)
        turn = text.rpartition(_USER)[2]
        layout = self._analysis.dialect.turn
        before, start, output = turn.partition(layout.start)
        if not start:
            raise TemplateError("the turn does not begin as the prompt does", "", "write one header for both")
        return Turn(before + start, self._without_end(output))

    def opened(self) -> str:
        """What the prompt writes of a turn behind its header."""
        text = self._render([{"role": "user", "content": _USER}], None, True)
        return text.rpartition(_USER)[2].partition(self._analysis.dialect.turn.start)[2]

    def _without_end(self, output: str) -> str:
        layout = self._analysis.dialect.turn
        for end in (layout.end, *layout.other_ends):
            if end and output.rstrip().endswith(end.rstrip()):
                return output.rstrip().removesuffix(end.rstrip())
        return output if layout.end else output.rstrip("\n")

    def _wire(self, message: Message) -> dict[str, Any]:
        shape = self._analysis.shape
        wire = message.to_hf(shape.reasoning if shape.reasoning not in ("", "parts") else "reasoning_content")
        if message.reasoning and shape.reasoning == "parts":
            text = [{"type": "text", "text": message.content}] if message.content else []
            wire["content"] = [{"type": "thinking", "thinking": message.reasoning}, *text]
            del wire["reasoning_content"]
        if message.tool_calls and not message.content and shape.no_content != "empty":
            wire["content"] = None
            if shape.no_content == "absent":
                del wire["content"]
        if shape.arguments == "string":
            for call in wire.get("tool_calls", []):
                call["function"]["arguments"] = json.dumps(call["function"]["arguments"], ensure_ascii=False)
        return wire

    def _render(self, messages: list[dict[str, Any]], tools: Any, prompt: bool = False) -> str:
        settings = dict(self._analysis.shape.settings)
        try:
            return self._runtimes[0].render(messages, tools, prompt, **settings)
        except TemplateError as error:
            try:
                return self._runtimes[1].render(messages, tools, prompt, **settings)
            except TemplateError:
                raise error from None
