"""Which schemas a service can hold a call to by itself: it must know every keyword, and objects must be closed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

Service = Literal["openai", "anthropic"]

_COMMON = frozenset(
    """$defs $ref additionalProperties anyOf const definitions description enum items properties required title
    type""".split()
)
_KEYWORDS: Mapping[Service, frozenset[str]] = {
    "openai": _COMMON
    | frozenset(
        "exclusiveMaximum exclusiveMinimum format maxItems maximum minItems minimum multipleOf pattern".split()
    ),
    "anthropic": _COMMON | frozenset("allOf default format".split()),
}
_FORMATS: Mapping[Service, frozenset[str]] = {
    "openai": frozenset("date-time time date duration email hostname ipv4 ipv6 uuid".split()),
    "anthropic": frozenset("date-time time date duration email hostname uri ipv4 ipv6 uuid".split()),
}
_MAX_DEPTH = 10
_MAX_PROPERTIES = 5000
_MAX_OPTIONAL = 24  # of Anthropic, in all tools together; one tool is held to it here


def fits(schema: Mapping[str, Any], service: Service) -> bool:
    """Whether the service takes the schema as a strict one, as it stands."""
    if schema.get("type") != "object" or "anyOf" in schema or "$ref" in schema:
        return False
    properties = optional = 0
    for node, depth in _nodes(schema):
        if not isinstance(node, Mapping) or depth > _MAX_DEPTH or not _node_fits(node, service):
            return False
        known = node.get("properties", {})
        properties += len(known)
        optional += len(known) - len(node.get("required", ()))
    return properties <= _MAX_PROPERTIES and optional <= (_MAX_OPTIONAL if service == "anthropic" else 0)


def _node_fits(node: Mapping[str, Any], service: Service) -> bool:
    if not node.keys() <= _KEYWORDS[service]:
        return False
    if not node.keys() & {"type", "enum", "const", "anyOf", "allOf", "$ref"}:
        return False  # anything at all
    if node.get("type") == "object" or "properties" in node:
        known, required = node.get("properties", {}), node.get("required", [])
        if (
            not isinstance(known, Mapping)
            or not isinstance(required, list)
            or node.get("additionalProperties") is not False
        ):
            return False
        if set(required) - set(known):
            return False
    if node.get("type") == "array" and "items" not in node:
        return False
    if not str(node.get("$ref", "#")).startswith("#"):
        return False
    return "format" not in node or node["format"] in _FORMATS[service]


def _nodes(schema: Mapping[str, Any]) -> Iterator[tuple[Any, int]]:
    """Every schema inside a schema and how deep it lies, without following references."""
    pending: list[tuple[Any, int]] = [(schema, 1)]
    while pending:
        node, depth = pending.pop()
        yield node, depth
        if not isinstance(node, Mapping) or depth > _MAX_DEPTH:
            continue
        inner: list[Any] = [node["items"]] if "items" in node else []
        for keyword in ("properties", "$defs", "definitions"):
            named = node.get(keyword)
            inner += named.values() if isinstance(named, Mapping) else []
        for keyword in ("anyOf", "allOf"):
            listed = node.get(keyword)
            inner += listed if isinstance(listed, list) else []
        pending += [(part, depth + 1) for part in inner]
