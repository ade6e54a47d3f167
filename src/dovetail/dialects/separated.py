"""Arguments as members with separators between them: values that are JSON, or text between quotes as it is.

Declared properties come in their order, and an object that declares some has no others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dovetail import formats as f
from dovetail.errors import SchemaError
from dovetail.grammar.json_schema.read.references import References
from dovetail.layouts.styles import KINDS, Layout, Literals
from dovetail.parsing.layouts import Quoted

_ANNOTATIONS = frozenset("type title description default examples format deprecated $comment".split())
_KEY = f.RegexFormat(pattern=r"[A-Za-z_][\w.$-]{0,255}")
_MAX_PROPERTIES = 256  # the ways to begin with any of them grow with the square

Schema = dict[str, Any] | bool
Member = Callable[[str, Any], f.Format]


def json_arguments(schema: Schema, style: Literals) -> f.Format:
    """The arguments of a call, brackets included, with values that are JSON."""
    root = _root(schema)

    def member(key: str, value: Any) -> f.Format:
        return _sequence(_const(key + style.assign), f.JsonSchemaFormat(json_schema=_with_definitions(root, value)))

    other = _sequence(_KEY, _const(style.assign), f.JsonSchemaFormat(json_schema=True))
    return _arguments(root, style, member, other)


def quoted_arguments(schema: Schema, style: Quoted, ends: Sequence[str]) -> f.Format:
    """The arguments of a call, brackets included, with values between quotes, which hold none of `ends`."""
    root = _root(schema)
    middle = style.assign + style.quote
    text = _sequence(f.AnyTextFormat(excludes=tuple(ends)), _const(style.quote))
    layout = Layout("", dict.fromkeys(KINDS, (middle,)), style.quote, python=style.python)

    def member(key: str, value: Any) -> f.Format:
        if _is_text(value):
            return _sequence(_const(key + middle), text)
        if not style.python and isinstance(value, dict) and value.get("type", "string") in KINDS[1:]:
            inner = f.JsonSchemaFormat(json_schema=_with_definitions(root, value))
            return _sequence(_const(key + middle), inner, _const(style.quote))
        alone = {"type": "object", "properties": {key: value}, "required": [key], "additionalProperties": False}
        schema = _with_definitions(root, alone)
        return f.JsonSchemaFormat(json_schema=schema, style=layout, max_whitespace_cnt=0, excludes=tuple(ends))

    return _arguments(root, style, member, _sequence(_KEY, _const(middle), text))


def _root(schema: Schema) -> Schema:
    """The schema of an object, behind its reference."""
    if isinstance(schema, dict) and "$ref" in schema:
        schema = _with_definitions(schema, References(schema).target(schema, "$ref", ())[0])
    if schema is not True and (not isinstance(schema, dict) or "object" not in _types(schema)):
        raise SchemaError("arguments are an object", "", 'say "type": "object"')
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    if not isinstance(properties, dict) or len(properties) > _MAX_PROPERTIES:
        problem = f"this call syntax takes an object of at most {_MAX_PROPERTIES} properties"
        raise SchemaError(problem, "/properties", "declare fewer of them")
    return schema


def _types(schema: dict[str, Any]) -> Sequence[str]:
    types = schema.get("type", "object")
    return [types] if isinstance(types, str) else types


def _is_text(schema: Any) -> bool:
    return isinstance(schema, dict) and schema.get("type") == "string" and schema.keys() <= _ANNOTATIONS


def _with_definitions(root: Schema, schema: Any) -> Any:
    """A part of a schema that still finds what it refers to."""
    if not isinstance(schema, dict) or not isinstance(root, dict):
        return schema
    return {**{key: root[key] for key in ("$defs", "definitions") if key in root}, **schema}


def _arguments(schema: Schema, style: Literals | Quoted, member: Member, other: f.Format) -> f.Format:
    properties = schema.get("properties", {}) if isinstance(schema, dict) else {}
    required = schema.get("required", ()) if isinstance(schema, dict) else ()
    gap = _const(style.separator)
    if properties:
        made = [(member(key, value), key in required) for key, value in properties.items()]
        inside = _joined(made, gap)
    else:
        inside = [f.OptionalFormat(content=_sequence(other, f.StarFormat(content=_sequence(gap, other))))]
    return _sequence(_const(style.begin), *inside, _const(style.end))


def _joined(members: list[tuple[f.Format, bool]], gap: f.Format) -> list[f.Format]:
    """Members in their order, those that are not required or not, with separators between them."""
    first = next((index for index, (_, needed) in enumerate(members) if needed), None)
    if first is not None:
        before = [f.OptionalFormat(content=_sequence(member, gap)) for member, _ in members[:first]]
        return [*before, members[first][0], *_following(members[first + 1 :], gap)]
    ways = [_sequence(member, *_following(members[at + 1 :], gap)) for at, (member, _) in enumerate(members)]
    return [f.OptionalFormat(content=f.OrFormat(elements=tuple(ways)))]


def _following(members: list[tuple[f.Format, bool]], gap: f.Format) -> list[f.Format]:
    parts = [(_sequence(gap, member), needed) for member, needed in members]
    return [part if needed else f.OptionalFormat(content=part) for part, needed in parts]


def _const(text: str) -> f.Format:
    return f.ConstStringFormat(value=text)


def _sequence(*parts: f.Format) -> f.Format:
    kept = tuple(part for part in parts if part != f.ConstStringFormat(value=""))
    return kept[0] if len(kept) == 1 else f.SequenceFormat(elements=kept or parts[:1])
