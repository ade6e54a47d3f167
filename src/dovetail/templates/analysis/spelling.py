"""How values are spelled: where a template has written a value that we know, and whether as JSON or as Python does."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

Spelling = Literal["json", "python"]

_OPENING = re.compile(r"[{\[]")
_MAX_TRIES = 200  # brackets in one text


def find_spelling(text: str, value: Any) -> tuple[int, int, Spelling] | None:
    """Where a value is spelled in a text for the last time, and how; JSON in any white space, or else Python's way."""
    if isinstance(value, dict | list) and value:
        span = _find_json(text, value)
        if span:
            return *span, "json"
    kind: Spelling
    for spelled, kind in ((json.dumps(value, ensure_ascii=False), "json"), (repr(value), "python")):
        at = text.rfind(spelled)
        if at >= 0:
            return at, at + len(spelled), kind
    return None


def _find_json(text: str, value: Any) -> tuple[int, int] | None:
    decoder = json.JSONDecoder()
    for opening in list(_OPENING.finditer(text))[-_MAX_TRIES:]:
        try:
            read, end = decoder.raw_decode(text, opening.start())
        except ValueError:
            continue
        if read == value:
            return opening.start(), end
    return None
