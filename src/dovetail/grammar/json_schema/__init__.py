"""JSON Schema to nodes: `lower` gives the texts of the values that a schema admits.

    schema --reading--> Constraints per branch --lowering--> nodes over JSON text (values, objects, spell)
                                         --tagged----> parameters in the markup of a model family, JSON inside

Exactly JSON Schema, in the draft that `$schema` names or 2020-12, with these bounds. `strict` closes an object that
declares properties and is silent about others. Properties come in declared order, or in any order where asked for.
Every value has one canonical spelling: keys, enums, constants and restricted strings as `json.dumps(value,
ensure_ascii=False)` writes them, integers without a fraction, numbers with limits without an exponent. Free strings may
also use the escapes of RFC 8259. What cannot be held exactly is an error that lists all such keywords.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any

from dovetail.errors import FormatError, InputError, SchemaError
from dovetail.grammar.ir import NOTHING, Node, is_nothing
from dovetail.grammar.json_schema.read.equality import UNKNOWN, Content
from dovetail.grammar.json_schema.read.equality import content as content_of
from dovetail.grammar.json_schema.read.pointers import render
from dovetail.grammar.json_schema.read.reader import Reader
from dovetail.grammar.json_schema.read.report import Finding, SchemaReport, report
from dovetail.grammar.json_schema.spell.json import DEFAULT_WHITESPACE, json_spelling
from dovetail.grammar.json_schema.spell.literals import literal_spelling
from dovetail.grammar.json_schema.spell.markup import Tagged
from dovetail.grammar.productive import matches
from dovetail.grammar.regex import limited
from dovetail.layouts.styles import LAYOUTS, STYLES, Layout, Literals

from .lowering import Lowering

__all__ = ["STYLES", "Content", "Finding", "SchemaReport", "explain_schema", "lower"]

Style = str | Layout | Literals

_MAX_CACHED = 1024
_MAX_CACHED_VALUES = 1 << 12
_cache: OrderedDict[Any, Node] = OrderedDict()


def lower(
    schema: Any,
    *,
    style: Style = "json",
    strict: bool = True,
    any_order: bool = False,
    max_whitespace: int | None = None,
    excludes: Sequence[str] = (),
    on_inexact: str = "raise",
    pad: str = "",
    tidy: bool = False,
    registry: Mapping[str, Any] | None = None,
    path: str = "",
    content: Content | None = None,
) -> Node:
    """The texts of the values that `schema` admits; `path` is where the schema stands in what the caller wrote.

    Where `on_inexact` is "widen", keywords that cannot be held exactly are left out instead of refused. `registry` has
    the documents, by their identifier, that references may lead to. `pad` may stand around the raw text of a style.
    Where `tidy`, JSON has white space only where people have it. `content` is the fingerprint of the schema, where the
    caller has it.
    """
    words = tuple(excludes)
    known, size = content or (content_of(schema) if registry is None else UNKNOWN)
    key = (known, style, strict, any_order, max_whitespace, words, on_inexact, pad, tidy)
    node = _cache.get(key) if known else None
    if node is None:
        options = (style, strict, any_order, max_whitespace, words, pad, tidy)
        try:
            lowering, node = _lower(schema, registry, *options)
            if is_nothing(node):
                raise SchemaError(
                    "no value can satisfy this schema", "", "loosen the keywords that contradict each other"
                )
            if lowering.reader.findings and on_inexact != "widen":
                raise _inexact(lowering.reader.findings)
        except (ValueError, OverflowError) as error:
            raise _with_path(error, path) from error.__cause__
        if 0 < size <= _MAX_CACHED_VALUES:
            _cache[key] = node
            if len(_cache) > _MAX_CACHED:
                _cache.popitem(last=False)
    return node


def explain_schema(
    schema: Any,
    *,
    style: Style = "json",
    strict: bool = True,
    any_order: bool = False,
    registry: Mapping[str, Any] | None = None,
) -> SchemaReport:
    """How exactly each keyword of a schema is held, by JSON Pointer."""
    try:
        lowering, node = _lower(schema, registry, style, strict, any_order, None, ())
    except (ValueError, OverflowError) as error:
        raise _with_path(error, "") from error.__cause__
    impossible = {render(where) for where in lowering.impossible}
    return report(schema, lowering.reader.findings, impossible | ({""} if node == NOTHING else set()))


def _with_path(error: Exception, path: str) -> InputError:
    """The error with the place of the schema in what the caller wrote."""
    match error:
        case UnicodeEncodeError():
            problem = f"{error.object!r} has a surrogate without its partner"
            return SchemaError(problem, path, "use Unicode text")
        case InputError():
            return type(error)(error.problem, path + error.path, error.fix)
        case _:
            problem = f"a number in this schema cannot be written as JSON: {error}"
            return SchemaError(problem, path, "use finite numbers of a few thousand digits at most")


@limited()
def _lower(
    schema: Any,
    registry: Mapping[str, Any] | None,
    style: Style,
    strict: bool,
    any_order: bool,
    width: int | None,
    excludes: tuple[str, ...],
    pad: str = "",
    tidy: bool = False,
) -> tuple[Lowering, Node]:
    if pad.strip():
        raise FormatError(f"the pad {pad!r} is not white space", "", "write the rest into the style")
    reader = Reader(schema, registry, strict)
    words, root = tuple(map(str.encode, excludes)), ((schema, ()),)
    if isinstance(style, Literals):
        spelling = literal_spelling(style, words)
        lowering = Lowering(reader, spelling, any_order)
        node = lowering.arguments(root, spelling.arguments())
    else:
        spelling_of_json = json_spelling(DEFAULT_WHITESPACE if width is None else width, words, tidy)
        lowering = Lowering(reader, spelling_of_json, any_order)
        if style == "json":
            node = lowering.value(root)
            lowering.finish()
        else:
            node = Tagged(lowering, _layout(style, excludes), pad.encode()).arguments(root)
    return lowering, node if not lowering.doubtful or matches(node) else NOTHING


def _inexact(findings: dict[tuple[str, str], str]) -> SchemaError:
    """All keywords that cannot be held exactly, in one error at the place of the first."""
    (first, keyword), why = next(iter(findings.items()))
    problem = f"{keyword} cannot be held exactly: {why}"
    if len(findings) > 1:
        lines = (f"{path}/{word}: {reason}" for (path, word), reason in findings.items())
        problem = f"{len(findings)} keywords cannot be held exactly\n    " + "\n    ".join(lines)
    return SchemaError(problem, f"{first}/{keyword}", 'change them, or set "on_inexact": "widen" to leave them out')


def _layout(style: str | Layout, excludes: tuple[str, ...]) -> Layout:
    layout = LAYOUTS.get(style) if isinstance(style, str) else style
    if layout is None:
        raise FormatError(f"there is no style {style!r}", "", f"use one of {', '.join(STYLES)}")
    if excludes and layout.item:
        raise FormatError(f"excludes cannot be used with {style}", "", "leave excludes out or choose another style")
    if any(word != word.strip(" \t\r\n") for word in excludes):
        raise FormatError(
            "a string in excludes begins or ends with whitespace", "", "strip it: the markup allows blanks"
        )
    return layout
