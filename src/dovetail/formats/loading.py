"""From what a request carries to a checked Format."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple, cast

from pydantic import TypeAdapter, ValidationError

from dovetail.errors import FormatError, LimitError
from dovetail.formats.explain import format_error, pointer, shown
from dovetail.formats.models import (
    AnyTextFormat,
    Format,
    FormatModel,
    JsonSchemaFormat,
    StructuralTag,
    TagFormat,
)
from dovetail.formats.python_types import is_python_type, schema_of
from dovetail.formats.rules import check

_FORMAT: TypeAdapter[Format] = TypeAdapter(Format)
_OPENAI_SCHEMA_FIELDS = frozenset(("name", "description", "schema", "strict"))
_BARE_FIELDS = frozenset(("type", "json_schema", "strict", "any_order"))
_TEXT = {str}
_SCHEMA_TYPES = frozenset(("object", "array", "string", "number", "integer", "boolean", "null"))
_SCHEMA_KEYWORDS = frozenset(
    ("$schema", "$id", "$ref", "$defs", "properties", "items", "anyOf", "allOf", "oneOf", "enum", "const")
)

_SOURCES = (
    'give a format object such as {"type": "regex", "pattern": "[0-9]+"}, a JSON Schema or a Python type; '
    "dovetail.formats.choice([...]) is one of some texts"
)

# What `load_format` takes: format models, the request shapes as dicts or as JSON text, a JSON Schema, a Python type.
FormatSource = Format | StructuralTag | Mapping[str, Any] | str | bytes | type[Any]


class BareSchema(NamedTuple):
    """A JsonSchemaFormat whose other fields are at their defaults; `path` is where its schema stands in the source."""

    schema: dict[str, Any]
    strict: bool = True
    any_order: bool = False
    path: str = ""


def bare_schema(source: object) -> BareSchema | None:
    """What a format object says that `load_format` would take for such a format; None for any other.

    Most requests are of this kind, and beside the work on a small schema a model is dear to make: where something else
    ran before, its validators are in no cache of the processor.
    """
    if type(source) is not dict:
        return BareSchema(schema_of(source).schema) if is_python_type(source) else None
    if _is_schema(source):
        return BareSchema(source)
    if source.get("type") != "json_schema" or not source.keys() <= _BARE_FIELDS:
        return None
    schema, strict, any_order = source.get("json_schema"), source.get("strict", True), source.get("any_order", False)
    if type(schema) is not dict or type(strict) is not bool or type(any_order) is not bool:
        return None
    if _is_openai_schema(schema) or not {*map(type, schema)} <= _TEXT:
        return None
    return BareSchema(schema, strict, any_order, "/json_schema")


def load_format(source: object) -> Format:
    """The checked format in `source`: the bare format object, whichever request shape it came in.

    `source` is a format model, a format object as a dict, a StructuralTag or its JSON object, an OpenAI
    `response_format`, the older structural tag with `structures` and `triggers`, a bare JSON Schema, a JSON string of
    any of these, or a Python type: a Pydantic model, dataclass or TypedDict.
    """
    if isinstance(source, str | bytes):
        source = _parse(source)
    if isinstance(source, StructuralTag):
        check(source.format, "/format")
        return source.format
    if isinstance(source, FormatModel):
        fmt = cast(Format, source)
        check(fmt)
        return fmt
    if is_python_type(source):
        return JsonSchemaFormat(json_schema=schema_of(source).schema)
    if not isinstance(source, dict):
        raise FormatError(f"a format must be an object or a Python type, not {shown(source)}", "", _SOURCES)
    kind = source.get("type")
    if _is_schema(source):
        return _validated({"type": "json_schema", "json_schema": source}, "")
    if kind == "structural_tag" or ("type" not in source and ("format" in source or "structures" in source)):
        return _structural_tag(source)
    if kind == "text":
        return AnyTextFormat()
    if kind == "json_object":
        return JsonSchemaFormat(json_schema={"type": "object"})
    if kind == "json_schema" and _is_openai_schema(source.get("json_schema")):
        return _openai_schema(source["json_schema"])
    return _validated(source, "")


def _parse(text: str | bytes) -> object:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise FormatError(f"not JSON: {error.msg}", where, "pass a format object or its JSON") from None
    except UnicodeDecodeError as error:
        raise FormatError("not JSON: the bytes are not UTF-8", f"byte {error.start}", "pass UTF-8") from None
    except RecursionError:
        raise LimitError("the JSON is nested too deeply to be read", "", "flatten it") from None
    if isinstance(value, str):
        raise FormatError(f"a format must be an object, not the string {shown(value)}", "", "unquote it")
    return cast(object, value)


def _validated(obj: dict[str, Any], path: str) -> Format:
    try:
        fmt = _FORMAT.validate_python(obj)
    except ValidationError as error:
        raise format_error(error, path) from None
    check(fmt, path)
    return fmt


def _structural_tag(obj: dict[str, Any]) -> Format:
    if "format" in obj:
        return _validated(obj["format"], "/format")
    if "structures" in obj:
        return _structures(obj)
    raise FormatError("`format` is missing", "/format", 'add it: a format object such as {"type": "any_text"}')


def _structures(obj: dict[str, Any]) -> Format:
    """The older shape: JSON between begin and end wherever one of the triggers occurs."""
    structures = obj["structures"]
    if not isinstance(structures, list) or not structures:
        fix = 'give an array of objects {"begin": ..., "schema": ..., "end": ...}'
        raise FormatError(f"`structures` is {shown(structures)}", "/structures", fix)
    if "triggers" not in obj:
        raise FormatError("`triggers` is missing", "/triggers", "add the strings with which the begins start")
    tags: list[TagFormat] = []
    for i, item in enumerate(structures):
        path = pointer("", "structures", i)
        if not isinstance(item, dict):
            raise FormatError(f"a structure is {shown(item)}", path, 'write {"begin": ..., "schema": ..., "end": ...}')
        for field in ("begin", "schema", "end"):
            if field not in item:
                raise FormatError(f"`{field}` is missing", pointer(path, field), "add it")
        tags.append(_structure(item, path))
    return _validated({"type": "triggered_tags", "triggers": obj["triggers"], "tags": tags}, "")


def _structure(item: dict[str, Any], path: str) -> TagFormat:
    schema = item["schema"]
    if isinstance(schema, str):
        schema = _parse(schema)
    content = {"type": "json_schema", "json_schema": schema}
    fields = {"begin": item["begin"], "content": content, "end": item["end"]}
    try:
        return TagFormat.model_validate(fields)
    except ValidationError as error:
        raise format_error(error, path) from None


def _is_schema(source: Mapping[str, Any]) -> bool:
    """Whether this is a JSON Schema, and no format: they share no type, and a schema need not have one."""
    kind = source.get("type")
    if kind is None:
        return not _SCHEMA_KEYWORDS.isdisjoint(source)
    return isinstance(kind, list) or (isinstance(kind, str) and kind in _SCHEMA_TYPES)


def _is_openai_schema(inner: object) -> bool:
    """Whether this is OpenAI's envelope around a schema; the fields of the envelope are no JSON Schema keywords."""
    return isinstance(inner, dict) and ("name" in inner or "schema" in inner) and inner.keys() <= _OPENAI_SCHEMA_FIELDS


def _openai_schema(inner: dict[str, Any]) -> Format:
    """OpenAI's envelope; without `strict` ours applies, because a missing answer is no wish for stray properties."""
    fields: dict[str, Any] = {"type": "json_schema", "json_schema": inner.get("schema", {"type": "object"})}
    if inner.get("strict") is not None:
        fields["strict"] = inner["strict"]
    return _validated(fields, "/json_schema")
