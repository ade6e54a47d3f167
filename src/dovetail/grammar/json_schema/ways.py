"""Several ways to write one object: what they begin with is written once, and too many in any order are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from dovetail.errors import LimitError
from dovetail.grammar.ir import AnyOrder, Node, Seq, alt

from .pointers import Where, render

MAX_WAYS = 20  # in any order: they are told apart late, and a generation follows them all
_MAX_DEPTH = 50  # of choices inside of each other

_Members = dict[Node, bool]  # and whether each has to be there


def choice(ways: Sequence[Node], where: Where) -> Node:
    """Any one of `ways`."""
    others: dict[tuple[Node, ...], None] = {}
    orders: dict[tuple[Node, ...], list[_Members]] = {}
    for way in ways:
        parts = way.parts if isinstance(way, Seq) else (way,)
        if parts and isinstance(order := parts[-1], AnyOrder):
            orders.setdefault((*parts[:-1], replace(order, members=())), []).append(dict(order.members))
        else:
            others[parts] = None
    count = 0
    for (*before, order), several in orders.items():
        assert isinstance(order, AnyOrder)
        for members in _merged(several):
            others[*before, replace(order, members=tuple(members.items()))] = None
            count += 1
    if count > MAX_WAYS:
        problem = f"there are {count} ways to meet this schema with keys in any order"
        raise LimitError(problem, render(where), "leave any_order out, or use branches that a constant tells apart")
    return _factored(list(others), 0)


def _merged(ways: list[_Members]) -> list[_Members]:
    """One way for those that differ in one member, which is there or not in it."""
    for member in dict.fromkeys(member for way in ways for member in way) if len(ways) > 1 else ():
        groups: dict[frozenset[tuple[Node, bool]], list[_Members]] = {}
        for way in ways:
            rest = frozenset((one, needed) for one, needed in way.items() if one != member)
            groups.setdefault(rest, []).append(way)
        ways = [_joined(group, member) for group in groups.values()]
    return ways


def _joined(ways: list[_Members], member: Node) -> _Members:
    first = next((way for way in ways if member in way), None)
    return ways[0] if first is None else {**first, member: all(way.get(member) for way in ways)}


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
