"""The choice of `oneOf`: an arm holds, and none of those that could hold beside it.

Which those are depends on what else is known of the value: an enclosing schema may say that it is an object, or demand
the key by whose value the arms are told apart. So the arms are compared when the choice is made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dovetail.errors import LimitError

from .constraints import ANY_TYPE, Constraints, Located
from .pointers import render

if TYPE_CHECKING:
    from .reader import Reader

Arm = list[Located]  # schemas that hold together

MAX_NESTED = 40
MAX_CONTEXTS = 8  # in which the arms of one choice are compared


class OneOf:
    """The arms of one `oneOf`."""

    def __init__(self, reader: Reader, places: Arm) -> None:
        self.met = False  # whether a reference leads here again while the arms are read
        self._reader = reader
        self._places = places
        self._uncompared: list[Arm] = [[place] for place in places]
        self._is_open = False
        self._branches: list[list[Constraints]] | None = None
        self._names: frozenset[str] = frozenset()  # of which an arm speaks
        self._known: dict[tuple[int, frozenset[str]], list[Arm]] = {}

    def arms(self, known: Constraints) -> list[Arm]:
        """Each arm, with the negations of those that may hold beside it for a value of which `known` holds."""
        if self._is_open:
            return self._uncompared  # what is compared leads back to this choice
        key = self._key(known)
        arms = self._known.get(key)
        if arms is None:
            if self._reader.nested >= MAX_NESTED:
                problem = f"oneOf stands inside of oneOf more than {MAX_NESTED} times"
                raise LimitError(problem, render(self._places[0][1]), "flatten the choices, or use anyOf")
            self._reader.nested += 1
            self._is_open = True
            if self._branches is None:
                self._branches = self._read()
                key = self._key(known)
            arms = self._known[key] = self._compared(self._branches, *key)
            self._is_open = False
            self._reader.nested -= 1
        return arms

    def _key(self, known: Constraints) -> tuple[int, frozenset[str]]:
        """What matters of `constraints`; where arms were compared often enough, nothing does."""
        key = (known.types, known.needed & self._names)
        return key if key in self._known or len(self._known) < MAX_CONTEXTS else (ANY_TYPE, frozenset())

    def _read(self) -> list[list[Constraints]]:
        branches: list[list[Constraints]] = []
        for place in self._places:
            # An arm that leads back to this choice adds nothing to it, so there is nothing to compare.
            self.met = False
            branch = self._reader.read((place,))
            branches.append([] if self.met else branch)
        parts = [part.get("properties") for branch in branches for known in branch for part, _ in known.objects]
        self._names = frozenset(name for declared in parts if isinstance(declared, dict) for name in declared)
        return branches

    def _compared(self, branches: list[list[Constraints]], types: int, needed: frozenset[str]) -> list[Arm]:
        from dovetail.grammar.json_schema.disjoint import rivals  # which reads the members of the arms in turn

        failing = [(self._reader.negated(schema), where) for schema, where in self._places]
        both = zip(self._places, rivals(self._reader, self._places, branches, types, needed), strict=True)
        return [[place, *(failing[other] for other in sorted(others))] for place, others in both]
