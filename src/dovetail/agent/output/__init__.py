"""What a run prints: text, json and stream-json."""

from dovetail.agent.output.envelopes import Envelopes, bounded
from dovetail.agent.output.events import event_schema
from dovetail.agent.output.writers import Output, Sink, answer_of

__all__ = ["Envelopes", "Output", "Sink", "answer_of", "bounded", "event_schema"]
