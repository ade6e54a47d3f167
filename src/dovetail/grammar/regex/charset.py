"""The characters that some patterns tell apart: symbols, and sets of them as the bits of an integer."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import NoReturn

from dovetail.errors import LimitError
from dovetail.grammar import ir

MAX_CLASSES = 5_000
MAX_WHOLE = 400_000
_SURROGATES = (0xD800, 0xDFFF)

Ranges = tuple[tuple[int, int], ...]


def alphabet(classes: Collection[Ranges], budget: Budget) -> tuple[list[Ranges], dict[Ranges, int]]:
    """The coarsest classes that the given ones are made of, and each given one as a mask of them."""
    if len(classes) > MAX_CLASSES:
        raise LimitError(f"the patterns tell more than {MAX_CLASSES} classes of characters apart", "", "simplify them")
    symbols = list(_symbols(classes).items())
    masks = [0] * len(classes)
    for symbol, (inside, _) in enumerate(symbols):
        budget.spend(inside.bit_count())
        for at in bits(inside):
            masks[at] |= 1 << symbol
    return [tuple(ranges) for _, ranges in symbols], dict(zip(classes, masks, strict=True))


def _symbols(classes: Collection[Ranges]) -> dict[int, list[tuple[int, int]]]:
    """The characters by the classes that they are in, as a mask; surrogates are none, unless beside others."""
    turns = {0: 0, ir.MAX_CODE_POINT + 1: 0}  # the classes that begin or end before a character
    for at, ranges in enumerate(classes):
        for low, high in ranges:
            turns[low] = turns.get(low, 0) ^ 1 << at
            turns[high + 1] = turns.get(high + 1, 0) ^ 1 << at
    symbols: dict[int, list[tuple[int, int]]] = {}
    inside = start = 0
    for code, change in sorted(turns.items()):
        if start < code and not (start >= _SURROGATES[0] and code - 1 <= _SURROGATES[1]):
            symbols.setdefault(inside, []).append((start, code - 1))
        inside ^= change
        start = code
    return symbols


def within(symbols: Sequence[Ranges], ranges: Ranges) -> int:
    """The symbols inside of a class that they make up."""
    return sum(
        1 << at for at, ((first, _), *_) in enumerate(symbols) if any(low <= first <= high for low, high in ranges)
    )


def symbol_of(symbols: Sequence[Ranges], code: int) -> int:
    """The symbol that a character is, as a mask."""
    inside = (at for at, ranges in enumerate(symbols) if any(low <= code <= high for low, high in ranges))
    return 1 << next(inside, len(symbols))


def bits(mask: int) -> Iterator[int]:
    """The places of the bits that are set, the lowest first."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def characters(symbols: list[Ranges], mask: int) -> Ranges:
    """The characters of the symbols in a mask."""
    return ir.chars(span for symbol in bits(mask) for span in symbols[symbol]).ranges


class Budget:
    """How much work may still be done for one question, and for all of those that `limited` holds together."""

    def __init__(self, work: int) -> None:
        self._left = work
        self._whole = _whole.get()

    def spend(self, work: int) -> None:
        """Note that some work is done; refuse what goes beyond."""
        self._left -= work
        if self._left < 0:
            self.refuse()
        if self._whole is not None:
            self._whole.spend(work)

    def refuse(self) -> NoReturn:
        """Say that the work is too much."""
        problem = "the patterns need too many states together"
        raise LimitError(problem, "", "use smaller limits, or fewer or simpler patterns and lookarounds")


_whole: ContextVar[Budget | None] = ContextVar("_whole", default=None)


@contextmanager
def limited() -> Iterator[None]:
    """Hold all work on patterns that is done inside, about a second of it, within one budget."""
    token = _whole.set(Budget(MAX_WHOLE))
    try:
        yield
    finally:
        _whole.reset(token)
