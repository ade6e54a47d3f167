"""Reading what models say: output --StreamParser--> events --> Message."""

from dovetail.parsing.events import Event
from dovetail.parsing.stream import StreamParser

__all__ = ["Event", "StreamParser"]
