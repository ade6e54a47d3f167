"""What schemas that we make ourselves can say beyond JSON Schema: mostly that something does not hold.

The negation of a schema is written as schemas again, so that one reader serves both. Keywords of our own are no
strings: no schema that a user writes can hold them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .pointers import Where


@dataclass(eq=False, slots=True, repr=False)
class InternalKeyword:
    """A keyword of our own."""

    name: str

    def __repr__(self) -> str:
        return self.name


NOT_VALUES = InternalKeyword("not_values")  # a list of scalars that the value is none of
NOT_PATTERN = InternalKeyword("not_pattern")  # a pattern that is not found in the string
NOT_FORMAT = InternalKeyword("not_format")  # a format that the string does not have
NOT_MULTIPLE = InternalKeyword("not_multiple")  # the number is no multiple of this one
FRACTION = InternalKeyword("fraction")  # the number is no integer
SOME_ITEM = InternalKeyword("some_item")  # an `Item`
SOME_PROPERTY = InternalKeyword("some_property")  # a `Property`
CLOSING = InternalKeyword("closing")  # a `Closing`, from unevaluatedProperties
TAIL = InternalKeyword("tail")  # a `Tail`, from unevaluatedItems
PREFIX_AT = InternalKeyword("prefix_at")  # the keyword that the schema wrote instead of prefixItems
DEPENDENT_AT = InternalKeyword("dependent_at")  # the keyword that the schema wrote instead of dependentSchemas
EITHER = InternalKeyword("either")  # conjunctions of schemas with their places, of which one holds
MADE = InternalKeyword("made")  # marks a schema of our own, which closes no object


def settled(schema: Any) -> Any:
    """The boolean that a schema stands for where it is plain to see, as in {"not": {}}; the schema otherwise."""
    if type(schema) is dict and len(schema) < 2:
        if not schema:
            return True
        inner = schema.get("not")
        if inner is True or (type(inner) is dict and not inner):
            return False
    return schema


def is_never(schema: Any) -> bool:
    """Whether a schema stands for False."""
    return schema is False or (type(schema) is dict and "not" in schema and settled(schema) is False)


@dataclass(eq=False, slots=True)
class Negated:
    """The values that a schema does not admit."""

    schema: dict[Any, Any]


@dataclass(frozen=True, slots=True)
class Item:
    """An array has an item from `start` on that keeps to `schema`."""

    start: int
    schema: Any
    where: Where


@dataclass(frozen=True, slots=True)
class Property:
    """An object has a property whose value keeps to `value`, and whose key to `key`.

    The key is none of `names`, matches none of `others` and, unless that is None, matches `pattern`.
    """

    value: Any
    where: Where
    key: Any = True
    pattern: str | None = None
    names: tuple[str, ...] = ()
    others: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Closing:
    """Properties that are none of `names` and match none of `patterns` keep to `schema`."""

    names: frozenset[str]
    patterns: tuple[str, ...]
    schema: Any
    where: Where


@dataclass(frozen=True, slots=True)
class Tail:
    """Items from `start` on keep to `schema`."""

    start: int
    schema: Any
    where: Where
