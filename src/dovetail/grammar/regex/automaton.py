"""Patterns with lookarounds as deterministic automata.

A thread of the search is a `Config`: a place in the pattern, the places of the lookaheads that must still match, and
the configs of the negative lookaheads that must never match. Stepping all configs at once gives a deterministic
automaton in which no assertion is left. Lookbehinds depend on the text so far only, so they run beside it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

from dovetail._core import alphabet
from dovetail.errors import GrammarError, LimitError
from dovetail.grammar import ir
from dovetail.grammar.regex.syntax import LINE_ENDS, Cat, Edge, Look, Or, Rep, Syntax, asserts, walk

MAX_PLACES = 20_000
MAX_STATES = 2_000
MAX_WORK = 300_000

DONE = -1

Ranges = tuple[tuple[int, int], ...]
Config = tuple[int, frozenset[int], frozenset["Config"]]
Behind = tuple[frozenset[int], ...]
After = tuple[Syntax, ...] | Look


@dataclass(slots=True)
class Automaton:
    """State 0 is the start; its edges lead to other states by masks of symbols, of which `alphabet` has the characters.

    At an exit the rest of the text matches one of the patterns given there, which need no automaton.
    """

    alphabet: list[Ranges]
    edges: list[dict[int, int]]
    accepting: set[int] = field(default_factory=set)
    exits: dict[int, Collection[Syntax]] = field(default_factory=dict)


@lru_cache(maxsize=4096)
def symbols_of(mask: int) -> tuple[int, ...]:
    """The symbols in a mask."""
    return tuple([bit for bit in range(mask.bit_length()) if mask >> bit & 1])


def determinise(pattern: Syntax, *, exits: bool = False) -> Automaton:
    """The automaton of the texts that `pattern` matches as a whole; with `exits`, only as far as assertions reach."""
    return _Search(pattern, exits).run(split=False)


def unfold(pattern: Syntax) -> Automaton:
    """As `determinise` with exits, but nondeterministic: a search for something long can be exponentially smaller."""
    return _Search(pattern, exits=True).run(split=True)


@dataclass(slots=True)
class _Places:
    """A nondeterministic automaton; guards are edges that a lookaround must allow."""

    free: list[list[int]] = field(default_factory=list)
    steps: list[list[tuple[int, int]]] = field(default_factory=list)
    guards: list[list[tuple[bool, bool, int, int]]] = field(default_factory=list)
    rest: dict[int, tuple[Syntax, ...]] = field(default_factory=dict)

    def new(self) -> int:
        if len(self.free) == MAX_PLACES:
            raise LimitError("the pattern is too large to resolve its assertions", "", "use smaller repetitions")
        self.free.append([])
        self.steps.append([])
        self.guards.append([])
        return len(self.free) - 1


class _Search:
    def __init__(self, pattern: Syntax, exits: bool) -> None:
        pattern = _explicit(pattern)
        self._exits = exits
        classes = list(dict.fromkeys(node.ranges for node in walk(pattern) if isinstance(node, ir.Chars)))
        self._alphabet, masks = alphabet(classes)
        self._masks = dict(zip(classes, masks, strict=True))
        self._places = _Places()
        self._behind: list[tuple[int, int]] = []
        self._behind_of: dict[Syntax, int] = {}
        self._work = 0
        # The same thread comes by in many states.
        self._stepped: dict[tuple[Config, Behind, int], tuple[Config, ...]] = {}
        self._start, self._final = self._places.new(), self._places.new()
        self._build(pattern, self._start, self._final, ())

    # Building the places. `after` is the pattern behind the node, or the lookaround that the node is in.

    def _build(self, node: Syntax, start: int, end: int, after: After) -> None:
        places = self._places
        match node:
            case ir.Chars(ranges):
                # A place that waits for a character has no other way out, so that a thread can rest there.
                wait = places.new()
                places.free[start].append(wait)
                places.steps[wait].append((self._masks[ranges], end))
                if isinstance(after, tuple):
                    places.rest[wait] = (node, *after)
            case Or(parts):
                for part in parts:
                    self._build(part, start, end, after)
            case Cat(parts):
                for index, part in enumerate(parts):
                    middle = places.new()
                    self._build(part, start, middle, _before(parts[index + 1 :], after))
                    start = middle
                places.free[start].append(end)
            case Rep(body, low, high):
                self._repeat(body, low, high, start, end, after)
            case Look():
                self._look(node, start, end, after)
            case _:
                raise AssertionError("edges are made explicit first, and calls have no assertions")

    def _repeat(self, body: Syntax, low: int, high: int | None, start: int, end: int, after: After) -> None:
        places = self._places
        for index in range(low if high is None else high):
            if index >= low:
                places.free[start].append(end)
            middle = places.new()
            left = Rep(body, max(0, low - index - 1), None if high is None else high - index - 1)
            self._build(body, start, middle, _before((left,), after))
            start = middle
        if high is None:
            loop = places.new()
            places.free[start].append(loop)
            self._build(body, loop, loop, _before((Rep(body, 0, None),), after))
            start = loop
        places.free[start].append(end)

    def _look(self, look: Look, start: int, end: int, after: After) -> None:
        places = self._places
        if look.ahead:
            if isinstance(after, Look) and not after.ahead:
                problem = f"a {look.name} inside a {after.name} is not supported"
                raise GrammarError(problem, f"offset {look.offset}", "move it out of the lookbehind")
            first, last = places.new(), places.new()
            self._build(look.body, first, last, look)
            places.free[last].append(DONE)
            places.guards[start].append((True, look.negative, first, end))
            return
        index = self._behind_of.get(look.body)
        if index is None:
            first, last = places.new(), places.new()
            self._build(look.body, first, last, look)
            index = self._behind_of[look.body] = len(self._behind)
            self._behind.append((first, last))
        places.guards[start].append((False, look.negative, index, end))

    # Running them.

    def run(self, split: bool) -> Automaton:
        """All states that the start reaches; with `split`, each config but the first ones is a state of its own."""
        behind = self._begin(tuple(frozenset[int]() for _ in self._behind))
        first = (self._prune(self._close((self._start, frozenset(), frozenset()), behind)), behind)
        numbers = {first: 0}
        found = Automaton(self._alphabet, [])
        pending = [first]
        for configs, behind in pending:
            number = len(found.edges)
            edges: dict[int, int] = {}
            found.edges.append(edges)
            if any(self._ends(config, self._final) for config in configs):
                found.accepting.add(number)
            leaving = frozenset(config for config in configs if self._exits and self._is_free(config))
            if leaving:
                found.exits[number] = frozenset(Cat(self._places.rest[config[0]]) for config in leaving)
            for symbol in range(len(self._alphabet)):
                self._spend(len(configs))
                follow, after = self._step_all(configs - leaving, behind, symbol)
                for part in [frozenset([config]) for config in follow] if split else [follow][: len(follow)]:
                    if (part, after) not in numbers:
                        numbers[part, after] = len(numbers)
                        pending.append((part, after))
                    target = numbers[part, after]
                    edges[target] = edges.get(target, 0) | 1 << symbol
            if len(numbers) > MAX_STATES:
                raise LimitError("the pattern needs too many states", "", "use fewer or simpler lookarounds")
        return found

    def _is_free(self, config: Config) -> bool:
        """Whether no assertion can still matter."""
        rest = self._places.rest.get(config[0])
        return rest is not None and not config[1] and not config[2] and not any(map(asserts, rest))

    def _step_all(self, configs: frozenset[Config], behind: Behind, symbol: int) -> tuple[frozenset[Config], Behind]:
        moved = tuple(
            frozenset(target for place in places for mask, target in self._places.steps[place] if mask >> symbol & 1)
            for places in behind
        )
        after = self._begin(moved)
        return self._prune(found for config in configs for found in self._step(config, after, symbol)), after

    def _begin(self, moved: Behind) -> Behind:
        """The lookbehinds at the next place: those under way, and each one starting anew."""
        states: list[frozenset[int]] = []
        for (first, _), places in zip(self._behind, moved, strict=True):
            found: set[int] = set()
            pending = [first, *places]
            while pending:
                place = pending.pop()
                if place in found:
                    continue
                found.add(place)
                pending.extend(self._places.free[place])
                # An inner lookbehind has a smaller index, so that its state is known by now.
                pending.extend(
                    target
                    for _, negative, index, target in self._places.guards[place]
                    if (self._behind[index][1] in states[index]) != negative
                )
            states.append(frozenset(found))
        return tuple(states)

    def _step(self, config: Config, behind: Behind, symbol: int) -> tuple[Config, ...]:
        key = (config, behind, symbol)
        known = self._stepped.get(key)
        if known is None:
            known = self._stepped[key] = tuple(self._moves(config, behind, symbol))
        return known

    def _moves(self, config: Config, behind: Behind, symbol: int) -> Iterator[Config]:
        place, must, never = config
        forbidden = self._prune(found for inner in never for found in self._step(inner, behind, symbol))
        if _matched(forbidden):
            return
        choices = [self._targets(thread, symbol) for thread in (place, *must)]
        for target, *threads in product(*choices):
            yield from self._close((target, frozenset(threads), forbidden), behind)

    def _targets(self, place: int, symbol: int) -> list[int]:
        if place == DONE:
            return [DONE]
        return [target for mask, target in self._places.steps[place] if mask >> symbol & 1]

    def _close(self, config: Config, behind: Behind) -> Iterator[Config]:
        """Every config that `config` becomes before the next character: its threads rest where they wait for one."""
        seen = {config}
        pending = [config]
        while pending:
            current = pending.pop()
            self._spend(1 + len(current[1]) + len(current[2]))
            restless = next((thread for thread in (current[0], *current[1]) if not self._rests(thread)), None)
            if restless is None:
                yield current
                continue
            for found in self._advance(current, restless, behind):
                if found not in seen and not _matched(found[2]):
                    seen.add(found)
                    pending.append(found)

    def _spend(self, work: int) -> None:
        self._work += work
        if self._work > MAX_WORK:
            raise LimitError("resolving the lookarounds takes too long", "", "use fewer or simpler lookarounds")

    def _rests(self, place: int) -> bool:
        return place == DONE or not (self._places.free[place] or self._places.guards[place])

    def _advance(self, config: Config, thread: int, behind: Behind) -> Iterator[Config]:
        place, must, never = config

        def moved(target: int, more: int | None = None, forbidden: frozenset[Config] = frozenset()) -> Config:
            rest = must if thread == place else must - {thread} | ({target} - {DONE})
            return (
                target if thread == place else place,
                rest | ({more} if more is not None else set()),
                never | forbidden,
            )

        for target in self._places.free[thread]:
            yield moved(target)
        for ahead, negative, index, target in self._places.guards[thread]:
            if ahead and negative:
                yield moved(target, None, self._prune(self._close((index, frozenset(), frozenset()), behind)))
            elif ahead:
                yield moved(target, index)
            elif (self._behind[index][1] in behind[index]) != negative:
                yield moved(target)

    def _ends(self, config: Config, final: int) -> bool:
        """Whether the text may end here."""
        place, must, never = config
        return place == final and not must and not any(self._ends(inner, DONE) for inner in never)

    def _prune(self, configs: Iterable[Config]) -> frozenset[Config]:
        """Without the configs that ask for more than another one at the same place."""
        distinct = frozenset(configs)
        if len({config[0] for config in distinct}) == len(distinct):
            return distinct
        kept: dict[int, list[Config]] = {}
        for config in distinct:
            same = kept.setdefault(config[0], [])
            self._spend(len(same))
            if any(other[1] <= config[1] and other[2] <= config[2] for other in same):
                continue
            same[:] = [other for other in same if not (config[1] <= other[1] and config[2] <= other[2])]
            same.append(config)
        return frozenset(config for same in kept.values() for config in same)


def _before(parts: tuple[Syntax, ...], after: After) -> After:
    return (*parts, *after) if isinstance(after, tuple) else after


def _matched(forbidden: frozenset[Config]) -> bool:
    """Whether a negative lookahead has matched, whatever follows."""
    return (DONE, frozenset(), frozenset()) in forbidden


def _explicit(node: Syntax) -> Syntax:
    """`node` with edges written as lookarounds."""
    match node:
        case Edge(end, line):
            beyond = ir.complement(LINE_ENDS.ranges) if line else ir.ANY_CHAR
            return Look(beyond, ahead=end, negative=True, name="$" if end else "^")
        case Cat(parts):
            return Cat(tuple(_explicit(part) for part in parts))
        case Or(parts):
            return Or(tuple(_explicit(part) for part in parts))
        case Rep(body, low, high):
            return Rep(_explicit(body), low, high)
        case Look(body, ahead, negative, name, offset):
            return Look(_explicit(body), ahead, negative, name, offset)
        case _:
            return node
