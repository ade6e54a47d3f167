"""What the schemas that apply to one object say together about each of its members."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from dovetail.errors import LimitError
from dovetail.grammar import regex
from dovetail.grammar.ir import NOTHING, Node, Rule, alt, lit, reachable, walk
from dovetail.grammar.json_schema.read.constraints import (
    STRING,
    Constraints,
    Located,
    at_least,
    at_most,
    mapping,
    names,
)
from dovetail.grammar.json_schema.read.keywords import CLOSING, MADE, SOME_PROPERTY, Closing, Property, settled
from dovetail.grammar.json_schema.read.pointers import Where, located, render
from dovetail.grammar.json_schema.read.reader import KEYWORDS, Reader
from dovetail.grammar.json_schema.values import strings

MAX_CLASSES = 64
_MANY_CLASSES = 8  # from here on those that no key is in are struck out early
MAX_CLASS_NODES = 50_000  # of the keys of all classes together
MAX_VARIANTS = 256
_NAMING = ("properties", "required")


@dataclass(slots=True)
class Extra:
    """Keys that are not declared and the schemas of their values; `keys` is None for any key."""

    keys: Node | None
    nodes: list[Located]


class Demand:
    """There is a member with some key whose value keeps to `nodes`."""

    def __init__(self, wanted: Property, reader: Reader) -> None:
        self.nodes: list[Located] = [(wanted.value, wanted.where)]
        self._wanted = wanted
        self._others = [located(wanted.where, strings.language, (word,), 0, None) for word in wanted.others]
        self._matched: list[Node] = []
        if wanted.pattern is not None:
            self._matched.append(located(wanted.where, strings.language, (wanted.pattern,), 0, None))
        if wanted.key is not True:
            self._matched.append(name_language(reader, [(wanted.key, wanted.where)]))

    def holds_for(self, name: str) -> bool:
        """Whether a member with this key can be the one."""
        if name in self._wanted.names or any(regex.admits(language, name) for language in self._others):
            return False
        return all(regex.admits(language, name) for language in self._matched)

    def keys(self) -> Node | None:
        """The keys that it may have, None for any."""
        barred = [*self._others, *(lit(name) for name in self._wanted.names)]
        if not barred and not self._matched:
            return None
        return regex.intersect(*(self._matched or [strings.ANYTHING]), barred=barred)


@dataclass(slots=True)
class Properties:
    """Declared keys with the schemas of their values and whether they are required, and the other keys."""

    declared: list[tuple[str, list[Located], bool]]
    extra: list[Extra]
    low: int = 0
    high: int | None = None
    demands: list[Demand] = field(default_factory=list)
    witnesses: list[Extra] = field(default_factory=list)  # members beside those of `extra` that must be there

    def nodes(self, name: str) -> list[Located] | None:
        """The schemas of the value of a key; None where the object has no such key."""
        for declared, nodes, _ in self.declared:
            if declared == name:
                return nodes
        for extra in self.extra:
            if extra.keys is None or regex.admits(extra.keys, name):
                return extra.nodes
        return None


def properties(parts: tuple[Located, ...], reader: Reader, strict: bool | None = None) -> Properties:
    """The members of an object; a strict reader closes it when it declares properties and nothing is said of others."""
    strict = reader.strict if strict is None else strict
    key = (strict, *[id(schema) for schema, _ in parts])
    entry = reader.object_shapes.get(key)
    if entry is None:  # the arms of oneOf are compared two by two
        members = _Members(parts[0][1] if parts else (), reader)
        for schema, where in parts:
            members.add(schema, where)
        if strict:
            members.close(parts)
        entry = reader.object_shapes[key] = parts, members.properties()  # the parts keep their identities
    return entry[1]


class _Members:
    """What several schemas say of the members of one object."""

    def __init__(self, where: Where, reader: Reader) -> None:
        self._where = where
        self._reader = reader
        self._declared: dict[str, list[Located]] = {}
        self._required: dict[str, bool] = {}
        self._patterns: dict[str, list[Located]] = {}
        self._languages: dict[str, Node] = {}  # of the patterns
        self._allowed: list[Node] = []  # a language for each `propertyNames`
        self._closings: list[Closing] = []
        self._demands: list[Demand] = []
        self._low = 0
        self._high: int | None = None

    def add(self, schema: dict[Any, Any], where: Where) -> None:
        """Take in one schema."""
        declared = mapping(schema, "properties", where)
        at = (where, "properties")
        for name, inner in declared.items():
            self._declared.setdefault(name, []).append((settled(inner), (at, name)))
        if "required" in schema:
            self._required |= dict.fromkeys(names(schema["required"], "required", where), True)
        patterns = mapping(schema, "patternProperties", where)
        for pattern, inner in patterns.items():
            at = ((where, "patternProperties"), pattern)
            self._patterns.setdefault(pattern, []).append((inner, at))
            self._languages[pattern] = located(at, strings.language, (pattern,), 0, None)
        if "additionalProperties" in schema:
            more, at = schema["additionalProperties"], (where, "additionalProperties")
            self._closings.append(Closing(frozenset(declared), tuple(patterns), more, at))
        if "propertyNames" in schema and not admits_any_name(schema["propertyNames"]):
            self._allowed.append(name_language(self._reader, [(schema["propertyNames"], (where, "propertyNames"))]))
        if CLOSING in schema:
            self._closings.append(schema[CLOSING])
        if SOME_PROPERTY in schema:
            self._demands.append(Demand(schema[SOME_PROPERTY], self._reader))
        if "minProperties" in schema:
            self._low = at_least(self._low, schema["minProperties"], "minProperties", where)
        if "maxProperties" in schema:
            self._high = at_most(self._high, schema["maxProperties"], "maxProperties", where)

    def close(self, parts: tuple[Located, ...]) -> None:
        """Admit only the keys that the caller's own schemas name, where these declare some and tell of no others."""
        given = [schema for schema, _ in parts if MADE not in schema]
        if any("additionalProperties" in schema for schema, _ in parts):
            return
        if any("properties" in schema for schema in given):
            named = frozenset(name for schema in given for word in _NAMING for name in schema.get(word, ()))
            self._closings.append(Closing(named, tuple(self._patterns), False, self._where))

    def properties(self) -> Properties:
        """All of it together."""
        members = dict.fromkeys(self._declared, False) | self._required
        matched = {name: self._matched(name) for name in members}
        declared = [(name, self._nodes(name, matched[name]), required) for name, required in members.items()]
        extra: list[Extra] = []
        for patterns in self._classes():
            others = self._closed_by(None, patterns)
            if others is not None:
                taken = [name for name, inside in matched.items() if inside == patterns]
                others += (place for pattern in patterns for place in self._patterns[pattern])
                extra.append(Extra(self._keys(patterns, frozenset(self._languages), taken), others))
        self._check_size(extra)
        extra = [one for one in extra if one.keys != NOTHING]
        return Properties(declared, extra, self._low, self._high, self._demands)

    def _classes(self) -> list[frozenset[str]]:
        """The sets of patterns that a key can match together, and some that it cannot."""
        classes: list[frozenset[str]] = [frozenset()]
        asked: frozenset[str] = frozenset()
        for pattern in self._languages:
            asked |= {pattern}
            if any(schema is False for schema, _ in self._patterns[pattern]):
                continue  # no key that it matches can be there
            classes += [matched | {pattern} for matched in classes]
            if len(classes) > _MANY_CLASSES:
                classes = [matched for matched in classes if self._keys(matched, asked) != NOTHING]
            if len(classes) > MAX_CLASSES:
                self._refuse_classes()
        return classes

    def _keys(self, matched: frozenset[str], asked: frozenset[str], names: Sequence[str] = ()) -> Node | None:
        """The keys but `names` that of the patterns `asked` for match these and no other; None for any."""
        if not self._languages and not self._allowed:
            return None
        wanted = [*self._allowed, *(self._languages[pattern] for pattern in self._languages if pattern in matched)]
        outside = asked - matched
        barred = [self._languages[pattern] for pattern in self._languages if pattern in outside]
        if names:
            barred.append(alt(*map(lit, names)))
        return wanted[0] if len(wanted) == 1 and not barred else regex.intersect(*wanted, barred=barred)

    def _check_size(self, extra: list[Extra]) -> None:
        if len(extra) > _MANY_CLASSES:
            roots = [Rule("keys", one.keys) for one in extra if one.keys is not None]
            rules = {id(rule): rule for root in roots for rule in reachable(root)}
            if sum(1 for rule in rules.values() for _ in walk(rule.body)) > MAX_CLASS_NODES:
                self._refuse_classes()

    def _refuse_classes(self) -> NoReturn:
        problem = "the patternProperties of an object overlap in too many ways"
        raise LimitError(problem, render(self._where), "join patterns that have the same schema")

    def _closed_by(self, name: str | None, matched: frozenset[str]) -> list[Located] | None:
        """The schemas for a key that none of the patterns but these matches; None where it cannot be there."""
        nodes: list[Located] = []
        for closing in self._closings:
            if name in closing.names or not matched.isdisjoint(closing.patterns):
                continue
            if closing.schema is False:
                return None
            if closing.schema is not True:
                nodes.append((closing.schema, closing.where))
        return nodes

    def _matched(self, name: str) -> frozenset[str] | None:
        """The patterns that a key matches; None where it cannot be there."""
        if self._allowed and not all(regex.admits(language, name) for language in self._allowed):
            return None
        return frozenset([p for p, language in self._languages.items() if regex.admits(language, name)])

    def _nodes(self, name: str, matched: frozenset[str] | None) -> list[Located]:
        """The schemas of the value of a key; False where it cannot be there."""
        closed = None if matched is None else self._closed_by(name, matched)
        if matched is None or closed is None:
            return [(False, ())]
        patterned = (place for pattern in matched for place in self._patterns[pattern])
        return [*self._declared.get(name, ()), *patterned, *closed]


def admits_any_name(schema: Any) -> bool:
    """Whether a schema says no more of a key than that it is a string."""
    if type(schema) is not dict:
        return schema is True
    return not KEYWORDS.intersection(schema) - {"type"} and schema.get("type", "string") == "string"


def name_language(reader: Reader, nodes: list[Located]) -> Node:
    """The keys to which all of `nodes` apply."""
    branches = reader.read(nodes)
    return alt(*(located(nodes[0][1], _words, known) for known in branches if known.types & STRING))


def _words(known: Constraints) -> Node:
    """The keys that `constraints` admit."""
    patterns, barred = known.pattern_texts()
    banned = known.banned_words()
    if known.values is None:
        return strings.language(patterns, known.low, known.high, barred, banned)
    words = [word for word in known.values if isinstance(word, str) and word not in banned]
    words = [word for word in words if known.low <= len(word) <= (len(word) if known.high is None else known.high)]
    return alt(*(lit(word) for word in words if strings.contains(word, patterns, barred)))


@dataclass(frozen=True, slots=True)
class _Choice:
    """Which declared members and which members beside them meet the demands so far."""

    named: tuple[tuple[str, tuple[Located, ...]], ...] = ()
    beside: tuple[tuple[int, Node | None, tuple[Located, ...]], ...] = ()  # group of extra keys, keys, schemas


def variants(shape: Properties, where: Where) -> list[Properties]:
    """The ways to meet the demands of a shape: by declared members or by some beside them."""
    if not shape.demands:
        return [shape]
    choices = [_Choice()]
    for demand in shape.demands:
        choices = [longer for choice in choices for longer in _met(shape, demand, choice)]
        if len(choices) > MAX_VARIANTS:
            problem = f"what must not hold here can fail in more than {MAX_VARIANTS} ways"
            raise LimitError(problem, render(where), "simplify the negation")
    return [_variant(shape, choice) for choice in choices]


def _met(shape: Properties, demand: Demand, choice: _Choice) -> Iterator[_Choice]:
    nodes = tuple(demand.nodes)
    for name, _, _ in shape.declared:
        if demand.holds_for(name):
            yield replace(choice, named=(*choice.named, (name, nodes)))
    if not shape.extra:
        return
    wanted = demand.keys()
    for index, (group, keys, before) in enumerate(choice.beside):
        both = _common_keys(keys, wanted)
        if both != NOTHING:
            joined = (group, both, (*before, *nodes))
            yield replace(choice, beside=(*choice.beside[:index], joined, *choice.beside[index + 1 :]))
    for group, extra in enumerate(shape.extra):
        keys = _common_keys(extra.keys, wanted)
        if extra.keys is None and keys is not None and shape.declared:
            keys = regex.intersect(keys, barred=[lit(name) for name, _, _ in shape.declared])
        if keys != NOTHING:
            yield replace(choice, beside=(*choice.beside, (group, keys, nodes)))


def _common_keys(left: Node | None, right: Node | None) -> Node | None:
    if left is None or right is None:
        return right if left is None else left
    return regex.intersect(left, right)


def _variant(shape: Properties, choice: _Choice) -> Properties:
    needed: dict[str, list[Located]] = {}
    for name, nodes in choice.named:
        needed.setdefault(name, []).extend(nodes)
    declared = [(n, [*nodes, *needed.get(n, ())], required or n in needed) for n, nodes, required in shape.declared]
    beside = [Extra(keys, [*shape.extra[group].nodes, *nodes]) for group, keys, nodes in choice.beside]
    return replace(shape, declared=declared, witnesses=beside, demands=[])
