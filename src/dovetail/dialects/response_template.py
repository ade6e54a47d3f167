"""A dialect as a Hugging Face response template, where one can say it.

Values of tagged parameters stay text in the template: readers cast them by the types that the tools declare.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from dovetail.dialects.format_builder import call_pieces
from dovetail.errors import ExportError
from dovetail.layouts.styles import Literals, layout_of
from dovetail.parsing.layouts import ARGUMENTS, ID, NAME, JsonCall, Quoted, TaggedCall, ToolCalls

if TYPE_CHECKING:
    from dovetail.dialects.dialect import Dialect

_NAME = r"(?P<name>[^\s<>\"'(){}\[\]]+)"


def response_template(dialect: Dialect) -> dict[str, Any]:
    """The template; an ExportError where a call ends at a bracket that only a grammar could find."""
    fields: dict[str, Any] = {}
    reasoning, content, turn = dialect.reasoning, dialect.content, dialect.turn
    if content.optional:
        raise _cannot(dialect, "content that stands in markers or without")
    if reasoning is not None:
        fields["thinking"] = {"open": reasoning.start.rstrip("\n"), "close": reasoning.end, "content": "text"}
    if dialect.calls:
        fields["tool_calls"] = _calls(dialect)
    if content.wrapped:
        fields["content"] = {"open": [*content.begins, *content.notes], "close": list(content.ends), "content": "text"}
    else:
        fields["content"] = {"close": turn.end, "content": "text"}
    return {"defaults": {"role": "assistant"}, "start_anchor": turn.start, "fields": fields}


def _calls(dialect: Dialect) -> dict[str, Any]:
    ways = [way for way in dialect.calls if way.tools != "builtin" and not way.tolerated]
    way = ways[0]
    if isinstance(way.call, JsonCall) and way.begin.rstrip().endswith("["):
        return _array(dialect, way, way.call, alone=len(ways) == 1)
    if not isinstance(way.call, JsonCall | TaggedCall) or not way.call_end.strip():
        raise _cannot(dialect, "a call that ends with a bracket")
    if isinstance(way.call, JsonCall):
        return {
            "open_pattern": r"\s*" + re.escape(way.call_begin.strip()),
            "close": way.call_end.strip(),
            "repeats": True,
            "content": "json",
            "transform": _transform(way.call, "{{content.{}}}"),
        }
    same = [other for other in ways if isinstance(other.call, TaggedCall) and other.call_end == way.call_end]
    return {
        "open_pattern": r"\s*" + _either([_opening(other) for other in same]),
        "close_pattern": _loose(way.call_end) + (f"(?:{_loose(way.end)})?" if way.end else ""),
        "repeats": True,
        **_body(dialect, way.call),
        "transform": {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
        | ({"id": "{id}"} if way.id_pattern and way.id_template == "{id}" else {}),
    }


def _array(dialect: Dialect, way: ToolCalls, call: JsonCall, alone: bool) -> dict[str, Any]:
    marker = way.begin.rstrip().removesuffix("[")
    if not marker or not alone:
        raise _cannot(dialect, "a list of calls without a marker of its own")
    return {
        "open": marker,
        "close": way.end.lstrip().removeprefix("]") or dialect.turn.end,
        "content": "json",
        "transform_each": True,
        "transform": _transform(call, "{{{}}}"),
    }


def _transform(call: JsonCall, variable: str) -> dict[str, Any]:
    keys = {value: variable.format(key) for key, value in call.fields}
    named = {"type": "function", "function": {"name": keys[NAME], "arguments": keys[ARGUMENTS]}}
    return named | ({"id": keys[ID]} if ID in keys else {})


def _body(dialect: Dialect, call: TaggedCall) -> dict[str, Any]:
    style = call.arguments
    if style == "json":
        return {"content": "json"}
    if isinstance(style, Literals):
        if not style.bare_keys:
            raise _cannot(dialect, "arguments in Python's syntax")
        pairs = [[quote, quote] for quote in style.quotes]
        return {"content": "json", "content_args": {"unquoted_keys": True, "string_delims": pairs}}
    if isinstance(style, Quoted):
        raise _cannot(dialect, "values that end at a quote with a separator behind it")
    layout = layout_of(style)
    if layout.item or layout.escapes:
        raise _cannot(dialect, "arguments that nest or escape in their own markup")
    middles = _either([r"\s*".join(map(re.escape, parts)) for parts in dict.fromkeys(layout.middle.values())])
    pad = re.escape(call.pad) + "?" if call.pad else ""
    pattern = f'{re.escape(layout.begin)}(?P<key>[^<>"]+){middles}{pad}(?P<value>.*?){pad}{re.escape(layout.stop)}'
    return {"content": "xml-inline", "content_args": {"tag_pattern": pattern}}


def _opening(way: ToolCalls) -> str:
    """What stands before the arguments, the section's begin included."""
    text = f"(?:{_loose(way.begin)})?" if way.begin else ""
    text += _loose(way.call_begin)
    for piece in call_pieces(way.call):
        if piece is ARGUMENTS:
            return text
        text += (
            (_NAME if _NAME not in text else "(?P=name)")
            if piece is NAME
            else f"(?P<id>{way.id_pattern})"
            if piece is ID
            else _loose(str(piece))
        )
    raise AssertionError("a call has arguments")


def _loose(text: str) -> str:
    """A literal in which white space is any white space."""
    return r"\s*".join(re.escape(part) for part in re.split(r"\n+", text))


def _either(patterns: list[str]) -> str:
    return patterns[0] if len(patterns) == 1 else f"(?:{'|'.join(patterns)})"


def _cannot(dialect: Dialect, what: str) -> ExportError:
    problem = f"a response template cannot read {what}, as {dialect.name} writes it"
    return ExportError(problem, dialect.name, "use the parser of the dialect")
