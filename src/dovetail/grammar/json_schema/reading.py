"""Read a JSON Schema: from keywords to `Facts`, what is known about a value in one branch.

Schemas that apply to the same value are read together, so siblings of `$ref`, `anyOf` and `allOf` need no special
case: `read` takes a conjunction of schemas and gives the alternatives that remain when every choice has been made.
What is said about the members of objects and arrays is left for later, because a schema may be recursive.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from dovetail.errors import LimitError, SchemaError

from .formats import FORMATS
from .pointers import Where, located, render, resolve
from .values import check_depth, identity

Located = tuple[Any, Where]
Above = dict[int, int]  # the schemas that led here, with the number of choices made before each
Task = tuple[Any, Where, Above, int]  # a schema to apply, its place, what led there, the number of choices made
Choice = tuple[str, Sequence[Any], Where, Above, int]
Bound = tuple[Decimal, bool]  # the limit, and whether it is itself excluded

NULL, BOOLEAN, NUMBER, STRING, ARRAY, OBJECT = 1, 2, 4, 8, 16, 32
ANY_TYPE = 63
TYPES = {
    "null": NULL,
    "boolean": BOOLEAN,
    "number": NUMBER,
    "integer": NUMBER,
    "string": STRING,
    "array": ARRAY,
    "object": OBJECT,
}
MAX_BRANCHES = 20_000
MAX_COUNT = 1 << 30
MAX_REFERENCES = 1_000

# They say something to people or tools, nothing about the value.
ANNOTATIONS = frozenset(
    "title description default examples example $comment deprecated readOnly writeOnly $schema $id id $anchor $defs "
    "definitions $vocabulary contentEncoding contentMediaType contentSchema".split()
)
REFUSED = frozenset(
    "not if dependentRequired dependentSchemas dependencies unevaluatedProperties unevaluatedItems contains "
    "uniqueItems multipleOf $dynamicRef $recursiveRef".split()
)
_OBJECT_KEYWORDS = frozenset(
    "properties required additionalProperties patternProperties propertyNames minProperties maxProperties".split()
)
_ARRAY_KEYWORDS = frozenset(("items", "prefixItems", "minItems", "maxItems"))


class Facts:
    """What holds for a value once every choice is made; `objects` and `arrays` are the schemas to ask about members."""

    __slots__ = (
        "arrays",
        "chosen",
        "high",
        "integer",
        "low",
        "maximum",
        "minimum",
        "objects",
        "patterns",
        "types",
        "values",
    )

    def __init__(self) -> None:
        self.types = ANY_TYPE
        self.integer = False
        self.values: list[Any] | None = None
        self.minimum: Bound | None = None
        self.maximum: Bound | None = None
        self.low = 0
        self.high: int | None = None
        self.patterns: tuple[tuple[str, Where], ...] = ()
        self.objects: tuple[Located, ...] = ()
        self.arrays: tuple[Located, ...] = ()
        self.chosen: tuple[tuple[Where, int], ...] = ()  # which branch of which oneOf


def count(value: Any, keyword: str, where: Where) -> int:
    """The value of a keyword that counts something."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0 or value != int(value):
        raise SchemaError(f"{keyword} must be a whole number, not {value!r}", render((where, keyword)), "use 0 or more")
    return int(value)


def at_least(low: int, value: Any, keyword: str, where: Where) -> int:
    """The larger of two lower bounds, the second a keyword's value."""
    fewest = count(value, keyword, where)
    if fewest > MAX_COUNT:
        raise LimitError(f"{keyword} is {fewest}, and no output is that long", render((where, keyword)), "lower it")
    return max(low, fewest)


def at_most(high: int | None, value: Any, keyword: str, where: Where) -> int | None:
    """The smaller of two upper bounds, the second a keyword's value; no output comes near a very large one."""
    most = count(value, keyword, where)
    if most > MAX_COUNT:
        return high
    return most if high is None else min(high, most)


def schemas(value: Any, keyword: str, where: Where, empty: bool = False) -> Sequence[Any]:
    """The value of a keyword that lists schemas."""
    if not isinstance(value, list) or not (value or empty):
        raise SchemaError(f"{keyword} must be a list of schemas", render((where, keyword)), "list at least one schema")
    return value


def _type(facts: Facts, value: Any, where: Where) -> None:
    names = value if isinstance(value, list) else [value]
    types, integer = 0, True
    for name in names:
        if not isinstance(name, str) or name not in TYPES:
            known = ", ".join(TYPES)
            raise SchemaError(f"type {name!r} is not a JSON type", render((where, "type")), f"use one of {known}")
        types |= TYPES[name]
        integer = integer and name != "number"
    facts.types &= types
    if types & NUMBER and integer:
        facts.integer = True


def _enum(facts: Facts, value: Any, where: Where) -> None:
    if not isinstance(value, list):
        raise SchemaError("enum must be a list of values", render((where, "enum")), "write the values as a list")
    located((where, "enum"), check_depth, value)
    if facts.values is None:
        facts.values = value
    else:
        kept = {identity(item) for item in value}
        facts.values = [item for item in facts.values if identity(item) in kept]


def _const(facts: Facts, value: Any, where: Where) -> None:
    _enum(facts, [value], where)


def _min_length(facts: Facts, value: Any, where: Where) -> None:
    facts.low = at_least(facts.low, value, "minLength", where)


def _max_length(facts: Facts, value: Any, where: Where) -> None:
    facts.high = at_most(facts.high, value, "maxLength", where)


def _pattern(facts: Facts, value: Any, where: Where) -> None:
    if not isinstance(value, str):
        raise SchemaError(f"pattern must be a string, not {value!r}", render((where, "pattern")), "quote the pattern")
    facts.patterns += ((value, (where, "pattern")),)


def _format(facts: Facts, value: Any, where: Where) -> None:
    if isinstance(value, str) and value in FORMATS:
        facts.patterns += ((FORMATS[value], (where, "format")),)


def _reach(maximum: Bound) -> tuple[Decimal, bool]:
    return maximum[0], not maximum[1]


def _limit(keyword: str, lower: bool, exclusive: bool) -> Callable[[Facts, Any, Where], None]:
    def handle(facts: Facts, value: Any, where: Where) -> None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise SchemaError(f"{keyword} must be a number, not {value!r}", render((where, keyword)), "write a number")
        bound = Decimal(repr(value)), exclusive
        if lower and (facts.minimum is None or bound > facts.minimum):
            facts.minimum = bound
        elif not lower and (facts.maximum is None or _reach(bound) < _reach(facts.maximum)):
            facts.maximum = bound

    return handle


_HANDLERS: dict[str, Callable[[Facts, Any, Where], None]] = {
    "type": _type,
    "enum": _enum,
    "const": _const,
    "minLength": _min_length,
    "maxLength": _max_length,
    "pattern": _pattern,
    "format": _format,
    "minimum": _limit("minimum", True, False),
    "maximum": _limit("maximum", False, False),
    "exclusiveMinimum": _limit("exclusiveMinimum", True, True),
    "exclusiveMaximum": _limit("exclusiveMaximum", False, True),
}


SCALAR_KEYWORDS = frozenset(_HANDLERS) - {"enum", "const"}


def read_scalar(schema: dict[str, Any], live: set[str], where: Where) -> Facts:
    """The facts of a schema whose `live` keywords are all about strings and numbers."""
    facts = Facts()
    for keyword in live:
        _HANDLERS[keyword](facts, schema[keyword], where)
    return facts


class _Branch:
    """A state of reading: schemas still to apply, and choices still to make."""

    __slots__ = ("applied", "choices", "facts", "todo")

    def __init__(self, facts: Facts, todo: list[Task], choices: list[Choice], applied: frozenset[int]) -> None:
        self.facts = facts
        self.todo = todo
        self.choices = choices
        self.applied = applied  # the schemas whose own keywords are in `facts`

    def key(self) -> Any:
        """Equal for branches from which the same follows."""
        todo = frozenset(id(schema) for schema, _, _, _ in self.todo)
        return self.applied, todo, tuple(id(choice[1]) for choice in self.choices), self.facts.chosen


class Reader:
    """Reads the schemas of one document."""

    def __init__(self, root: Any) -> None:
        self.root = root
        self._targets: dict[str, Located] = {}

    def target(self, reference: Any, where: Where) -> Located:
        """What a `$ref` at `where` names."""
        found = self._targets.get(reference) if isinstance(reference, str) else None
        if found is None:
            found = resolve(self.root, reference, (where, "$ref"))
            self._targets[reference] = found
        return found

    def read(self, nodes: Sequence[Located]) -> list[Facts]:
        """The alternatives for a value that all of `nodes` apply to; none when it cannot exist."""
        done: list[Facts] = []
        cycle: Where | None = None
        first = [(schema, where, {id(schema): 0}, 0) for schema, where in reversed(nodes)]
        todo = [_Branch(Facts(), first, [], frozenset())]
        known: set[Any] = set()
        while todo:
            if len(known) > MAX_BRANCHES:
                problem = f"the choices of this schema multiply to more than {MAX_BRANCHES} branches"
                raise LimitError(problem, render(nodes[0][1]), "split the schema or give its unions fewer branches")
            branch = todo.pop()
            back = self._apply(branch)
            if back is not None:
                cycle = back
            elif branch.choices:
                for arm in reversed(_choose(branch)):
                    key = arm.key()
                    if key not in known:
                        known.add(key)
                        todo.append(arm)
            elif branch.facts.types:
                done.append(branch.facts)
        if cycle is not None and not done:
            raise _circular(cycle)
        return done

    def _apply(self, branch: _Branch) -> Where | None:
        """Apply every schema in hand; gives the place of a reference that leads back to a choice it is part of.

        Such a branch adds nothing to the choice. Without a choice on the way, the reference means nothing at all.
        """
        facts = branch.facts
        while branch.todo:
            schema, where, above, depth = branch.todo.pop()
            if schema is True:
                continue
            if schema is False:
                facts.types = 0
                continue
            if not isinstance(schema, dict):
                problem = f"a schema is an object or a boolean, not {type(schema).__name__}"
                raise SchemaError(problem, render(where), "write an object, true or false")
            members = items = constrains = False
            for keyword, value in schema.items():
                handler = _HANDLERS.get(keyword)
                if handler is not None:
                    handler(facts, value, where)
                    constrains = True
                elif keyword in _OBJECT_KEYWORDS:
                    members = True
                elif keyword in _ARRAY_KEYWORDS:
                    items = True
                elif keyword == "$ref":
                    task = self._follow(value, where, above, depth)
                    if task is None:
                        return (where, "$ref")
                    branch.todo.append(task)
                elif keyword == "allOf":
                    at = (where, "allOf")
                    parts = [(part, (at, i), above, depth) for i, part in enumerate(schemas(value, keyword, where))]
                    branch.todo += reversed(parts)
                elif keyword in ("anyOf", "oneOf"):
                    branch.choices.append((keyword, schemas(value, keyword, where), (where, keyword), above, depth))
                elif keyword in REFUSED and (keyword != "uniqueItems" or value):
                    problem = f"the keyword {keyword} is not supported"
                    raise SchemaError(problem, render((where, keyword)), "leave it out")
            if members:
                facts.objects += ((schema, where),)
            if items:
                facts.arrays += ((schema, where),)
            if members or items or constrains:
                branch.applied |= {id(schema)}
        return None

    def _follow(self, reference: Any, where: Where, above: Above, depth: int) -> Task | None:
        """The schema that a reference names; None where it leads back to a choice it is part of."""
        target, place = self.target(reference, where)
        if id(target) in above:
            if above[id(target)] == depth:
                raise _circular((where, "$ref"))
            return None
        if len(above) > MAX_REFERENCES:
            problem = f"more than {MAX_REFERENCES} references lead here one after another"
            raise LimitError(problem, render((where, "$ref")), "refer to the definition directly")
        return target, place, {**above, id(target): depth}, depth


def _circular(where: Where) -> SchemaError:
    return SchemaError("this $ref leads back to itself and describes no value", render(where), "break the cycle")


def _choose(branch: _Branch) -> list[_Branch]:
    """One branch for each arm of the choice that came first."""
    keyword, arms, where, above, depth = branch.choices[0]
    branches = []
    for index, arm in enumerate(arms):
        facts = copy.copy(branch.facts)
        if keyword == "oneOf":
            facts.chosen += ((where, index),)
        task = (arm, (where, index), above, depth + 1)
        branches.append(_Branch(facts, [task], branch.choices[1:], branch.applied))
    return branches
