"""What callers may ask an answer to be, as a format and as the way from the model's words to a value."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import jsonschema_rs

from dovetail.errors import FormatError
from dovetail.formats import Format, FormatModel, JsonSchemaFormat, RegexFormat, StructuralTag, choice, load_format
from dovetail.formats.python_types import is_python_type, schema_of
from dovetail.messages import from_json
from dovetail.parsing.partial_json import best_effort

T = TypeVar("T")

_SCHEMA_TYPES = ("object", "array", "string", "number", "integer", "boolean", "null")
_FLAGS = ((re.IGNORECASE, "i"), (re.DOTALL, "s"), (re.MULTILINE, "m"))
_FIX = "give a type, a JSON Schema, a regular expression, a list of strings to choose from, or a format"


@dataclass(frozen=True, slots=True)
class AnswerType(Generic[T]):
    """How an answer is held and read: `format` is None for free text.

    Of a whole answer `read` makes the value, or raises a ValueError, and `plain` what JSON has for it. `begun` is what
    the beginning of an answer says for certain: with every further piece of it there can only be more.
    """

    format: Format | None
    read: Callable[[str], T]
    plain: Callable[[str], Any]
    begun: Callable[[str], Any]


def answer_type(answer: Any) -> AnswerType[Any]:
    """The type of answer that a caller means; an InputError where it means none.

    Strings that are given by an enum or Literal are written as they are, without quotes.
    """
    if answer is None or answer is str:
        return AnswerType(None, str, str, str)
    if isinstance(answer, str):
        return _text(RegexFormat(pattern=answer))
    if isinstance(answer, re.Pattern):
        return _text(RegexFormat(pattern=_pattern(answer)))
    if is_python_type(answer):
        return _typed(answer)
    if isinstance(answer, Mapping):
        return _described(dict(answer))
    if isinstance(answer, FormatModel | StructuralTag):
        return _formatted(load_format(answer))
    if isinstance(answer, Sequence) and not isinstance(answer, bytes | bytearray):
        return _text(choice(answer))
    raise FormatError(f"an answer cannot be {answer!r}", "", _FIX)


def _text(format: Format) -> AnswerType[str]:
    return AnswerType(format, str, str, str)


def _typed(answer: Any) -> AnswerType[Any]:
    typed = schema_of(answer)
    words = typed.schema.get("enum", [typed.schema["const"]] if "const" in typed.schema else ())
    if words and all(isinstance(word, str) and word for word in words):
        return AnswerType(choice(words), typed.convert, str, str)
    # What a grammar cannot hold of it, the type itself checks.
    return AnswerType(JsonSchemaFormat(json_schema=typed.schema, on_inexact="widen"), typed.read, from_json, begun_json)


def _described(answer: dict[str, Any]) -> AnswerType[Any]:
    kind = answer.get("type")
    is_tag = kind is None and isinstance(answer.get("format"), Mapping)
    if is_tag or (isinstance(kind, str) and kind not in _SCHEMA_TYPES):
        return _formatted(load_format(answer))
    return _formatted(JsonSchemaFormat(json_schema=answer))


def _formatted(format: Format) -> AnswerType[Any]:
    if not isinstance(format, JsonSchemaFormat) or format.style != "json":
        return _text(format)
    schema = format.json_schema

    def read(text: str) -> Any:
        value = from_json(text)
        # A grammar cannot hold every keyword, and then holds what it can.
        for error in jsonschema_rs.validator_for(schema, validate_formats=True).iter_errors(value):
            raise ValueError(f"{''.join(f'/{part}' for part in error.instance_path)}: {error.message}")
        return value

    return AnswerType(format, read, from_json, begun_json)


def begun_json(text: str) -> Any:
    """The value of JSON as far as it is settled: what may be half of a number or of a key is left out."""
    # A number, true, false or null at the root says nothing before its end, which nothing marks.
    return best_effort(text) if text.lstrip()[:1] in ("{", "[", '"') else None


def _pattern(pattern: re.Pattern[Any]) -> str:
    if not isinstance(pattern.pattern, str):
        raise FormatError("an answer is text, and this is a regular expression over bytes", "", "compile a str")
    # re.UNICODE is on in every pattern of text.
    left, letters = pattern.flags & ~re.UNICODE, ""
    for flag, letter in _FLAGS:
        if left & flag:
            left, letters = left & ~flag, letters + letter
    if left:
        raise FormatError(
            f"the flag {re.RegexFlag(left)!r} is not supported", "", "IGNORECASE, DOTALL and MULTILINE are"
        )
    inline = re.match(r"\(\?[a-zA-Z]+\)", pattern.pattern)
    return pattern.pattern if inline or not letters else f"(?{letters}){pattern.pattern}"
