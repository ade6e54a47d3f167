"""Members of an object in order: what may follow what, with or without a comma between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dovetail.errors import LimitError
from dovetail.grammar.ir import EMPTY, Alt, Call, Node, Repeat, Rule, Seq, alt, optional, star

MAX_ANY_ORDER = 6

Parts = tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Member:
    """One key with its value, whitespace after it included."""

    parts: Parts
    required: bool


def ordered(members: Sequence[Member], extra: Parts, comma: Parts) -> list[Node]:
    """The members as declared, those that are not required skippable, then any number of `extra`."""
    anchor = next((index for index, member in enumerate(members) if member.required), None)
    if anchor is None and comma:
        return _all_optional(members, extra, comma)
    parts: list[Node] = []
    for index, member in enumerate(members):
        # Before the first required member the comma follows, after it the comma leads: so each is written once.
        before = comma if anchor is not None and index > anchor else ()
        after = comma if anchor is not None and index < anchor else ()
        if member.required:
            parts += before
            parts += member.parts
        else:
            parts.append(Repeat(Seq((*before, *member.parts, *after)), 0, 1))
    if extra:
        parts.append(star(Seq((*comma, *extra))))
    return parts


def _all_optional(members: Sequence[Member], extra: Parts, comma: Parts) -> list[Node]:
    """Nothing or a comma-separated choice; halving keeps the size at n log n where a list per first member has n^2."""
    leading: list[Node] = [optional(Seq((*comma, *member.parts))) for member in members]
    alone: list[Node] = [Seq(member.parts) for member in members]
    if extra:
        leading.append(star(Seq((*comma, *extra))))
        alone.append(Seq((*extra, leading[-1])))

    def choice(start: int, end: int) -> Node:
        if end - start == 1:
            return alone[start]
        middle = (start + end) // 2
        return Alt((Seq((choice(start, middle), *leading[middle:end])), choice(middle, end)))

    return [optional(choice(0, len(alone)))] if alone else []


def any_order(members: Sequence[Member], extra: Parts, comma: Parts, close: Node) -> Node:
    """Each member at most once in any order, the required ones exactly once, `extra` anywhere, then `close`."""
    if len(members) > MAX_ANY_ORDER:
        problem = f"any_order is limited to {MAX_ANY_ORDER} properties in one object, this one has {len(members)}"
        raise LimitError(problem, "", "leave any_order out or split the object")
    needed = sum(1 << index for index, member in enumerate(members) if member.required)
    rules: dict[int, Node] = {}

    def after(seen: int) -> Node:
        """What follows a member when those in `seen` are there; the end is inside, so that the rule ends itself."""
        if seen in rules:
            return rules[seen]
        rule = Rule("members", EMPTY)
        rules[seen] = Call(rule)
        ways: list[Node] = [] if needed & ~seen else [close]
        for index, member in enumerate(members):
            if not seen >> index & 1:
                ways.append(Seq((*comma, *member.parts, after(seen | 1 << index))))
        more = (star(Seq((*comma, *extra))),) if extra else ()
        rule.body = Seq((*more, alt(*ways)))
        return rules[seen]

    first: list[Node] = [] if needed else [close]
    first += (Seq((*member.parts, after(1 << index))) for index, member in enumerate(members))
    if extra:
        first.append(Seq((*extra, after(0))))
    return alt(*first)
