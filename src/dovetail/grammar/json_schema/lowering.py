"""From facts to nodes: values in one spelling.

A schema that describes objects or arrays becomes one rule, whose body is made later from a list of pending work: so
recursion in the schema is recursion between rules, and a deeply nested schema needs no deep Python stack.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from dovetail.errors import LimitError, SchemaError
from dovetail.grammar import regex
from dovetail.grammar.ir import (
    EMPTY,
    NOTHING,
    Call,
    Lit,
    Node,
    Rule,
    Seq,
    alt,
    is_nothing,
)

from . import text
from .admission import admits
from .arrays import Counting, Items, can_tell_apart, distinct, in_sequence, items, more_items
from .facts import (
    ARRAY,
    OBJECT,
    STRING,
    TYPES,
    Facts,
    Located,
)
from .members import Group, Member, any_order, counted, ordered
from .pointers import Where, located, render
from .reading import KEYWORDS, Reader
from .scalars import scalars
from .shapes import Extra, Properties, properties, variants
from .spelling import Members, Spelling
from .text import concat
from .values import all_strings, identity, is_number, is_speakable
from .ways import choice

_REF = {"$ref"}
_ANY_OF = {"anyOf"}
_ONE_OF = {"oneOf"}
_ENUM = {"enum"}
_TYPE_ENUM = {"type", "enum"}
_OBJECT = {"type", "properties", "required", "additionalProperties"}
_MEMBERS = _OBJECT | {"patternProperties", "propertyNames", "minProperties", "maxProperties"}
_ARRAY = {"type", "items", "minItems", "maxItems"}
_MAX_SHARED = 4096
MAX_COMPOSITES = 50_000  # objects and arrays that the schemas of one document come to together
_COMPOSITE = ("object", "array")
_MAX_KEYS = 1_000  # that are counted
_FEW_KEYS = 32  # of which some must be left for members that have to be there

Parts = tuple[Located, ...]
Kinds = list[tuple[int, Parts]]  # objects and arrays, each by the schemas that apply


class Lowering:
    """The rules of one schema."""

    __slots__ = (
        "_composites",
        "_done",
        "_kept",
        "_pending",
        "doubtful",
        "free_order",
        "impossible",
        "members",
        "pieces",
        "reader",
        "strict",
    )

    def __init__(self, reader: Reader, pieces: Spelling, free_order: bool) -> None:
        self.reader = reader
        self.pieces = pieces
        self.members = pieces.members()
        self.strict = reader.strict
        self.free_order = free_order
        self.impossible: list[Where] = []  # schemas that no value satisfies, where that was seen
        self.doubtful = False  # whether some rule may match nothing
        self._done: dict[Any, Node] = {}
        self._kept: list[Sequence[Located]] = []
        self._pending: list[tuple[Rule, Kinds]] = []
        self._composites: dict[Any, tuple[Node, Kinds]] = {}

    # Which values.

    def value(self, nodes: Sequence[Located]) -> Node:
        """A JSON value to which all of `nodes` apply."""
        if len(nodes) == 1:
            schema, where = nodes[0]
            if type(schema) is dict:
                return self.single(schema, where)
        key = frozenset(id(schema) for schema, _ in nodes)
        found = self._done.get(key)
        if found is None:
            found = self._done[key] = self.union(self.reader.read(nodes))
            if is_nothing(found):
                self.impossible.append(nodes[0][1])
            self._kept.append(nodes)  # so that no other schema gets the same identity
        return found

    def single(self, schema: dict[str, Any], where: Where) -> Node:
        """A JSON value to which one schema applies; what most schemas say needs no reading of branches."""
        found = self._done.get(id(schema))
        if found is None:
            found = self._common(schema, where)
            if found is None:
                found = self.union(self.reader.read(((schema, where),)))
            if is_nothing(found):
                self.impossible.append(where)
            self._done[id(schema)] = found
        return found

    def _common(self, schema: dict[str, Any], where: Where) -> Node | None:
        """The values of a schema of a common form; None where it has another."""
        live = KEYWORDS.intersection(schema)
        name = schema.get("type")
        if type(name) is str and name in TYPES:
            if len(live) == 1:
                return self.pieces.by_type[name]
            if name == "object" and live <= _MEMBERS:
                return self._composite([(OBJECT, ((schema, where),))])
            if name == "array" and live <= _ARRAY and type(schema.get("items")) is not list:
                return self._composite([(ARRAY, ((schema, where),))])
            return None
        if live == _REF or ("$ref" in live and self.reader.references.draft_of(schema) <= 7):
            target, place = self.reader.references.target(schema, "$ref", where)
            self.doubtful = True
            return self.single(target, place) if type(target) is dict and "$ref" not in target else None
        return None if live else self.pieces.value

    def union(self, branches: list[Facts]) -> Node:
        """A JSON value of any of these kinds; objects and arrays share one rule, in which they can be told apart."""
        ways: list[Node] = []
        composite: Kinds = []
        for facts in branches:
            if facts.values is not None:
                ways += self.literals(facts)
                continue
            ways += scalars(facts, self.pieces, self.reader)
            for kind, parts, anything in (
                (OBJECT, facts.objects, self.pieces.by_type["object"]),
                (ARRAY, facts.arrays, self.pieces.by_type["array"]),
            ):
                if facts.types & kind and parts:
                    composite.append((kind, parts))
                elif facts.types & kind:
                    ways.append(anything)
        if composite:
            ways.append(self._composite(composite))
        if len(ways) == 1:
            return ways[0]
        return alt(*dict.fromkeys(way for way in ways if not is_nothing(way)))

    def _composite(self, kinds: Kinds) -> Node:
        """The rule of some objects and arrays, the same for all values to which the same schemas apply."""
        key = tuple([(kind, *[id(schema) for schema, _ in parts]) for kind, parts in kinds])
        found = self._composites.get(key)
        if found is None:
            if len(self._composites) >= MAX_COMPOSITES:
                problem = f"the schemas that apply together come to more than {MAX_COMPOSITES} objects and arrays"
                raise LimitError(problem, render(kinds[0][1][0][1]), "combine fewer recursive schemas by allOf")
            rule = Rule("object" if kinds[0][0] == OBJECT else "array", EMPTY)
            self._pending.append((rule, kinds))
            found = self._composites[key] = Call(rule), kinds  # which keep the identities of their schemas
        return found[0]

    # Single values.

    def admitted(self, facts: Facts) -> list[Any]:
        """The values of `enum` and `const` that the other keywords admit."""
        values = facts.values or []
        if facts.types & STRING and all_strings(values) and facts.admits_words():
            return values  # a long list of words is common
        return [value for value in values if admits(self.reader, facts, value)]

    def literals(self, facts: Facts) -> list[Node]:
        """A node for each value of `enum` and `const` that the other keywords admit; strings share one."""
        values = self.admitted(facts)
        words = [value for value in values if isinstance(value, str)]
        others = {identity(value): value for value in values if not isinstance(value, str)}
        ways = [self.literal(int(value) if facts.integer and is_number(value) else value) for value in others.values()]
        return [*([self.quoted(words)] if words else []), *ways]

    def quoted(self, words: Iterable[str]) -> Node:
        """A string that denotes one of `words`, but for those that cannot be said or are excluded."""
        speakable = [word for word in dict.fromkeys(words) if word.isascii() or is_speakable(word)]
        return alt(*[node for word in speakable for node in self.pieces.word(word)])

    def literal(self, value: Any) -> Node:
        """A value equal to `value`; members only in their own order."""
        match value:
            case str():
                return self.quoted((value,))
            case list():
                nodes = [self.literal(item) for item in value]
                if any(map(is_nothing, nodes)):
                    return NOTHING
                # One flat sequence: the list may be long.
                rest = (part for node in nodes[1:] for part in (*self.pieces.comma, node, *self.pieces.ws))
                return concat(
                    text.FIRST, *self.pieces.ws, *nodes[:1], *(self.pieces.ws if nodes else ()), *rest, text.LAST
                )
            case dict():
                return self._literal_object(value, self.members)
            case bool() | None:
                return {True: self.pieces.true, False: self.pieces.false, None: self.pieces.null}[value]
            case _:
                return Lit(json.dumps(value, allow_nan=False).encode())

    def _literal_object(self, value: dict[str, Any], braces: Members) -> Node:
        members = [_member(key, self.literal(item), True, braces) for key, item in braces.ordered(value.items())]
        return NOTHING if None in members else self._braced(Group([one for one in members if one]), braces)

    # Objects and arrays.

    def arguments(self, nodes: Sequence[Located], braces: Members) -> Node:
        """An object to which all of `nodes` apply, written between other braces than those inside of it."""
        ways: list[Node] = []
        several: list[Parts] = []
        for facts in self.reader.read(nodes):
            if facts.values is not None:
                objects = [value for value in self.admitted(facts) if isinstance(value, dict)]
                ways += (self._literal_object(value, braces) for value in objects)
            elif facts.types & OBJECT:
                several.append(facts.objects or (({}, ()),))
        ways += [self._objects(several, braces)] if several else []
        self.finish()
        return alt(*[way for way in ways if not is_nothing(way)])

    def finish(self) -> None:
        """Make the bodies of all rules."""
        while self._pending:
            rule, kinds = self._pending.pop()
            if len(kinds) == 1:
                kind, parts = kinds[0]
                rule.body = self._objects([parts], self.members) if kind == OBJECT else self._array(parts)
            else:
                objects = [parts for kind, parts in kinds if kind == OBJECT]
                bodies = [self._objects(objects, self.members)] if objects else []
                bodies += (self._array(parts) for kind, parts in kinds if kind == ARRAY)
                rule.body = alt(*(body for body in bodies if not is_nothing(body)))
            self.doubtful = self.doubtful or is_nothing(rule.body)

    def _objects(self, several: list[Parts], braces: Members) -> Node:
        shapes = [one for parts in several for one in variants(properties(parts, self.reader), parts[0][1])]
        where = several[0][0][1]
        ways = [self._object(shape, where, braces) for shape in shapes]
        return choice([way for way in ways if not is_nothing(way)], where)

    def _object(self, shape: Properties, where: Where, braces: Members) -> Node:
        members: list[Member] = []
        for name, nodes, required in braces.ordered(shape.declared):
            value = self._of(nodes)
            try:
                member = _member(name, value, required, braces)
            except SchemaError as error:
                raise SchemaError(error.problem, render(((where, "properties"), name)), error.fix) from None
            if member is not None:
                members.append(member)
            elif required:
                return NOTHING
        names = [name for name, _, _ in shape.declared]
        # Where the member is written several times, it is a rule of its own.
        once = not self.free_order and any(member.required for member in members) and not shape.witnesses
        extra = self._extra(names, shape.extra, once, braces) if shape.extra else ()
        witnesses = [self._extra(names, [witness], False, braces) for witness in shape.witnesses]
        if () in witnesses:
            return NOTHING
        whole = Group(members, extra, witnesses, between=braces.between)
        group: Group | None = whole
        if shape.low or shape.high is not None or witnesses:
            others = self._number_of_others(shape)
            group = counted(whole._replace(others=others), shape.low, shape.high)
        if group is None:
            return NOTHING
        return located(where, self._braced, group, braces)

    def _braced(self, group: Group, braces: Members) -> Node:
        """The members of an object between its braces."""
        if self.free_order:
            return concat(braces.open, *self.pieces.ws, any_order(group, self.pieces.comma, braces.close))
        return Seq((braces.open, *self.pieces.ws, *ordered(group, self.pieces.comma, braces.close)))

    def _of(self, nodes: Sequence[Located]) -> Node:
        """A value of which nothing at all may be said."""
        return self.value(nodes) if nodes else self.pieces.value

    def _number_of_others(self, shape: Properties) -> int | None:
        """How many members there can be beside those that are declared or must be there; None for enough."""
        possible = [one.keys for one in shape.extra if not one.nodes or not is_nothing(self.value(one.nodes))]
        most = min(max(shape.low, _FEW_KEYS if shape.witnesses else 0), _MAX_KEYS)
        counts = [None if keys is None or not most else regex.count(keys, most) for keys in possible]
        found = [count for count in counts if count is not None]
        return None if len(found) < len(counts) else max(sum(found) - len(shape.witnesses), 0)

    def _extra(self, names: list[str], groups: list[Extra], once: bool, braces: Members) -> tuple[Node, ...]:
        """A member that is not declared; `excludes` do not concern keys that a pattern describes."""
        values = [(group.keys, self._of(group.nodes)) for group in groups]
        ways = [braces.other(names, keys, value) for keys, value in values if not is_nothing(value)]
        ways = [way for way in ways if not is_nothing(way)]
        if not ways:
            return ()
        member = alt(*ways)
        return (member,) if once else (Call(Rule("member", member)),)

    def _array(self, parts: Parts) -> Node:
        shape = items(parts)
        if shape.unique is not None and (shape.high is None or shape.high > 1):
            found = self._distinct(shape)
            if found is not None:
                return found
            self.reader.widen(shape.unique, "uniqueItems", "items that were there before would have to be remembered")
        if shape.contains:
            counting = Counting(shape, self.reader, self._of)
            inside = located(parts[0][1], counting.nodes, self.pieces.comma, self.pieces.ws, text.LAST)
            if is_nothing(inside):
                return NOTHING
            return Seq((text.FIRST, *self.pieces.ws, inside))
        return self._plain_array(shape)

    def _distinct(self, shape: Items) -> Node | None:
        """An array of different values out of a few; None where they are too many."""
        if shape.prefix or shape.contains or not shape.rest:
            return None
        branches = self.reader.read(shape.rest)
        if not all(facts.values is not None for facts in branches):
            return None
        values = {identity(value): value for facts in branches for value in self.admitted(facts)}
        if not can_tell_apart(len(values), shape.low, shape.high):
            return None
        nodes = [self.literal(value) for value in values.values()]
        nodes = [node for node in nodes if not is_nothing(node)]
        inside = distinct(nodes, shape.low, shape.high, self.pieces.comma, self.pieces.ws, text.LAST)
        return NOTHING if is_nothing(inside) else Seq((text.FIRST, *self.pieces.ws, inside))

    def _plain_array(self, shape: Items) -> Node:
        prefix: list[Node] = []
        low, high = shape.low, shape.high
        for nodes in shape.prefix if high is None else shape.prefix[:high]:
            prefix.append(self._of(nodes))
            if is_nothing(prefix[-1]):
                high = len(prefix) - 1
                break
        rest = self._of(shape.rest)
        if is_nothing(rest):
            high = len(prefix) if high is None else min(high, len(prefix))
        if high is not None and low > high:
            return NOTHING
        before = max(len(prefix), 1)
        tail = more_items(rest, max(low - before, 0), None if high is None else high - before, self.pieces)
        inside: Node = EMPTY
        if high is None or high > 0:
            inside = in_sequence(prefix[:high] or [rest], tail, low, self.pieces)
        return Seq((text.FIRST, *self.pieces.ws, inside, text.LAST))


def _member(key: str, value: Node, required: bool, braces: Members) -> Member | None:
    """A key with its value; None where the pair cannot be written."""
    parts = () if is_nothing(value) else braces.declared(key, value)
    return Member(parts, required) if parts else None
