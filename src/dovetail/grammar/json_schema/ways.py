"""Several ways to write one object: what they begin with is written once, and too many in any order are refused."""

from __future__ import annotations

from collections.abc import Sequence

from dovetail.errors import LimitError
from dovetail.grammar.ir import AnyOrder, Node, Seq, alt

from .pointers import Where, render

MAX_WAYS = 20  # in any order: they are told apart late, and a generation follows them all
_MAX_DEPTH = 50  # of choices inside of each other


def choice(ways: Sequence[Node], where: Where) -> Node:
    """Any one of `ways`."""
    distinct = list(dict.fromkeys(ways))
    count = sum(isinstance(way, Seq) and isinstance(way.parts[-1], AnyOrder) for way in distinct)
    if count > MAX_WAYS:
        problem = f"there are {count} ways to meet this schema with keys in any order"
        raise LimitError(problem, render(where), "leave any_order out, or use branches that a constant tells apart")
    return _factored([way.parts if isinstance(way, Seq) else (way,) for way in distinct], 0)


def _factored(ways: list[tuple[Node, ...]], depth: int) -> Node:
    """Sequences of which those with the same beginning share it: so one stack is enough until they differ."""
    if len(ways) == 1 or depth > _MAX_DEPTH:
        return alt(*[Seq(way) for way in ways])
    groups: dict[Node | None, list[tuple[Node, ...]]] = {}
    for way in ways:
        groups.setdefault(way[0] if way else None, []).append(way)
    return alt(*[_shared(group, depth) if len(group) > 1 else Seq(group[0]) for group in groups.values()])


def _shared(ways: list[tuple[Node, ...]], depth: int) -> Node:
    shortest = min(map(len, ways))
    size = next((at for at in range(shortest) if any(way[at] != ways[0][at] for way in ways)), shortest)
    rest = _factored([way[size:] for way in ways], depth + 1)
    return Seq((*ways[0][:size], *(rest.parts if isinstance(rest, Seq) else (rest,))))
