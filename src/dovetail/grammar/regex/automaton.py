"""Automata of patterns, the smallest one of a language, and the nodes that they are written as."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from dovetail.grammar import ir
from dovetail.grammar.regex.charset import Ranges, characters
from dovetail.grammar.regex.syntax import sequence

MAX_WORK = 300_000
MAX_DEPTH = 40
_SMALL = (ir.Lit, ir.Chars, ir.Call)


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
        sources: list[list[int]] = [[] for _ in self.edges]
        for state, edges in enumerate(self.edges):
            for target in edges:
                sources[target].append(state)
        return sources


State = TypeVar("State", bound=Hashable)


def explored(
    alphabet: list[Ranges],
    start: State,
    follow: Callable[[State, Automaton], Iterable[tuple[int, State]]],
    most: int = MAX_WORK,
    refuse: Callable[[], NoReturn] | None = None,
) -> Automaton:
    """The automaton of the states that a start leads to; `follow` gives the edges of each, and notes ends and exits."""
    automaton = Automaton(alphabet, [])
    numbers = {start: 0}
    pending = [start]
    for state in pending:
        edges: dict[int, int] = {}
        for mask, target in follow(state, automaton):
            number = numbers.get(target)
            if number is None:
                number = numbers[target] = len(numbers)
                pending.append(target)
            edges[number] = edges.get(number, 0) | mask
        automaton.edges.append(edges)
        if refuse and len(numbers) > most:
            refuse()
    return automaton


def distances(edges: Sequence[Iterable[int]], starts: Iterable[int]) -> dict[int, int]:
    """The states that `starts` lead to, and by how many edges at least."""
    distance = dict.fromkeys(starts, 0)
    pending = list(distance)
    for state in pending:
        for target in edges[state]:
            if target not in distance:
                distance[target] = distance[state] + 1
                pending.append(target)
    return distance


def minimize(automaton: Automaton) -> Automaton:
    """The smallest deterministic automaton of the same language; no state is a dead end unless all are.

    Of a large one whose states are hard to tell apart, only the dead ends are left out.
    """
    live = automaton.live()
    if 0 not in live:
        return Automaton(automaton.alphabet, [{}])
    sources = automaton.sources()
    # Most states differ in how far it is to the end, and nearly all others in where they lead (Moore 1956).
    exits = {state: frozenset(map(id, patterns)) for state, patterns in automaton.exits.items()}
    groups = _groups(live, lambda state: (live[state], state in automaton.accepting, exits.get(state)))
    blocks = {state: block for block, states in enumerate(groups) for state in states}
    signatures: dict[int, object] = {}
    dirty: set[int] = {*live}
    work = 0
    while dirty:
        signatures |= {state: _signature(automaton.edges[state], blocks) for state in dirty}
        moved: list[int] = []
        for block in {blocks[state] for state in dirty}:
            work += len(groups[block])
            groups[block], *others = _groups(groups[block], signatures.__getitem__)
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
    groups: dict[object, list[int]] = {}
    for state in states:
        groups.setdefault(key(state), []).append(state)
    return list(groups.values())


def _signature(edges: dict[int, int], blocks: dict[int, int]) -> object:
    """The symbols that lead to each block."""
    masks: dict[int, int] = {}
    for target, mask in edges.items():
        if target in blocks:
            masks[blocks[target]] = masks.get(blocks[target], 0) | mask
    return frozenset(masks.items())


def _joined(automaton: Automaton, blocks: dict[int, int]) -> Automaton:
    """One state per block that the start reaches, in the order of discovery."""
    states = {block: state for state, block in reversed(blocks.items())}

    def follow(block: int, joined: Automaton) -> list[tuple[int, int]]:
        state = states[block]
        if state in automaton.accepting:
            joined.accepting.add(len(joined.edges))
        if state in automaton.exits:
            joined.exits[len(joined.edges)] = automaton.exits[state]
        return [(mask, blocks[target]) for target, mask in automaton.edges[state].items() if target in blocks]

    return explored(automaton.alphabet, blocks[0], follow)


# Automata back to nodes.


def to_node(automaton: Automaton) -> ir.Node:
    """A node for the language of `automaton`, `ir.NOTHING` where it is empty."""
    live = automaton.live()
    return _Writer(automaton, live).node() if 0 in live else ir.NOTHING


class _Writer:
    """Writes a state that several others lead to as a rule, any other where it is reached.

    A rule calls others at its end only, which the core does without a stack.
    """

    def __init__(self, automaton: Automaton, live: dict[int, int]) -> None:
        self._automaton = automaton
        self._live = live
        self._classes: dict[int, ir.Node] = {}
        self._rests: dict[int, ir.Node] = {}
        entered: dict[int, int] = {0: 1}
        for state in live:
            for target in automaton.edges[state]:
                if target != state and target in live:
                    entered[target] = entered.get(target, 0) + 1
        self._calls = {state: _call() for state, times in entered.items() if times > 1}
        self._pending = list(self._calls)

    def node(self) -> ir.Node:
        """The start state, and the bodies of all rules."""
        start = self._reach(0, 0)
        for state in self._pending:
            self._calls[state].rule.body = self._body(state, 0)
        return start

    def _reach(self, state: int, depth: int) -> ir.Node:
        call = self._calls.get(state)
        if call is None:
            if depth < MAX_DEPTH:
                return self._body(state, depth)
            call = self._calls[state] = _call()
            self._pending.append(state)
        return call

    def _body(self, state: int, depth: int) -> ir.Node:
        targets = self._automaton.edges[state]
        ways: list[ir.Node] = [ir.EMPTY] if state in self._automaton.accepting else []
        ways += [self._rest(rest) for rest in self._automaton.exits.get(state, ())]
        for target, mask in targets.items():
            if target != state and target in self._live:
                ways.append(_led(self._class(mask), self._reach(target, depth + 1)))
        rest = ir.optional(ir.alt(*ways[1:])) if len(ways) > 1 and ways[0] == ir.EMPTY else ir.alt(*ways)
        return sequence((ir.star(self._class(targets[state])), rest)) if state in targets else rest

    def _class(self, mask: int) -> ir.Node:
        known = self._classes.get(mask)
        if known is None:
            known = self._classes[mask] = chars(characters(self._automaton.alphabet, mask))
        return known

    def _rest(self, rest: ir.Node) -> ir.Node:
        """What an exit leads to, in a rule where that is larger than a call."""
        parts = rest.parts if type(rest) is ir.Seq else (rest,)
        small = len(parts) < 3 and all(isinstance(part, _SMALL) for part in parts)
        if small or type(rest) is ir.Unlisted or (type(rest) is ir.Repeat and isinstance(rest.body, _SMALL)):
            return rest
        return self._rests.setdefault(id(rest), ir.Call(ir.Rule("rest", rest)))


def _call() -> ir.Call:
    return ir.Call(ir.Rule("state", ir.NOTHING))


def _led(first: ir.Node, rest: ir.Node) -> ir.Node:
    """A class or literal and what follows it; as `sequence`, but written once per edge."""
    return sequence((first, rest)) if type(rest) is ir.Seq or type(rest) is ir.Lit else ir.Seq((first, rest))


def chars(ranges: Ranges) -> ir.Node:
    """A class, or a literal where only one character is in it."""
    return ir.lit(chr(ranges[0][0])) if len(ranges) == 1 and ranges[0][0] == ranges[0][1] else ir.Chars(ranges)
