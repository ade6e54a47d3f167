"""How values are spelled: the texts that a template may have made of a value that we know."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Literal

Spelling = Literal["json", "python"]

_SEPARATORS = ((", ", ": "), (",", ":"), (", ", ":"), (",", ": "))


def spellings(value: Any) -> Iterator[tuple[str, Spelling]]:
    """The texts of a value, and whose they are; JSON first."""
    for separators in _SEPARATORS:
        yield json.dumps(value, ensure_ascii=False, separators=separators), "json"
        yield json.dumps(value, ensure_ascii=False, separators=separators, sort_keys=True), "json"
    for indent in (2, 4, 1, 3, "\t"):
        yield json.dumps(value, ensure_ascii=False, indent=indent), "json"
    yield json.dumps(value), "json"
    yield repr(value), "python"


def find_spelling(text: str, value: Any) -> tuple[int, int, Spelling] | None:
    """Where a value is spelled in a text for the last time, and how; the first spelling that is there."""
    for spelled, kind in dict.fromkeys(spellings(value)):
        at = text.rfind(spelled)
        if at >= 0:
            return at, at + len(spelled), kind
    return None
