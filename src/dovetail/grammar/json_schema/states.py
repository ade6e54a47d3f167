"""Grammars that count or remember: one rule for each state, made when a state is first met."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from dovetail.errors import LimitError
from dovetail.grammar.ir import EMPTY, Call, Node, Rule

S = TypeVar("S", bound=Hashable)


class States(Generic[S]):
    """The rules of the states that a start leads to; `following` gives what may come in one, with calls to others."""

    def __init__(self, name: str, following: Callable[[S], Node], most: int, problem: str, fix: str) -> None:
        self._name = name
        self._following = following
        self._most = most
        self._error = (problem, fix)
        self._rules: dict[S, Rule] = {}
        self._pending: list[S] = []

    def start(self, state: S) -> Node:
        """What may come in the first state, once all states behind it have their rules."""
        node = self._following(state)
        while self._pending:
            later = self._pending.pop()
            self._rules[later].body = self._following(later)
        return node

    def call(self, state: S) -> Node:
        """What may come in a state, as a call: states may lead to each other."""
        rule = self._rules.get(state)
        if rule is None:
            if len(self._rules) >= self._most:
                problem, fix = self._error
                raise LimitError(f"{problem} takes more than {self._most} states", "", fix)
            rule = self._rules[state] = Rule(self._name, EMPTY)
            self._pending.append(state)
        return Call(rule)
