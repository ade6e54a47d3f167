"""The smallest automaton of a language."""

from __future__ import annotations

from dovetail.grammar.regex.automaton import Automaton, symbols_of


def minimise(automaton: Automaton) -> Automaton:
    """The smallest deterministic automaton of the same language; no state is a dead end unless all are."""
    live = live_states(automaton)
    if 0 not in live:
        return Automaton(automaton.alphabet, [{}])
    return _renumbered(automaton, live, _from_the_end(automaton, live) or _split(automaton, live))


def _from_the_end(automaton: Automaton, live: set[int]) -> dict[int, int] | None:
    """The blocks of an automaton that goes forward only, but for loops at one state; None for any other.

    What a state leads to is known before the state, so one look at each is enough. Most patterns that count are so.
    """
    block_of: dict[int, int] = {}
    written: dict[object, int] = {}  # by what may end, where symbols lead, and which stay
    resolved: dict[object, int] = {}  # the same where staying leads to the block itself
    for state in sorted(live, reverse=True):
        moves: dict[int, int] = {}
        stays = 0
        for target, mask in automaton.edges[state].items():
            if target == state:
                stays = mask
            elif target in live:
                if target < state:
                    return None
                block = block_of[target]
                moves[block] = moves.get(block, 0) | mask
        ends = (state in automaton.accepting, automaton.exits.get(state))
        key = (ends, frozenset(moves.items()), stays)
        found = written.get(key)
        if found is None:
            # It may be like a state that it leads to, if what stays may as well go there.
            for block, mask in moves.items():
                if resolved.get((ends, frozenset({**moves, block: mask | stays}.items()))) == block:
                    found = block
        if found is None:
            found = len(resolved)
            resolved[ends, frozenset({**moves, found: stays}.items())] = found
        block_of[state] = written[key] = found
    return block_of


def _split(automaton: Automaton, live: set[int]) -> dict[int, int]:
    """The block of each state (Hopcroft 1971)."""
    into: dict[tuple[int, int], list[int]] = {}
    for state in live:
        for target, mask in automaton.edges[state].items():
            if target in live:
                for symbol in symbols_of(mask):
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
    return block_of


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
        for target in edges:
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
        edges: dict[int, int] = {}
        for target, mask in automaton.edges[state].items():
            if target in live:
                reached = numbers.setdefault(block_of[target], len(numbers))
                if reached == len(pending):
                    pending.append(block_of[target])
                edges[reached] = edges.get(reached, 0) | mask
        small.edges.append(edges)
        if state in automaton.accepting:
            small.accepting.add(number)
        if state in automaton.exits:
            small.exits[number] = automaton.exits[state]
    return small
