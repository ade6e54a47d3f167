"""Members of an object in order: what may follow what, with or without a comma between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from dovetail.errors import LimitError
from dovetail.grammar.ir import Alt, AnyOrder, Node, Repeat, Seq, alt, optional, unfolded
from dovetail.grammar.json_schema.values.states import States, Steps

MAX_ANY_ORDER = 4096
MAX_COUNTED = 10  # where the members are counted too
MAX_FIRST = 64  # where there has to be one of them
MAX_STATES = 5_000

Parts = tuple[Node, ...]


class Member(NamedTuple):
    """One key with its value, whitespace after it included."""

    parts: Parts
    required: bool


class Group(NamedTuple):
    """The members of one object: the declared ones, then `others` of `extra` at most and each of `witnesses` once.

    All together they are from `low` to `high`.
    """

    members: Sequence[Member]
    extra: Parts = ()
    witnesses: Sequence[Parts] = ()
    low: int = 0
    high: int | None = None
    others: int | None = None  # None: any number, or more than matters
    between: bool = False  # those of `extra` and the witnesses may also come before declared ones


def counted(group: Group, low: int, high: int | None) -> Group | None:
    """The group with low to high members, in the simplest form; None where that is impossible."""
    required = [member for member in group.members if member.required]
    others = group.others if group.extra else 0
    size = None if others is None else len(group.members) + len(group.witnesses) + others
    fewest = len(required) + len(group.witnesses)
    if (high is not None and high < max(low, fewest)) or (size is not None and low > size):
        return None
    if high is not None and size is not None and high >= size:
        high = None
    if high is not None and high == len(required) and not group.witnesses:
        return Group(required)
    if low == size and not group.witnesses and not others:
        return Group([Member(member.parts, True) for member in group.members])
    return group._replace(low=0 if low <= fewest else low, high=high)


def ordered(group: Group, comma: Parts, close: Node) -> list[Node]:
    """The members as declared, those that are not required skippable, then the extra ones and `close`."""
    if group.low or group.high is not None or group.witnesses:
        return [_Counting(group, comma, close, free=False).start()]
    members = group.members
    anchor = next((index for index, member in enumerate(members) if member.required), None)
    if anchor is None and comma:
        return [*_all_optional(group, comma), close]
    parts: list[Node] = []
    for index, member in enumerate(members):
        if group.extra and group.between:
            last = anchor is not None and index > anchor
            parts.append(Repeat(Seq((*comma, *group.extra) if last else (*group.extra, *comma)), 0, None))
        # Before the first required member the comma follows, after it the comma leads: so each is written once.
        before = comma if anchor is not None and index > anchor else ()
        after = comma if anchor is not None and index < anchor else ()
        if member.required:
            parts += before
            parts += member.parts
        else:
            parts.append(Repeat(Seq((*before, *member.parts, *after)), 0, 1))
    if group.extra:
        parts.append(Repeat(Seq((*comma, *group.extra)), 0, None))
    return [*parts, close]


def _all_optional(group: Group, comma: Parts) -> list[Node]:
    """Nothing or a comma-separated choice; halving keeps the size at n log n where a list per first member has n^2."""
    more = Repeat(Seq((*comma, *group.extra)), 0, None)
    extra = [(Seq((*group.extra, more)), more)] if group.extra else []
    entries: list[tuple[Node, Node]] = []
    for member in group.members:
        entries += extra if group.between else []
        entries.append((Seq(member.parts), optional(Seq((*comma, *member.parts)))))
    entries += extra
    alone, leading = [one for one, _ in entries], [one for _, one in entries]

    def choice(start: int, end: int) -> Node:
        if end - start == 1:
            return alone[start]
        middle = (start + end) // 2
        return Alt((Seq((choice(start, middle), *leading[middle:end])), choice(middle, end)))

    return [optional(choice(0, len(alone)))] if alone else []


def any_order(group: Group, comma: Parts, close: Node) -> Node:
    """Each member at most once in any order, the required ones exactly once, extra ones anywhere, then `close`."""
    count = len(group.members) + len(group.witnesses)
    members = [(Seq(member.parts), member.required) for member in group.members]
    members += ((Seq(parts), True) for parts in group.witnesses)
    extra = Seq(group.extra) if group.extra else None
    if group.low == 1 and group.high is None and count <= MAX_FIRST:
        return _some(tuple(members), extra, Seq(comma), close)
    most = MAX_COUNTED if group.low or group.high is not None else MAX_ANY_ORDER
    if count > most:
        what = "with minProperties or maxProperties " if most == MAX_COUNTED else ""
        problem = f"any_order is limited to {most} properties {what}in one object, this one has {count}"
        raise LimitError(problem, "", "leave any_order out or split the object")
    # Where keys are few, some must be left for the witnesses.
    scarce = group.witnesses and group.others is not None and count <= MAX_COUNTED
    if most == MAX_COUNTED or scarce:
        return _Counting(group, comma, close, free=True).start()
    return AnyOrder(tuple(members), extra, Seq(comma), close)


def _some(members: tuple[tuple[Node, bool], ...], extra: Node | None, comma: Node, close: Node) -> Node:
    """At least one member, none of which is required: a first one and then any others."""
    _, *ways = unfolded(AnyOrder(members, extra, comma, close)).parts  # all but the end
    return alt(*ways)


class _State(NamedTuple):
    """The declared members that cannot come any more, the number of members as far as it matters, witnesses to come.

    Members and witnesses are bits. Where there are only so many extra members, `beside` counts those that have come.
    """

    past: int
    number: int
    waiting: int
    beside: int = 0


def _led(lead: Parts, group: Group) -> tuple[list[Parts], Parts, list[Parts]]:
    """The members, one that is not declared, and the witnesses, each behind `lead`."""
    members = [(*lead, *member.parts) for member in group.members]
    return members, (*lead, *group.extra) if group.extra else (), [(*lead, *parts) for parts in group.witnesses]


class _Counting:
    """A rule for each state of an object whose members are counted, or free in their order."""

    def __init__(self, group: Group, comma: Parts, close: Node, *, free: bool) -> None:
        self._group = group
        self._close = close
        self._free = free
        self._first, self._later = _led((), group), _led(comma, group)
        # Whether there are members at all decides about the comma, even where nothing is counted.
        self._most = max(group.low, 1) if group.high is None else group.high
        self._needed = sum(1 << index for index, member in enumerate(group.members) if member.required)
        # The end is inside, so that a rule ends itself.
        fix = "require the properties by name, or drop the counts"
        self._states = States("members", self._following, MAX_STATES, "counting the members of an object", fix)

    def start(self) -> Node:
        return self._states.start(_State(0, 0, (1 << len(self._group.witnesses)) - 1), self._close)

    def _following(self, state: _State) -> tuple[bool, Steps[_State]]:
        past, number, waiting, _ = state
        group = self._group
        ends = not self._needed & ~past and not waiting and number >= group.low
        return ends, self._next(state) if group.high is None or number < group.high else []

    def _next(self, state: _State) -> Steps[_State]:
        """The members that may come, with the state behind them."""
        past, number, waiting, beside = state
        group = self._group
        members, extra, witnesses = self._later if number else self._first
        steps: Steps[_State] = []
        number = min(number + 1, self._most)
        for index, parts in enumerate(members):
            bit = 1 << index
            before = bit - 1  # in order, those before it are past as well
            if not past & bit and (self._free or not self._needed & before & ~past):
                gone = past | bit | (0 if self._free else before)
                steps.append((parts, _State(gone, number, waiting, beside)))
        loose = self._free or group.between
        if loose or not self._needed & ~past:
            gone = past if loose else (1 << len(members)) - 1
            most = group.others
            if extra and (most is None or beside < most):
                steps.append((extra, _State(gone, number, waiting, beside + (most is not None))))
            if waiting:
                for index, parts in enumerate(witnesses):
                    if waiting >> index & 1:
                        steps.append((parts, _State(gone, number, waiting ^ 1 << index, beside)))
        return steps
