"""JSON values as JSON Schema compares them: 1 equals 1.0, true is no number, the order of keys means nothing."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from dovetail._core import fingerprint
from dovetail.errors import LimitError

Content = tuple[tuple[int, int] | None, int]  # what is the same for equal schemas, and how many values there are

UNKNOWN: Content = (None, 0)
MAX_DEPTH = 100


def check_depth(values: list[Any]) -> None:
    """Refuse values nested so deeply that reading them would exhaust the stack."""
    level = [value for value in values if isinstance(value, dict | list)]
    for _ in range(MAX_DEPTH):
        if not level:
            return
        inner = (item for value in level for item in (value.values() if isinstance(value, dict) else value))
        level = [item for item in inner if isinstance(item, dict | list)]
    raise LimitError(f"a value in enum or const is nested deeper than {MAX_DEPTH} levels", "", "flatten the value")


def identity(value: Any) -> Hashable:
    """A key that is the same for two values exactly when JSON Schema takes them as equal."""
    if type(value) is str:  # as most are
        return "", value
    if isinstance(value, dict):
        return frozenset((key, identity(item)) for key, item in value.items())
    if isinstance(value, list):
        return tuple(identity(item) for item in value)
    # The first entry parts true from 1, and scalars from arrays of two.
    return type(value).__name__ if value is None or isinstance(value, bool) else "", value


def content(schema: Any) -> Content:
    """What tells a schema from others; unknown where it is nested too deeply, or no JSON but of our own making."""
    try:
        return fingerprint(schema)
    except (LimitError, TypeError):
        return UNKNOWN


def all_strings(values: Any) -> bool:
    """Whether `values` is a list of strings."""
    return isinstance(values, list) and all(type(value) is str for value in values)


def is_number(value: Any) -> bool:
    """Whether a value is a JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_speakable(word: str) -> bool:
    """Whether the text can be UTF-8: a surrogate without its partner cannot."""
    try:
        word.encode()
    except UnicodeEncodeError:
        return False
    return True
