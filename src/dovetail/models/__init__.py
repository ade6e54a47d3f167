"""Local generation under a mask."""

from dovetail.models.speaker import Speaker, Utterance, embedded_vocabulary

__all__ = ["Speaker", "Utterance", "embedded_vocabulary"]
