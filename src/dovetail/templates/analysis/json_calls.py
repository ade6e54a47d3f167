"""A call that is one JSON object: its keys, their order, and the white space between them."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

from dovetail.dialects import ARGUMENTS, ID, NAME, JsonCall, KeyedCall
from dovetail.dialects.format_builder import call_pieces
from dovetail.parsing.layouts import Field
from dovetail.templates.analysis.cores import ARGS, Parts
from dovetail.templates.analysis.probes import IDS, NAMES

_WRITTEN = {NAME: NAMES[0], ID: IDS[0], ARGUMENTS: json.dumps({ARGS: 0})}


def find_json_call(parts: Parts, begin: str, end: str) -> tuple[JsonCall | KeyedCall, str, str] | None:
    """The call with what stands before and behind it, if it is one JSON object."""
    text = begin + _text(parts) + end
    for brace in re.finditer(r"\{", begin):
        try:
            value, size = json.JSONDecoder().raw_decode(text[brace.start() :])
        except ValueError:
            continue
        call = _shape(value)
        if call is None:
            continue
        whole = text[brace.start() : brace.start() + size]
        call = _spelled(call, whole)
        if call is not None:
            return call, begin[: brace.start()], text[brace.start() + size :]
    return None


def _shape(value: Any) -> JsonCall | KeyedCall | None:
    if not isinstance(value, dict):
        return None
    arguments = {ARGS: 0}
    if value == {NAMES[0]: arguments}:
        return KeyedCall()
    inside = next((key for key, item in value.items() if isinstance(item, dict) and item != arguments), "")
    members = [
        (key, item)
        for outer, inner in value.items()
        for key, item in (inner.items() if outer == inside and inside else ((outer, inner),))
    ]
    fields: list[tuple[str, Field | str]] = []
    for key, item in members:
        known = NAME if item == NAMES[0] else ID if item == IDS[0] else ARGUMENTS if item == arguments else item
        if not isinstance(known, str | Field):
            return None
        fields.append((key, known))
    values = [item for _, item in fields]
    return JsonCall(tuple(fields), inside) if NAME in values and ARGUMENTS in values else None


def _spelled(call: JsonCall | KeyedCall, whole: str) -> JsonCall | KeyedCall | None:
    """The call with the white space of its text, if it is regular."""
    if isinstance(call, JsonCall):
        first = call.inside if call.inside and call.fields[0][1] in (NAME, ARGUMENTS) else call.fields[0][0]
        key = json.dumps(first)
        at = whole.find(key)
        colon, gap = re.match(r"\s*:\s*", whole[at + len(key) :]), re.search(r'[}"0-9](\s*,\s*)"', whole)
        closing = re.search(r"\s*\}\Z", whole)
        if not colon or not gap or not closing:
            return None
        comma = "," + whole[1:at] if "\n" in whole[:at] else gap[1]
        call = replace(call, spelling=(whole[:at], comma, colon[0], closing[0]))
        return next((way for way in (call, replace(call, bare_id=True)) if _written(way) == whole), None)
    return call if _written(call) == whole else None


def _written(call: JsonCall | KeyedCall) -> str:
    return _text(call_pieces(call))


def _text(parts: Parts) -> str:
    """The text of a call, its fields written out."""
    return "".join(_WRITTEN[part] if isinstance(part, Field) else part for part in parts)
