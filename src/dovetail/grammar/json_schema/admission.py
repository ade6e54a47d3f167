"""Whether a schema admits a value: what is left of `enum` and `const` beside other keywords."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

from dovetail.grammar.json_schema.objects.arrays import Items, items
from dovetail.grammar.json_schema.objects.properties import properties
from dovetail.grammar.json_schema.read.constraints import ARRAY, NUMBER, OBJECT, STRING, TYPE_OF, Constraints, Located
from dovetail.grammar.json_schema.read.equality import identity
from dovetail.grammar.json_schema.read.reader import Reader
from dovetail.grammar.json_schema.values import strings

MAX_TRIED = 100


def type_of(value: Any) -> int:
    """The type of a JSON value."""
    exact = TYPE_OF.get(type(value))
    return exact or next((kind for base, kind in TYPE_OF.items() if isinstance(value, base)), OBJECT)


def admits(reader: Reader, known: Constraints, value: Any) -> bool:
    """Whether `value` keeps to all of `constraints`, its `enum` left aside."""
    kind = type_of(value)
    if not known.types & kind or (known.banned and known.bars(identity(value))):
        return False
    if kind == NUMBER:
        return _number(known, Decimal(repr(value)))
    if kind == STRING:
        long_enough = known.low <= len(value) and (known.high is None or len(value) <= known.high)
        return long_enough and strings.contains(value, *known.pattern_texts())
    if kind == ARRAY and known.arrays:
        return _array(reader, known, value)
    if kind == OBJECT and known.objects:
        return _object(reader, known, value)
    return True


def without_sure(reader: Reader, shape: Items) -> Items:
    """The items of an array without the demands that each of a few listed values meets: then it is enough to count."""
    if not shape.contains:
        return shape
    branches = reader.read(shape.rest)
    if shape.prefix or sum(MAX_TRIED if known.values is None else len(known.values) for known in branches) >= MAX_TRIED:
        return shape
    values = [value for known in branches for value in known.values or () if admits(reader, known, value)]
    low, kept = shape.low, []
    for one in shape.contains:
        if one.high is None and all(_any(reader, one.nodes, value) for value in values):
            low = max(low, one.start + one.low)
        else:
            kept.append(one)
    return replace(shape, low=low, contains=kept)


def _any(reader: Reader, nodes: list[Located], value: Any) -> bool:
    key = identity(value)
    return any(known.lists(key) and admits(reader, known, value) for known in reader.read(nodes))


def _number(known: Constraints, value: Decimal) -> bool:
    whole = value == value.to_integral_value()
    if (known.integer and not whole) or (known.fraction and whole):
        return False
    if any((value % divisor == 0) != holds for divisor, holds, _ in known.divisors):
        return False
    low, high = known.minimum, known.maximum
    if low is not None and (value < low[0] or (low[1] and value == low[0])):
        return False
    return high is None or value < high[0] or (value == high[0] and not high[1])


def _array(reader: Reader, known: Constraints, value: list[Any]) -> bool:
    shape = items(known.arrays)
    if len(value) < shape.low or (shape.high is not None and len(value) > shape.high):
        return False
    if shape.unique and len({identity(item) for item in value}) < len(value):
        return False
    for one in shape.contains:
        met = sum(_any(reader, one.nodes, item) for item in value[one.start :])
        if met < one.low or (one.high is not None and met > one.high):
            return False
    return all(_any(reader, shape.nodes(index), item) for index, item in enumerate(value))


def _object(reader: Reader, known: Constraints, value: dict[str, Any]) -> bool:
    shape = properties(known.objects, reader, strict=False)  # a value that is listed may be written
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
