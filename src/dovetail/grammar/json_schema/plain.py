"""The objects of most schemas: their keys are declared in one schema, which says little else.

What comes out is what the general way gives, in less time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dovetail.grammar.ir import AnyOrder, Lit, Node, Repeat, Seq, is_nothing

from . import text
from .members import MAX_ANY_ORDER
from .pointers import Where
from .reading import KEYWORDS
from .shapes import Extra

if TYPE_CHECKING:
    from .lowering import Lowering

OBJECT_KEYWORDS = {"type", "properties", "required", "additionalProperties"}
_OPEN, _CLOSE = Lit(b"{"), Lit(b"}")


def plain_object(lowering: Lowering, schema: dict[str, Any], where: Where) -> Node | None:
    """The object of a schema; None where it is not that plain, or the general way has to tell what is wrong with it."""
    declared, required = schema.get("properties", {}), schema.get("required", [])
    if type(declared) is not dict or type(required) is not list or len(declared) > MAX_ANY_ORDER:
        return None
    needed = {name for name in required if type(name) is str}
    if len(needed) < len(required) or not needed <= declared.keys() or lowering.pieces.excludes:
        return None
    if (schema.keys() & KEYWORDS) - OBJECT_KEYWORDS:
        return None
    more = schema.get("additionalProperties", not (lowering.strict and "properties" in schema))
    if lowering.free_order:
        return _free(lowering, declared, needed, more, where)
    return _ordered(lowering, declared, needed, where) if more is False and needed else None


def _free(lowering: Lowering, declared: dict[str, Any], needed: set[str], more: Any, where: Where) -> Node | None:
    """Members in any order, and others between them unless there are none."""
    members: list[tuple[Node, bool]] = []
    needs: list[Node] = []
    at = (where, "properties")
    for name, node in declared.items():
        if type(node) is not dict:
            return None
        value = lowering.single(node, (at, name))
        member = lowering.member(name, value, name in needed)
        if member is None:
            return None
        members.append((Seq(member.parts), member.required))
        if member.required:
            needs.append(value)
    extra: tuple[Node, ...] = ()
    if more is not False:
        others = [] if more is True else [(more, (where, "additionalProperties"))]
        extra = lowering.extra(list(declared), [Extra(None, others)], False)
    lowering.needs.add(needs)
    pieces = lowering.pieces
    inside = AnyOrder(tuple(members), Seq(extra) if extra else None, Seq(pieces.comma), _CLOSE)
    return Seq((_OPEN, *pieces.ws, inside))


def _ordered(lowering: Lowering, declared: dict[str, Any], needed: set[str], where: Where) -> Node | None:
    """Some members that are required and no others, in their order."""
    ws, comma, colon = lowering.pieces.ws, lowering.pieces.comma, lowering.pieces.colon
    at = (where, "properties")
    parts: list[Node] = [_OPEN, *ws]
    needs: list[Node] = []
    anchored = False
    for name, node in declared.items():
        if type(node) is not dict or is_nothing(value := lowering.single(node, (at, name))):
            return None
        key = text.quoted(name)
        # Before the first required member the comma follows, after it the comma leads.
        if name in needed:
            needs.append(value)
            parts += (*comma, key, colon, value, *ws) if anchored else (key, colon, value, *ws)
            anchored = True
        elif anchored:
            parts.append(Repeat(Seq((*comma, key, colon, value, *ws)), 0, 1))
        else:
            parts.append(Repeat(Seq((key, colon, value, *ws, *comma)), 0, 1))
    parts.append(_CLOSE)
    lowering.needs.add(needs)
    return Seq(tuple(parts))
