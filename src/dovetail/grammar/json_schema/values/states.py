"""Grammars that count or remember: one rule for each state."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

from dovetail.errors import LimitError
from dovetail.grammar.ir import EMPTY, NOTHING, Call, Node, Rule, Seq, alt
from dovetail.grammar.productive import matches

S = TypeVar("S", bound=Hashable)
Steps = list[tuple[tuple[Node, ...], S]]  # what may come, and the state behind it


class States(Generic[S]):
    """The rules of the states that a start leads to; `following` says whether one may end, and what may come in it."""

    def __init__(self, name: str, following: Callable[[S], tuple[bool, Steps[S]]], most: int, problem: str, fix: str):
        self._name = name
        self._following = following
        self._most = most
        self._error = (problem, fix)

    def start(self, state: S, close: Node) -> Node:
        """What may come from a state on, up to `close`; nothing where that cannot be reached."""
        graph = self._graph(state)
        calls = {one: Call(Rule(self._name, EMPTY)) for one in graph}
        for one, (ends, steps) in graph.items():
            ways = [Seq((*parts, calls[reached])) for parts, reached in steps]
            calls[one].rule.body = alt(*([close] if ends else []), *ways)
        body = calls[state].rule.body
        return body if matches(body) else NOTHING

    def _graph(self, state: S) -> dict[S, tuple[bool, Steps[S]]]:
        graph: dict[S, tuple[bool, Steps[S]]] = {}
        pending = [state]
        for one in pending:
            if len(graph) > self._most:
                problem, fix = self._error
                raise LimitError(f"{problem} takes more than {self._most} states", "", fix)
            if one not in graph:
                graph[one] = self._following(one)
                pending += [reached for _, reached in graph[one][1]]
        return graph
