"""The objects of most schemas: keys are declared and others allowed or not, or no key is declared at all.

Of the declared ones some may have to be there or not, in one of several ways. They give what the general way gives
(shapes, ways, members), in a third of the time. Those of one schema that only declares the core reads itself (Glance).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from dovetail.grammar import regex
from dovetail.grammar.ir import NOTHING, Node, is_nothing

from . import strings
from .facts import Located
from .members import MAX_ANY_ORDER, Group
from .own import CLOSING, MADE, settled
from .pointers import Where, located
from .reading import KEYWORDS
from .shapes import UNCOMMON, Extra, admits_any_name
from .values import content

if TYPE_CHECKING:
    from .lowering import Lowering

Demands = tuple[frozenset[str], frozenset[str]]  # the members that must be there, and those that must not

_NONE: list[str] = []
_NO_MEMBERS: dict[str, Any] = {}
_DEMANDS: frozenset[Any] = frozenset(("type", "required", "properties", MADE))
_NAMING = ("properties", "required")
_OBJECTS = (None, "object")
_NOT_IN_MAPS = (UNCOMMON | {"properties", "required"}) - {"patternProperties"}


def at_a_glance(lowering: Lowering, parts: Sequence[Located]) -> Node | None:
    """The object to which these schemas apply; None where it is another, or something is wrong with it."""
    if len(parts) > 1:
        return _joined(lowering, parts) if lowering.free_order else None
    schema, where = parts[0]
    if "propertyNames" in schema and admits_any_name(schema["propertyNames"]):
        schema = {word: value for word, value in schema.items() if word != "propertyNames"}
    return lowering.glance.declared(lowering, schema, where) or _map(lowering, schema, where)


def either_at_a_glance(lowering: Lowering, several: Sequence[Sequence[Located]]) -> list[Node] | None:
    """The ways to write an object of one schema that only declares, of whose members some must be there or must not."""
    read = read_either(several, lowering.strict) if lowering.free_order else None
    if read is None:
        return None
    plain, ways = read
    at = (several[0][0][1], "properties")
    values = [lowering.value([(settled(node), (at, name))]) for name, node in plain.declared.items()]
    if any(map(is_nothing, values)):
        return None
    anything = lowering.pieces.value
    found = []
    for needed, absent in ways:
        lowering.need([value for name, value in zip(plain.declared, values, strict=True) if name in needed])
        others = sorted((needed | absent) - plain.declared.keys())
        names, all_values = [*plain.declared, *others], [*values, *[anything] * len(others)]
        found.append(lowering.glance.freely(names, all_values, needed, absent, plain.is_open))
    return found


def _joined(lowering: Lowering, parts: Sequence[Located]) -> Node | None:
    """The object of several schemas that only declare."""
    plain = read_joined(parts, lowering.strict)
    if plain is None:
        return None
    values = [lowering.value(nodes) for nodes in plain.declared.values()]
    if any(map(is_nothing, values)):
        return None
    lowering.need([value for name, value in zip(plain.declared, values, strict=True) if name in plain.needed])
    return lowering.glance.freely([*plain.declared], values, plain.needed, (), plain.is_open)


def _map(lowering: Lowering, schema: dict[str, Any], where: Where) -> Node | None:
    """An object none of whose members is declared."""
    found = read_map(schema)
    if found is None:
        return None
    at = (where, "patternProperties")
    languages = {name: located((at, name), strings.language, (name,), 0, None) for name in found.patterns}
    if len(languages) > 1:  # which say the same: where one matches every key, it says it all
        languages = {name: keys for name, keys in languages.items() if keys == strings.ANYTHING}
        if not languages:
            return None
    pattern, language = next(iter(languages.items()), ("", None))
    groups: list[Extra] = []
    if found.others is not False:
        others: list[Located] = [] if found.others is True else [(found.others, (where, "additionalProperties"))]
        groups.append(Extra(None if language is None else regex.intersect(barred=[language]), others))
    if language is not None:
        groups.append(Extra(language, [(found.matched, (at, pattern))]))
    extra = lowering.extra([], [group for group in groups if group.keys != NOTHING], False)
    if not extra:
        return None
    lowering.need([])
    return lowering.braced(Group((), extra))


class Plain(NamedTuple):
    """What such a schema says."""

    declared: dict[str, Any]
    needed: set[str]
    is_open: bool


def read_plain(schema: dict[str, Any], strict: bool) -> Plain | None:
    """None where it is no such schema, or something is wrong with it that the general way tells."""
    declared, required = schema.get("properties"), schema.get("required", _NONE)
    if not declared or type(declared) is not dict or type(required) is not list:
        return None
    if not schema.keys().isdisjoint(UNCOMMON) or not all(type(name) is str for name in required):
        return None
    needed = set(required)
    others = schema.get("additionalProperties", not strict)
    if type(others) is not bool or not needed <= declared.keys() or len(declared) > MAX_ANY_ORDER:
        return None
    return Plain(declared, needed, others)


def read_joined(parts: Sequence[Located], strict: bool) -> Plain | None:
    """What several such schemas say together, with a list for each key; None where one closes declared members out."""
    declared: dict[str, list[Located]] = {}
    needed: set[str] = set()
    closed: list[Collection[str]] = []  # the members that are left
    for schema, where in parts:
        if CLOSING in schema:
            closing = schema[CLOSING]
            if closing.schema is not False or closing.patterns:
                return None
            closed.append(closing.names)
            continue
        own, required = schema.get("properties", _NO_MEMBERS), schema.get("required", _NONE)
        if type(own) is not dict or type(required) is not list or not all(type(name) is str for name in required):
            return None
        others = schema.get("additionalProperties", None if strict else True)
        if type(others) is not bool or not schema.keys().isdisjoint(UNCOMMON):
            return None
        if not others:
            closed.append(own)
        at = (where, "properties")
        for name, node in own.items():
            declared.setdefault(name, []).append((node, (at, name)))
        needed.update(required)
    names = declared.keys()
    if not needed <= names or not 0 < len(names) <= MAX_ANY_ORDER or not all(names <= set(left) for left in closed):
        return None
    return Plain(declared, needed, not closed)


def read_either(several: Sequence[Sequence[Located]], strict: bool) -> tuple[Plain, list[Demands]] | None:
    """The same for one schema beside which others tell what must be there and what must not."""
    first = several[0][0][0]
    ways: list[Demands] = []
    told: dict[str, Any] = {}  # the names that they tell of, in order
    for parts in several:
        demands = [schema for schema, _ in parts[1:]]
        found = read_demands(demands) if parts[0][0] is first else None
        if found is None:
            return None
        ways.append(found)
        told |= {name: True for schema in demands for word in _NAMING for name in schema.get(word, ())}
    plain = read_plain(first, strict)
    if plain is None or not (plain.is_open or told.keys() <= plain.declared.keys()):
        return None
    possible = dict.fromkeys((needed | plain.needed, absent) for needed, absent in ways)
    ways = [(needed, absent) for needed, absent in possible if needed.isdisjoint(absent)]
    return plain, _uncovered(_merged(ways, plain.declared | told))


def read_demands(schemas: Iterable[Any]) -> Demands | None:
    """The members that must be there and those that must not, where nothing else is said."""
    needed: list[str] = []
    absent: dict[str, Any] = {}
    for schema in schemas:
        if type(schema) is not dict or KEYWORDS.intersection(schema) - _DEMANDS or schema.get("type") not in _OBJECTS:
            return None
        required, declared = schema.get("required", _NONE), schema.get("properties", _NO_MEMBERS)
        if type(required) is not list or type(declared) is not dict:
            return None
        needed += required
        absent |= declared
    if not all(type(name) is str for name in needed) or not all(inner is False for inner in absent.values()):
        return None
    return frozenset(needed), frozenset(absent)


def _merged(ways: list[Demands], names: Iterable[str]) -> list[Demands]:
    """One way for those of different ones that differ in one key, which may be there or not in it."""
    told = frozenset(name for needed, absent in ways for name in needed ^ absent)
    count = 0
    while count != len(ways):
        count = len(ways)
        for name in filter(told.__contains__, names):
            groups: dict[Demands, list[Demands]] = {}
            for needed, absent in ways:
                groups.setdefault((needed - {name}, absent - {name}), []).append((needed, absent))
            ways = [group[0] if len(group) == 1 else rest for rest, group in groups.items()]
    return ways


def _uncovered(ways: list[Demands]) -> list[Demands]:
    return [
        (needed, absent)
        for needed, absent in ways
        if not any(other <= needed and gone <= absent and (other, gone) != (needed, absent) for other, gone in ways)
    ]


class Map(NamedTuple):
    """What a schema says that declares no member: of keys that match a pattern, if there is one, and of others."""

    patterns: tuple[str, ...]
    matched: Any
    others: Any


def read_map(schema: dict[str, Any]) -> Map | None:
    """None where it is no such schema, or tells one pattern from another."""
    if not schema.keys().isdisjoint(_NOT_IN_MAPS):
        return None
    others, patterns = schema.get("additionalProperties", True), schema.get("patternProperties", _NO_MEMBERS)
    if type(patterns) is not dict or not (patterns or others):
        return None
    matched = next(iter(patterns.values()), _NO_MEMBERS)
    if type(matched) is not dict or (len(patterns) > 1 and not _are_alike(patterns.values())):
        return None
    return Map(tuple(patterns), matched, others)


def _are_alike(schemas: Iterable[Any]) -> bool:
    """Whether schemas say the same, as far as that is plain to see."""
    first, *more = {content(schema)[0] for schema in schemas}
    return first is not None and not more
