"""What a chat template may use up: steps of work, and characters that it makes."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextvars import ContextVar
from datetime import datetime
from typing import Any, NamedTuple, cast

from jinja2.utils import Namespace

from dovetail.errors import LimitError

# A step is about a node of the syntax tree, 50 ns. A template that is given more may work more, and some real ones go
# over all messages at each of them.
_STEPS, _STEPS_PER_NODE, _MOST_STEPS = 2_000_000, 2_000, 500_000_000
_ROOM, _ROOM_PER_CHARACTER = 1 << 22, 64
_MAX_BITS = 1 << 14
_POINTER = 8  # bytes, beside characters of one byte or more
_FIX = "is the template to be trusted? Real ones use a small part of what is allowed"


class Weight(NamedTuple):
    """How much a value holds, shared parts counted wherever they stand."""

    nodes: int
    characters: int
    depth: int

    @property
    def size(self) -> int:
        """About the length of its text."""
        return self.nodes * 4 + self.characters


class Budget:
    """The budget of one render, or of one compilation; nothing is ever given back."""

    __slots__ = ("clock", "room", "steps")

    def __init__(self, clock: Callable[[], datetime] = datetime.now) -> None:
        self.clock = clock
        self.steps = _STEPS
        self.room = _ROOM

    def allow(self, values: Any) -> None:
        """Widen the budget by what the caller gives to the template."""
        self.steps = _MOST_STEPS
        weight = self.weigh(values)
        self.steps = min(_STEPS + _STEPS_PER_NODE * weight.nodes + weight.nodes**2 // 4, _MOST_STEPS)
        self.room = _ROOM + _ROOM_PER_CHARACTER * weight.size

    def spend(self, steps: int) -> None:
        """Count work."""
        self.steps -= steps
        if self.steps < 0:
            raise LimitError("the chat template works too long", "", _FIX)

    def make(self, size: int) -> None:
        """Count characters that are made."""
        self.room -= size
        if self.room < 0:
            raise LimitError("the chat template makes too much text", "", _FIX)

    def need(self, size: int) -> None:
        """Refuse what is about to be made and would be too large."""
        if size > self.room:
            raise LimitError("the chat template makes too much text", "", _FIX)

    def number(self, bits: int) -> None:
        """Refuse integers that take long to reckon with."""
        if bits > _MAX_BITS:
            raise LimitError("the chat template makes a number that is too large", "", _FIX)

    def scan(self, size: int) -> None:
        """Count a pass over text."""
        if size > 64:
            self.spend(size >> 6)

    def keep(self, value: Any) -> Any:
        """Count a value that was just made."""
        if isinstance(value, _TEXTS):
            self.make(len(value))
        elif isinstance(value, list | tuple | dict):
            self.make(len(value) * _POINTER)
        elif isinstance(value, int):
            self.number(value.bit_length())
        return value

    def weigh(self, value: Any) -> Weight:
        """Walk over a value, level by level; the walk is work too, so that what has no end ends."""
        nodes = characters = depth = 0
        level = [value]
        while level:
            depth += 1
            nodes += len(level)
            below: list[Any] = []
            for item in level:
                if isinstance(item, _TEXTS):
                    characters += len(item)
                elif (parts := _parts(item)) is not None:
                    # Before the parts are taken: a list may hold itself a million times.
                    self.spend(2 * len(parts) + 1)
                    below.extend(parts)
                    if isinstance(item, dict):
                        below.extend(item.values())
            level = below
        self.scan(characters)  # who weighs a value is about to read, compare or hash its texts
        return Weight(nodes, characters, depth)


def _parts(value: Any) -> Collection[Any] | None:
    if isinstance(value, _CONTAINERS):
        return cast("Collection[Any]", value)
    if isinstance(value, Namespace):
        BUDGET.get().spend(20)
        # A namespace answers for what it holds, so its own attribute is asked for behind its back.
        return [object.__getattribute__(value, "_Namespace__attrs")]
    return None


# Tuples, because these tests run at every operation and a union of types takes twice as long.
_TEXTS = (str, bytes)
_VIEWS: tuple[type, ...] = (type({}.keys()), type({}.values()), type({}.items()))
_CONTAINERS = (list, tuple, dict, set, frozenset, *_VIEWS)
BUDGET: ContextVar[Budget] = ContextVar("budget")
