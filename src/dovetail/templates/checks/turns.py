"""From a message to the output that says it, as the chat template writes it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dovetail.messages import Message
from dovetail.templates.analysis import Analysis, Verification
from dovetail.templates.analysis.probes import Call, Prober
from dovetail.templates.analysis.verify import Probe, Rendered, verifier_of


class Turns:
    """The turns of one template."""

    def __init__(self, source: str, analysis: Analysis, bos_token: str, eos_token: str) -> None:
        self.eos_token = eos_token
        self._verifier = verifier_of(analysis, Prober(source, bos_token, eos_token), with_content=True)

    def of(self, message: Message, tools: Any) -> Rendered | None:
        """The turn that says `message`, or None where the template does not write all of it."""
        return next((turn for turn in self._all(message, tools) if turn), None)

    def behind_prompt(self, message: Message, tools: Any) -> Rendered | None:
        """The part of a turn that a generation prompt leaves to the model, where a prompt has written some of it."""
        return self._verifier.behind_prompt(_probe(message), tools)

    def splits(self, message: Message, tools: Any) -> bool:
        """Whether the template makes several turns of the message."""
        return self._verifier.splits(_probe(message), tools)

    def as_last(self, message: Message, tools: Any) -> Rendered | None:
        """The turn where it is the last one, of a template whose turns were read as history."""
        return self._verifier.as_last(_probe(message), tools)

    def instruction(self) -> str:
        """A sentence that the template writes before the content of every role."""
        return self._verifier.instruction()

    def torn_header(self) -> str:
        """What is wrong with the header that the generation prompt writes, compared with that of history."""
        return self._verifier.torn_header()

    def answers(self) -> list[tuple[str, Verification]]:
        """Whether a plain answer behind each generation prompt holds, with the settings of the prompt."""
        return list(self._verifier.answers())

    def _all(self, message: Message, tools: Any) -> Iterator[Rendered | None]:
        yield self._verifier.rendered(_probe(message), tools)
        if not tools:
            yield self._verifier.rendered(_probe(message), [])  # some templates fail where there are no tools at all


def _probe(message: Message) -> Probe:
    calls = tuple(Call(call.name, call.value, call.id) for call in message.tool_calls)
    return Probe("", message.content, message.reasoning, calls)
