"""Formats as structural tags for xgrammar."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from dovetail.errors import ExportError, InputError
from dovetail.formats import (
    CaptureFormat,
    FormatModel,
    FormatSource,
    GrammarFormat,
    JsonSchemaFormat,
    RegexFormat,
    load_format,
)
from dovetail.grammar import ebnf, ir, regex
from dovetail.grammar.ebnf.scanner import scan
from dovetail.grammar.export import languages

# Patterns that xgrammar refuses or reads in its own way; as a grammar they mean the same everywhere.
_OURS = re.compile(r"\(\?(?!:)|\\[pPbBAZsSU]|(?<!^)\^|\$(?!$)|[{}]")

_NOT_THEIRS = ("type", "strict", "text_capture", "pad")


def structural_tag(source: FormatSource) -> dict[str, Any]:
    """A format as a structural tag: captures are transparent, and what xgrammar cannot read is written as a grammar."""
    return {"type": "structural_tag", "format": _tag(load_format(source), "/format")}


def _tag(fmt: FormatModel, path: str) -> dict[str, Any]:
    match fmt:
        case CaptureFormat(content=content):
            return _tag(content, f"{path}/content")
        case JsonSchemaFormat(strict=False):
            problem = "xgrammar closes objects that are silent on additionalProperties"
            raise ExportError(problem, f"{path}/strict", "write additionalProperties into the schema")
        case RegexFormat(pattern=pattern) if _OURS.search(pattern):
            return _grammar(lambda: ir.Rule("root", regex.parse(pattern)), path)
        case GrammarFormat(grammar=grammar) if any(token.kind in ("token", ".") for token in scan(grammar)[1]):
            return _grammar(lambda: ebnf.parse(grammar), path)
        case _:
            given = [name for name in fmt.model_fields_set if name not in _NOT_THEIRS]
            return {"type": fmt.type} | {name: _value(getattr(fmt, name), f"{path}/{name}") for name in sorted(given)}


def _value(value: Any, path: str) -> Any:
    if isinstance(value, FormatModel):
        return _tag(value, path)
    if isinstance(value, tuple):
        return [_value(inner, f"{path}/{index}") for index, inner in enumerate(value)]
    return value


def _grammar(parse: Callable[[], ir.Rule], path: str) -> dict[str, Any]:
    try:
        return {"type": "grammar", "grammar": languages.ebnf(parse())}
    except InputError as error:
        raise ExportError(error.problem, path, error.fix) from None
