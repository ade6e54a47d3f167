"""From a message to the text of the turn that says it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dovetail.dialects.format_builder import call_pieces
from dovetail.dialects.literals import spell_arguments
from dovetail.errors import DialectError
from dovetail.layouts.styles import Layout, Literals, layout_of
from dovetail.messages import Message, ToolCall, to_json
from dovetail.parsing.layouts import ID, NAME, Quoted, TaggedCall, ToolCalls

if TYPE_CHECKING:
    from dovetail.dialects.dialect import Dialect

_MAX_ID_WIDTH = 64


def render(dialect: Dialect, message: Message, opened: bool) -> str:
    """The output that says `message`; where `opened`, without what the prompt has already written."""
    reasoning = _reasoning(dialect, message, opened)
    if dialect.turn.between:
        return dialect.turn.between.join([*reasoning, *_content(dialect, message, False), *_calls(dialect, message)])
    content = _content(dialect, message, opened and not message.reasoning)
    calls = _calls(dialect, message)
    if calls:
        way = dialect.calls[0]
        calls = [way.spacing if message.content else way.lead, *calls]
        _check_begin(way, message.content)
    whole = "".join([*reasoning, *content, *calls, dialect.turn.closing])
    return whole.removeprefix(dialect.turn.opened) if opened else whole


def _reasoning(dialect: Dialect, message: Message, opened: bool) -> list[str]:
    block, text = dialect.reasoning, message.reasoning
    if block is None:
        if text:
            raise DialectError(f"{dialect.name} does not reason", "/reasoning", "leave the reasoning out")
        return []
    is_open = opened and block.opened_by != "model"
    if not text:
        # A block that the prompt has opened is closed, empty.
        return [block.end + block.after] if is_open and not dialect.content.prompt_opens else []
    triggers = [way.opens_with for way in dialect.calls] if block.ends_at_calls else []
    _check_free(text, (block.start, block.end, *triggers, *_marks(dialect)), "/reasoning")
    return [("" if is_open else block.start) + block.pad + text + block.pad + block.end + block.after]


def _content(dialect: Dialect, message: Message, opened: bool) -> list[str]:
    content, text = dialect.content, message.content
    if not text and not content.always and (message.tool_calls or not content.wrapped):
        return []
    marks = [way.opens_with for way in dialect.calls if not way.named] + list(dialect.excludes)
    if dialect.reasoning:
        marks += [dialect.reasoning.start, dialect.reasoning.end]
    _check_free(text, [*marks, *filter(None, content.ends), *_marks(dialect)], "/content")
    if not content.wrapped or (content.always and content.optional and not message.tool_calls):
        return [text]
    on_the_way = bool(message.tool_calls and content.notes)
    begin = content.notes[0] if on_the_way else content.begins[0]
    end = content.ends[-1 if on_the_way else 0]
    return [("" if opened and content.prompt_opens else begin) + text + end]


def _marks(dialect: Dialect) -> list[str]:
    return [begin for begin, _ in dialect.content.marks]


def _calls(dialect: Dialect, message: Message) -> list[str]:
    if not message.tool_calls:
        return []
    if not dialect.calls:
        raise DialectError(f"{dialect.name} does not call tools", "/tool_calls", "leave the calls out")
    way = dialect.calls[0]
    calls = [_call(way, call, index) for index, call in enumerate(message.tool_calls)]
    if not dialect.turn.between or way.begin or way.runs:
        return [way.begin + way.separator.join(calls) + way.end]
    return [*(call + dialect.turn.closing for call in calls[:-1]), calls[-1]]


def _call(way: ToolCalls, call: ToolCall, index: int) -> str:
    path = f"/tool_calls/{index}"
    text = way.call_begin
    for piece in call_pieces(way.call):
        if isinstance(piece, str):
            text += piece
        elif piece is NAME:
            text += call.name if isinstance(way.call, TaggedCall) else json.dumps(call.name, ensure_ascii=False)[1:-1]
        elif piece is ID:
            text += _id(way, call, index)
        else:
            text += _arguments(way, call, path)
    return text + way.call_end


def _id(way: ToolCalls, call: ToolCall, index: int) -> str:
    """The call's own id where the family can write it, or else one made of its place."""
    before, _, after = way.id_template.format(name=call.name, id="\0").partition("\0")
    bare = call.id.removeprefix(before).removesuffix(after)
    if call.id == before + bare + after and re.fullmatch(way.id_pattern, bare):
        return bare
    number = str(index + way.first_id)
    return next(n for width in range(_MAX_ID_WIDTH) if re.fullmatch(way.id_pattern, n := number.zfill(width)))


def _arguments(way: ToolCalls, call: ToolCall, path: str) -> str:
    style = way.call.arguments if isinstance(way.call, TaggedCall) else "json"
    value = call.value
    if style == "json":
        return to_json(value) if call.complete else call.arguments
    if not isinstance(value, dict):
        raise DialectError("the arguments are no object", f"{path}/arguments", "pass an object")
    if isinstance(style, Quoted):
        _check_strings(value, way.value_ends, f"{path}/arguments")
        members = (key + style.assign + style.quote + _quoted(item, style) + style.quote for key, item in value.items())
        return style.begin + style.separator.join(members) + style.end
    if isinstance(style, Literals):
        _check_strings(value, () if style.escapes else style.quotes, f"{path}/arguments")
        return spell_arguments(value, style)
    layout = layout_of(style)
    assert isinstance(way.call, TaggedCall)
    _check_strings(value, (layout.stop, *way.call.excludes), f"{path}/arguments")
    return _parameters(value, layout, way.call.pad, way.call.after)


def _quoted(value: Any, style: Quoted) -> str:
    """A value as it stands between quotes."""
    if isinstance(value, str):
        return value
    return (
        repr(value)
        if (style.python and not isinstance(value, int | float)) or isinstance(value, bool)
        else to_json(value)
    )


def _parameters(value: dict[str, Any], layout: Layout, pad: str, after: str) -> str:
    return "".join(
        _element(layout.begin + layout.key(key) + layout.after_key, item, key, layout, pad) + after
        for key, item in value.items()
    )


def _element(head: str, value: Any, key: str, layout: Layout, pad: str) -> str:
    """One value in its markup."""
    match value:
        case str():
            kind, text = "string", to_json(value) if layout.quoted else value
        case bool():
            kind, text = "boolean", to_json(value)
        case None:
            kind, text = "null", "null"
        case dict():
            kind, text = "object", _parameters(value, layout, pad, "") if layout.item else to_json(value)
        case list():
            items = (_element(layout.item, item, "item", layout, pad) for item in value)
            kind, text = "array", "".join(items) if layout.item else to_json(value)
        case _:
            kind, text = "number", to_json(value)
    return head + "".join(layout.middle[kind]) + pad + text + pad + layout.stop + layout.tail.format(key)


def _check_free(text: str, marks: Sequence[str], path: str) -> None:
    for mark in marks:
        if mark and mark in text:
            problem = f"the text holds {mark!r}, which the family takes for markup"
            raise DialectError(problem, path, "write it otherwise")


def _check_begin(way: ToolCalls, content: str) -> None:
    """The end of the content may not complete a trigger with the beginning of the call behind it."""
    before = content + way.spacing
    at = (before + (way.begin or way.call_begin)).find(way.opens_with)
    if content and not way.named and 0 <= at < len(before):
        _check_free(before[at:] + way.opens_with, (way.opens_with,), "/content")


def _check_strings(value: Any, marks: Sequence[str], path: str) -> None:
    if isinstance(value, str):
        _check_free(value, marks, path)
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_free(key, marks, path)
            _check_strings(item, marks, f"{path}/{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _check_strings(item, marks, f"{path}/{index}")
