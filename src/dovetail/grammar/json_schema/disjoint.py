"""Whether two schemas can hold for the same value: where they cannot, `oneOf` is a plain choice."""

from __future__ import annotations

from itertools import combinations, permutations

from dovetail.errors import LimitError
from dovetail.grammar.ir import NOTHING
from dovetail.grammar.json_schema.objects.properties import properties
from dovetail.grammar.json_schema.read.constraints import ANY_TYPE, OBJECT, STRING, Constraints, Located
from dovetail.grammar.json_schema.read.equality import identity
from dovetail.grammar.json_schema.read.pointers import render
from dovetail.grammar.json_schema.read.reader import Reader
from dovetail.grammar.json_schema.values import strings

from .admission import admits

MAX_PAIRS = 20_000
MAX_DEPTH = 4
MAX_PATTERN = 400  # characters; of longer patterns the comparison takes longer than it saves


def rivals(
    reader: Reader, arms: list[Located], branches: list[list[Constraints]], types: int, needed: frozenset[str]
) -> list[set[int]]:
    """For each arm, read into `branches`, the others that may hold beside it.

    The value has one of `types`, and if it is an object, it has the keys `needed`.
    """
    if len(arms) * len(arms) > MAX_PAIRS:
        where = render(arms[0][1])
        raise LimitError(f"oneOf has {len(arms)} branches, too many to compare", where, "use anyOf")
    others: list[set[int]] = [set() for _ in arms]
    # While strict, an object of one arm is closed when it is written, but whether it fits another arm is for the schema
    # alone to say: then the two ways to compare differ.
    for left, right in permutations(range(len(arms)), 2) if reader.strict else combinations(range(len(arms)), 2):
        pairs = ((one, other) for one in branches[left] for other in branches[right])
        if not all(disjoint(reader, one, other, 0, types, needed) for one, other in pairs):
            others[left].add(right)
            if not reader.strict:
                others[right].add(left)
    return others


def disjoint(
    reader: Reader,
    left: Constraints,
    right: Constraints,
    depth: int,
    types: int = ANY_TYPE,
    needed: frozenset[str] = frozenset(),
) -> bool:
    """Whether no value keeps to both, False where that is not certain; only objects of `left` may be closed."""
    common = left.types & right.types & types
    if not common:
        return True
    if left.values is not None and right.values is not None:
        return not {identity(value) for value in left.values} & {identity(value) for value in right.values}
    for one, other in ((left, right), (right, left)):
        if one.values is not None:
            return not any(admits(reader, other, value) for value in one.values)
    if common == STRING:
        return _strings(left, right)
    return common == OBJECT and depth < MAX_DEPTH and _objects(reader, left, right, depth, needed)


def _strings(left: Constraints, right: Constraints) -> bool:
    """Whether no text matches the patterns of both."""
    patterns = (*left.pattern_texts()[0], *right.pattern_texts()[0])
    if not left.patterns or not right.patterns or sum(map(len, patterns)) > MAX_PATTERN:
        return False
    try:
        return strings.language(patterns) == NOTHING
    except LimitError:
        return False


def _objects(reader: Reader, left: Constraints, right: Constraints, depth: int, needed: frozenset[str]) -> bool:
    """Whether a key that one demands cannot be in the other, or not with such a value."""
    ours, theirs = properties(left.objects, reader), properties(right.objects, reader, strict=False)
    for mine, others in ((ours, theirs), (theirs, ours)):
        for name, nodes, required in mine.declared:
            if (required or name in needed) and _differ(reader, nodes, others.nodes(name), depth):
                return True
    return False


def _differ(reader: Reader, nodes: list[Located], others: list[Located] | None, depth: int) -> bool:
    """Whether no value of a member keeps to both; None is that of a member that cannot be there."""
    if others is None:
        return True
    pairs = ((one, two) for one in reader.read(nodes) for two in reader.read(others))
    return bool(others) and all(disjoint(reader, one, two, depth + 1) for one, two in pairs)
