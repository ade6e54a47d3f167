"""Automata of patterns, and the smallest one of a language."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from dovetail.grammar import ir
from dovetail.grammar.regex.charset import Ranges


@dataclass(slots=True)
class Automaton:
    """State 0 is the start; its edges lead to other states by masks of symbols, of which `alphabet` has the characters.

    At an exit the rest of the text matches one of the patterns given there, which need no automaton.
    """

    alphabet: list[Ranges]
    edges: list[dict[int, int]]
    accepting: set[int] = field(default_factory=set)
    exits: dict[int, Sequence[ir.Node]] = field(default_factory=dict)

    def sources(self) -> list[list[int]]:
        """The states that lead to each state."""
        found: list[list[int]] = [[] for _ in self.edges]
        for state, edges in enumerate(self.edges):
            for target in edges:
                found[target].append(state)
        return found

    def live(self) -> set[int]:
        """The states from which some text is matched."""
        return reached(self.sources(), self.accepting | self.exits.keys())


def reached(edges: Sequence[Iterable[int]], starts: Iterable[int]) -> set[int]:
    """The states that edges lead to from `starts`, these among them."""
    found = set(starts)
    pending = list(found)
    while pending:
        for state in edges[pending.pop()]:
            if state not in found:
                found.add(state)
                pending.append(state)
    return found


def minimise(automaton: Automaton) -> Automaton:
    """The smallest deterministic automaton of the same language; no state is a dead end unless all are."""
    live = automaton.live()
    if 0 not in live:
        return Automaton(automaton.alphabet, [{}])
    return _joined(automaton, _Blocks(automaton, live).of)


class _Blocks:
    """The block of each live state: states in one block match the same texts (Hopcroft 1971).

    States are told apart by where their symbols lead. When some part of a block, the largest excepted, becomes a block
    of its own, only the states that lead there are looked at again.
    """

    def __init__(self, automaton: Automaton, live: set[int]) -> None:
        self._edges = automaton.edges
        self.of: dict[int, int] = {}
        self._members: list[set[int]] = []
        self._ways: list[object] = []  # where the states of a block lead to, but for those that are to be looked at
        sources = automaton.sources()
        for states in _alike(automaton, live):
            self._new(states, None)
        pending = live
        while pending:
            moved = self._split(pending)
            pending = {source for state in moved for source in sources[state] if source in live}

    def _new(self, states: set[int], way: object) -> None:
        self.of.update(dict.fromkeys(states, len(self._members)))
        self._members.append(states)
        self._ways.append(way)

    def _way(self, state: int) -> object:
        found: dict[int, int] = {}
        for target, mask in self._edges[state].items():
            block = self.of.get(target)
            if block is not None:
                found[block] = found.get(block, 0) | mask
        return frozenset(found.items())

    def _split(self, pending: set[int]) -> list[int]:
        """Split the blocks of some states by where these lead to; the states that are in new blocks."""
        parts: dict[int, dict[object, set[int]]] = {}
        for state in pending:
            parts.setdefault(self.of[state], {}).setdefault(self._way(state), set()).add(state)
        moved: list[int] = []
        for block, by_way in parts.items():
            rest = self._members[block].difference(*by_way.values())
            if rest:
                by_way.setdefault(self._ways[block], set()).update(rest)
            largest, *others = sorted(by_way.items(), key=lambda part: -len(part[1]))
            self._ways[block], self._members[block] = largest
            for way, states in others:
                self._new(states, way)
                moved += states
        return moved


def _alike(automaton: Automaton, live: set[int]) -> Iterable[set[int]]:
    """The live states by what may end there."""
    kinds: dict[object, set[int]] = {}
    for state in live:
        exits = frozenset(map(id, automaton.exits.get(state, ())))
        kinds.setdefault((state in automaton.accepting, exits), set()).add(state)
    return kinds.values()


def _joined(automaton: Automaton, block_of: dict[int, int]) -> Automaton:
    """One state per block that the start reaches, in the order of discovery."""
    numbers = {block_of[0]: 0}
    small = Automaton(automaton.alphabet, [])
    pending = [0]
    for state in pending:
        edges: dict[int, int] = {}
        for target, mask in automaton.edges[state].items():
            if target in block_of:
                number = numbers.setdefault(block_of[target], len(numbers))
                if number == len(pending):
                    pending.append(target)
                edges[number] = edges.get(number, 0) | mask
        if state in automaton.accepting:
            small.accepting.add(len(small.edges))
        if state in automaton.exits:
            small.exits[len(small.edges)] = automaton.exits[state]
        small.edges.append(edges)
    return small
