"""Vocabulary, CompiledGrammar and Matcher: the thin Python face of the core."""

from dovetail._core import Matcher, fill_masks
from dovetail.engine.compiled import CompiledGrammar, accepts, compile
from dovetail.engine.events import CaptureEvent
from dovetail.engine.vocabulary import Vocabulary

__all__ = ["CaptureEvent", "CompiledGrammar", "Matcher", "Vocabulary", "accepts", "compile", "fill_masks"]
