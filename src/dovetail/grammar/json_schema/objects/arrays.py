"""What the schemas that apply to one array say together about its items, and the nodes of its items."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from dovetail.errors import LimitError
from dovetail.grammar.ir import EMPTY, Call, Node, Parts, Repeat, Rule, Seq, is_nothing, optional, seq
from dovetail.grammar.json_schema.read.constraints import Located, at_least, at_most, count, schemas
from dovetail.grammar.json_schema.read.keywords import PREFIX_AT, SOME_ITEM, TAIL
from dovetail.grammar.json_schema.read.pointers import Where
from dovetail.grammar.json_schema.read.reader import Reader
from dovetail.grammar.json_schema.values.states import States, Steps

MAX_STATES = 2_000
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
    shape = Items([], [], 0, None)
    prefixes: list[tuple[list[Located], list[Located]]] = []
    for schema, where in parts:
        if "minItems" in schema:
            shape.low = at_least(shape.low, schema["minItems"], "minItems", where)
        if "maxItems" in schema:
            shape.high = at_most(shape.high, schema["maxItems"], "maxItems", where)
        if schema.get("uniqueItems") is True:
            shape.unique = where
        rest = [(schema["items"], (where, "items"))] if "items" in schema else []
        listed = schemas(schema["prefixItems"], "prefixItems", where, empty=True) if "prefixItems" in schema else ()
        at = (where, schema.get(PREFIX_AT, "prefixItems"))
        prefixes.append(([(one, (at, i)) for i, one in enumerate(listed)], rest))
        if TAIL in schema:
            tail = schema[TAIL]
            prefixes.append(([(True, ())] * tail.start, [(tail.schema, tail.where)]))
        if SOME_ITEM in schema:
            some = schema[SOME_ITEM]
            shape.contains.append(Contains([(some.schema, some.where)], 1, None, some.start))
        if "contains" in schema:
            fewest = count(schema.get("minContains", 1), "minContains", where)
            most = count(schema["maxContains"], "maxContains", where) if "maxContains" in schema else None
            shape.contains.append(Contains([(schema["contains"], (where, "contains"))], fewest, most))
    length = max((len(first) for first, _ in prefixes), default=0)
    shape.prefix = [[one for first, rest in prefixes for one in (first[i : i + 1] or rest)] for i in range(length)]
    shape.rest = [one for _, rest in prefixes for one in rest]
    shape.contains = [one for one in shape.contains if one.low or one.high is not None]
    return shape


class _State(NamedTuple):
    """How far an array has come: its number of items, as far as that matters, and how often each `contains` was met."""

    started: bool
    length: int
    met: tuple[int, ...]


class Counting:
    """The items of an array that are counted in several ways, as one rule for each state of the counting."""

    def __init__(self, shape: Items, reader: Reader, value: Callable[[list[Located]], Node]) -> None:
        self._shape = shape
        self._reader = reader
        self._value = value
        bounds = [len(shape.prefix), shape.low, *(one.start for one in shape.contains)]
        self._longest = max(bounds) if shape.high is None else shape.high

    def nodes(self, between: tuple[Node, ...], after: tuple[Node, ...], close: Node) -> Node:
        """The items with `between` before all but the first and `after` behind each, then `close`."""
        if len(self._shape.contains) > MAX_CONTAINS:
            problem = f"{len(self._shape.contains)} demands on what an array contains are more than {MAX_CONTAINS}"
            raise LimitError(problem, "", "use fewer contains")

        def following(state: _State) -> tuple[bool, Steps[_State]]:
            lead = between if state.started else ()
            return self._may_end(state), [((*lead, item, *after), reached) for item, reached in self._steps(state)]

        fix = "lower minItems, maxItems, minContains or maxContains"
        states = States("items", following, MAX_STATES, "counting the items of an array", fix)
        return states.start(_State(False, 0, (0,) * len(self._shape.contains)), close)

    def _may_end(self, state: _State) -> bool:
        counted = zip(state.met, self._shape.contains, strict=True)
        return state.length >= self._shape.low and all(met >= one.low for met, one in counted)

    def _steps(self, state: _State) -> list[tuple[Node, _State]]:
        if self._shape.high is not None and state.length >= self._shape.high:
            return []
        nodes = self._shape.nodes(state.length)
        length = min(state.length + 1, self._longest)
        steps: list[tuple[Node, _State]] = []
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
                    steps.append((node, _State(True, length, tuple(met))))
        return steps


def more_items(item: Node, low: int, high: int | None, comma: Parts, ws: Parts) -> Node:
    """Items with their commas; where they are counted, they get a rule of their own."""
    if high is not None and high <= 0:
        return EMPTY
    body = Seq((*comma, item, *ws))
    if low == 0 and high is None:
        return Repeat(body, 0, None)
    return Repeat(Call(Rule("item", body)), low, high)


def in_sequence(first: list[Node], tail: Node, low: int, comma: Parts, ws: Parts) -> Node:
    """The items of `first` and `tail` behind them; from the `low`-th item on all may be missing."""
    node = tail
    for index in range(len(first) - 1, -1, -1):
        node = seq(*(comma if index else ()), first[index], *ws, node)
        if index >= low:
            node = optional(node)
    return node
