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
_USER_TURN = {"role": "user", "content": _USER}


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
        text = self._render([_USER_TURN, self._wire(message)], tools)
        turn = text.rpartition(_USER)[2]
        layout = self._analysis.dialect.turn
        before, start, output = turn.partition(layout.start)
        if not start:
            raise TemplateError("the turn does not begin as the prompt does", "", "write one header for both")
        return Turn(before + start, self._without_end(output))

    def opened(self) -> str:
        """What the prompt writes of a turn behind its header."""
        text = self._render([_USER_TURN], None, True)
        return text.rpartition(_USER)[2].partition(self._analysis.dialect.turn.start)[2]

    def _without_end(self, output: str) -> str:
        layout, text = self._analysis.dialect.turn, output.rstrip()
        if layout.between:
            return text  # blocks close themselves there
        for end in filter(str.strip, (layout.end, *layout.other_ends)):
            if text.endswith(end.strip()):
                return text.removesuffix(end.strip())
            body, _, rest = text.rpartition(end.strip())
            if layout.start.strip() and layout.start.strip() in rest:
                return body  # some templates write a prompt whether they are asked or not
        return output.rstrip("\n")

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
        """In Transformers, or else in a lenient runtime; some templates fail where there are no tools at all."""
        settings, refusal = dict(self._analysis.shape.settings), None
        for runtime in self._runtimes:
            for given in (tools,) if tools else (None, []):
                try:
                    return runtime.render(messages, given, prompt, **settings)
                except TemplateError as error:
                    refusal = refusal or error
        assert refusal is not None
        raise refusal
