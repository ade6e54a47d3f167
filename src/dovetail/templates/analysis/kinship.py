"""Whether an analyzed dialect is one of the built-in ones, and what it then knows beyond its template.

Two dialects are the same where they write the same: markers, fields and styles, white space aside. A built-in dialect
also knows what models of its family write that no template shows; all of that is read from then on.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from dovetail.dialects import Dialect, Literals, TaggedCall, ToolCalls
from dovetail.dialects import registry as dialects
from dovetail.dialects.format_builder import call_pieces
from dovetail.layouts.styles import Layout, layout_of
from dovetail.parsing.layouts import Quoted


def kin(dialect: Dialect) -> Dialect | None:
    """The built-in dialect that writes what this one writes, if there is one."""
    own = _looks(dialect)
    others = [dialects.get(name) for name in dialects.names()]
    same = [other for other in others if _looks(other, dialect) == own]
    return max(same, key=lambda other: _closeness(dialect, other), default=None)


def _closeness(dialect: Dialect, other: Dialect) -> int:
    """How much of the white space and the habits of two dialects is the same."""
    left, right = dialect.reasoning, other.reasoning
    score = sum(way == mine for way in other.calls for mine in dialect.calls) * 4
    if left and right:
        score += (left.pad == right.pad) + (left.after == right.after) + (left.ends_at_calls == right.ends_at_calls)
    mine, theirs = dialect.calls[:1], other.calls[:1]
    score += sum(a.call_begin == b.call_begin for a, b in zip(mine, theirs, strict=False)) * 2
    return score + (dialect.turn.end.strip() == other.turn.end.strip())


def adopted(dialect: Dialect, family: Dialect) -> Dialect:
    """The dialect with what its family knows beyond the template."""
    looks = [_way(way) for way in dialect.calls]
    others = tuple(way for way in family.calls if _way(way) not in looks)
    content = replace(
        dialect.content,
        begins=tuple(dict.fromkeys((*dialect.content.begins, *family.content.begins))),
        ends=tuple(dict.fromkeys((*dialect.content.ends, *family.content.ends))),
        notes=tuple(dict.fromkeys((*dialect.content.notes, *family.content.notes))),
    )
    excludes = tuple(dict.fromkeys((*dialect.excludes, *family.excludes)))
    return replace(dialect, calls=(*dialect.calls, *others), content=content, excludes=excludes)


def _looks(dialect: Dialect, like: Dialect | None = None) -> Any:
    """What a dialect writes, in a form that can be compared; of several ways to call, that which `like` has."""
    ways = [_way(way) for way in dialect.calls]
    wanted = _way(like.calls[0]) if like and like.calls else None
    reasoning = dialect.reasoning
    return (
        wanted if wanted in ways else ways[0] if ways else None,
        (_bare(reasoning.start), _bare(reasoning.end)) if reasoning else None,
        _bare(dialect.content.begins[0]),
        _bare(dialect.turn.start),
        _bare(dialect.turn.between),
    )


def _way(way: ToolCalls) -> Any:
    texts = [_bare(text) for text in (way.begin, way.call_begin, way.call_end, way.end, way.separator)]
    pieces = [_bare(piece) if isinstance(piece, str) else piece for piece in call_pieces(way.call)]
    first = pieces[0]
    if isinstance(first, str):
        texts[1] += first
        del pieces[0]
    style: Any = way.call.arguments if isinstance(way.call, TaggedCall) else "json"
    if isinstance(style, Literals | Quoted):
        style = (style.begin, style.end, style.assign, style.separator.strip())
    elif style != "json":
        layout: Layout = layout_of(style)
        style = (_bare(layout.begin), layout.middle["string"], _bare(layout.stop), layout.tail)
    return (*texts, tuple(pieces), style, way.id_template)


def _bare(text: str) -> str:
    """A text without its white space."""
    return "".join(text.split())
