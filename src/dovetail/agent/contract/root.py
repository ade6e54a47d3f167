"""Whether the root of a schema admits an object at all: tool arguments are always objects.

All keywords of a level hold together, so each may veto. Local references are followed. What needs a look at whole
values (an `if` with a schema, most of `not`) passes here: the search for a witness decides it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

MAX_DEPTH = 200
MAX_VISITS = 10_000  # branches that share definitions can multiply; beyond this the search for a witness decides


def accepts_object(schema: Mapping[str, Any]) -> bool:
    """False where no object can satisfy the schema, judged by its root keywords."""
    return _Walk(schema).accepts(schema, frozenset(), 0)


def takes_only_objects(schema: Mapping[str, Any]) -> bool:
    """Whether the root says plainly that every value is an object, possibly through references and branches."""
    seen: set[str] = set()
    pending: list[Any] = [schema]
    while pending:
        current = pending.pop()
        if not isinstance(current, Mapping):
            return False
        reference, arms = current.get("$ref"), current.get("anyOf") or current.get("oneOf")
        if current.get("type") == "object":
            continue
        if isinstance(reference, str) and reference not in seen:
            seen.add(reference)
            try:
                pending.append(resolve(schema, reference))
            except KeyError:
                return False
        elif isinstance(arms, list) and arms and len(seen) < MAX_DEPTH:
            pending += arms
            seen.add(f"arms {len(seen)}")
        elif not isinstance(reference, str):
            return False
    return True


def resolve(root: Any, reference: str) -> Any:
    """What a local reference leads to; KeyError where it leads nowhere, or out of the document."""
    if not reference.startswith("#"):
        raise KeyError(reference)
    fragment = unquote(reference[1:])
    if fragment and not fragment.startswith("/"):
        raise KeyError(reference)  # a plain name: an anchor, which the compiler resolves
    current = root
    for step in fragment.split("/")[1:]:
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(current, list) and key.isdecimal() and int(key) < len(current):
            current = current[int(key)]
        elif isinstance(current, dict) and key in current:
            current = current[key]
        else:
            raise KeyError(reference)
    return current


class _Walk:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._visits = 0

    def accepts(self, schema: Any, above: frozenset[str], depth: int) -> bool:
        """`above` has the references that led here: one met again constrains nothing new."""
        if isinstance(schema, bool):
            return schema
        if not isinstance(schema, Mapping):
            return False
        self._visits += 1
        if depth > MAX_DEPTH or self._visits > MAX_VISITS:
            return True
        return (
            self._own(schema)
            and self._reference(schema, above, depth)
            and self._branches(schema, above, depth)
            and self._condition(schema, above, depth)
        )

    def _own(self, schema: Mapping[str, Any]) -> bool:
        if "type" in schema:
            kind = schema["type"]
            if "object" not in (kind if isinstance(kind, list) else [kind]):
                return False
        if "const" in schema and not isinstance(schema["const"], Mapping):
            return False
        values = schema.get("enum")
        return not isinstance(values, list) or any(isinstance(value, Mapping) for value in values)

    def _reference(self, schema: Mapping[str, Any], above: frozenset[str], depth: int) -> bool:
        reference = schema.get("$ref")
        if not isinstance(reference, str) or reference in above:
            return True
        try:
            target = resolve(self._root, reference)
        except KeyError:
            return True  # the compiler tells what is wrong with it
        return self.accepts(target, above | {reference}, depth + 1)

    def _branches(self, schema: Mapping[str, Any], above: frozenset[str], depth: int) -> bool:
        for keyword in ("anyOf", "oneOf"):
            arms = schema.get(keyword)
            if isinstance(arms, list) and not any(self.accepts(arm, above, depth + 1) for arm in arms):
                return False
        arms = schema.get("allOf")
        return not isinstance(arms, list) or all(self.accepts(arm, above, depth + 1) for arm in arms)

    def _condition(self, schema: Mapping[str, Any], above: frozenset[str], depth: int) -> bool:
        denied = schema.get("not")
        if isinstance(denied, Mapping) and denied.keys() == {"type"}:
            kind = denied["type"]
            if "object" in (kind if isinstance(kind, list) else [kind]):
                return False
        arm = {True: "then", False: "else"}.get(schema["if"]) if isinstance(schema.get("if"), bool) else None
        return arm is None or arm not in schema or self.accepts(schema[arm], above, depth + 1)
