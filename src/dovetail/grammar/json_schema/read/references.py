"""Where `$ref` and `$dynamicRef` lead: identifiers, anchors, embedded resources, documents that the caller gives.

Most schemas refer to themselves by JSON Pointer only; the index of resources is made when something else comes up. A
`$dynamicRef` means something else for every way to reach it, so a resource that holds one is copied for each.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any
from urllib.parse import unquote, urldefrag, urljoin

from dovetail._core import has_names
from dovetail.errors import LimitError, SchemaError

from .pointers import Where, follow, render

MAX_COPIES = 200
_RECURSIVE = "#recursive"
_ANCHORS = ("$anchor", "$dynamicAnchor", "$recursiveAnchor")
_NAMES = ("$id", "id", *_ANCHORS)
_DYNAMIC = frozenset(("$dynamicRef", "$recursiveRef"))
_ONE = frozenset(
    "additionalItems additionalProperties contains contentSchema else if items not propertyNames then "
    "unevaluatedItems unevaluatedProperties".split()
)
_MANY = frozenset(("allOf", "anyOf", "oneOf", "prefixItems", "items"))
_NAMED = frozenset("$defs definitions dependencies dependentSchemas patternProperties properties".split())


@dataclass(eq=False, slots=True)
class Resource:
    """A schema with an identifier of its own, as it is reached by `scope`, the resources entered before and itself."""

    uri: str
    root: Any
    where: Where
    draft: int
    scope: tuple[str, ...] = ()
    anchors: dict[str, tuple[Any, Where]] = field(default_factory=dict)
    dynamic: set[str] = field(default_factory=set)


class References:
    """What the references of one document, and of those it may refer to, lead to."""

    def __init__(self, root: Any, registry: Mapping[str, Any] | None = None) -> None:
        self._root = root
        self._registry = dict(registry or {})
        self.draft = draft_of(root)
        self._known: dict[str, tuple[Any, Where]] = {}
        self._home: dict[int, Resource] = {}
        self._resources: dict[str, Resource] = {}
        self._copies: dict[tuple[str, tuple[str, ...]], dict[int, Any]] = {}
        self._kept: list[Any] = []  # copies live as long as their identities are used as keys
        self._is_dynamic = False

    @cached_property
    def is_simple(self) -> bool:
        """Whether a reference means the same wherever it stands: nothing but the document has a name of its own."""
        return not _has_names(self._root)

    def draft_of(self, schema: Any) -> int:
        """The year or number of the draft that a schema is written in."""
        home = self._home.get(id(schema))
        return home.draft if home else self.draft

    def move(self, old: Any, new: Any) -> None:
        """Let the references in `new` lead to what they lead to in `old`."""
        if id(old) in self._home:
            self._home[id(new)] = self._home[id(old)]

    def target(self, schema: dict[Any, Any], keyword: str, where: Where) -> tuple[Any, Where]:
        """The schema that a reference names, and its place."""
        reference = schema[keyword]
        if not isinstance(reference, str):
            problem = f"{keyword} must be a string, not {reference!r}"
            raise SchemaError(problem, render((where, keyword)), "write one such as #/$defs/name")
        if self.is_simple and keyword == "$ref" and (reference in ("", "#") or reference.startswith("#/")):
            located = self._known.get(reference)
            if located is None:
                located = self._known[reference] = follow(self._root, (), reference[1:], reference, (where, keyword))
            return located
        return self._resolve(schema, keyword, reference, (where, keyword))

    # Resources.

    def _resolve(self, schema: dict[Any, Any], keyword: str, reference: str, where: Where) -> tuple[Any, Where]:
        self._index()
        home = self._home.get(id(schema)) or self._resources[_base(self._root)]
        uri, fragment = _parted(home.uri, reference)
        resource = self._resource(uri, reference, where)
        located = self._in_resource(resource, fragment, reference, where)
        name = _RECURSIVE if keyword == "$recursiveRef" else fragment
        if keyword in _DYNAMIC and name in self._home.get(id(located[0]), resource).dynamic:
            for outer in home.scope:
                if name in self._resources[outer].dynamic:
                    resource = self._resources[outer]
                    located = resource.anchors[name]
                    break
        return self._entered(located, home) if self._is_dynamic else located

    def _in_resource(self, resource: Resource, fragment: str, reference: str, where: Where) -> tuple[Any, Where]:
        if not fragment or fragment.startswith("/"):
            target, place = follow(resource.root, resource.where, fragment, reference, where)
            if isinstance(target, dict) and id(target) not in self._home:
                self._walk(target, place, resource)
            return target, place
        anchor = resource.anchors.get(unquote(fragment))
        if anchor is None:
            raise SchemaError(f"$ref {reference!r} names nothing: there is no such anchor", render(where), "correct it")
        return anchor

    def _resource(self, uri: str, reference: str, where: Where) -> Resource:
        resource = self._resources.get(uri)
        if resource is None:
            document = self._registry.get(uri, self._registry.get(uri + "#"))
            if document is None:
                problem = f"$ref {reference!r} leads to another document"
                fix = "give that document in the registry, or copy what it names into $defs"
                raise SchemaError(problem, render(where), fix)
            self._add_document(uri, document, ((), uri))
            resource = self._resources[uri]
        return resource

    def _index(self) -> None:
        if not self._resources:
            self._add_document(_base(self._root), self._root, ())

    def _add_document(self, uri: str, document: Any, where: Where) -> None:
        self._is_dynamic = self._is_dynamic or any(_DYNAMIC & part.keys() for part in _dictionaries(document))
        resource = Resource(uri, document, where, draft_of(document, self.draft), (uri,))
        self._resources[uri] = resource
        self._walk(document, where, resource)

    def _walk(self, schema: Any, where: Where, resource: Resource) -> None:
        """Note the home of every schema in `schema`, and the names that are given there."""
        pending = [(schema, where, resource)]
        while pending:
            schema, where, home = pending.pop()
            if not isinstance(schema, dict):
                continue
            home = self._named(schema, where, home)
            self._home[id(schema)] = home
            for child, place in children(schema, where):
                pending.append((child, place, home))

    def _named(self, schema: dict[Any, Any], where: Where, home: Resource) -> Resource:
        name = schema.get("id" if home.draft <= 4 else "$id")
        alone = "$ref" in schema and home.draft <= 7  # its siblings say nothing
        if isinstance(name, str) and not alone:
            uri, fragment = _parted(home.uri, name)
            if fragment and not name.partition("#")[0]:
                home.anchors[fragment] = schema, where
            elif uri != home.uri or schema is not home.root:
                home = Resource(uri, schema, where, draft_of(schema, home.draft), (*home.scope, uri))
                self._resources[uri] = home
        for keyword in ("$anchor", "$dynamicAnchor"):
            if isinstance(anchor := schema.get(keyword), str):
                home.anchors[anchor] = schema, where
                if keyword == "$dynamicAnchor":
                    home.dynamic.add(anchor)
        if schema.get("$recursiveAnchor") is True:
            home.anchors[_RECURSIVE] = schema, where
            home.dynamic.add(_RECURSIVE)
        return home

    # Dynamic scopes.

    def _entered(self, located: tuple[Any, Where], origin: Resource) -> tuple[Any, Where]:
        """What a reference leads to, as seen from the resources that were entered on the way."""
        target, place = located
        home = self._home.get(id(target))
        if home is None or not isinstance(target, dict):
            return located
        scope = origin.scope if home.uri in origin.scope else (*origin.scope, home.uri)
        if scope == home.scope:
            return located
        original = self._resources[home.uri]
        key = (home.uri, scope)
        if key not in self._copies:
            if len(self._copies) >= MAX_COPIES:
                problem = f"$dynamicRef is reached in more than {MAX_COPIES} ways"
                raise LimitError(problem, render(place), "use $ref where the target is always the same")
            self._copies[key] = self._copied(original, scope)
        return self._copies[key].get(id(target), target), place

    def _copied(self, original: Resource, scope: tuple[str, ...]) -> dict[int, Any]:
        copies: dict[int, Any] = {}
        copy = _deep_copy(original.root, copies)
        self._kept.append(copy)
        seen = replace(original, root=copy, scope=scope)
        for old, new in copies.items():
            inner = self._home.get(old)
            if isinstance(new, dict) and inner is not None:
                added = inner.scope[len(original.scope) :]
                self._home[id(new)] = replace(inner, root=new, scope=(*scope, *added)) if added else seen
        return copies


def children(schema: dict[Any, Any], where: Where) -> Iterator[tuple[Any, Where]]:
    """The schemas directly inside a schema."""
    for keyword, value in schema.items():
        at = (where, keyword)
        if keyword in _ONE and isinstance(value, dict | bool):
            yield value, at
        elif keyword in _MANY and isinstance(value, list):
            yield from ((one, (at, index)) for index, one in enumerate(value))
        elif keyword in _NAMED and isinstance(value, dict):
            yield from ((one, (at, name)) for name, one in value.items() if isinstance(one, dict | bool))


def _dictionaries(value: Any) -> Iterator[dict[Any, Any]]:
    pending = [value]
    while pending:
        current = pending.pop()
        if isinstance(current, dict):
            yield current
            pending += current.values()
        elif isinstance(current, list):
            pending += current


def _has_names(root: Any) -> bool:
    """Whether something in the document but itself has a name of its own."""
    if not isinstance(root, dict):
        return has_names(root, _NAMES)
    # A property may be called id: then a schema stands there.
    named = any(name in root and not isinstance(root[name], dict) for name in _ANCHORS)
    return named or has_names([*root.values()], _NAMES)


def _deep_copy(value: Any, copies: dict[int, Any]) -> Any:
    """A copy of nested dictionaries and lists; `copies` tells which became which."""
    holder: list[Any] = [None]
    pending: list[tuple[Any, Any, Any]] = [(value, holder, 0)]
    while pending:
        old, owner, key = pending.pop()
        if isinstance(old, dict):
            owner[key] = copies[id(old)] = new = dict.fromkeys(old)
            pending.extend((item, new, name) for name, item in old.items())
        elif isinstance(old, list):
            owner[key] = copies[id(old)] = [None] * len(old)
            pending.extend((item, owner[key], index) for index, item in enumerate(old))
        else:
            owner[key] = old
    return holder[0]


def _parted(base: str, reference: str) -> tuple[str, str]:
    """The resource that a reference in `base`, which has no fragment, leads to, and the place in it."""
    # urljoin knows no relative references to identifiers such as urn:uuid:...
    return (base, reference[1:]) if reference.startswith("#") else urldefrag(urljoin(base, reference))


def _base(root: Any) -> str:
    """The identifier of a document."""
    name = root.get("$id", root.get("id")) if isinstance(root, dict) else None
    return urldefrag(name)[0] if isinstance(name, str) else ""


def draft_of(schema: Any, default: int = 2020) -> int:
    """The draft that `$schema` names: a number before 2019, then a year."""
    name = schema.get("$schema") if isinstance(schema, dict) else None
    if isinstance(name, str):
        for mark, draft in (("draft-03", 3), ("draft-04", 4), ("draft-06", 6), ("draft-07", 7), ("2019-09", 2019)):
            if mark in name:
                return draft
        if "2020-12" in name:
            return 2020
    return default
