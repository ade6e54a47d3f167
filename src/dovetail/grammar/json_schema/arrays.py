"""What the schemas that apply to one array say together about its items, and the nodes of its items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from dovetail.errors import LimitError
from dovetail.grammar.ir import EMPTY, NOTHING, Call, Node, Rule, Seq, alt, is_nothing

from .facts import Located, at_least, at_most, count, schemas
from .own import PREFIX_AT, SOME_ITEM, TAIL
from .pointers import Where
from .reading import Reader

MAX_STATES = 2_000
MAX_UNIQUE = 8
MAX_CONTAINS = 10  # each doubles the kinds of items


@dataclass(slots=True)
class Contains:
    """From `low` to `high` of the items from `start` on keep to `nodes`."""

    nodes: list[Located]
    low: int
    high: int | None
    start: int = 0


@dataclass(slots=True)
class Items:
    """The schemas of the first items one by one, then of all others, and how many items there are."""

    prefix: list[list[Located]]
    rest: list[Located]
    low: int
    high: int | None
    contains: list[Contains] = field(default_factory=list)
    unique: Where | None = None  # where it says that no two items are equal

    def nodes(self, index: int) -> list[Located]:
        """The schemas of an item."""
        return self.prefix[index] if index < len(self.prefix) else self.rest


def items(parts: tuple[Located, ...]) -> Items:
    """The items of an array."""
    found = Items([], [], 0, None)
    prefixes: list[tuple[list[Located], list[Located]]] = []
    for schema, where in parts:
        if "minItems" in schema:
            found.low = at_least(found.low, schema["minItems"], "minItems", where)
        if "maxItems" in schema:
            found.high = at_most(found.high, schema["maxItems"], "maxItems", where)
        if schema.get("uniqueItems") is True:
            found.unique = where
        rest = [(schema["items"], (where, "items"))] if "items" in schema else []
        listed = schemas(schema["prefixItems"], "prefixItems", where, empty=True) if "prefixItems" in schema else ()
        at = (where, schema.get(PREFIX_AT, "prefixItems"))
        prefixes.append(([(one, (at, i)) for i, one in enumerate(listed)], rest))
        if TAIL in schema:
            tail = schema[TAIL]
            prefixes.append(([(True, ())] * tail.start, [(tail.schema, tail.where)]))
        if SOME_ITEM in schema:
            some = schema[SOME_ITEM]
            found.contains.append(Contains([(some.schema, some.where)], 1, None, some.start))
        if "contains" in schema:
            fewest = count(schema.get("minContains", 1), "minContains", where)
            most = count(schema["maxContains"], "maxContains", where) if "maxContains" in schema else None
            found.contains.append(Contains([(schema["contains"], (where, "contains"))], fewest, most))
    length = max((len(first) for first, _ in prefixes), default=0)
    found.prefix = [[one for first, rest in prefixes for one in (first[i : i + 1] or rest)] for i in range(length)]
    found.rest = [one for _, rest in prefixes for one in rest]
    found.contains = [one for one in found.contains if one.low or one.high is not None]
    return found


class _State(NamedTuple):
    """How far an array has come: its number of items, as far as that matters, and how often each `contains` was met."""

    length: int
    met: tuple[int, ...]


class Counting:
    """The items of an array that are counted in several ways, as one rule for each state of the counting."""

    def __init__(self, shape: Items, reader: Reader, value: Callable[[list[Located]], Node]) -> None:
        self._shape = shape
        self._reader = reader
        self._value = value
        self._rules: dict[_State, Rule] = {}
        self._pending: list[_State] = []
        bounds = [len(shape.prefix), shape.low, *(one.start for one in shape.contains)]
        self._longest = max(bounds) if shape.high is None else shape.high

    def nodes(self, between: tuple[Node, ...], after: tuple[Node, ...], close: Node) -> Node:
        """The items with `between` before all but the first and `after` behind each, then `close`."""
        if len(self._shape.contains) > MAX_CONTAINS:
            problem = f"{len(self._shape.contains)} demands on what an array contains are more than {MAX_CONTAINS}"
            raise LimitError(problem, "", "use fewer contains")
        first = _State(0, (0,) * len(self._shape.contains))
        node = self._following(first, (), after, close)
        while self._pending:
            state = self._pending.pop()
            self._rules[state].body = self._following(state, between, after, close)
        return node

    def _following(self, state: _State, between: tuple[Node, ...], after: tuple[Node, ...], close: Node) -> Node:
        ways: list[Node] = [close] if self._may_end(state) else []
        for item, reached in self._steps(state):
            ways.append(Seq((*between, item, *after, Call(self._rule(reached)))))
        return alt(*ways)

    def _rule(self, state: _State) -> Rule:
        if state not in self._rules:
            if len(self._rules) >= MAX_STATES:
                problem = f"counting the items of an array takes more than {MAX_STATES} states"
                raise LimitError(problem, "", "lower minItems, maxItems, minContains or maxContains")
            self._rules[state] = Rule("items", EMPTY)
            self._pending.append(state)
        return self._rules[state]

    def _may_end(self, state: _State) -> bool:
        counted = zip(state.met, self._shape.contains, strict=True)
        return state.length >= self._shape.low and all(met >= one.low for met, one in counted)

    def _steps(self, state: _State) -> list[tuple[Node, _State]]:
        if self._shape.high is not None and state.length >= self._shape.high:
            return []
        nodes = self._shape.nodes(state.length)
        length = min(state.length + 1, self._longest)
        found: list[tuple[Node, _State]] = []
        for hits in product((False, True), repeat=len(self._shape.contains)):
            demands: list[Located] = list(nodes)
            met: list[int] = []
            for hit, before, one in zip(hits, state.met, self._shape.contains, strict=True):
                counts = state.length >= one.start and (one.high is not None or before < one.low)
                if hit and (not counts or before == one.high):
                    break
                if hit:
                    demands += one.nodes
                elif counts and one.high is not None:
                    demands += ((self._reader.negated(schema), where) for schema, where in one.nodes)
                most = one.low if one.high is None else one.high
                met.append(min(before + hit, most))
            else:
                node = self._value(demands)
                if not is_nothing(node):
                    found.append((node, _State(length, tuple(met))))
        return found


def distinct(
    values: list[Node], low: int, high: int | None, between: tuple[Node, ...], after: tuple[Node, ...], close: Node
) -> Node:
    """Some of `values` in any order, each at most once, with `between` before all but the first; then `close`."""
    most = len(values) if high is None else min(high, len(values))
    rules: dict[frozenset[int], Rule] = {}

    def following(seen: frozenset[int]) -> Node:
        ways: list[Node] = [close] if len(seen) >= low else []
        if len(seen) < most:
            for index, value in enumerate(values):
                if index not in seen:
                    ways.append(Seq((*(between if seen else ()), value, *after, rest(seen | {index}))))
        return alt(*ways)

    def rest(seen: frozenset[int]) -> Node:
        if seen not in rules:
            rules[seen] = Rule("items", EMPTY)
            rules[seen].body = following(seen)
        return Call(rules[seen])

    return following(frozenset()) if low <= most else NOTHING
