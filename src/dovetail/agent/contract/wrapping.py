"""Roots that are no objects: the tool takes them as its only parameter, and the output has them bare."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from dovetail.agent.contract.strict import subschemas

PARAMETER = "value"


def wrapped(schema: Mapping[str, Any]) -> dict[str, Any]:
    """An object schema whose one property holds values of `schema`; its local references still lead where they led."""
    inner = copy.deepcopy(dict(schema))
    outer: dict[str, Any] = {"$schema": inner.pop("$schema")} if "$schema" in inner else {}
    if "$id" not in inner:  # with an identifier of its own the schema stays a document of its own
        for _, part in subschemas(inner):
            reference = part.get("$ref")
            if isinstance(part, dict) and isinstance(reference, str) and reference.startswith(("#/", "#")):
                part["$ref"] = _moved(reference)
    properties = {PARAMETER: inner}
    return outer | {
        "type": "object",
        "properties": properties,
        "required": [PARAMETER],
        "additionalProperties": False,
    }


def _moved(reference: str) -> str:
    if reference == "#" or reference.startswith("#/"):
        return f"#/properties/{PARAMETER}{reference[1:]}"
    return reference  # an anchor is found wherever it stands
