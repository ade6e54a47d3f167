"""From constraints to nodes: values in one spelling.

A schema that describes objects or arrays becomes one rule, whose body is made later from a list of pending work: so
recursion in the schema is recursion between rules, and a deeply nested schema needs no deep Python stack.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal
from typing import Any

from dovetail.errors import LimitError, SchemaError
from dovetail.grammar import regex
from dovetail.grammar.ir import EMPTY, NOTHING, Call, Lit, Node, Rule, Seq, alt, is_nothing, seq
from dovetail.grammar.json_schema.objects.arrays import Counting, Items, in_sequence, items, more_items
from dovetail.grammar.json_schema.objects.members import Group, Member, any_order, counted, ordered
from dovetail.grammar.json_schema.objects.properties import Extra, Properties, properties, variants
from dovetail.grammar.json_schema.read.constraints import (
    ARRAY,
    BOOLEAN,
    NULL,
    NUMBER,
    OBJECT,
    STRING,
    TYPES,
    Constraints,
    Located,
)
from dovetail.grammar.json_schema.read.equality import all_strings, identity, is_number, is_speakable
from dovetail.grammar.json_schema.read.pointers import Where, located, render
from dovetail.grammar.json_schema.read.reader import KEYWORDS, Reader
from dovetail.grammar.json_schema.spell.json import Frame, Spelling
from dovetail.grammar.json_schema.values import numbers, strings

from .admission import admits, without_sure

_REF = {"$ref"}
_OBJECT = {"type", "properties", "required", "additionalProperties"}
_MEMBERS = _OBJECT | {"patternProperties", "propertyNames", "minProperties", "maxProperties"}
_ARRAY = {"type", "items", "minItems", "maxItems"}
MAX_WAYS = 30  # to write an object in any order: they are told apart late, and a generation follows them all
MAX_COMPOSITES = 50_000  # objects and arrays that the schemas of one document come to together
_MAX_KEYS = 1_000  # that are counted
_FEW_KEYS = 32  # of which some must be left for members that have to be there

Parts = tuple[Located, ...]
ANY_PARTS: Parts = (({}, ()),)  # an object or array of which nothing is said, the same each time
Kinds = list[tuple[int, Parts]]  # objects and arrays, each by the schemas that apply


class Lowering:
    """The rules of one schema."""

    def __init__(self, reader: Reader, pieces: Spelling, free_order: bool) -> None:
        self.reader = reader
        self.pieces = pieces
        self.frame = pieces.frame()
        self.strict = reader.strict
        self.free_order = free_order
        self.impossible: list[Where] = []  # schemas that no value satisfies, where that was seen
        self.doubtful = False  # whether some rule may match nothing
        self._done: dict[frozenset[int], tuple[Sequence[Located], Node]] = {}  # the schemas keep their identities
        self._pending: list[tuple[Rule, Kinds, Frame]] = []
        self._composites: dict[Any, tuple[Node, Kinds]] = {}

    # Which values.

    def value(self, nodes: Sequence[Located]) -> Node:
        """A JSON value to which all of `nodes` apply."""
        key = frozenset([id(schema) for schema, _ in nodes])
        if key in self._done:
            self.doubtful = True  # the value may be inside of itself
        else:
            node = self._common(*nodes[0]) if len(nodes) == 1 and type(nodes[0][0]) is dict else None
            if node is None:
                node = self.union(self.reader.read(nodes))
            if is_nothing(node):
                self.impossible.append(nodes[0][1])
            self._done[key] = nodes, node
        return self._done[key][1]

    def _common(self, schema: dict[str, Any], where: Where) -> Node | None:
        """The values of a schema of a common form; None where it has another."""
        live = KEYWORDS.intersection(schema)
        name = schema.get("type")
        if type(name) is str and name in TYPES:
            if len(live) == 1:
                return self.pieces.by_type[name]
            if name == "object" and live <= _MEMBERS:
                return self.composite([(OBJECT, ((schema, where),))])
            if name == "array" and live <= _ARRAY and type(schema.get("items")) is not list:
                return self.composite([(ARRAY, ((schema, where),))])
            return None
        if live == _REF or ("$ref" in live and self.reader.references.draft_of(schema) <= 7):
            target, place = self.reader.references.target(schema, "$ref", where)
            return self.value(((target, place),)) if type(target) is dict and "$ref" not in target else None
        return None if live else self.pieces.value

    def union(self, branches: list[Constraints]) -> Node:
        """A JSON value of any of these kinds; objects and arrays share one rule, in which they can be told apart."""
        ways: list[Node] = []
        composite: Kinds = []
        for known in branches:
            if known.values is not None:
                ways += self.literals(known)
                continue
            ways += _scalars(known, self.pieces, self.reader)
            for kind, parts, anything in (
                (OBJECT, known.objects, self.pieces.by_type["object"]),
                (ARRAY, known.arrays, self.pieces.by_type["array"]),
            ):
                if known.types & kind and parts:
                    composite.append((kind, parts))
                elif known.types & kind:
                    ways.append(anything)
        if composite:
            ways.append(self.composite(composite))
        if len(ways) == 1:
            return ways[0]
        return alt(*dict.fromkeys(way for way in ways if not is_nothing(way)))

    def composite(self, kinds: Kinds, frame: Frame | None = None) -> Node:
        """The rule of some objects and arrays, the same for all values to which the same schemas apply."""
        key = (id(frame), *[(kind, *[id(schema) for schema, _ in parts]) for kind, parts in kinds])
        if key in self._composites:
            self.doubtful = True  # the value may be inside of itself
        else:
            if len(self._composites) >= MAX_COMPOSITES:
                problem = f"the schemas that apply together come to more than {MAX_COMPOSITES} objects and arrays"
                raise LimitError(problem, render(kinds[0][1][0][1]), "combine fewer recursive schemas by allOf")
            rule = Rule("object" if kinds[0][0] == OBJECT else "array", EMPTY)
            self._pending.append((rule, kinds, frame or self.frame))
            self._composites[key] = Call(rule), kinds  # which keep the identities of their schemas
        return self._composites[key][0]

    # Single values.

    def admitted(self, known: Constraints) -> list[Any]:
        """The values of `enum` and `const` that the other keywords admit."""
        values = known.values or []
        if known.types & STRING and all_strings(values) and known.admits_words():
            return values  # a long list of words is common
        return [value for value in values if admits(self.reader, known, value)]

    def literals(self, known: Constraints) -> list[Node]:
        """A node for each value of `enum` and `const` that the other keywords admit; strings share one."""
        values = self.admitted(known)
        words = [value for value in values if isinstance(value, str)]
        others = {identity(value): value for value in values if not isinstance(value, str)}
        ways = [self.literal(int(value) if known.integer and is_number(value) else value) for value in others.values()]
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
            case list() | dict():
                return self.composite_literal(value, self.frame)
            case bool() | None:
                return {True: self.pieces.true, False: self.pieces.false, None: self.pieces.null}[value]
            case _:
                return Lit(json.dumps(value, allow_nan=False).encode())

    def composite_literal(self, value: list[Any] | dict[str, Any], frame: Frame) -> Node:
        """An object or array equal to `value`."""
        ws = self.pieces.ws
        if isinstance(value, dict):
            pairs = [(key, frame.literal(item, self.literal)) for key, item in frame.ordered(value.items())]
            members = [frame.declared(key, item) for key, item in pairs]
            return NOTHING if () in members else self._braced(Group([Member(one, True) for one in members]), frame)
        nodes = [frame.item(frame.literal(item, self.literal)) for item in value]
        if any(map(is_nothing, nodes)):
            return NOTHING
        # One flat sequence: the list may be long.
        rest = (part for node in nodes[1:] for part in (*frame.comma, node, *ws))
        return seq(frame.first, *ws, *nodes[:1], *(ws if nodes else ()), *rest, frame.last)

    # Objects and arrays.

    def arguments(self, nodes: Sequence[Located], frame: Frame) -> Node:
        """An object to which all of `nodes` apply, written between other frame than those inside of it."""
        ways: list[Node] = []
        several: list[Parts] = []
        for known in self.reader.read(nodes):
            if known.values is not None:
                objects = [value for value in self.admitted(known) if isinstance(value, dict)]
                ways += (self.composite_literal(value, frame) for value in objects)
            elif known.types & OBJECT:
                several.append(known.objects or ANY_PARTS)
        ways += [self._objects(several, frame)] if several else []
        self.finish()
        return alt(*[way for way in ways if not is_nothing(way)])

    def finish(self) -> None:
        """Make the bodies of all rules."""
        while self._pending:
            rule, kinds, frame = self._pending.pop()
            objects = [parts for kind, parts in kinds if kind == OBJECT]
            bodies = [self._objects(objects, frame)] if objects else []
            bodies += (self._array(parts, frame) for kind, parts in kinds if kind == ARRAY)
            rule.body = alt(*(body for body in bodies if not is_nothing(body)))
            self.doubtful = self.doubtful or is_nothing(rule.body)

    def _objects(self, several: list[Parts], frame: Frame) -> Node:
        shapes = [one for parts in several for one in variants(properties(parts, self.reader), parts[0][1])]
        where = several[0][0][1]
        ways = [way for shape in shapes if not is_nothing(way := self._object(shape, where, frame))]
        ways = ways if len(ways) < 2 else list(dict.fromkeys(ways))
        if self.free_order and len(ways) > MAX_WAYS:
            problem = f"there are {len(ways)} ways to meet this schema with keys in any order"
            fix = "leave any_order out, or use branches that a constant tells apart"
            raise LimitError(problem, render(where), fix)
        return alt(*ways)

    def _object(self, shape: Properties, where: Where, frame: Frame) -> Node:
        members: list[Member] = []
        for name, nodes, required in frame.ordered(shape.declared):
            value = frame.value(nodes, self._of)
            try:
                member = frame.declared(name, value)
            except SchemaError as error:
                raise SchemaError(error.problem, render(((where, "properties"), name)), error.fix) from None
            if member:
                members.append(Member(member, required))
            elif required:
                return NOTHING
        names = [name for name, _, _ in shape.declared]
        extra = self._extra(names, shape.extra, frame)
        witnesses = [self._extra(names, [witness], frame) for witness in shape.witnesses]
        if () in witnesses:
            return NOTHING
        whole = Group(members, extra, witnesses, between=frame.between)
        group: Group | None = whole
        if shape.low or shape.high is not None or witnesses:
            others = self._number_of_others(shape)
            group = counted(whole._replace(others=others), shape.low, shape.high)
        if group is None:
            return NOTHING
        return located(where, self._braced, group, frame)

    def _braced(self, group: Group, frame: Frame) -> Node:
        """The members of an object between its frame."""
        if self.free_order:
            return seq(frame.open, *self.pieces.ws, any_order(group, frame.comma, frame.close))
        return Seq((frame.open, *self.pieces.ws, *ordered(group, frame.comma, frame.close)))

    def _of(self, nodes: Sequence[Located]) -> Node:
        """A value of which nothing at all may be said."""
        return self.value(nodes) if nodes else self.pieces.value

    def _number_of_others(self, shape: Properties) -> int | None:
        """How many members there can be beside those that are declared or must be there; None for enough."""
        possible = [one.keys for one in shape.extra if not one.nodes or not is_nothing(self.value(one.nodes))]
        most = min(max(shape.low, _FEW_KEYS if shape.witnesses else 0), _MAX_KEYS)
        counts = [None if keys is None or not most else regex.count(keys, most) for keys in possible]
        few = [count for count in counts if count is not None]
        return None if len(few) < len(counts) else max(sum(few) - len(shape.witnesses), 0)

    def _extra(self, names: list[str], groups: list[Extra], frame: Frame) -> tuple[Node, ...]:
        """A member that is not declared, none where there can be none; `excludes` do not concern keys of a pattern."""
        ways = [frame.other(names, group.keys, frame.value(group.nodes, self._of)) for group in groups]
        ways = [way for way in ways if not is_nothing(way)]
        return (Call(Rule("member", alt(*ways))),) if ways else ()

    def _array(self, parts: Parts, frame: Frame) -> Node:
        shape, ws = without_sure(self.reader, items(parts)), self.pieces.ws
        if shape.unique is not None and (shape.high is None or shape.high > 1):
            distinct = self._distinct(shape, frame)
            if distinct is not None:
                return distinct
            self.reader.widen(shape.unique, "uniqueItems", "items that were there before would have to be remembered")
        if not shape.contains:
            return self._listed(shape, frame)
        counting = Counting(shape, self.reader, lambda nodes: frame.item(frame.value(nodes, self._of)))
        inside = located(parts[0][1], counting.nodes, frame.comma, ws, frame.last)
        return NOTHING if is_nothing(inside) else Seq((frame.first, *ws, inside))

    def _distinct(self, shape: Items, frame: Frame) -> Node | None:
        """An array of different values out of a few; None where they are too many."""
        if shape.prefix or shape.contains or not shape.rest:
            return None
        branches = self.reader.read(shape.rest)
        if not all(known.values is not None for known in branches):
            return None
        values = {identity(value): value for known in branches for value in self.admitted(known)}
        nodes = [frame.item(frame.literal(value, self.literal)) for value in values.values()]
        ones = [Member((node, *self.pieces.ws), False) for node in nodes if not is_nothing(node)]
        group = counted(Group(ones), shape.low, shape.high)
        if group is None:
            return NOTHING
        try:
            inside = any_order(group, frame.comma, frame.last)
        except LimitError:
            return None
        return Seq((frame.first, *self.pieces.ws, inside))

    def _listed(self, shape: Items, frame: Frame) -> Node:
        prefix: list[Node] = []
        low, high = shape.low, shape.high
        between = frame.comma, self.pieces.ws
        for nodes in shape.prefix if high is None else shape.prefix[:high]:
            prefix.append(frame.item(frame.value(nodes, self._of)))
            if is_nothing(prefix[-1]):
                high = len(prefix) - 1
                break
        rest = frame.item(frame.value(shape.rest, self._of))
        if is_nothing(rest):
            high = len(prefix) if high is None else min(high, len(prefix))
        if high is not None and low > high:
            return NOTHING
        before = max(len(prefix), 1)
        tail = more_items(rest, max(low - before, 0), None if high is None else high - before, *between)
        inside: Node = EMPTY
        if high is None or high > 0:
            inside = in_sequence(prefix[:high] or [rest], tail, low, *between)
        return Seq((frame.first, *self.pieces.ws, inside, frame.last))


# Strings, numbers, booleans and null; what is too much to hold is left out and noted.


def _scalars(known: Constraints, pieces: Spelling, reader: Reader) -> list[Node]:
    """The ways to write a scalar that keeps to `constraints`."""
    ways: list[Node] = []
    if known.types & STRING:
        ways.append(_string(known, pieces, reader))
    if known.types & NUMBER:
        ways.append(_number(known, reader))
    if known.types & BOOLEAN:
        ways += (pieces.true if value else pieces.false for value in (True, False) if not known.bars(identity(value)))
    if known.types & NULL and not known.bars(identity(None)):
        ways.append(pieces.null)
    return ways


def _number(known: Constraints, reader: Reader) -> Node:
    """A number; where multiples between bounds are too many to tell, the bounds remain."""
    banned = tuple(Decimal(repr(one)) for one in known.banned if is_number(one))
    divisors = tuple((divisor, holds) for divisor, holds, _ in known.divisors)
    try:
        return numbers.number(known.integer, known.minimum, known.maximum, divisors, banned, known.fraction)
    except LimitError as error:
        if not (divisors or banned or known.fraction):
            raise
        reader.widen(known.divisors[0][2] if divisors else (), "multipleOf", error.problem)
        return numbers.number(known.integer, known.minimum, known.maximum)


def _string(known: Constraints, pieces: Spelling, reader: Reader) -> Node:
    """A string."""
    if known.high is not None and known.low > known.high:
        return NOTHING
    bounded = bool(known.low) or known.high is not None
    banned = known.banned_words()
    if known.patterns or known.barred or (banned and bounded):
        inside = _language(known, pieces, reader)
        if inside is not None:
            return inside
    elif banned:
        return pieces.other_than(banned)
    return pieces.bounded(known.low, known.high) if bounded else pieces.by_type["string"]


def _language(known: Constraints, pieces: Spelling, reader: Reader) -> Node | None:
    """A string with patterns; None where they are too much to hold."""
    excludes = () if known.patterns and pieces.patterns_overrule else pieces.excludes
    if known.banned_words() or excludes:
        language = described(known, excludes, reader)
        return None if language is None else pieces.denoting(language, excludes)
    wanted, barred = known.pattern_texts()
    return _noted(known, reader, pieces.matching, wanted, known.low, known.high, barred)


def described(known: Constraints, excludes: tuple[bytes, ...], reader: Reader) -> Node | None:
    """The decoded strings that `constraints` admit without `excludes`; None where they are too much to hold."""
    wanted, barred = known.pattern_texts()
    return _noted(
        known, reader, strings.language, wanted, known.low, known.high, barred, known.banned_words(), excludes
    )


def _noted(known: Constraints, reader: Reader, make: Callable[..., Node], *args: Any) -> Node | None:
    """What `make` gives; where that is too much, it is noted at the place of the pattern."""
    where = known.pattern_place()
    try:
        return located(where, make, *args)
    except LimitError as error:
        reader.widen(where[0] if where else (), where[1] if where else "pattern", error.problem)
        return None
