"""From a message to the output that says it, as the chat template writes it."""

from __future__ import annotations

from typing import Any

from dovetail.messages import Message
from dovetail.templates.analysis import Analysis
from dovetail.templates.analysis.frame import call_shape, frame
from dovetail.templates.analysis.probes import Call, Prober
from dovetail.templates.analysis.source import read_source
from dovetail.templates.analysis.verify import Probe, Rendered, Verifier


class Turns:
    """The turns of one template."""

    def __init__(self, source: str, analysis: Analysis, bos_token: str, eos_token: str) -> None:
        prober = Prober(source, bos_token, eos_token)
        turn = frame(prober, read_source(source), call_shape(prober))
        assert turn is not None  # or there would be no analysis
        self._verifier = Verifier(prober, turn, analysis.dialect, analysis.shape, with_content=True)

    def of(self, message: Message, tools: Any) -> Rendered | None:
        """The turn that says `message`, or None where the template does not write all of it."""
        calls = tuple(Call(call.name, call.value, call.id) for call in message.tool_calls)
        probe = Probe("", message.content, message.reasoning, calls)
        # Some templates fail where there are no tools at all.
        return self._verifier.rendered(probe, tools) or (None if tools else self._verifier.rendered(probe, []))
