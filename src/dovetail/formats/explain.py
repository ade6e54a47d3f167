"""Pydantic's account of a malformed format, told once in ours: the problem, the JSON Pointer, what to do."""

from __future__ import annotations

import json
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from pydantic import ValidationError

from dovetail.errors import FormatError, InputError, LimitError
from dovetail.layouts.styles import STYLES

# What belongs into a field, by its name: the names mean the same in every format.
EXPECTED = {
    "any_order": "true or false",
    "at_least_one": "true or false",
    "begin": 'a string, or a token object such as {"type": "token", "token": "<|tool_call|>"}',
    "content": 'a format object such as {"type": "any_text"}',
    "elements": "an array of at least one format object",
    "end": 'a string, an array of strings that is not empty, or a token object such as {"type": "token", "token": 7}',
    "exclude_tokens": "an array of token ids and token strings",
    "excludes": "an array of strings that are not empty",
    "format": 'a format object such as {"type": "any_text"}',
    "grammar": 'EBNF text such as "root ::= \\"yes\\" | \\"no\\""',
    "json_schema": "a JSON Schema: an object, or true or false",
    "loop": "true or false",
    "after_key": "a string",
    "escapes": "an array of pairs of strings",
    "item": "a string",
    "middle": 'an object with what stands between key and value for each kind of value, such as {"string": [">"], ...}',
    "other_keys": "names, any or none",
    "python": "an array of kinds of value",
    "quoted": "true or false",
    "stop": "a string that is not empty",
    "tail": "a string",
    "max": "a whole number not below min, or -1 for no upper bound",
    "max_chars": "a whole number from 0 to 2147483647, or null for no limit",
    "max_tokens": "a whole number from 0 to 2147483647, or null for no limit",
    "max_whitespace_cnt": "a whole number from 0 to 2147483647, or null for no limit",
    "min": "a whole number from 0 to 1073741824",
    "name": "a string that is not empty",
    "pattern": "a regular expression that is not empty",
    "rules": "an array of at least one pair [pattern, format object]",
    "separator": "a string; it may be empty",
    "stop_after_first": "true or false",
    "strict": "true or false",
    "style": f"one of {', '.join(STYLES[:-1])} and {STYLES[-1]}, or an object: the markup itself, with begin, middle"
    " and stop, or a syntax of literals, with begin, end, assign, separator and quotes",
    "tags": 'an array of at least one tag {"type": "tag", "begin": ..., "content": ..., "end": ...}',
    "tidy": "true or false",
    "token": "a token id from 0 on, or the text of a token",
    "trigger_tokens": "an array of at least one token id or token string",
    "triggers": "an array of at least one string, none of them empty",
    "value": "a string",
}
MAX_DEPTH = 100
TYPES = (
    "const_string, json_schema, grammar, regex, any_text, sequence, or, optional, plus, star, repeat, tag,"
    " triggered_tags, tags_with_separator, dispatch, token, exclude_token, any_tokens, token_triggered_tags,"
    " token_dispatch, capture"
)


def pointer(base: str, *steps: str | int) -> str:
    """A JSON Pointer (RFC 6901) below `base`."""
    return base + "".join("/" + str(step).replace("~", "~0").replace("/", "~1") for step in steps)


def shown(value: object) -> str:
    """A value as the caller wrote it, cut to a readable length."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = f"a {type(value).__name__}"
    return text if len(text) <= 60 else text[:57] + "..."


def format_error(error: ValidationError, base: str = "") -> InputError:
    """The first thing that pydantic found wrong in a value that stands at `base` in the caller's input."""
    first = error.errors(include_url=False)[0]
    # Our union tags carry a colon and field names never do, so what is left is the way through the caller's JSON.
    steps = [step for step in first["loc"] if isinstance(step, int) or ":" not in step]
    if sum(str(step).startswith("format:") for step in first["loc"]) > MAX_DEPTH:
        return too_deep(base)
    path = pointer(base, *steps)
    field = next((step for step in reversed(steps) if isinstance(step, str)), "")
    value = first["input"]
    match first["type"]:
        case "recursion_loop":
            return too_deep(base)
        case "missing":
            return FormatError(f"`{field}` is missing", path, f"add it: {EXPECTED[field]}")
        case "union_tag_invalid" | "union_tag_not_found":
            return _unknown_format(value, path)
        case "literal_error" if field == "type":
            return FormatError(f"`type` is {shown(value)} here", path, f"write {first['ctx']['expected']}")
    problem = f"{_subject(steps)} is {shown(value)}"
    if first["type"] == "string_unicode":
        problem = f"{_subject(steps)} holds half of a surrogate pair, which is no character"
    return FormatError(problem, path, f"`{field}` takes {EXPECTED[field]}" if field in EXPECTED else first["msg"])


def too_deep(path: str) -> LimitError:
    """The error for formats nested beyond the limit."""
    problem = f"formats are nested more than {MAX_DEPTH} levels deep"
    return LimitError(problem, path, "flatten the sequences, choices and tags")


def _subject(steps: Iterable[str | int]) -> str:
    """The place in words: `excludes`, or an item of `excludes`."""
    steps = list(steps)
    names = [step for step in steps if isinstance(step, str)]
    if not names:
        return "the format"
    return f"`{names[-1]}`" if steps[-1] == names[-1] else f"an item of `{names[-1]}`"


def _unknown_format(value: Any, path: str) -> FormatError:
    if not isinstance(value, dict):
        return FormatError(f"a format must be an object, not {shown(value)}", path, 'write {"type": ..., ...}')
    if "type" not in value:
        fields = ", ".join(map(str, value)) or "none"
        return FormatError(f"no format has just these fields: {fields}", path, f'add "type", one of {TYPES}')
    kind = value["type"]
    close = get_close_matches(kind, TYPES.split(", "), 1) if isinstance(kind, str) and len(kind) < 100 else []
    fix = f'did you mean "{close[0]}"?' if close else f"use one of {TYPES}"
    return FormatError(f"no format has the type {shown(kind)}", path + "/type", fix)
