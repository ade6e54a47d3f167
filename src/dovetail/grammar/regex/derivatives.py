"""Automata of regular expressions with assertions, by derivatives (Brzozowski 1964, Antimirov 1996).

A term is a node and the term that follows it. A thread is a term and conditions on the whole rest of the text, each a
state that must match, or must not: lookaheads, barred patterns, lengths, and all else that holds at the same time. A
state is a set of threads, one of which must match. Lookbehinds depend on the text so far only: states that follow the
text from its start say at each place whether they hold.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dovetail.grammar import ir
from dovetail.grammar.regex.automaton import Automaton, explored, to_node
from dovetail.grammar.regex.charset import Budget, Ranges, alphabet, symbol_of, within
from dovetail.grammar.regex.syntax import (
    ANYTHING,
    Look,
    Span,
    but,
    children,
    decoded,
    narrow,
    ranges_of,
    sequence,
    somewhere,
)

MAX_STATES = 5_000


@dataclass(eq=False, slots=True)
class Term:
    """The rest of a pattern; `nullable` where the text may end, unless that depends on what is asserted."""

    node: ir.Node
    rest: Term | None  # None behind the end
    nullable: bool
    asserts: bool
    number: int = 0

    def __hash__(self) -> int:
        return self.number  # so that sets of terms have the same order each time


Thread = tuple[Term, "Conditions"]
State = frozenset[Thread]
Condition = tuple[State, bool]  # True where it must not match
Conditions = frozenset[Condition]
Here = tuple[bool, ...]  # which lookbehinds hold at a place
Cells = Iterable[tuple[State, int]]  # states and the symbols that lead there
Moves = dict[tuple[Term, Conditions], int]

_END = Term(ir.EMPTY, None, True, False)
_FREE: Conditions = frozenset()
_DEAD: State = frozenset()


def explore(
    wanted: Sequence[ir.Node],
    barred: Sequence[ir.Node],
    budget: Budget,
    *,
    split: bool = False,
    exits: bool = True,
    most: int = MAX_STATES,
) -> Automaton:
    """The automaton of the texts that all of `wanted` and none of `barred` match.

    With `exits` a state is left for a pattern as soon as that alone has a say, so that its counts stay counts. The
    automaton is deterministic, unless `split`: then each thread is a state of its own, which can be exponentially
    smaller where something long is looked for.
    """
    terms = Derivatives([*wanted, *barred], budget)
    conditions = [(terms.start(node), False) for node in wanted[split:]] + [
        (terms.start(node), True) for node in barred
    ]
    main = terms.term(wanted[0] if split else ANYTHING)
    start = (frozenset(terms.threads(main, conditions)), *terms.before)

    def follow(states: tuple[State, ...], automaton: Automaton) -> Iterator[tuple[int, tuple[State, ...]]]:
        state, *before = states
        here = terms.holding(before)
        budget.spend(len(state))
        if exits:
            left = {thread: rest for thread in state if (rest := terms.alone(thread)) is not None}
            if rests := [rest for rest in left.values() if not ir.is_nothing(rest)]:
                automaton.exits[len(automaton.edges)] = rests
            state = state.difference(left)
        if terms.ends(state, here):
            automaton.accepting.add(len(automaton.edges))
        return terms.follow(state, before, here, split)

    return explored(terms.symbols, start, follow, most, budget.refuse)


class Derivatives:
    """The terms of some patterns, made when they are first reached, so that large counts cost nothing until then."""

    def __init__(self, roots: Sequence[ir.Node], budget: Budget) -> None:
        self.budget = budget
        self._asserting: set[int] = set()  # nodes, by identity
        self._behind: dict[Look, int] = {}
        self._terms: dict[tuple[int, Term], Term] = {}
        self._nodes: dict[object, ir.Node] = {}  # what is made of other nodes
        self._moves: dict[tuple[Term, Here], Moves] = {}
        self._steps: dict[tuple[State, Here], Cells] = {}
        self._stuck: set[Term] = set()
        self._patterns: dict[Term, ir.Node] = {}
        self._nodes_seen = self._survey([*roots, ANYTHING])  # which keep their identities
        classes = {ranges: None for node in self._nodes_seen for ranges in ranges_of(node)}
        self.symbols, self._masks = alphabet(classes, budget)
        self._every = (1 << len(self.symbols)) - 1
        self._any = self.term(ANYTHING)
        self._universal: State = frozenset([(self._any, _FREE)])
        self.before = [self.start(self._made(look, ir.Seq((ANYTHING, look.body)))) for look in self._behind]

    def _survey(self, nodes: list[ir.Node]) -> list[ir.Node]:
        """All nodes inside of some; what asserts is noted, and the lookbehinds, inner ones first."""
        seen: set[int] = set()
        for node in nodes:
            if id(node) not in seen:
                seen.add(id(node))
                nodes += children(node) or (() if type(node) is ir.Unlisted else self._written(node))
        for node in reversed(nodes):
            look = node.rule if type(node) is ir.Call and type(node.rule) is Look else None
            if look or not self._asserting.isdisjoint(map(id, children(node))):
                self._asserting.add(id(node))
            if look and not look.ahead and look not in self._behind:
                self._behind[look] = len(self._behind)
        self.budget.spend(len(nodes))
        return nodes

    def _written(self, node: ir.Node) -> tuple[ir.Node, ...]:
        """What stands for a node that is none of the few that all patterns are made of."""
        if type(node) is ir.Call:
            return (node.rule.body,)
        if type(node) is ir.Without or type(node) is ir.Text or type(node) is ir.Unlisted:
            if id(node) not in self._nodes:
                self._nodes[id(node)] = _written_out(node, self.budget)
            return (self._nodes[id(node)],)
        return ()

    def _made(self, key: object, node: ir.Node) -> ir.Node:
        """A node that is made of others, which keeps its identity."""
        return self._nodes.setdefault(key, node)

    # Terms and threads.

    def start(self, node: ir.Node, rest: Term = _END) -> State:
        """The state in which `node` is yet to be matched."""
        state = frozenset(self.threads(self.term(node, rest), ()))
        return self._universal if (self._any, _FREE) in state else state

    def term(self, node: ir.Node, rest: Term = _END) -> Term:
        """The term of a node and what follows it."""
        term = self._terms.get((id(node), rest))
        if term is None:
            asserts = rest.asserts or id(node) in self._asserting
            nullable = not asserts and rest.nullable and self._nullable(node, ())
            term = Term(node, rest, nullable, asserts, len(self._terms) + 1)
            self._terms[id(node), rest] = term
        return term

    def threads(self, term: Term, conditions: Iterable[Condition]) -> Iterable[Thread]:
        """The threads of a term with conditions; none where these cannot be met."""
        kept = frozenset(conditions)
        if term.nullable and not term.asserts and self.moves(term, ()).get((term, _FREE)) == self._every:
            term = self._any
        if not kept:
            return [(term, kept)]
        if term is self._any and not any(barred for _, barred in kept):
            wanted = [one for one in kept if _limits(one[0]) is None] or [*kept][:1]
            if len(wanted) == 1:  # nothing else has a say but how long the text is
                return [(inner, more | (kept - {wanted[0]})) for inner, more in wanted[0][0]]
        return [(term, kept)]

    def alone(self, thread: Thread) -> ir.Node | None:
        """The pattern that all the rest of a thread is; None where there is none without assertions."""
        term, conditions = thread
        if term.asserts or len(conditions) > 1 or term in self._stuck:
            return None
        if not conditions:
            return self._pattern(term)
        ((state, barred),) = conditions
        if barred:
            words = _words(state) if term is self._any else None
            return None if words is None else but(words)
        limits = _limits(state)
        pattern = None if limits is None else narrow(self._pattern(term), *limits)
        if limits and pattern is None:
            self._stuck.add(term)
        return pattern

    def _pattern(self, term: Term) -> ir.Node:
        """The nodes of a term and of all that follow it, as one flat sequence."""
        if term not in self._patterns:
            parts: list[ir.Node] = []
            at = term
            while at.rest is not None:
                parts.append(at.node)
                at = at.rest
            self.budget.spend(len(parts))
            self._patterns[term] = sequence(parts)
        return self._patterns[term]

    # Where a text may end.

    def holding(self, before: Iterable[State]) -> Here:
        """Which lookbehinds hold at a place, by the states that they are in."""
        here: Here = ()
        for state in before:
            here += (self.ends(state, here),)
        return here

    def ends(self, state: State, here: Here) -> bool:
        """Whether the text may end in a state."""
        return any(
            self._ended(term, here) and all(self.ends(inner, here) != barred for inner, barred in conditions)
            for term, conditions in state
        )

    def _ended(self, term: Term, here: Here) -> bool:
        while term.asserts and term.rest is not None:
            if not self._nullable(term.node, here):
                return False
            term = term.rest
        return term.nullable

    def _nullable(self, node: ir.Node, here: Here) -> bool:
        """Whether a node matches no characters at the end of the text."""
        if type(node) is ir.Lit:
            return not node.data
        if type(node) is ir.Seq:
            return all(self._nullable(part, here) for part in node.parts)
        if type(node) is ir.Alt:
            return any(self._nullable(part, here) for part in node.parts)
        if type(node) is ir.Repeat:
            return not node.low or self._nullable(node.body, here)
        if type(node) is ir.Unlisted:
            return "" not in node.words
        if type(node) is ir.Call and type(node.rule) is Look:
            look = node.rule
            return (self._nullable(look.body, here) if look.ahead else here[self._behind[look]]) != look.negative
        return any(self._nullable(part, here) for part in self._written(node))

    # Where characters lead.

    def follow(
        self, state: State, before: Sequence[State], here: Here, split: bool
    ) -> Iterator[tuple[int, tuple[State, ...]]]:
        """The states after each character, with those of the lookbehinds."""
        for target, mask in self._thread_cells(state, here) if split else self._cells(state, here):
            if target:
                # What precedes a place is of no concern where nothing is asserted any more.
                asserts = any(term.asserts or conditions for term, conditions in target)
                cells = [self._cells(one, here) for one in before] if asserts else []
                yield from self._together(mask, (target,), cells)

    def after(self, state: State, char: str) -> State:
        """The state after one character, where nothing is asserted."""
        symbol = self._masks.get(((ord(char), ord(char)),)) or symbol_of(self.symbols, ord(char))
        return next((target for target, mask in self._cells(state, ()) if mask & symbol), _DEAD)

    def _cells(self, state: State, here: Here) -> Cells:
        """The state after each character, the one without threads where none goes on."""
        known = self._steps.get((state, here))
        if known is None:
            threads: dict[int, set[Thread]] = {}
            for target, mask in self._thread_cells(state, here):
                threads.setdefault(mask, set()).update(target)
            known = self._steps[state, here] = self._distinct(threads).items()
        return known

    def _thread_cells(self, state: State, here: Here) -> Cells:
        """What each thread becomes after each character, as a state of its own."""
        for term, conditions in state:
            moves = self.moves(term, here)
            self.budget.spend(1 + len(moves))
            for (target, more), mask in moves.items():
                asked = [*(conditions | more)]
                for both, states in self._together(mask, (), [self._met(one, here) for one in asked]):
                    kept = [(to, barred) for to, (_, barred) in zip(states, asked, strict=True) if to]
                    for thread in self.threads(target, kept):
                        yield frozenset([thread]), both

    def _met(self, condition: Condition, here: Here) -> Cells:
        """The states after each character by which a condition can still be met, the dead one where it is met."""
        state, barred = condition
        met, never = (_DEAD, self._universal) if barred else (self._universal, _DEAD)
        cells = self._cells(state, here)
        return [(_DEAD if target == met else target, mask) for target, mask in cells if target != never]

    def _together(
        self, mask: int, states: tuple[State, ...], others: Iterable[Cells]
    ) -> list[tuple[int, tuple[State, ...]]]:
        """The states that the symbols of a mask lead to, one of each of `others` behind those given."""
        product = [(mask, states)]
        for cells in others:
            product = [(both, (*kept, to)) for left, kept in product for to, right in cells if (both := left & right)]
            self.budget.spend(len(product))
        return product

    def _distinct(self, threads: dict[int, set[Thread]]) -> dict[State, int]:
        """The threads that overlapping masks lead to, by state."""
        parts = [(self._every, _DEAD)]
        for mask, more in threads.items():
            inside = [(both, state | more) for symbols, state in parts if (both := symbols & mask)]
            parts = inside + [(left, state) for symbols, state in parts if (left := symbols & ~mask)]
            self.budget.spend(len(parts))
        masks: dict[State, int] = {}
        for mask, state in parts:
            state = self._universal if (self._any, _FREE) in state else state
            masks[state] = masks.get(state, 0) | mask
        return masks

    def moves(self, term: Term, here: Here) -> Moves:
        """The terms behind the next character, with the conditions that come to hold before it."""
        key = (term, here if term.asserts else ())
        moves = self._moves.get(key)
        if moves is None:
            moves = self._moves[key] = {}
            pending: list[Thread] = [(term, _FREE)]
            seen: set[Thread] = set()
            for current in pending:
                self.budget.spend(1 + len(current[1]))
                if current not in seen:
                    seen.add(current)
                    pending += self._unfolded(*current, here, moves, seen)
        return moves

    def _unfolded(
        self, term: Term, conditions: Conditions, here: Here, moves: Moves, seen: set[Thread]
    ) -> Iterable[Thread]:
        """The threads that stand for a term before the next character, which goes to `moves`."""
        node, rest = term.node, term.rest
        if rest is None:
            return ()
        if type(node) is ir.Chars or type(node) is ir.Bytes:
            self._add(moves, node.ranges, rest, conditions)
            return ()
        if type(node) is ir.Lit and node.data:
            text = decoded(node.data)
            to = self.term(self._made(text[1:], ir.lit(text[1:])), rest) if text[1:] else rest
            self._add(moves, ((ord(text[0]), ord(text[0])),), to, conditions)
            self.budget.spend(len(text) // 64)
            return ()
        if type(node) is ir.Seq:
            for part in reversed(node.parts):
                rest = self.term(part, rest)
            self.budget.spend(len(node.parts))
            return ((rest, conditions),)
        if type(node) is ir.Repeat:
            return [(one, conditions) for one in self._repeated(node, rest, conditions, seen)]
        if type(node) is ir.Unlisted and rest is _END:
            words = self._made((id(node), "words"), ir.Alt(tuple(map(ir.lit, node.words))))
            return ((self._any, conditions | {(self.start(words), True)}),)
        if type(node) is ir.Call and type(node.rule) is Look:
            more = self._looked(node.rule, rest, here)
            return () if more is None else ((rest, conditions | more),)
        parts = node.parts if type(node) is ir.Alt else self._written(node)
        return [(self.term(part, rest), conditions) for part in parts]

    def _add(self, moves: Moves, ranges: Ranges, to: Term, conditions: Conditions) -> None:
        mask = self._masks.get(ranges)
        if mask is None:
            mask = self._masks[ranges] = within(self.symbols, ranges)
        moves[to, conditions] = moves.get((to, conditions), 0) | mask

    def _repeated(self, node: ir.Repeat, rest: Term, conditions: Conditions, seen: set[Thread]) -> Iterator[Term]:
        body, low, high = node.body, node.low, node.high
        asserts = id(body) in self._asserting
        empty = not asserts and self._nullable(body, ())
        if not low or empty:
            yield rest
        if high == 0:
            return
        again = rest  # nothing is put behind the last time, so that a call at its end stays one
        if high != 1:
            fewer = 0 if empty or not low else low - 1
            left = None if high is None else high - 1
            same = (fewer, left) == (low, high)
            copy = node if same else self._made((id(body), fewer, left), ir.Repeat(body, fewer, left))
            if asserts:
                self._asserting.add(id(copy))
            again = self.term(copy, rest)
            if empty:
                seen.add((again, conditions))  # without a character it adds nothing
        yield self.term(body, again)

    def _looked(self, look: Look, rest: Term, here: Here) -> Conditions | None:
        """What a lookaround demands of the rest of the text; None where it fails."""
        if not look.ahead:
            return _FREE if here[self._behind[look]] != look.negative else None
        state = self.start(look.body, self._any)
        if state == self._universal:
            return None if look.negative else _FREE
        return frozenset([(state, look.negative)])


def _written_out(node: ir.Without | ir.Text | ir.Unlisted, budget: Budget) -> ir.Node:
    """A node of the grammar as nodes that patterns are made of, with the same texts."""
    if type(node) is ir.Unlisted:
        return ir.unlisted_out(node)
    if type(node) is ir.Without:
        return to_node(explore([node.body], [somewhere(node.excludes)], budget))
    assert type(node) is ir.Text
    text: ir.Node = ir.Repeat(ir.ANY_CHAR, node.min_chars, node.max_chars)
    body = _written_out(ir.Without(text, node.excludes), budget) if node.excludes else text
    return sequence((body, node.after or ir.EMPTY))


def _words(state: State) -> list[str] | None:
    """The texts of a state that matches some words and nothing else, None for any other."""
    words: list[str] = []
    for term, conditions in state:
        if conditions or term.rest not in (None, _END):
            return None
        literals = term.node.parts if type(term.node) is ir.Alt else (term.node,)
        if not all(type(one) is ir.Lit or one == ir.EMPTY for one in literals):
            return None
        words += [decoded(one.data) if type(one) is ir.Lit else "" for one in literals]
    return words


def _limits(state: State) -> Span | None:
    """How many characters a state matches, whichever they are; None where it is none of the kind."""
    if len(state) != 1:
        return None
    ((term, conditions),) = state
    node = term.node
    if conditions or term.rest not in (None, _END):
        return None
    if type(node) is ir.Repeat and node.body == ir.ANY_CHAR:
        return node.low, node.high
    return (0, 0) if term is _END else (1, 1) if node == ir.ANY_CHAR else None
