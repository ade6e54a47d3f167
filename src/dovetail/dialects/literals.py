"""How values are written as the literals of a call syntax, such as Python's."""

from __future__ import annotations

import re
from typing import Any

from dovetail.layouts.styles import Literals, escapes
from dovetail.messages import to_json

_HALF = re.compile("[\ud800-\udfff]")


def spell(value: Any, syntax: Literals) -> str:
    """A value as a literal."""
    match value:
        case bool():
            return syntax.true if value else syntax.false
        case None:
            return syntax.null
        case str():
            return _quoted(value, syntax.quotes[0], syntax)
        case list() | tuple():
            return "[" + syntax.separator.join(spell(item, syntax) for item in value) + "]"
        case dict():
            return "{" + _members(value, syntax, syntax.assign if syntax.bare_keys else ": ", syntax.bare_keys) + "}"
        case _:
            return to_json(value)


def spell_arguments(value: dict[str, Any], syntax: Literals) -> str:
    """The arguments of a call, brackets included."""
    return syntax.begin + _members(value, syntax, syntax.assign, not syntax.quoted_keys) + syntax.end


def _members(value: dict[str, Any], syntax: Literals, assign: str, bare: bool) -> str:
    members = syntax.ordered(value.items())
    return syntax.separator.join(
        f"{key if bare else spell(key, syntax)}{assign}{spell(item, syntax)}" for key, item in members
    )


def _quoted(text: str, quote: str, syntax: Literals) -> str:
    """A string between quotes; where there are escapes, halves of surrogate pairs are escaped as well."""
    if syntax.escapes:
        text = _HALF.sub(lambda half: f"\\u{ord(half[0]):04x}", text.translate(escapes(quote, syntax.raw)))
    return quote + text + quote
