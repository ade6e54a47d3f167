"""Members of an object in order: what may follow what, with or without a comma between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dovetail.errors import LimitError
from dovetail.grammar.ir import EMPTY, Alt, Call, Node, Repeat, Rule, Seq, alt, optional

MAX_ANY_ORDER = 6

Parts = tuple[Node, ...]


class Member(NamedTuple):
    """One key with its value, whitespace after it included."""

    parts: Parts
    required: bool


class Group(NamedTuple):
    """The members of one object: the declared ones, and `extra` up to `most` times; where `nonempty`, at least one."""

    members: Sequence[Member]
    extra: Parts = ()
    most: int | None = None
    nonempty: bool = False


def counted(group: Group, low: int, high: int | None) -> Group | None:
    """The group with low to high members; None where that is impossible, an error where it takes counting."""
    required = [member for member in group.members if member.required]
    size = None if group.extra else len(group.members)
    if (high is not None and high < max(low, len(required))) or (size is not None and low > size):
        return None
    if high is not None and high == len(required):
        group = Group(required)
    elif high is not None and (size is None or high < size):
        if group.members:
            raise LimitError("maxProperties cannot be counted beside optional properties", "", "leave it out")
        group = Group((), group.extra, high)
    if low <= len(required):
        return group
    if low == 1:
        return Group(group.members, group.extra, group.most, nonempty=True)
    if low == size:
        return Group([Member(member.parts, True) for member in group.members])
    raise LimitError(f"minProperties of {low} cannot be counted", "", "require the properties by name")


def ordered(group: Group, comma: Parts) -> list[Node]:
    """The members as declared, those that are not required skippable, then the extra ones."""
    members = group.members
    anchor = next((index for index, member in enumerate(members) if member.required), None)
    if anchor is None and (comma or group.nonempty):
        return _all_optional(group, comma)
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
    if group.extra:
        parts.append(Repeat(Seq((*comma, *group.extra)), 0, group.most))
    return parts


def _all_optional(group: Group, comma: Parts) -> list[Node]:
    """Nothing or a comma-separated choice; halving keeps the size at n log n where a list per first member has n^2."""
    leading: list[Node] = [optional(Seq((*comma, *member.parts))) for member in group.members]
    alone: list[Node] = [Seq(member.parts) for member in group.members]
    if group.extra:
        more = Seq((*comma, *group.extra))
        leading.append(Repeat(more, 0, group.most))
        alone.append(Seq((*group.extra, Repeat(more, 0, None if group.most is None else group.most - 1))))

    def choice(start: int, end: int) -> Node:
        if end - start == 1:
            return alone[start]
        middle = (start + end) // 2
        return Alt((Seq((choice(start, middle), *leading[middle:end])), choice(middle, end)))

    if not alone:
        return []
    return [choice(0, len(alone)) if group.nonempty else optional(choice(0, len(alone)))]


def any_order(group: Group, comma: Parts, close: Node) -> Node:
    """Each member at most once in any order, the required ones exactly once, extra ones anywhere, then `close`."""
    members, extra = group.members, group.extra
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
        most = None if group.most is None else group.most - 1
        more = (Repeat(Seq((*comma, *extra)), 0, most),) if extra else ()
        rule.body = Seq((*more, alt(*ways)))
        return rules[seen]

    first: list[Node] = [] if needed or group.nonempty else [close]
    first += (Seq((*member.parts, after(1 << index))) for index, member in enumerate(members))
    if extra:
        first.append(Seq((*extra, after(0))))
    return alt(*first)
