"""Whether a schema admits a value: what is left of `enum` and `const` beside other keywords."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from . import strings
from .reading import ARRAY, BOOLEAN, NULL, NUMBER, OBJECT, STRING, Facts, Located, Reader
from .shapes import items, properties
from .values import identity


def type_of(value: Any) -> int:
    """The type of a JSON value."""
    match value:
        case None:
            return NULL
        case bool():
            return BOOLEAN
        case int() | float():
            return NUMBER
        case str():
            return STRING
        case list():
            return ARRAY
        case _:
            return OBJECT


def admits(reader: Reader, facts: Facts, value: Any, strict: bool) -> bool:
    """Whether `value` keeps to all of `facts`, its `enum` left aside."""
    kind = type_of(value)
    if not facts.types & kind:
        return False
    if kind == NUMBER:
        return _number(facts, Decimal(repr(value)))
    if kind == STRING:
        long_enough = facts.low <= len(value) and (facts.high is None or len(value) <= facts.high)
        return long_enough and strings.contains(value, tuple(pattern for pattern, _ in facts.patterns))
    if kind == ARRAY and facts.arrays:
        return _array(reader, facts, value, strict)
    if kind == OBJECT and facts.objects:
        return _object(reader, facts, value, strict)
    return True


def _any(reader: Reader, nodes: list[Located], value: Any, strict: bool) -> bool:
    key = identity(value)
    return any(
        admits(reader, facts, value, strict)
        for facts in reader.read(nodes)
        if facts.values is None or key in map(identity, facts.values)
    )


def _number(facts: Facts, value: Decimal) -> bool:
    if facts.integer and value != value.to_integral_value():
        return False
    low, high = facts.minimum, facts.maximum
    if low is not None and (value < low[0] or (low[1] and value == low[0])):
        return False
    return high is None or value < high[0] or (value == high[0] and not high[1])


def _array(reader: Reader, facts: Facts, value: list[Any], strict: bool) -> bool:
    shape = items(facts.arrays)
    if len(value) < shape.low or (shape.high is not None and len(value) > shape.high):
        return False
    return all(
        _any(reader, shape.prefix[index] if index < len(shape.prefix) else shape.rest, item, strict)
        for index, item in enumerate(value)
    )


def _object(reader: Reader, facts: Facts, value: dict[str, Any], strict: bool) -> bool:
    shape = properties(facts.objects, strict, reader.read)
    if len(value) < shape.low or (shape.high is not None and len(value) > shape.high):
        return False
    if any(required and name not in value for name, _, required in shape.declared):
        return False
    for name, item in value.items():
        nodes = shape.nodes(name)
        if nodes is None or not _any(reader, nodes, item, strict):
            return False
    return True
