"""The objects of most schemas: all keys declared in one schema, about the others only whether there may be any.

They give what the general way gives (shapes, ways, members), in a third of the time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from dovetail.grammar.ir import AnyOrder, Call, Lit, Node, Repeat, Rule, Seq

from . import text
from .keys import declared_member, other_member
from .members import MAX_ANY_ORDER
from .shapes import UNCOMMON
from .text import Pieces

_OPEN, _CLOSE = Lit(b"{"), Lit(b"}")
_NONE: list[str] = []


class Plain(NamedTuple):
    """What such a schema says."""

    declared: dict[str, Any]
    needed: set[str]
    is_open: bool


def read_plain(schema: dict[str, Any], strict: bool) -> Plain | None:
    """None where it is no such schema, or something is wrong with it that the general way tells."""
    declared, required = schema.get("properties"), schema.get("required", _NONE)
    if not declared or type(declared) is not dict or type(required) is not list:
        return None
    if not schema.keys().isdisjoint(UNCOMMON) or not all(type(name) is str for name in required):
        return None
    needed = set(required)
    others = schema.get("additionalProperties", not strict)
    if type(others) is not bool or not needed <= declared.keys() or len(declared) > MAX_ANY_ORDER:
        return None
    return Plain(declared, needed, others)


def in_any_order(plain: Plain, values: Sequence[Node], pieces: Pieces) -> Node:
    """The members, their values as given, in whatever order."""
    members = tuple(
        [
            (Seq(declared_member(name, value, pieces)), name in plain.needed)
            for name, value in zip(plain.declared, values, strict=True)
        ]
    )
    extra = None
    if plain.is_open:
        member = other_member(list(plain.declared), pieces.key_ends[id(pieces.value)])
        extra = Seq((Call(Rule("member", member)),))
    return Seq((_OPEN, *pieces.ws, AnyOrder(members, extra, Seq(pieces.comma), _CLOSE)))


def in_order(plain: Plain, values: Sequence[Node], pieces: Pieces) -> Node | None:
    """The same as declared, where some are required and others cannot be there; None elsewhere."""
    if plain.is_open or not plain.needed:
        return None
    ws, comma, colon = pieces.ws, pieces.comma, pieces.colon
    parts: list[Node] = [_OPEN, *ws]
    anchored = False
    for name, value in zip(plain.declared, values, strict=True):
        key = text.quoted(name)
        # Before the first required member the comma follows, after it the comma leads.
        if name in plain.needed:
            parts += (*comma, key, colon, value, *ws) if anchored else (key, colon, value, *ws)
            anchored = True
        elif anchored:
            parts.append(Repeat(Seq((*comma, key, colon, value, *ws)), 0, 1))
        else:
            parts.append(Repeat(Seq((key, colon, value, *ws, *comma)), 0, 1))
    parts.append(_CLOSE)
    return Seq(tuple(parts))
