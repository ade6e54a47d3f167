"""What a schema does not admit, as schemas: `not` holds where one of the keywords fails.

Every function gives the alternatives in which its keyword fails, each a schema and its place.
"""

# ruff: noqa: ARG001 - the functions of one table take the same arguments
from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Any

from .constraints import TYPES, Located, count, mapping, names, schemas, type_names
from .keywords import (
    FRACTION,
    MADE,
    NOT_FORMAT,
    NOT_MULTIPLE,
    NOT_PATTERN,
    NOT_VALUES,
    SOME_ITEM,
    SOME_PROPERTY,
    Item,
    Negated,
    Property,
    settled,
)
from .pointers import Where

Schema = dict[Any, Any]


def negated(schema: Any) -> Any:
    """A schema that admits exactly what `schema` does not."""
    schema = settled(schema)
    if isinstance(schema, bool):
        return not schema
    return schema.schema if isinstance(schema, Negated) else Negated(schema)


def _type(value: Any, schema: Schema, where: Where) -> Iterator[Schema]:
    named = type_names(value, where)
    others = [name for name in TYPES if name not in (*named, "integer")]
    if "integer" in named and "number" not in named:
        yield {"type": "number", FRACTION: True}
        others.remove("number")
    if others:
        yield {"type": others}


def _enum(value: Any, schema: Schema, where: Where) -> Iterator[Schema]:
    listed = value if isinstance(value, list) else []
    whole = [item for item in listed if isinstance(item, dict | list)]
    scalars = [item for item in listed if not isinstance(item, dict | list)]
    if whole:
        yield {NOT_VALUES: scalars, "allOf": [Negated({"const": item}) for item in whole]}
    else:
        yield {NOT_VALUES: scalars}


def _const(value: Any, schema: Schema, where: Where) -> Iterator[Schema]:
    if isinstance(value, dict):
        yield {"type": [name for name in TYPES if name not in ("object", "integer")]}
        for key, item in value.items():
            yield {"type": "object", "properties": {key: False}}
            yield {"type": "object", "required": [key], "properties": {key: Negated({"const": item})}}
        yield {"type": "object", SOME_PROPERTY: Property(True, where, names=tuple(value))}
    elif isinstance(value, list):
        yield {"type": [name for name in TYPES if name not in ("array", "integer")]}
        if value:
            yield {"type": "array", "maxItems": len(value) - 1}
        yield {"type": "array", "minItems": len(value) + 1}
        for index, item in enumerate(value):
            other = [*([True] * index), Negated({"const": item})]
            yield {"type": "array", "minItems": len(value), "maxItems": len(value), "prefixItems": other}
    else:
        yield {NOT_VALUES: [value]}


def _past(kind: str, keyword: str, step: int, other: str) -> Callable[[Any, Schema, Where], Iterator[Schema]]:
    """Beyond a bound that counts: the other bound, a step further."""

    def handle(value: Any, schema: Schema, where: Where) -> Iterator[Schema]:
        beyond = count(value, keyword, where) + step
        if beyond >= 0:
            yield {"type": kind, other: beyond}

    return handle


def _as(kind: str, keyword: Any) -> Callable[[Any, Schema, Where], Iterator[Schema]]:
    """A value of this type for which another keyword has the same value."""

    def handle(value: Any, schema: Schema, where: Where) -> Iterator[Schema]:
        yield {"type": kind, keyword: value}

    return handle


def _required(value: Any, schema: Schema, where: Where) -> Iterator[Schema]:
    declared = mapping(schema, "properties", where)
    for name in names(value, "required", where):
        if name not in declared:
            yield {"type": "object", "properties": {name: False}}


def _properties(value: Any, schema: Schema, where: Where) -> Iterator[Schema]:
    needed = names(schema.get("required", []), "required", where)
    for name, inner in mapping(schema, "properties", where).items():
        failing = {"type": "object", "properties": {name: negated(inner)}}
        # Where the key is required, to be absent and to have another value are one way to fail.
        yield failing if name in needed else {**failing, "required": [name]}


def _pattern_properties(value: Any, schema: Schema, where: Where) -> Iterator[Schema]:
    for pattern, inner in mapping(schema, "patternProperties", where).items():
        yield {"type": "object", SOME_PROPERTY: Property(negated(inner), where, pattern=pattern)}


def _additional(value: Any, schema: Schema, where: Where) -> Iterator[Schema]:
    declared = tuple(mapping(schema, "properties", where))
    others = tuple(mapping(schema, "patternProperties", where))
    yield {"type": "object", SOME_PROPERTY: Property(negated(value), where, names=declared, others=others)}


def _property_names(value: Any, schema: Schema, where: Where) -> Iterator[Schema]:
    yield {"type": "object", SOME_PROPERTY: Property(True, where, key=negated(value))}


def _items(value: Any, schema: Schema, where: Where) -> Iterator[Schema]:
    start = len(schema.get("prefixItems", ()))
    yield {"type": "array", SOME_ITEM: Item(start, negated(value), (where, "items"))}


def _prefix(value: Any, schema: Schema, where: Where) -> Iterator[Schema]:
    for index, inner in enumerate(schemas(value, "prefixItems", where, empty=True)):
        first = [*([True] * index), negated(inner)]
        yield {"type": "array", "minItems": index + 1, "prefixItems": first}


def _contains(value: Any, schema: Schema, where: Where) -> Iterator[Schema]:
    fewest = count(schema.get("minContains", 1), "minContains", where)
    if fewest == 1:
        yield {"type": "array", "items": negated(value)}
    elif fewest:
        yield {"type": "array", "contains": value, "minContains": 0, "maxContains": fewest - 1}
    if "maxContains" in schema:
        most = count(schema["maxContains"], "maxContains", where)
        yield {"type": "array", "contains": value, "minContains": most + 1}


def _all_of(value: Any, schema: Schema, where: Where) -> Iterator[Schema]:
    for inner in schemas(value, "allOf", where):
        yield {"not": inner}


def _any_of(value: Any, schema: Schema, where: Where) -> Iterator[Schema]:
    yield {"allOf": [negated(inner) for inner in schemas(value, "anyOf", where)]}


def _one_of(value: Any, schema: Schema, where: Where) -> Iterator[Schema]:
    arms = schemas(value, "oneOf", where)
    yield {"allOf": [negated(inner) for inner in arms]}
    for pair in combinations(arms, 2):
        yield {"allOf": list(pair)}


def _not(value: Any, schema: Schema, where: Where) -> Iterator[Schema]:
    yield {"allOf": [value]}


def _if(value: Any, schema: Schema, where: Where) -> Iterator[Schema]:
    if "then" in schema:
        yield {"allOf": [value, negated(schema["then"])]}
    if "else" in schema:
        yield {"allOf": [negated(value), negated(schema["else"])]}


def _dependent_required(value: Any, schema: Schema, where: Where) -> Iterator[Schema]:
    for name, needed in mapping(schema, "dependentRequired", where).items():
        for other in names(needed, "dependentRequired", where):
            yield {"type": "object", "required": [name], "properties": {other: False}}


def _dependent_schemas(value: Any, schema: Schema, where: Where) -> Iterator[Schema]:
    for name, inner in mapping(schema, "dependentSchemas", where).items():
        yield {"type": "object", "required": [name], "allOf": [negated(inner)]}


_FAILING: dict[Any, Callable[[Any, Schema, Where], Iterator[Schema]]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "minLength": _past("string", "minLength", -1, "maxLength"),
    "maxLength": _past("string", "maxLength", 1, "minLength"),
    "pattern": _as("string", NOT_PATTERN),
    "format": _as("string", NOT_FORMAT),
    "minimum": _as("number", "exclusiveMaximum"),
    "maximum": _as("number", "exclusiveMinimum"),
    "exclusiveMinimum": _as("number", "maximum"),
    "exclusiveMaximum": _as("number", "minimum"),
    "multipleOf": _as("number", NOT_MULTIPLE),
    "required": _required,
    "properties": _properties,
    "patternProperties": _pattern_properties,
    "additionalProperties": _additional,
    "propertyNames": _property_names,
    "minProperties": _past("object", "minProperties", -1, "maxProperties"),
    "maxProperties": _past("object", "maxProperties", 1, "minProperties"),
    "items": _items,
    "prefixItems": _prefix,
    "contains": _contains,
    "minItems": _past("array", "minItems", -1, "maxItems"),
    "maxItems": _past("array", "maxItems", 1, "minItems"),
    "allOf": _all_of,
    "anyOf": _any_of,
    "oneOf": _one_of,
    "not": _not,
    "if": _if,
    "dependentRequired": _dependent_required,
    "dependentSchemas": _dependent_schemas,
}


def alternatives(schema: Schema, where: Where) -> list[Located]:
    """The schemas of which one holds where `schema` fails, its references left aside; all have its place."""
    failing: list[Located] = []
    for keyword, value in schema.items():
        handler = _FAILING.get(keyword)
        if handler is not None:
            for option in handler(value, schema, where):
                option[MADE] = True
                failing.append((option, where))
    return failing
