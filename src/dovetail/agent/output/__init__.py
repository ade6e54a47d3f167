"""What a run prints: text, json and stream-json."""

from dovetail.agent.output.envelopes import Envelopes, bounded
from dovetail.agent.output.writers import Output, Sink

__all__ = ["Envelopes", "Output", "Sink", "bounded"]
