"""What several patterns say together: all of some, none of others, and a number of characters.

A state holds what is left of each pattern. It is left for the pattern itself as soon as only one has a say, so that
its counts stay counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from dovetail.errors import LimitError
from dovetail.grammar import ir
from dovetail.grammar.regex.automaton import Automaton
from dovetail.grammar.regex.lengths import narrow
from dovetail.grammar.regex.syntax import NOTHING, But, Rep, Syntax
from dovetail.grammar.regex.terms import Terms

MAX_STATES = 10_000
MAX_WORK = 400_000
_FEW_SYMBOLS = 8  # which are sooner asked one by one

Threads = frozenset[int]
Table = tuple[tuple[int, Threads], ...]  # symbols as a mask, and the threads behind them

# Of a pattern that is wanted: it is matched whatever follows. Of a barred one: it cannot match any more.
SETTLED: Threads = frozenset()


class State(NamedTuple):
    """The threads of each pattern, and how many characters may still come."""

    wanted: tuple[Threads, ...]
    barred: tuple[Threads, ...]
    low: int
    high: int | None


class Product:
    """The automaton of the texts that all of `wanted` and none of `barred` match, of low to high characters.

    It is deterministic, unless `split`: then each thread of the first pattern is a state of its own. Without `exits` no
    state is left for a pattern.
    """

    def __init__(
        self,
        wanted: Sequence[Syntax],
        barred: Sequence[Syntax],
        read: Callable[[ir.Node], Syntax],
        limits: tuple[int, int | None] = (0, None),
        *,
        split: bool = False,
        exits: bool = True,
    ) -> None:
        self._terms = Terms([*wanted, *barred], read)
        self._symbols = [1 << symbol for symbol in range(len(self._terms.alphabet))]
        self._split = split
        self._exits = exits
        self._tables: dict[tuple[Threads, bool, bool], Table] = {}
        self._stuck: set[int] = set()  # terms that cannot take up the limits
        self._work = 0
        first = tuple(self._settled(frozenset([self._terms.term(pattern)])) for pattern in wanted)
        never = tuple(frozenset([self._terms.term(pattern)]) for pattern in barred)
        self._start = State(first, never, *limits)

    def run(self, most: int = MAX_STATES) -> Automaton:
        """All states that the start reaches, `most` of them."""
        found = Automaton(self._terms.alphabet, [])
        numbers = {self._start: 0}
        pending = [self._start]
        if any(self._is_universal(threads) for threads in self._start.barred):
            return Automaton(self._terms.alphabet, [{}])
        for state in pending:
            number = len(found.edges)
            edges: dict[int, int] = {}
            found.edges.append(edges)
            exits, staying = self._leave(state) if self._exits else ((), state)
            if exits:
                found.exits[number] = exits
            if staying is None:
                continue
            if self._may_end(staying):
                found.accepting.add(number)
            for target, mask in self._steps(staying).items():
                at = numbers.setdefault(target, len(numbers))
                if at == len(pending):
                    pending.append(target)
                edges[at] = mask
            if len(numbers) > most or self._work > MAX_WORK:
                raise LimitError(
                    "the patterns need too many states together", "", "use smaller limits or fewer patterns"
                )
        return found

    def _leave(self, state: State) -> tuple[tuple[Syntax, ...], State | None]:
        """What may follow where one pattern alone has a say, and the state without that; None where nothing is left."""
        if any(state.barred):
            words = self._words_left(state)
            return ((), state) if words is None else ((But(words),), None)
        open_ones = [index for index, threads in enumerate(state.wanted) if threads]
        if not open_ones:
            return (Rep(ir.ANY_CHAR, state.low, state.high),), None
        if len(open_ones) > 1:
            return (), state
        at = open_ones[0]
        exits: list[Syntax] = []
        kept: set[int] = set()
        for term in state.wanted[at]:
            rest = None if term in self._stuck else narrow(self._terms.rest(term), state.low, state.high)
            if rest is None:
                self._stuck.add(term)
                kept.add(term)
            elif rest != NOTHING:
                exits.append(rest)
        left = (*state.wanted[:at], frozenset(kept), *state.wanted[at + 1 :])
        return tuple(exits), State(left, state.barred, state.low, state.high) if kept else None

    def _words_left(self, state: State) -> tuple[str, ...] | None:
        """The words that are still barred where nothing else has a say."""
        barred = [threads for threads in state.barred if threads]
        if len(barred) > 1 or any(state.wanted) or state.low or state.high is not None:
            return None
        return self._terms.words(barred[0])

    def _may_end(self, state: State) -> bool:
        return (
            state.low == 0
            and all(any(map(self._terms.is_nullable, threads)) for threads in state.wanted if threads)
            and not any(any(map(self._terms.is_nullable, threads)) for threads in state.barred)
        )

    def _steps(self, state: State) -> dict[State, int]:
        if state.high == 0:
            return {}
        if state.high is None and not state.low:
            patterns = (*state.wanted, *state.barred)
            having_a_say = [index for index, threads in enumerate(patterns) if threads] if len(patterns) > 1 else [0]
            if len(having_a_say) == 1:
                return self._steps_of(state, having_a_say[0])
        cells: list[tuple[int, tuple[Threads, ...]]] = [(self._terms.every, ())]
        for index, threads in enumerate((*state.wanted, *state.barred)):
            barred = index >= len(state.wanted)
            table = self._table(threads, barred, self._split and index == 0)
            self._work += len(cells) * len(table)
            cells = [
                (mask & symbols, (*found, target))
                for mask, found in cells
                for symbols, target in table
                if mask & symbols
            ]
        low, high = max(state.low - 1, 0), None if state.high is None else state.high - 1
        steps: dict[State, int] = {}
        for mask, found in cells:
            wanted, barred_left = found[: len(state.wanted)], found[len(state.wanted) :]
            if (low or high is not None) and not self._fits(wanted, low, high):
                continue
            target = State(wanted, barred_left, low, high)
            steps[target] = steps.get(target, 0) | mask
        return steps

    def _steps_of(self, state: State, index: int) -> dict[State, int]:
        """The same where one pattern has a say, as nearly always, and nothing is counted."""
        steps: dict[State, int] = {}
        wanted, barred, low, high = state
        at = index - len(wanted)
        for symbols, threads in self._table((*wanted, *barred)[index], at >= 0, self._split and index == 0):
            if at < 0:
                target = State((*wanted[:index], threads, *wanted[index + 1 :]), barred, low, high)
            else:
                target = State(wanted, (*barred[:at], threads, *barred[at + 1 :]), low, high)
            steps[target] = steps.get(target, 0) | symbols
        self._work += len(steps)
        return steps

    def _fits(self, wanted: tuple[Threads, ...], low: int, high: int | None) -> bool:
        """Whether the limits can still be kept."""
        for threads in wanted:
            spans = [self._terms.span(term) for term in threads]
            if spans and not any(
                (high is None or fewest <= high) and (most is None or most >= low) for fewest, most in spans
            ):
                return False
        return True

    def _table(self, threads: Threads, barred: bool, split: bool) -> Table:
        """Where symbols lead: a wanted pattern must go on, a barred one must not come to match whatever follows."""
        if not threads:
            return ((self._terms.every, SETTLED),)
        key = (threads, barred, split)
        table = self._tables.get(key)
        if table is None:
            table = self._tables[key] = tuple(self._moves(threads, barred, split))
        return table

    def _moves(self, threads: Threads, barred: bool, split: bool) -> Table:
        moves = [move for term in threads for move in self._terms.moves(term)]
        self._work += len(moves)
        if split:
            return tuple((mask, self._settled(frozenset([target]))) for mask, target in moves)
        if len(self._symbols) <= _FEW_SYMBOLS:
            cells: dict[Threads, int] = {}
            for symbol in self._symbols:
                found = frozenset([target for mask, target in moves if mask & symbol])
                cells[found] = cells.get(found, 0) | symbol
        else:
            cells = self._split_by(moves)
        self._work += len(cells)
        if barred:
            return tuple([(symbols, found) for found, symbols in cells.items() if not self._is_universal(found)])
        return tuple([(symbols, self._settled(found)) for found, symbols in cells.items() if found])

    def _split_by(self, moves: list[tuple[int, int]]) -> dict[Threads, int]:
        """The same symbols by where they lead, for large alphabets."""
        cells: dict[Threads, int] = {SETTLED: self._terms.every}
        for mask, target in moves:
            finer: dict[Threads, int] = {}
            for found, symbols in cells.items():
                if symbols & mask:
                    both = found | {target}
                    finer[both] = finer.get(both, 0) | symbols & mask
                if symbols & ~mask:
                    finer[found] = finer.get(found, 0) | symbols & ~mask
            cells = finer
            self._work += len(cells)
        return cells

    def _settled(self, threads: Threads) -> Threads:
        return SETTLED if self._is_universal(threads) else threads

    def _is_universal(self, threads: Threads) -> bool:
        return any(map(self._terms.is_universal, threads))
