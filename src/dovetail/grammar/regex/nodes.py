"""Automata back to nodes: a state that several others lead to is a rule, any other stands where it is reached.

A rule calls others at its end only, which the core does without a stack.
"""

from __future__ import annotations

from dovetail.grammar import ir
from dovetail.grammar.regex.automaton import Automaton
from dovetail.grammar.regex.charset import Ranges, characters
from dovetail.grammar.regex.syntax import sequence

MAX_DEPTH = 40
_SMALL = (ir.Lit, ir.Chars, ir.Call)


def to_node(automaton: Automaton) -> ir.Node:
    """A node for the language of `automaton`, `ir.NOTHING` where it is empty."""
    live = automaton.live()
    return _Writer(automaton, live).node() if 0 in live else ir.NOTHING


class _Writer:
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
