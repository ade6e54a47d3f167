"""JSON values as JSON Schema compares them: 1 equals 1.0, true is no number, the order of keys means nothing."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from dovetail.errors import LimitError

MAX_DEPTH = 100


def identity(value: Any, depth: int = 0) -> Hashable:
    """A key that is the same for two values exactly when JSON Schema takes them as equal."""
    if depth > MAX_DEPTH:
        raise LimitError(f"a value in enum or const is nested deeper than {MAX_DEPTH} levels", "", "flatten the value")
    if isinstance(value, dict):
        return frozenset((key, identity(item, depth + 1)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(identity(item, depth + 1) for item in value)
    # The first entry parts true from 1, and scalars from arrays of two.
    return type(value).__name__ if value is None or isinstance(value, bool) else "", value
