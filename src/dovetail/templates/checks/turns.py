"""From a message to the output that says it, as the chat template writes it."""

from __future__ import annotations

from typing import Any

from dovetail.messages import Message
from dovetail.templates.analysis import Analysis
from dovetail.templates.analysis.probes import Call, Prober
from dovetail.templates.analysis.verify import Probe, Rendered, verifier_of


class Turns:
    """The turns of one template."""

    def __init__(self, source: str, analysis: Analysis, bos_token: str, eos_token: str) -> None:
        self._verifier = verifier_of(analysis, Prober(source, bos_token, eos_token), with_content=True)

    def of(self, message: Message, tools: Any) -> Rendered | None:
        """The turn that says `message`, or None where the template does not write all of it."""
        calls = tuple(Call(call.name, call.value, call.id) for call in message.tool_calls)
        probe = Probe("", message.content, message.reasoning, calls)
        # Some templates fail where there are no tools at all.
        return self._verifier.rendered(probe, tools) or (None if tools else self._verifier.rendered(probe, []))
