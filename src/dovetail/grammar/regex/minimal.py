"""The smallest automaton of a language (Hopcroft 1971)."""

from __future__ import annotations

from dovetail.grammar.regex.automaton import Automaton


def minimise(automaton: Automaton) -> Automaton:
    """The smallest deterministic automaton of the same language; no state is a dead end unless all are."""
    live = live_states(automaton)
    if 0 not in live:
        return Automaton(automaton.alphabet, [[]])
    into: dict[tuple[int, int], list[int]] = {}
    for state in live:
        for symbol, target in automaton.edges[state]:
            if target in live:
                into.setdefault((target, symbol), []).append(state)
    blocks = _alike(automaton, live)
    block_of = {state: index for index, block in enumerate(blocks) for state in block}
    symbols = range(len(automaton.alphabet))
    work = {(index, symbol) for index in range(len(blocks)) for symbol in symbols}
    while work:
        index, symbol = work.pop()
        hit: dict[int, set[int]] = {}
        for target in blocks[index]:
            for state in into.get((target, symbol), ()):
                hit.setdefault(block_of[state], set()).add(state)
        for touched, states in hit.items():
            if len(states) == len(blocks[touched]):
                continue
            blocks[touched] -= states
            for state in states:
                block_of[state] = len(blocks)
            # The smaller half suffices: what splits on the other one splits on this one or did so before.
            smaller = len(blocks) if len(states) <= len(blocks[touched]) else touched
            for other in symbols:
                work.add((len(blocks) if (touched, other) in work else smaller, other))
            blocks.append(states)
    return _renumbered(automaton, live, block_of)


def _alike(automaton: Automaton, live: set[int]) -> list[set[int]]:
    """The states by what may end there."""
    kinds: dict[object, set[int]] = {}
    for state in live:
        kinds.setdefault((state in automaton.accepting, automaton.exits.get(state)), set()).add(state)
    return list(kinds.values())


def live_states(automaton: Automaton) -> set[int]:
    """The states from which some text is matched."""
    into: dict[int, list[int]] = {}
    for state, edges in enumerate(automaton.edges):
        for target in {target for _, target in edges}:
            into.setdefault(target, []).append(state)
    live = automaton.accepting | automaton.exits.keys()
    pending = list(live)
    while pending:
        for state in into.get(pending.pop(), ()):
            if state not in live:
                live.add(state)
                pending.append(state)
    return live


def _renumbered(automaton: Automaton, live: set[int], block_of: dict[int, int]) -> Automaton:
    """One state per block that the start reaches, in the order of discovery."""
    first: dict[int, int] = {}
    for state in sorted(live):
        first.setdefault(block_of[state], state)
    numbers = {block_of[0]: 0}
    small = Automaton(automaton.alphabet, [])
    pending = [block_of[0]]
    for block in pending:
        number, state = len(small.edges), first[block]
        edges: list[tuple[int, int]] = []
        for symbol, target in automaton.edges[state]:
            if target in live:
                if block_of[target] not in numbers:
                    numbers[block_of[target]] = len(numbers)
                    pending.append(block_of[target])
                edges.append((symbol, numbers[block_of[target]]))
        small.edges.append(edges)
        if state in automaton.accepting:
            small.accepting.add(number)
        if state in automaton.exits:
            small.exits[number] = automaton.exits[state]
    return small
