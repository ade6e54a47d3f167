"""Formats as structural tags for xgrammar."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from dovetail.errors import ExportError, InputError
from dovetail.formats import FormatModel, StructuralTag
from dovetail.grammar import ebnf, ir, regex
from dovetail.grammar.ebnf.scanner import scan
from dovetail.grammar.export import languages

# Patterns that xgrammar refuses or reads in its own way; as a grammar they mean the same everywhere.
_OURS = re.compile(r"\(\?(?!:)|\\[pPbBAZsSU]|(?<!^)\^|\$(?!$)|[{}]")


def structural_tag(fmt: FormatModel) -> dict[str, Any]:
    """The structural tag of `fmt`: captures are transparent, and what xgrammar cannot read is written as a grammar."""
    given = fmt.to_dict()
    inner = given["format"] if isinstance(fmt, StructuralTag) else given
    return {"type": "structural_tag", "format": _tag(inner, "/format")}


def _tag(fmt: dict[str, Any], path: str) -> dict[str, Any]:
    match fmt["type"]:
        case "capture":
            return _tag(fmt["content"], f"{path}/content")
        case "json_schema":
            if not fmt.get("strict", True):
                problem = "xgrammar closes objects that are silent on additionalProperties"
                raise ExportError(problem, f"{path}/strict", "write additionalProperties into the schema")
            return {key: value for key, value in fmt.items() if key != "strict"}
        case "regex" if _OURS.search(fmt["pattern"]):
            return _grammar(lambda: ir.Rule("root", regex.parse(fmt["pattern"])), path)
        case "grammar" if any(token.kind in ("token", ".") for token in scan(fmt["grammar"])[1]):
            return _grammar(lambda: ebnf.parse(fmt["grammar"]), path)
        case _:
            return {key: _field(key, value, f"{path}/{key}") for key, value in fmt.items()}


def _field(key: str, value: Any, path: str) -> Any:
    match key:
        case "content":
            return _tag(value, path)
        case "elements" | "tags":
            return [_tag(inner, f"{path}/{index}") for index, inner in enumerate(value)]
        case "rules":
            return [[pattern, _tag(inner, f"{path}/{index}/1")] for index, (pattern, inner) in enumerate(value)]
        case _:
            return value


def _grammar(parse: Callable[[], ir.Rule], path: str) -> dict[str, Any]:
    try:
        return {"type": "grammar", "grammar": languages.ebnf(parse())}
    except InputError as error:
        raise ExportError(error.problem, path, error.fix) from None
