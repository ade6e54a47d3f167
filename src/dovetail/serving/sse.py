"""Server-sent events, as text."""

from __future__ import annotations

from collections.abc import Iterable

from dovetail.messages import Wire, to_json


def encode(wires: Iterable[Wire], named: bool) -> str:
    """Wire objects as events; where `named`, each with its type beside it."""
    if named:
        return "".join(f"event: {wire['type']}\ndata: {to_json(wire)}\n\n" for wire in wires)
    return "".join(f"data: {to_json(wire)}\n\n" for wire in wires)
