"""Which JSON Schemas engines hold by themselves as we would: what goes beyond is written out as a grammar for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_ANNOTATIONS = frozenset("title description default examples deprecated readOnly writeOnly $schema $comment".split())
_DEFINITIONS = frozenset(("$defs", "definitions"))
_NUMBER = frozenset("minimum maximum exclusiveMinimum exclusiveMaximum".split())
# What XGrammar holds exactly in a schema of one type. Beside others, some keywords are ignored there without a word:
# `enum` beside `type`, `minLength` beside `pattern`, anything beside `$ref` or `anyOf`.
_OF_TYPE: dict[Any, frozenset[str]] = {
    "string": frozenset(("minLength", "maxLength")),
    "integer": _NUMBER,
    "number": _NUMBER,
    "boolean": frozenset(),
    "null": frozenset(),
    "array": frozenset(("items", "minItems", "maxItems")),
    "object": frozenset(("properties", "required", "additionalProperties")),
}


def is_common(schema: Any) -> bool:
    """Whether a schema says only what XGrammar reads as JSON Schema means it."""
    pending = [schema]
    while pending:
        node = pending.pop()
        if not isinstance(node, Mapping) or not _is_common(node):
            return False
        pending += _inside(node)
    return True


def _inside(node: Mapping[str, Any]) -> list[Any]:
    """The schemas directly inside one."""
    inner = [one for key in ("properties", *_DEFINITIONS) for one in node.get(key, {}).values()]
    inner += node.get("anyOf", ())
    return [*inner, node["items"]] if "items" in node else inner


def _is_common(node: Mapping[str, Any]) -> bool:
    keywords = {key for key in node if key not in _ANNOTATIONS and key not in _DEFINITIONS}
    if not all(isinstance(node.get(key, {}), Mapping) for key in ("properties", *_DEFINITIONS)):
        return False
    match node:
        case {"$ref": str(reference)}:
            return keywords == {"$ref"} and reference.startswith("#/")
        case {"anyOf": [_, *_]}:
            return keywords == {"anyOf"}
        case {"enum": [_, *_] as values}:
            kind = node.get("type", "string")
            return keywords <= {"enum", "type"} and kind == "string" and all(isinstance(value, str) for value in values)
        case {"const": str()}:
            return keywords == {"const"}
        case {"type": str(kind)} if kind in _OF_TYPE:
            return keywords <= _OF_TYPE[kind] | {"type"} and (kind != "object" or _is_closed(node))
        case _:
            return False


def _is_closed(node: Mapping[str, Any]) -> bool:
    """Whether the members of an object are those that it declares."""
    required = node.get("required", [])
    known = isinstance(required, list) and all(isinstance(key, str) for key in required)
    return known and set(required) <= set(node.get("properties", {})) and not node.get("additionalProperties")
