"""Whether two branches can hold for the same value: what `oneOf` forbids."""

from __future__ import annotations

from itertools import combinations

from dovetail.errors import LimitError, SchemaError

from .admission import admits
from .pointers import render
from .reading import NUMBER, OBJECT, Facts, Reader
from .shapes import properties
from .values import identity

MAX_PAIRS = 20_000
MAX_DEPTH = 4


def check_one_of(reader: Reader, branches: list[Facts], strict: bool) -> None:
    """Refuse branches of one `oneOf` that may overlap: a union would then accept what the schema does not."""
    chosen = [facts for facts in branches if facts.chosen]
    if len(chosen) * len(chosen) > MAX_PAIRS:
        where = render(chosen[0].chosen[0][0])
        raise LimitError(f"oneOf has {len(chosen)} branches, too many to compare", where, "use anyOf")
    for left, right in combinations(chosen, 2):
        arms = dict(left.chosen)
        rivals = [choice for choice, arm in right.chosen if arms.get(choice, arm) != arm]
        if rivals and not disjoint(reader, left, right, strict, 0):
            problem = "two branches of oneOf may hold for the same value"
            fix = "use anyOf, or give the branches a property with different constants"
            raise SchemaError(problem, render(rivals[0]), fix)


def disjoint(reader: Reader, left: Facts, right: Facts, strict: bool, depth: int) -> bool:
    """Whether no value keeps to both; False where that is not certain."""
    common = left.types & right.types
    if not common:
        return True
    if left.values is not None and right.values is not None:
        return not {identity(value) for value in left.values} & {identity(value) for value in right.values}
    for one, other in ((left, right), (right, left)):
        if one.values is not None:
            return not any(admits(reader, other, value, strict) for value in one.values)
    if common == NUMBER:
        return _apart(left, right) or _apart(right, left)
    return common == OBJECT and depth < MAX_DEPTH and _objects(reader, left, right, strict, depth)


def _apart(left: Facts, right: Facts) -> bool:
    """Whether all numbers of `left` lie below those of `right`."""
    if left.maximum is None or right.minimum is None:
        return False
    (high, open_above), (low, open_below) = left.maximum, right.minimum
    return high < low or (high == low and (open_above or open_below))


def _objects(reader: Reader, left: Facts, right: Facts, strict: bool, depth: int) -> bool:
    """Whether a key that both demand has values apart, or one demands what the other forbids."""
    ours, theirs = (properties(facts.objects, strict, reader.read) for facts in (left, right))
    for mine, others in ((ours, theirs), (theirs, ours)):
        known = {name: (nodes, required) for name, nodes, required in others.declared}
        for name, nodes, required in mine.declared:
            if not required:
                continue
            if name not in known:
                if not others.extra:
                    return True
                continue
            pairs = ((one, two) for one in reader.read(nodes) for two in reader.read(known[name][0]))
            if known[name][1] and all(disjoint(reader, one, two, strict, depth + 1) for one, two in pairs):
                return True
    return False
