"""Patterns whose texts are measured: the states of the pattern alone, and the number of characters beside them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

from dovetail.errors import LimitError
from dovetail.grammar import ir
from dovetail.grammar.regex.automaton import Automaton, symbols_of
from dovetail.grammar.regex.minimal import minimise
from dovetail.grammar.regex.product import product
from dovetail.grammar.regex.rules import spans
from dovetail.grammar.regex.syntax import Syntax

MAX_STATES = 100  # the more of them, the less often one is seen again

Ranges = tuple[tuple[int, int], ...]
States = tuple[tuple[tuple[tuple[Ranges, int], ...], bool], ...]
Limits = tuple[int, int | None]


def measured(
    wanted: Sequence[Syntax], barred: Sequence[Syntax], limits: Limits, read: Callable[[ir.Node], Syntax]
) -> tuple[States, Limits] | None:
    """The automaton of the texts that all of `wanted` and none of `barred` match, and which of the limits it needs.

    None where the number of characters left does not tell whether a text can be completed, or where states are many.
    No states where nothing matches.
    """
    low, high = limits
    try:
        automaton = minimise(product(wanted, barred, read, exits=False, most=MAX_STATES))
    except LimitError:
        return None
    fewest = _fewest(automaton)
    if high is not None and fewest > high:
        return (), limits
    if low <= fewest:
        low = 0
    if low and not _goes_on(automaton):
        return None
    return _states(automaton), (low, high)


def _states(automaton: Automaton) -> States:
    classes: dict[int, Ranges] = {}  # most states know the same few
    states = []
    for state, edges in enumerate(automaton.edges):
        for mask in edges.values():
            if mask not in classes:
                classes[mask] = spans([span for symbol in symbols_of(mask) for span in automaton.alphabet[symbol]])
        found = tuple([(classes[mask], target) for target, mask in edges.items()])
        states.append((found, state in automaton.accepting))
    return tuple(states)


def _fewest(automaton: Automaton) -> float:
    """How many characters the shortest text has."""
    layer, seen = {0}, {0}
    for length in count():
        if layer & automaton.accepting:
            return length
        layer = {target for state in layer for target in automaton.edges[state]} - seen
        if not layer:
            return float("inf")
        seen |= layer
    raise AssertionError("the count has no end")


def _goes_on(automaton: Automaton) -> bool:
    """Whether texts of every length go on from each state, from the fewest characters that complete one.

    From a state where a text may end that needs another such state next; from any other the way to the next one does.
    """
    return not any(automaton.accepting.isdisjoint(automaton.edges[state]) for state in automaton.accepting)
