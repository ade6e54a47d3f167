"""JSON Schema to nodes: `lower` gives the texts of the values that a schema admits.

    schema --reading--> Facts per branch --lowering--> nodes over JSON text (text, strings, numbers, keys, members)
                                         --tagged----> parameters in the markup of a model family, JSON inside

Exactly JSON Schema, in the draft that `$schema` names or 2020-12, with these bounds. `strict` closes an object that
declares properties and is silent about others. Properties come in declared order, or in any order where asked for; keys
and strings in any spelling. Integers may be written 5, 5.0 or 5e1, but not 50e-1; numbers between bounds and multiples
without an exponent. Escapes of lone surrogates are refused: they denote no text. What cannot be held exactly is an
error that lists all such keywords.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from dovetail._core import fingerprint
from dovetail.errors import FormatError, InputError, LimitError, SchemaError
from dovetail.grammar.ir import NOTHING, Node

from .layouts import LAYOUTS, Layout
from .lowering import Lowering
from .prune import prune
from .reading import Reader
from .tagged import Tagged
from .text import DEFAULT_WHITESPACE, pieces

__all__ = ["STYLES", "lower"]

STYLES = ("json", *LAYOUTS)

_MAX_CACHED = 1024
_MAX_CACHED_VALUES = 1 << 12
_cache: OrderedDict[Any, Node] = OrderedDict()


def lower(
    schema: Any,
    *,
    style: str = "json",
    strict: bool = True,
    any_order: bool = False,
    max_whitespace: int | None = None,
    excludes: Sequence[str] = (),
    path: str = "",
) -> Node:
    """The texts of the values that `schema` admits; `path` is where the schema stands in what the caller wrote."""
    words = tuple(excludes)
    try:
        content, size = fingerprint(schema)
    except (LimitError, TypeError):
        content, size = None, 0  # nested too deeply or no JSON: never a common schema
    key = (content, style, strict, any_order, max_whitespace, words)
    found = _cache.get(key) if content else None
    if found is None:
        try:
            found = _lower(schema, style, strict, any_order, max_whitespace, words)
        except UnicodeEncodeError as error:
            problem = f"{error.object!r} has a surrogate without its partner"
            raise SchemaError(problem, path, "use Unicode text") from error
        except InputError as error:
            raise type(error)(error.problem, path + error.path, error.fix) from error.__cause__
        except (ValueError, OverflowError) as error:
            problem = f"a number in this schema cannot be written as JSON: {error}"
            raise SchemaError(problem, path, "use finite numbers of a few thousand digits at most") from error
        if 0 < size <= _MAX_CACHED_VALUES:
            _cache[key] = found
            if len(_cache) > _MAX_CACHED:
                _cache.popitem(last=False)
    return found


def _lower(
    schema: Any, style: str, strict: bool, any_order: bool, max_whitespace: int | None, excludes: tuple[str, ...]
) -> Node:
    width = DEFAULT_WHITESPACE if max_whitespace is None else max_whitespace
    shared = pieces(width, tuple(word.encode() for word in excludes))
    reader = Reader(schema)
    reader.strict = strict
    lowering = Lowering(reader, shared, any_order)
    if style == "json":
        node = lowering.value(((schema, ()),))
        lowering.finish()
    else:
        node = Tagged(lowering, _layout(style, excludes)).arguments(((schema, ()),))
    if lowering.doubtful:
        node = prune(node)
    if node == NOTHING:
        raise SchemaError("no value can satisfy this schema", "", "loosen the keywords that contradict each other")
    if reader.findings:
        raise _inexact(reader.findings)
    return node


def _inexact(findings: dict[tuple[str, str], str]) -> SchemaError:
    """All keywords that cannot be held exactly, in one error at the place of the first."""
    (first, keyword), why = next(iter(findings.items()))
    problem = f"{keyword} cannot be held exactly: {why}"
    if len(findings) > 1:
        lines = (f"{path}/{word}: {reason}" for (path, word), reason in findings.items())
        problem = f"{len(findings)} keywords cannot be held exactly\n    " + "\n    ".join(lines)
    return SchemaError(problem, f"{first}/{keyword}", "change them, or ask for on_inexact: widen")


def _layout(style: str, excludes: tuple[str, ...]) -> Layout:
    layout = LAYOUTS.get(style)
    if layout is None:
        raise FormatError(f"there is no style {style!r}", "", f"use one of {', '.join(STYLES)}")
    if excludes and layout.item:
        raise FormatError(f"excludes cannot be used with {style}", "", "leave excludes out or choose another style")
    if any(word != word.strip(" \t\r\n") for word in excludes):
        raise FormatError(
            "a string in excludes begins or ends with whitespace", "", "strip it: the markup allows blanks"
        )
    return layout
