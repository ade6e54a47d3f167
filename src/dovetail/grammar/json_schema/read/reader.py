"""Read a JSON Schema: from keywords to `Constraints`, what is known about a value in one branch.

Schemas that apply to the same value are read together, so siblings of `$ref`, `anyOf` and `allOf` need no special
case: `read` takes a conjunction of schemas and gives the alternatives that remain when every choice has been made.
What is said about the members of objects and arrays is left for later, because a schema may be recursive.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

from dovetail.errors import LimitError, SchemaError

from .constraints import HANDLERS, OBJECT, Constraints, Located, mapping, names, schemas
from .formats import UNSUPPORTED
from .keywords import (
    CLOSING,
    DEPENDENT_AT,
    EITHER,
    MADE,
    PREFIX_AT,
    SOME_ITEM,
    SOME_PROPERTY,
    TAIL,
    Closing,
    Negated,
    Tail,
    is_never,
    settled,
)
from .negation import alternatives, negated
from .one_of import Arm, OneOf
from .pointers import Where, render
from .references import References

Above = dict[int, int]  # the schemas that led here, with the number of choices made before each
Choice = list[Arm] | OneOf
_Unevaluated = tuple[Any, Where, list[dict[Any, Any]]]  # the schema, its place, the parts
Under = tuple[int, ...]  # the schemas with unevaluated members that this one is a part of

MAX_BRANCHES = 20_000
MAX_REFERENCES = 1_000
MAX_WORK = 200_000  # schemas applied and carried along in all branches of one document
_NEGATION_COST = 5
MAX_SUBSETS = 6

# They say something to people or tools, nothing about the value.
ANNOTATIONS = frozenset(
    "title description default examples example $comment deprecated readOnly writeOnly $schema $id id $anchor $defs "
    "definitions $vocabulary contentEncoding contentMediaType contentSchema $dynamicAnchor $recursiveAnchor".split()
)
_OBJECT_KEYWORDS: frozenset[Any] = frozenset(
    "properties required additionalProperties patternProperties propertyNames minProperties maxProperties".split()
) | {SOME_PROPERTY, CLOSING}
ARRAY_KEYWORDS: frozenset[Any] = frozenset(
    "items prefixItems minItems maxItems contains minContains maxContains uniqueItems".split()
) | {SOME_ITEM, TAIL}
_OLD = frozenset(("additionalItems", "dependencies"))
_MEMBERS, _ITEMS, _REFERENCE, _CHOICE, _ALL, _NOT = "members", "items", "reference", "choice", "all", "not"
_KINDS: dict[Any, str] = {
    **dict.fromkeys(_OBJECT_KEYWORDS, _MEMBERS),
    **dict.fromkeys(ARRAY_KEYWORDS, _ITEMS),
    **dict.fromkeys(("$ref", "$dynamicRef", "$recursiveRef"), _REFERENCE),
    **dict.fromkeys(("anyOf", "oneOf", "if", "dependentRequired", "dependentSchemas", EITHER), _CHOICE),
    "allOf": _ALL,
    "not": _NOT,
}
# They say something about the value; those that nobody knows say nothing.
KEYWORDS = frozenset((*HANDLERS, *_KINDS, *_OLD, "then", "else", "unevaluatedProperties", "unevaluatedItems")) | {
    MADE,
    PREFIX_AT,
    DEPENDENT_AT,
}
_ONE_WAY = {"uniqueItems": "array", "unevaluatedProperties": "object", "unevaluatedItems": "array"}
_EXCLUSIVE = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))
_MOVED = _OLD | {"$ref", "items", "exclusiveMinimum", "exclusiveMaximum"}  # what drafts write in different ways


@dataclass(slots=True)
class Task:
    """A schema to apply: its place, what led there, the number of choices made, whose part it is."""

    schema: Any
    where: Where
    above: Above
    depth: int
    under: Under = ()

    def part(self, schema: Any, where: Where, deeper: int = 0) -> Task:
        """A schema that applies to the same value as a part of this one."""
        return Task(schema, where, self.above, self.depth + deeper, self.under)


@dataclass(slots=True)
class _Branch:
    """A state of reading: schemas still to apply, and choices still to make."""

    known: Constraints
    todo: list[Task]
    choices: list[tuple[Task, Choice]]

    def key(self) -> Any:
        """Equal for branches from which the same follows."""
        todo = frozenset((id(task.schema), task.under) for task in self.todo)
        return self.known.signature(), todo, tuple(id(choice) for _, choice in self.choices)


class Reader:
    """Reads the schemas of one document; what cannot be held exactly is left out and noted in `findings`."""

    def __init__(self, root: Any, registry: Mapping[str, Any] | None = None, strict: bool = False) -> None:
        self._root = root
        self._registry = registry
        self.strict = strict
        self.findings: dict[tuple[str, str], str] = {}
        self._modern: dict[int, dict[Any, Any]] = {}
        self._negations: dict[int, list[Located]] = {}
        self._choices: dict[tuple[int, Any, bool], Choice] = {}
        self.nested = 0  # of how many choices the arms are being compared
        self._wrapped: dict[int, Any] = {}
        self._work = 0
        self._kept: list[Any] = []
        self.object_shapes: dict[tuple[int, ...], Any] = {}  # by whether strict and the schemas that apply

    @cached_property
    def references(self) -> References:
        """Where references lead; most schemas have none."""
        return References(self._root, self._registry)

    def widen(self, where: Where, keyword: str, why: str) -> None:
        """Note that a keyword is not held exactly."""
        self.findings.setdefault((render(where), keyword), why)

    def negated(self, schema: Any) -> Any:
        """The negation of a schema, the same object each time: what was made of it is found by identity."""
        if isinstance(settled(schema), bool | Negated):
            return negated(schema)
        wrapped = self._wrapped.get(id(schema))
        if wrapped is None:
            wrapped = self._wrapped[id(schema)] = Negated(schema)
            self._kept.append(schema)
        return wrapped

    def modern(self, schema: dict[Any, Any], where: Where) -> dict[Any, Any]:
        """The schema in today's spelling."""
        modern = self._modern.get(id(schema))
        if modern is None:
            modern = self._modern[id(schema)] = _modern(schema, self.references.draft_of(schema), where)
            if modern is not schema:
                self.references.move(schema, modern)
                self._kept.append(schema)
        return modern

    def read(self, nodes: Sequence[Located]) -> list[Constraints]:
        """The alternatives for a value that all of `nodes` apply to; none when it cannot exist."""
        done: list[Constraints] = []
        cycle: Where | None = None
        first = [Task(schema, where, {id(schema): 0}, 0) for schema, where in reversed(nodes)]
        todo = [_Branch(Constraints(), first, [])]
        seen: set[Any] = set()
        spent = 0
        while todo:
            if spent > MAX_BRANCHES:
                problem = f"the choices of this schema multiply to more than {MAX_BRANCHES} branches"
                raise LimitError(problem, render(nodes[0][1]), "split the schema or give its unions fewer branches")
            branch = todo.pop()
            back = self._apply(branch)
            if back is not None:
                cycle = back
            elif not branch.known.types:
                continue
            elif branch.choices:
                choice = branch.choices[0][1]
                arms = choice.arms(branch.known) if isinstance(choice, OneOf) else choice
                # The alternatives of a negation multiply with each other more than those of unions do, and are larger.
                cost = _NEGATION_COST if _is_negation(arms) else 1
                for arm in reversed(_choose(branch, arms)):
                    key = arm.key()
                    if key not in seen:
                        seen.add(key)
                        todo.append(arm)
                        spent += cost
                        self._work += len(arm.todo) + len(arm.choices)
            else:
                done.append(_closed(branch.known))
        if cycle is not None and not done:
            raise _circular(cycle)
        return done

    def _apply(self, branch: _Branch) -> Where | None:
        """Apply every schema in hand; gives the place of a reference that leads back to a choice it is part of.

        Such a branch adds nothing to the choice. Without a choice on the way, the reference means nothing at all.
        """
        while branch.todo:
            task = branch.todo.pop()
            self._work += 1
            if self._work > MAX_WORK:
                problem = f"the parts of this schema multiply to more than {MAX_WORK}"
                raise LimitError(problem, render(task.where), "give its unions fewer branches, or refer to parts once")
            schema = task.schema.schema if isinstance(task.schema, Negated) else task.schema
            if schema is False:
                branch.known.types = 0
            elif isinstance(schema, dict):
                back = self._keywords(branch, task) if schema is task.schema else self._fail(branch, task)
                if back is not None:
                    return back
            elif schema is not True:
                problem = f"a schema is an object or a boolean, not {type(schema).__name__}"
                raise SchemaError(problem, render(task.where), "write an object, true or false")
        branch.known.strike()
        return None

    def _keywords(self, branch: _Branch, task: Task) -> Where | None:
        known, where = branch.known, task.where
        schema = self._modern.get(id(task.schema)) or self.modern(task.schema, where)
        members, items = "unevaluatedProperties" in schema, "unevaluatedItems" in schema
        if members or items:
            task.under = (*task.under, id(schema))
        for keyword, value in schema.items():
            handler = HANDLERS.get(keyword)
            if handler is not None:
                handler(known, value, where)
                if keyword == "format" and value in UNSUPPORTED:
                    self.widen(where, "format", f"no automaton can tell what is a valid {value}")
                continue
            kind = _KINDS.get(keyword)
            if kind is None:
                continue
            if kind is _MEMBERS:
                members = True
            elif kind is _ITEMS:
                items = True
            elif kind is _REFERENCE:
                follow = self._follow(schema, keyword, task)
                if follow is None:
                    return (where, keyword)
                branch.todo.append(follow)
            elif kind is _ALL:
                parts = enumerate(schemas(value, keyword, where))
                branch.todo += reversed([task.part(part, ((where, "allOf"), i)) for i, part in parts])
            elif kind is _CHOICE:
                branch.choices += [(task, arms) for arms in self._arms(schema, keyword, task)]
            else:
                branch.todo.append(Task(self.negated(value), (where, "not"), task.above, task.depth))
        # Several references may lead to one schema, which says the same again.
        if members and not (known.objects and any(known is schema for known, _ in known.objects)):
            known.objects += ((schema, where),)
            _note_members(known, schema)
        if items and not (known.arrays and any(known is schema for known, _ in known.arrays)):
            known.arrays += ((schema, where),)
            known.note_items(schema)
        if task.under and (members or items):
            known.within += tuple((owner, schema) for owner in task.under)
        return None

    def _fail(self, branch: _Branch, task: Task) -> Where | None:
        """Apply the negation of a schema: one of its keywords fails."""
        schema = self.modern(task.schema.schema, task.where)
        failing = self._negations.get(id(schema))
        if failing is None:
            failing = self._negations[id(schema)] = self._alternatives(schema, task.where)
            self._kept.append(schema)
        if -id(schema) in task.above:
            if task.above[-id(schema)] == task.depth:
                raise _circular(task.where)
            return task.where
        # The parts of a negation tell nothing about which members were looked at.
        negation = Task(schema, task.where, {**task.above, -id(schema): task.depth}, task.depth)
        if len(failing) == 1:
            branch.todo.append(negation.part(*failing[0]))
        else:
            key = (id(schema), MADE, False)
            if key not in self._choices:
                self._choices[key] = [[one] for one in failing]
            branch.choices.append((negation, self._choices[key]))
        return None

    def _alternatives(self, schema: dict[Any, Any], where: Where) -> list[Located]:
        failing = alternatives(schema, where)
        for keyword in ("$ref", "$dynamicRef", "$recursiveRef"):
            if keyword in schema:
                target, place = self.references.target(schema, keyword, where)
                failing.append((self.negated(target), place))
        for keyword, kind in _ONE_WAY.items():
            if keyword in schema and (keyword != "uniqueItems" or schema[keyword] is True):
                self.widen(where, keyword, "its negation cannot be held")
                failing.append(({"type": kind, MADE: True}, where))
        if schema.get("format") in UNSUPPORTED:
            self.widen(where, "format", f"no automaton can tell what is a valid {schema['format']}")
            failing.append(({"type": "string", MADE: True}, where))
        return failing

    def _arms(self, schema: dict[Any, Any], keyword: Any, task: Task) -> Sequence[Choice]:
        """The choices that a keyword asks for."""
        if keyword is EITHER:
            return [schema[EITHER]]
        where = task.where
        if keyword.startswith("dependent"):
            return self._dependent(schema, keyword, where)
        if keyword == "if" and not task.under and "then" not in schema and "else" not in schema:
            return []
        key = (id(schema), keyword, bool(task.under))
        if key not in self._choices:
            if keyword == "if":
                test, at = schema["if"], (where, "if")
                then, other = (schema.get("then", True), (where, "then")), (schema.get("else", True), (where, "else"))
                self._choices[key] = [[(test, at), then], [(self.negated(test), at), other]]
            else:
                arms = schemas(schema[keyword], keyword, where)
                places = [(arm, ((where, keyword), index)) for index, arm in enumerate(arms)]
                self._choices[key] = [[one] for one in places]
                if keyword == "oneOf":
                    self._choices[key] = OneOf(self, places)
                elif task.under and len(arms) > 1:
                    self._choices[key] = self._subsets(places)
        choice = self._choices[key]
        if isinstance(choice, OneOf):
            choice.met = True
        return [choice]

    def _subsets(self, arms: Arm) -> list[Arm]:
        """Every choice of arms that hold while the others fail: so it is known which have looked at a member."""
        if len(arms) > MAX_SUBSETS:
            problem = f"anyOf has more than {MAX_SUBSETS} branches beside an unevaluated keyword"
            raise LimitError(problem, render(arms[0][1]), "declare the members in one place")
        return [
            [arm if i in chosen else (self.negated(arm[0]), arm[1]) for i, arm in enumerate(arms)]
            for size in range(1, len(arms) + 1)
            for chosen in combinations(range(len(arms)), size)
        ]

    def _dependent(self, schema: dict[Any, Any], keyword: str, where: Where) -> list[Choice]:
        choices: list[Choice] = []
        at = (where, schema.get(DEPENDENT_AT, keyword))
        for name, value in mapping(schema, keyword, where).items():
            key = (id(schema), (keyword, name), False)
            if key not in self._choices:
                absent: Located = ({"properties": {name: False}, MADE: True}, at)
                needed = [name, *names(value, keyword, where)] if keyword == "dependentRequired" else [name]
                present: Located = ({"type": "object", "required": needed, MADE: True}, at)
                more: Arm = [] if keyword == "dependentRequired" else [(value, (at, name))]
                self._choices[key] = [[absent], [present, *more]]
            choices.append(self._choices[key])
        return choices

    def _follow(self, schema: dict[Any, Any], keyword: str, task: Task) -> Task | None:
        """The schema that a reference names; None where it leads back to a choice it is part of."""
        target, place = self.references.target(schema, keyword, task.where)
        if id(target) in task.above:
            if task.above[id(target)] == task.depth:
                raise _circular((task.where, keyword))
            return None
        if len(task.above) > MAX_REFERENCES:
            problem = f"more than {MAX_REFERENCES} references lead here one after another"
            raise LimitError(problem, render((task.where, keyword)), "refer to the definition directly")
        return Task(target, place, {**task.above, id(target): task.depth}, task.depth, task.under)


def _is_negation(arms: list[Arm]) -> bool:
    return any(isinstance(schema, dict) and MADE in schema for arm in arms[:1] for schema, _ in arm)


def _circular(where: Where) -> SchemaError:
    return SchemaError("this $ref leads back to itself and describes no value", render(where), "break the cycle")


def _choose(branch: _Branch, arms: list[Arm]) -> list[_Branch]:
    """One branch for each arm of the choice that came first."""
    task = branch.choices[0][0]
    branches = []
    for arm in arms:
        tasks = [task.part(schema, where, 1) for schema, where in reversed(arm)]
        branches.append(_Branch(branch.known.copy(), tasks, branch.choices[1:]))
    return branches


def _note_members(known: Constraints, schema: dict[Any, Any]) -> None:
    """Strike out objects where a member must be there and cannot be."""
    required, declared = schema.get("required"), schema.get("properties")
    if isinstance(required, list):
        known.needed = known.needed.union(name for name in required if isinstance(name, str))
    if isinstance(declared, dict):
        known.absent = known.absent.union([name for name, inner in declared.items() if is_never(inner)])
        if schema.get("additionalProperties") is False and not schema.get("patternProperties"):
            known.closed = frozenset(declared) if known.closed is None else known.closed.intersection(declared)
    if known.needed & known.absent or (known.closed is not None and not known.needed <= known.closed):
        known.types &= ~OBJECT
    if known.closed is not None and SOME_PROPERTY in schema and known.closed.issubset(schema[SOME_PROPERTY].names):
        known.types &= ~OBJECT  # there has to be another member than those that there can be


def _closed(known: Constraints) -> Constraints:
    """The constraints with what the unevaluated keywords come to, now that it is known which schemas apply."""
    if known.within:
        known.objects += tuple(_closings(known))
        known.arrays += tuple(_tails(known))
    return known


def _unevaluated(
    known: Constraints, parts: tuple[Located, ...], keyword: str, looks_at_all: str
) -> Iterator[_Unevaluated]:
    """The schemas with this keyword that still have members to speak of, with the parts that have looked at some.

    A part with the keyword `looks_at_all`, or with this one itself, has looked at every member.
    """
    for schema, where in parts:
        if keyword not in schema:
            continue
        within = [part for owner, part in known.within if owner == id(schema)]
        if not any(looks_at_all in part or (keyword in part and part is not schema) for part in within):
            yield schema[keyword], (where, keyword), [part for part in within if MADE not in part]


def _closings(known: Constraints) -> Iterator[Located]:
    for schema, at, parts in _unevaluated(known, known.objects, "unevaluatedProperties", "additionalProperties"):
        declared = frozenset(name for part in parts for name in part.get("properties", ()))
        patterns = tuple(pattern for part in parts for pattern in part.get("patternProperties", ()))
        yield {CLOSING: Closing(declared, patterns, schema, at), MADE: True}, at


def _tails(known: Constraints) -> Iterator[Located]:
    for schema, at, parts in _unevaluated(known, known.arrays, "unevaluatedItems", "items"):
        start = max((len(part.get("prefixItems", ())) for part in parts), default=0)
        looked = [part["contains"] for part in parts if "contains" in part]
        either = {"anyOf": [schema, *looked], MADE: True} if looked else schema
        yield {TAIL: Tail(start, either, at), MADE: True}, at


def _modern(schema: dict[Any, Any], draft: int, where: Where) -> dict[Any, Any]:
    """The schema as draft 2020-12 would write it; the same object where nothing is to be done."""
    if _MOVED.isdisjoint(schema):
        return schema
    if draft <= 7 and "$ref" in schema:
        return {"$ref": schema["$ref"]} if len(schema) > 1 else schema
    listed = isinstance(schema.get("items"), list)
    flags = [(word, limit) for word, limit in _EXCLUSIVE if isinstance(schema.get(word), bool)]
    if not listed and not flags and _OLD.isdisjoint(schema):
        return schema
    new = {word: value for word, value in schema.items() if word not in _OLD}
    if listed:
        del new["items"]
        new |= {"prefixItems": schema["items"], PREFIX_AT: "items"}
        if "additionalItems" in schema:
            new["items"] = schema["additionalItems"]
    for word, limit in flags:
        if new.pop(word) and limit in new:
            new[word] = new.pop(limit)
    if "dependencies" in schema:
        dependencies = mapping(schema, "dependencies", where)
        lists = {name: value for name, value in dependencies.items() if isinstance(value, list)}
        texts = {name: [value] for name, value in dependencies.items() if isinstance(value, str)}
        new["dependentRequired"] = {**new.get("dependentRequired", {}), **lists, **texts}
        rest = {name: value for name, value in dependencies.items() if not isinstance(value, list | str)}
        new["dependentSchemas"] = {**new.get("dependentSchemas", {}), **rest}
        new[DEPENDENT_AT] = "dependencies"
    return new
