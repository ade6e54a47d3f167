"""The dialect that a parser inside an engine reads: one by name, or that of the model's own chat template."""

from __future__ import annotations

from typing import Any

from dovetail import dialects
from dovetail.dialects import Dialect
from dovetail.templates.analyze import analyze

MAX_KNOWN = 16

_known: dict[int, tuple[Any, Dialect]] = {}


def dialect_of(tokenizer: Any, name: str) -> Dialect:
    """The dialect of this name, or where there is no name the one that the tokenizer's chat template shows."""
    if name:
        return dialects.get(name)
    known = _known.get(id(tokenizer))
    if known is None:
        while len(_known) >= MAX_KNOWN:
            _known.pop(next(iter(_known)))
        # With the tokenizer, so that no other one gets its id.
        known = _known[id(tokenizer)] = (tokenizer, analyze(tokenizer))
    return known[1]
