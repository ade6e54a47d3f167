"""Unicode classes and case folding, from the tables of the standard library."""

from __future__ import annotations

import sys
import unicodedata
from functools import cache
from itertools import groupby

from dovetail.grammar import ir
from dovetail.grammar.regex.charset import Ranges

_LONG = {
    "letter": "L", "cased_letter": "LC", "uppercase_letter": "Lu", "lowercase_letter": "Ll", "titlecase_letter": "Lt",
    "modifier_letter": "Lm", "other_letter": "Lo", "mark": "M", "combining_mark": "M", "nonspacing_mark": "Mn",
    "spacing_mark": "Mc", "enclosing_mark": "Me", "number": "N", "decimal_number": "Nd", "digit": "Nd",
    "letter_number": "Nl", "other_number": "No", "punctuation": "P", "punct": "P", "connector_punctuation": "Pc",
    "dash_punctuation": "Pd", "open_punctuation": "Ps", "close_punctuation": "Pe", "initial_punctuation": "Pi",
    "final_punctuation": "Pf", "other_punctuation": "Po", "symbol": "S", "math_symbol": "Sm", "currency_symbol": "Sc",
    "modifier_symbol": "Sk", "other_symbol": "So", "separator": "Z", "space_separator": "Zs", "line_separator": "Zl",
    "paragraph_separator": "Zp", "other": "C", "control": "Cc", "cntrl": "Cc", "format": "Cf", "surrogate": "Cs",
    "private_use": "Co", "unassigned": "Cn",
}  # fmt: skip

# Simple foldings that str.casefold hides behind its full ones.
_SIMPLE = {0x1FD3: 0x390, 0x1FE3: 0x3B0, 0xFB05: 0xFB06}
# No character above this one has case.
_LAST_CASED = 0x1E943


def property_ranges(name: str) -> Ranges | None:
    """The characters of `\\p{name}`, or None where the standard library cannot say them exactly."""
    key, equals, value = name.partition("=")
    if equals:
        return _category(value) if key in ("gc", "General_Category") else None
    if name == "Assigned":
        return ir.complement(_categories()["Cn"]).ranges
    last = {"Any": ir.MAX_CODE_POINT, "ASCII": 0x7F}.get(name)
    return _category(name) if last is None else ((0, last),)


def _category(name: str) -> Ranges | None:
    short = _LONG.get(name.lower(), name) if "_" in name or len(name) > 2 else name
    if short == "LC":
        wanted = {"Lu", "Ll", "Lt"}
    else:
        wanted = {category for category in _categories() if short in (category, category[0])}
    if not wanted:
        return None
    return ir.chars(span for category in wanted for span in _categories()[category]).ranges


@cache
def _categories() -> dict[str, Ranges]:
    spans: dict[str, list[tuple[int, int]]] = {}
    start = 0
    for category, run in groupby(map(unicodedata.category, map(chr, range(sys.maxunicode + 1)))):
        end = start + sum(1 for _ in run)
        spans.setdefault(category, []).append((start, end - 1))
        start = end
    return {name: tuple(ranges) for name, ranges in spans.items()}


def fold(code: int) -> int:
    """The simple case folding of a character, by which ECMA-262 compares under the flags i and u."""
    if code in _SIMPLE:
        return _SIMPLE[code]
    char = chr(code)
    for folded in (char.casefold(), char.lower()):
        if len(folded) == 1:
            return ord(folded)
    return code


@cache
def _variants() -> dict[int, tuple[int, ...]]:
    groups: dict[int, set[int]] = {}
    for code in range(_LAST_CASED + 1):
        if (folded := fold(code)) != code:
            groups.setdefault(folded, {folded}).add(code)
    return {code: tuple(group) for group in groups.values() for code in group}


def any_case(node: ir.Chars) -> ir.Chars:
    """`node` and every character that differs from one in it by case only."""
    variants = _variants()
    extra: list[tuple[int, int]] = []
    for low, high in node.ranges:
        # Whichever is shorter: the range, or all characters with case.
        codes = range(low, high + 1) if high - low < len(variants) else (c for c in variants if low <= c <= high)
        extra += [(other, other) for code in codes for other in variants.get(code, ())]
    return ir.chars([*node.ranges, *extra])
