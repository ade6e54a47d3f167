"""What the schemas that apply to one object or array say together about each of its members."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dovetail.errors import SchemaError

from .pointers import Where, render
from .reading import Located, count, schemas


@dataclass(slots=True)
class Properties:
    """Declared keys with the schemas of their values, and those of all other keys; `extra` is None where there are none."""

    declared: list[tuple[str, list[Located], bool]]
    extra: list[Located] | None


def properties(parts: tuple[Located, ...], strict: bool) -> Properties:
    """The members of an object; `strict` closes it when it declares properties and no schema speaks of others."""
    names: dict[str, bool] = {}
    extra: list[Located] | None = []
    declares = False
    for schema, where in parts:
        if "properties" in schema:
            declares = True
            for name in _mapping(schema, where):
                names.setdefault(name, False)
        if "additionalProperties" in schema:
            more = schema["additionalProperties"]
            if more is False:
                extra = None
            elif extra is not None:
                extra.append((more, (where, "additionalProperties")))
    silent = not any("additionalProperties" in schema for schema, _ in parts)
    for schema, where in parts:
        if "required" in schema:
            for name in _required(schema["required"], where):
                names[name] = True
    if strict and declares and silent:
        extra = None
    return Properties([(name, _schemas_of(name, parts), required) for name, required in names.items()], extra)


def _mapping(schema: dict[str, Any], where: Where) -> dict[str, Any]:
    declared = schema["properties"]
    if not isinstance(declared, dict):
        raise SchemaError("properties must be an object", render((where, "properties")), "map each key to its schema")
    return declared


def _required(value: Any, where: Where) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        raise SchemaError("required must be a list of strings", render((where, "required")), "list the keys that must be there")
    return value


def _schemas_of(name: str, parts: tuple[Located, ...]) -> list[Located]:
    found: list[Located] = []
    for schema, where in parts:
        declared = schema.get("properties")
        if declared is not None and name in declared:
            found.append((declared[name], ((where, "properties"), name)))
        elif "additionalProperties" in schema:
            found.append((schema["additionalProperties"], (where, "additionalProperties")))
    return found


@dataclass(slots=True)
class Items:
    """The schemas of the first items one by one, then of all others, and how many items there are."""

    prefix: list[list[Located]]
    rest: list[Located]
    low: int
    high: int | None


def items(parts: tuple[Located, ...]) -> Items:
    """The items of an array."""
    low, high = 0, None
    prefixes: list[tuple[list[Located], list[Located]]] = []
    for schema, where in parts:
        if "minItems" in schema:
            low = max(low, count(schema["minItems"], "minItems", where))
        if "maxItems" in schema:
            most = count(schema["maxItems"], "maxItems", where)
            high = most if high is None else min(high, most)
        if isinstance(schema.get("items"), list):
            problem = "items is a list, as drafts before 2020-12 wrote it"
            raise SchemaError(problem, render((where, "items")), "write the list as prefixItems")
        rest = [(schema["items"], (where, "items"))] if "items" in schema else []
        first = [(schema, ((where, "prefixItems"), i)) for i, schema in enumerate(_prefix(schema, where))]
        prefixes.append((first, rest))
    length = max((len(first) for first, _ in prefixes), default=0)
    prefix = [[one for first, rest in prefixes for one in (first[i : i + 1] or rest)] for i in range(length)]
    return Items(prefix, [one for _, rest in prefixes for one in rest], low, high)


def _prefix(schema: dict[str, Any], where: Where) -> Any:
    return schemas(schema["prefixItems"], "prefixItems", where) if "prefixItems" in schema else ()
