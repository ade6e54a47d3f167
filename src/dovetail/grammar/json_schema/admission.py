"""Whether a schema admits a value: what is left of `enum` and `const` beside other keywords."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from . import strings
from .arrays import Items, items
from .facts import ARRAY, NUMBER, OBJECT, STRING, TYPE_OF, Facts, Located
from .reading import Reader
from .shapes import properties
from .values import identity

MAX_TRIED = 100


def type_of(value: Any) -> int:
    """The type of a JSON value."""
    found = TYPE_OF.get(type(value))
    return found or next((kind for base, kind in TYPE_OF.items() if isinstance(value, base)), OBJECT)


def admits(reader: Reader, facts: Facts, value: Any) -> bool:
    """Whether `value` keeps to all of `facts`, its `enum` left aside."""
    kind = type_of(value)
    if not facts.types & kind or (facts.banned and facts.bars(identity(value))):
        return False
    if kind == NUMBER:
        return _number(facts, Decimal(repr(value)))
    if kind == STRING:
        long_enough = facts.low <= len(value) and (facts.high is None or len(value) <= facts.high)
        return long_enough and strings.contains(value, *facts.pattern_texts())
    if kind == ARRAY and facts.arrays:
        return _array(reader, facts, value)
    if kind == OBJECT and facts.objects:
        return _object(reader, facts, value)
    return True


def without_sure(reader: Reader, shape: Items) -> Items:
    """The items of an array without the demands that each of a few listed values meets: then it is enough to count."""
    if not shape.contains:
        return shape
    branches = reader.read(shape.rest)
    if shape.prefix or sum(MAX_TRIED if facts.values is None else len(facts.values) for facts in branches) >= MAX_TRIED:
        return shape
    values = [value for facts in branches for value in facts.values or () if admits(reader, facts, value)]
    low, kept = shape.low, []
    for one in shape.contains:
        if one.high is None and all(_any(reader, one.nodes, value) for value in values):
            low = max(low, one.start + one.low)
        else:
            kept.append(one)
    return replace(shape, low=low, contains=kept)


def _any(reader: Reader, nodes: list[Located], value: Any) -> bool:
    key = identity(value)
    return any(facts.lists(key) and admits(reader, facts, value) for facts in reader.read(nodes))


def _number(facts: Facts, value: Decimal) -> bool:
    whole = value == value.to_integral_value()
    if (facts.integer and not whole) or (facts.fraction and whole):
        return False
    if any((value % divisor == 0) != holds for divisor, holds, _ in facts.divisors):
        return False
    low, high = facts.minimum, facts.maximum
    if low is not None and (value < low[0] or (low[1] and value == low[0])):
        return False
    return high is None or value < high[0] or (value == high[0] and not high[1])


def _array(reader: Reader, facts: Facts, value: list[Any]) -> bool:
    shape = items(facts.arrays)
    if len(value) < shape.low or (shape.high is not None and len(value) > shape.high):
        return False
    if shape.unique and len({identity(item) for item in value}) < len(value):
        return False
    for one in shape.contains:
        met = sum(_any(reader, one.nodes, item) for item in value[one.start :])
        if met < one.low or (one.high is not None and met > one.high):
            return False
    return all(_any(reader, shape.nodes(index), item) for index, item in enumerate(value))


def _object(reader: Reader, facts: Facts, value: dict[str, Any]) -> bool:
    shape = properties(facts.objects, reader, strict=False)  # a value that is listed may be written
    if len(value) < shape.low or (shape.high is not None and len(value) > shape.high):
        return False
    if any(required and name not in value for name, _, required in shape.declared):
        return False
    for demand in shape.demands:
        if not any(demand.holds_for(name) and _any(reader, demand.nodes, item) for name, item in value.items()):
            return False
    for name, item in value.items():
        nodes = shape.nodes(name)
        if nodes is None or not _any(reader, nodes, item):
            return False
    return True
