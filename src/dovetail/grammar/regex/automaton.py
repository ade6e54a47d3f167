"""Automata of patterns, and the smallest one of a language."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from dovetail.grammar import ir
from dovetail.grammar.regex.charset import Ranges

MAX_WORK = 300_000


@dataclass(slots=True)
class Automaton:
    """State 0 is the start; its edges lead to other states by masks of symbols, of which `alphabet` has the characters.

    At an exit the rest of the text matches one of the patterns given there, which need no automaton.
    """

    alphabet: list[Ranges]
    edges: list[dict[int, int]]
    accepting: set[int] = field(default_factory=set)
    exits: dict[int, Sequence[ir.Node]] = field(default_factory=dict)

    def live(self) -> dict[int, int]:
        """The states from which some text is matched, and how many characters lead to an end or an exit."""
        return distances(self.sources(), self.accepting | self.exits.keys())

    def sources(self) -> list[list[int]]:
        """The states that lead to each state."""
        found: list[list[int]] = [[] for _ in self.edges]
        for state, edges in enumerate(self.edges):
            for target in edges:
                found[target].append(state)
        return found


State = TypeVar("State", bound=Hashable)


def explored(
    alphabet: list[Ranges],
    start: State,
    follow: Callable[[State, Automaton], Iterable[tuple[int, State]]],
    most: int,
    refuse: Callable[[], NoReturn],
) -> Automaton:
    """The automaton of the states that a start leads to; `follow` gives the edges of each, and notes ends and exits."""
    found = Automaton(alphabet, [])
    numbers = {start: 0}
    pending = [start]
    for state in pending:
        edges: dict[int, int] = {}
        for mask, target in follow(state, found):
            number = numbers.get(target)
            if number is None:
                number = numbers[target] = len(numbers)
                pending.append(target)
            edges[number] = edges.get(number, 0) | mask
        found.edges.append(edges)
        if len(numbers) > most:
            refuse()
    return found


def distances(edges: Sequence[Iterable[int]], starts: Iterable[int]) -> dict[int, int]:
    """The states that `starts` lead to, and by how many edges at least."""
    found = dict.fromkeys(starts, 0)
    pending = list(found)
    for state in pending:
        for target in edges[state]:
            if target not in found:
                found[target] = found[state] + 1
                pending.append(target)
    return found


def minimise(automaton: Automaton) -> Automaton:
    """The smallest deterministic automaton of the same language; no state is a dead end unless all are.

    Of a large one whose states are hard to tell apart, only the dead ends are left out.
    """
    live = automaton.live()
    if 0 not in live:
        return Automaton(automaton.alphabet, [{}])
    sources = automaton.sources()
    # Most states differ in how far it is to the end, and nearly all others in where they lead (Moore 1956).
    exits = {state: frozenset(map(id, found)) for state, found in automaton.exits.items()}
    groups = _groups(live, lambda state: (live[state], state in automaton.accepting, exits.get(state)))
    blocks = {state: block for block, states in enumerate(groups) for state in states}
    ways: dict[int, object] = {}
    dirty: set[int] = {*live}
    work = 0
    while dirty:
        ways |= {state: _way(automaton.edges[state], blocks) for state in dirty}
        moved: list[int] = []
        for block in {blocks[state] for state in dirty}:
            work += len(groups[block])
            groups[block], *others = _groups(groups[block], ways.__getitem__)
            for states in others:
                blocks.update(dict.fromkeys(states, len(groups)))
                groups.append(states)
                moved += states
        dirty = {source for state in moved for source in sources[state] if source in live}
        if work > MAX_WORK:
            return _joined(automaton, {state: state for state in live})
    return _joined(automaton, blocks)


def _groups(states: Iterable[int], key: Callable[[int], object]) -> list[list[int]]:
    """States that are alike."""
    found: dict[object, list[int]] = {}
    for state in states:
        found.setdefault(key(state), []).append(state)
    return list(found.values())


def _way(edges: dict[int, int], blocks: dict[int, int]) -> object:
    """The symbols that lead to each block."""
    found: dict[int, int] = {}
    for target, mask in edges.items():
        if target in blocks:
            found[blocks[target]] = found.get(blocks[target], 0) | mask
    return frozenset(found.items())


def _joined(automaton: Automaton, blocks: dict[int, int]) -> Automaton:
    """One state per block that the start reaches, in the order of discovery."""
    numbers = {blocks[0]: 0}
    small = Automaton(automaton.alphabet, [])
    pending = [0]
    for state in pending:
        edges: dict[int, int] = {}
        for target, mask in automaton.edges[state].items():
            if target in blocks:
                number = numbers.setdefault(blocks[target], len(numbers))
                if number == len(pending):
                    pending.append(target)
                edges[number] = edges.get(number, 0) | mask
        if state in automaton.accepting:
            small.accepting.add(len(small.edges))
        if state in automaton.exits:
            small.exits[len(small.edges)] = automaton.exits[state]
        small.edges.append(edges)
    return small
