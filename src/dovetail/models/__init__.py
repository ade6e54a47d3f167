"""Local generation under a mask."""

from dovetail.models.speaker import Speaker, Utterance

__all__ = ["Speaker", "Utterance"]
