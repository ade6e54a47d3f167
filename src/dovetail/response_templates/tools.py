"""Tool-call arguments cast by the schema of their tool.

Only text is cast: a value that already has a type keeps it. Text below the first level is cast where its layout has no
types of its own (nested tags or lines); a string inside JSON is a string because the model said so.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

from dovetail.errors import InputError
from dovetail.extras import install

Tool = dict[str, Any] | Callable[..., Any]

_MAX_DEPTH = 64


class Tools:
    """What the tools of a request say about their parameters."""

    def __init__(self, tools: Sequence[Tool] | None) -> None:
        self._parameters: dict[str, dict[str, Any]] = {}
        for index, tool in enumerate(tools or ()):
            function = function_of(tool, index)
            parameters = function.get("parameters")
            self._parameters[function["name"]] = parameters if isinstance(parameters, dict) else {}

    def __bool__(self) -> bool:
        return bool(self._parameters)

    def cast(self, value: Any, untyped: bool) -> Any:
        """`value` with the arguments of every call in it cast; `untyped` says that nested text has no type either."""
        if isinstance(value, list):
            return [self.cast(item, untyped) for item in value]
        function = value.get("function") if isinstance(value, dict) else None
        if not isinstance(function, dict):
            return value
        name, arguments = function.get("name"), function.get("arguments")
        schema = self._parameters.get(name) if isinstance(name, str) else None
        if schema is None or not isinstance(arguments, dict):
            return value
        cast = _Caster(schema, untyped).members(arguments, schema, 0)
        return {**value, "function": {**function, "arguments": cast}}


def function_of(tool: Tool, index: int) -> dict[str, Any]:
    """The function that a tool describes: its name, and its parameters as JSON Schema."""
    if callable(tool):
        try:
            from transformers.utils.chat_template_utils import get_json_schema
        except ImportError:
            raise InputError(
                "a tool is a function, and only Transformers can describe it",
                f"/tools/{index}",
                f"{install('transformers')}, or pass the tool's JSON Schema",
            ) from None
        tool = get_json_schema(tool)
    function = tool.get("function", tool) if isinstance(tool, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise InputError(
            "a tool has no name", f"/tools/{index}", 'write {"type": "function", "function": {"name": ...}}'
        )
    return function


class _Caster:
    def __init__(self, root: dict[str, Any], untyped: bool) -> None:
        self._root = root
        self._untyped = untyped

    def members(self, value: dict[str, Any], schema: dict[str, Any], depth: int) -> dict[str, Any]:
        """Each member of an object, by its property; others are left alone."""
        properties = schema.get("properties")
        if not isinstance(properties, dict):
            return value
        return {key: self._value(item, properties.get(key), depth) for key, item in value.items()}

    def _value(self, value: Any, schema: Any, depth: int) -> Any:
        choices = list(self._choices(schema, 0)) if depth < _MAX_DEPTH else []
        if isinstance(value, str):
            return _cast(value, choices)
        types = {kind for kind, _ in choices}
        if isinstance(value, list) and types and "array" not in types:
            # One parameter written several times.
            return [_cast(item, choices) if isinstance(item, str) else item for item in value]
        if not self._untyped:
            return value
        for kind, choice in choices:
            if kind == "object" and isinstance(value, dict):
                return self.members(value, choice, depth + 1)
            if kind == "array" and isinstance(value, list):
                return [self._value(item, choice.get("items"), depth + 1) for item in value]
        return value

    def _choices(self, schema: Any, depth: int) -> Iterator[tuple[str, dict[str, Any]]]:
        """The types that a schema allows, in its order, each with the schema that says so."""
        if not isinstance(schema, dict) or depth > _MAX_DEPTH:
            return
        if isinstance(reference := schema.get("$ref"), str):
            yield from self._choices(self._resolved(reference), depth + 1)
        if "enum" in schema or "const" in schema:
            yield "enum", schema
        declared = schema.get("type")
        for kind in [declared] if isinstance(declared, str) else declared if isinstance(declared, list) else []:
            if isinstance(kind, str):
                yield kind, schema
        for union in ("anyOf", "oneOf"):
            for choice in schema.get(union) or ():
                yield from self._choices(choice, depth + 1)
        if schema.get("nullable"):
            yield "null", schema

    def _resolved(self, reference: str) -> Any:
        """What a local reference points to, or None."""
        target: Any = self._root
        if not reference.startswith("#"):
            return None
        for step in filter(None, reference[1:].split("/")):
            key = step.replace("~1", "/").replace("~0", "~")
            target = target.get(key) if isinstance(target, dict) else None
        return target


def _cast(raw: str, choices: list[tuple[str, dict[str, Any]]]) -> Any:
    """The first reading of `raw` that one of the choices allows, or `raw`."""
    for kind, schema in choices:
        if kind in _READERS:
            with suppress(ValueError, ArithmeticError, RecursionError):
                return _READERS[kind](raw, schema)
    return raw


def _integer(raw: str, _schema: dict[str, Any]) -> int:
    try:
        return int(raw)
    except ValueError:
        return _whole(raw)


def _whole(raw: str) -> int:
    """A whole number in the spelling of a float, exact as far as floats have an exponent."""
    if not float(raw).is_integer():
        raise ValueError
    return int(Decimal(raw.strip()))


def _number(raw: str, schema: dict[str, Any]) -> int | float:
    number = float(raw)
    if not math.isfinite(number):
        raise ValueError
    return _integer(raw, schema) if number.is_integer() and "." not in raw else number


def _boolean(raw: str, _schema: dict[str, Any]) -> bool:
    word = raw.strip().lower()
    if word not in ("true", "1", "false", "0"):
        raise ValueError
    return word in ("true", "1")


def _null(raw: str, _schema: dict[str, Any]) -> None:
    if raw.strip() not in ("null", "None"):
        raise ValueError


def _container(kind: type) -> Callable[[str, dict[str, Any]], Any]:
    def read(raw: str, _schema: dict[str, Any]) -> Any:
        value = json.loads(raw)
        if not isinstance(value, kind):
            raise ValueError
        return value

    return read


def _enum(raw: str, schema: dict[str, Any]) -> Any:
    """The member that `raw` spells: a text as it stands, anything else as JSON."""
    members = schema["enum"] if isinstance(schema.get("enum"), list) else [schema.get("const")]
    if raw in members:
        return raw
    value = json.loads(raw)
    if any(type(value) is type(member) and value == member for member in members):
        return value
    raise ValueError


_READERS: dict[str, Callable[[str, dict[str, Any]], Any]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "null": _null,
    "object": _container(dict),
    "array": _container(list),
    "enum": _enum,
}
