"""What several patterns say together: all of some, none of others, and a number of characters."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dovetail._core import product as together
from dovetail.errors import LimitError
from dovetail.grammar import ir
from dovetail.grammar.regex.automaton import Automaton
from dovetail.grammar.regex.lengths import narrow
from dovetail.grammar.regex.syntax import Syntax

MAX_STATES = 10_000

Limits = tuple[int, int | None]


def product(
    wanted: Sequence[Syntax],
    barred: Sequence[Syntax],
    read: Callable[[ir.Node], Syntax],
    limits: Limits = (0, None),
    *,
    split: bool = False,
    exits: bool = True,
    most: int = MAX_STATES,
) -> Automaton:
    """The automaton of the texts that all of `wanted` and none of `barred` match, of low to high characters.

    A state holds what is left of each pattern. It is left for the pattern itself as soon as only one has a say, so that
    its counts stay counts; not without `exits`. The automaton is deterministic, unless `split`: then each way through
    the first pattern has states of its own.
    """
    try:
        return Automaton(*together([*wanted], [*barred], read, narrow, limits, split, exits, most))
    except LimitError as error:
        if error.fix:
            raise
        raise LimitError(error.problem, "", "use smaller limits or fewer patterns") from None
