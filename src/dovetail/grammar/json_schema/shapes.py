"""What the schemas that apply to one object or array say together about each of its members."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any, cast

from dovetail.errors import LimitError, SchemaError
from dovetail.grammar import regex
from dovetail.grammar.ir import NOTHING, Node, alt, lit

from . import strings
from .pointers import Where, located, render
from .reading import STRING, Facts, Located, at_least, at_most, schemas

MAX_PATTERNS = 5
_UNCOMMON = frozenset(("patternProperties", "propertyNames", "minProperties", "maxProperties"))

Read = Callable[[list[Located]], list[Facts]]


@dataclass(slots=True)
class Extra:
    """Keys that are not declared and the schemas of their values; `keys` is None for any key."""

    keys: Node | None
    nodes: list[Located]


@dataclass(slots=True)
class Properties:
    """Declared keys with the schemas of their values and whether they are required, and the other keys."""

    declared: list[tuple[str, list[Located], bool]]
    extra: list[Extra]
    low: int = 0
    high: int | None = None

    def nodes(self, name: str) -> list[Located] | None:
        """The schemas of the value of a key; None where the object has no such key."""
        for declared, nodes, _ in self.declared:
            if declared == name:
                return nodes
        for extra in self.extra:
            if extra.keys is None or regex.intersect(lit(name), extra.keys) != NOTHING:
                return extra.nodes
        return None


def properties(parts: tuple[Located, ...], strict: bool, read: Read) -> Properties:
    """The members of an object; `strict` closes it when it declares properties and no schema speaks of others."""
    if len(parts) == 1 and parts[0][0].keys().isdisjoint(_UNCOMMON):
        return _common(*parts[0], strict)
    names: dict[str, bool] = {}
    simple, silent, declares = True, True, False
    for schema, where in parts:
        if "properties" in schema:
            declares = True
            for name in _mapping(schema, "properties", where):
                names.setdefault(name, False)
        silent = silent and "additionalProperties" not in schema
        simple = simple and not schema.get("patternProperties") and "propertyNames" not in schema
    for schema, where in parts:
        if "required" in schema:
            for name in _required(schema["required"], where):
                names[name] = True
    closed = strict and silent and declares
    if simple:
        declared = [(name, _schemas_of(name, parts), required) for name, required in names.items()]
        shape = Properties(declared, [] if closed else _others(parts))
    else:
        shape = _Patterned(parts, closed, read).properties(names)
    for schema, where in parts:
        if "minProperties" in schema:
            shape.low = at_least(shape.low, schema["minProperties"], "minProperties", where)
        if "maxProperties" in schema:
            shape.high = at_most(shape.high, schema["maxProperties"], "maxProperties", where)
    return shape


def _common(schema: dict[str, Any], where: Where, strict: bool) -> Properties:
    """The same for one schema with the common keywords only."""
    declared = _mapping(schema, "properties", where)
    required = dict.fromkeys(_required(schema["required"], where)) if "required" in schema else {}
    at = (where, "properties")
    found = [(name, [(node, (at, name))], name in required) for name, node in declared.items()]
    more = schema.get("additionalProperties", not (strict and "properties" in schema))
    others = [] if more is True else [(more, (where, "additionalProperties"))]
    unknown = others if "additionalProperties" in schema else []
    found += [(name, unknown, True) for name in required if name not in declared]
    return Properties(found, [] if more is False else [Extra(None, others)])


def _mapping(schema: dict[str, Any], keyword: str, where: Where) -> dict[str, Any]:
    mapping = schema.get(keyword, {})
    if not isinstance(mapping, dict):
        raise SchemaError(f"{keyword} must be an object", render((where, keyword)), "map each key to its schema")
    return mapping


def _required(value: Any, where: Where) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
        problem = "required must be a list of strings"
        raise SchemaError(problem, render((where, "required")), "list the keys that must be there")
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


def _others(parts: tuple[Located, ...]) -> list[Extra]:
    keyword = "additionalProperties"
    nodes = [(schema[keyword], (where, keyword)) for schema, where in parts if keyword in schema]
    return [] if any(schema is False for schema, _ in nodes) else [Extra(None, nodes)]


class _Patterned:
    """Objects whose keys are described by patterns: each set of patterns that a key can match is a group of its own."""

    def __init__(self, parts: tuple[Located, ...], closed: bool, read: Read) -> None:
        self._parts = parts
        self._closed = closed
        self._patterns = [
            (index, pattern, (schema, ((where, "patternProperties"), pattern)))
            for index, (part, where) in enumerate(parts)
            for pattern, schema in _mapping(part, "patternProperties", where).items()
        ]
        if len(self._patterns) > MAX_PATTERNS:
            problem = f"an object with more than {MAX_PATTERNS} patternProperties"
            raise LimitError(problem, render(parts[0][1]), "join patterns that have the same schema")
        self._languages = [
            located(place[1], strings.language, (pattern,), 0, None) for _, pattern, place in self._patterns
        ]
        self._allowed = self._allowed_names(read)

    def properties(self, names: dict[str, bool]) -> Properties:
        declared = [(name, self._declared(name), required) for name, required in names.items()]
        taken = regex.complement(alt(*(lit(name) for name in names))) if names else None
        extra = []
        for matched in product((True, False), repeat=len(self._patterns)):
            nodes = self._nodes("", matched)
            if nodes is None or (not any(matched) and self._closed):
                continue
            keys = self._keys(matched, taken)
            if keys != NOTHING:
                extra.append(Extra(keys, nodes))
        return Properties(declared, extra)

    def _allowed_names(self, read: Read) -> list[Node]:
        """A language for each `propertyNames`."""
        found = []
        for schema, where in self._parts:
            if "propertyNames" in schema:
                place = (where, "propertyNames")
                branches = read([(schema["propertyNames"], place)])
                found.append(alt(*(located(place, _names, facts) for facts in branches if facts.types & STRING)))
        return found

    def _declared(self, name: str) -> list[Located]:
        word = lit(name)
        if any(regex.intersect(word, language) == NOTHING for language in self._allowed):
            return [(False, ())]
        matched = tuple(regex.intersect(word, language) != NOTHING for language in self._languages)
        return self._nodes(name, matched) or []

    def _nodes(self, name: str, matched: tuple[bool, ...]) -> list[Located] | None:
        """The schemas for a key that matches these patterns; None where one of the parts forbids it."""
        nodes: list[Located] = []
        for index, (schema, where) in enumerate(self._parts):
            declared = _mapping(schema, "properties", where)
            hits = zip(matched, self._patterns, strict=True)
            here = [place for hit, (part, _, place) in hits if hit and part == index]
            if name and name in declared:
                here.append((declared[name], ((where, "properties"), name)))
            if not here and "additionalProperties" in schema:
                if schema["additionalProperties"] is False and not name:
                    return None
                here.append((schema["additionalProperties"], (where, "additionalProperties")))
            nodes += here
        return nodes

    def _keys(self, matched: tuple[bool, ...], taken: Node | None) -> Node:
        demands = [*self._allowed, *([taken] if taken is not None else [])]
        for hit, language in zip(matched, self._languages, strict=True):
            demands.append(language if hit else regex.complement(language))
        return regex.intersect(*demands) if len(demands) > 1 else demands[0]


def _names(facts: Facts) -> Node:
    patterns = tuple(pattern for pattern, _ in facts.patterns)
    if facts.values is None:
        return strings.language(patterns, facts.low, facts.high)
    return alt(*(lit(value) for value in facts.values if isinstance(value, str) and strings.contains(value, patterns)))


@dataclass(slots=True)
class Items:
    """The schemas of the first items one by one, then of all others, and how many items there are."""

    prefix: list[list[Located]]
    rest: list[Located]
    low: int
    high: int | None


def items(parts: tuple[Located, ...]) -> Items:
    """The items of an array."""
    low, high = 0, cast(int | None, None)
    prefixes: list[tuple[list[Located], list[Located]]] = []
    for schema, where in parts:
        if "minItems" in schema:
            low = at_least(low, schema["minItems"], "minItems", where)
        if "maxItems" in schema:
            high = at_most(high, schema["maxItems"], "maxItems", where)
        if isinstance(schema.get("items"), list):
            problem = "items is a list, as drafts before 2020-12 wrote it"
            raise SchemaError(problem, render((where, "items")), "write the list as prefixItems")
        rest = [(schema["items"], (where, "items"))] if "items" in schema else []
        listed = schemas(schema["prefixItems"], "prefixItems", where, empty=True) if "prefixItems" in schema else ()
        prefixes.append(([(one, ((where, "prefixItems"), i)) for i, one in enumerate(listed)], rest))
    length = max((len(first) for first, _ in prefixes), default=0)
    prefix = [[one for first, rest in prefixes for one in (first[i : i + 1] or rest)] for i in range(length)]
    return Items(prefix, [one for _, rest in prefixes for one in rest], low, high)
