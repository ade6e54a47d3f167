"""One of several texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dovetail.errors import FormatError
from dovetail.formats.models import ConstStringFormat, OrFormat

MAX_CHOICES = 4096


def choice(texts: Sequence[Any]) -> ConstStringFormat | OrFormat:
    """The format of exactly one of these texts."""
    if not 0 < len(texts) <= MAX_CHOICES or not all(isinstance(text, str) and text for text in texts):
        raise FormatError("the choices are no list of strings", "", f"give between 1 and {MAX_CHOICES} strings")
    elements = [ConstStringFormat(value=text) for text in dict.fromkeys(texts)]
    return elements[0] if len(elements) == 1 else OrFormat(elements=elements)
