"""What requests to inference engines say about the answer, as formats: one function for each kind of request."""

from __future__ import annotations

import json
from typing import Any

from dovetail.engine.compiled import Source
from dovetail.errors import FormatError, GrammarError, LimitError
from dovetail.formats import choice

ANY_OBJECT: dict[str, Any] = {"type": "object"}


def json_format(schema: str | dict[str, Any] | bool, *, compact: bool = False) -> dict[str, Any]:
    """JSON that a schema describes; where `compact`, without white space between its parts."""
    value = _loaded(schema) if isinstance(schema, str) else schema
    made: dict[str, Any] = {"type": "json_schema", "json_schema": value}
    return made | {"max_whitespace_cnt": 0} if compact else made


def choice_format(texts: str | list[str]) -> Source:
    """One of several texts, given as a list or as the JSON of one."""
    value = _loaded(texts) if isinstance(texts, str) else texts
    if not isinstance(value, list):
        raise FormatError("the choices are no list of strings", "", "give a list of strings")
    return choice(value)


def regex_format(pattern: str) -> dict[str, Any]:
    """What a regular expression matches as a whole."""
    return {"type": "regex", "pattern": pattern}


def grammar_format(grammar: str) -> dict[str, Any]:
    """What a grammar matches: EBNF as it stands, Lark as XGrammar translates it into EBNF."""
    return {"type": "grammar", "grammar": _translated(grammar) if is_lark(grammar) else grammar}


def tag_format(tag: str | dict[str, Any]) -> dict[str, Any]:
    """What a structural tag describes, in the shape with `format` or the older one with `structures` and `triggers`."""
    value = _loaded(tag) if isinstance(tag, str) else tag
    if not isinstance(value, dict):
        raise FormatError(f"a structural tag is an object, not {type(value).__name__}", "", 'write {"format": {...}}')
    return value if "type" in value else value | {"type": "structural_tag"}


def is_lark(grammar: str) -> bool:
    """Whether a grammar is written in Lark: none of its lines defines a rule as EBNF does, outside of comments."""
    return not any("::=" in line.partition("#")[0].partition("//")[0] for line in grammar.splitlines())


def _translated(grammar: str) -> str:
    try:
        from xgrammar import Grammar
    except ImportError:
        fix = "write it in EBNF, or install what translates Lark: pip install xgrammar"
        raise GrammarError("Lark is translated by XGrammar, which is not installed", "", fix) from None
    try:
        return str(Grammar.from_lark(grammar))
    except Exception as error:  # its errors share no class of their own
        problem = f"the grammar is neither EBNF, which defines rules by `::=`, nor Lark: {error}"
        raise GrammarError(problem, "", "correct the grammar") from None


def _loaded(text: str) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise FormatError(f"not JSON: {error.msg}", where, "send JSON") from None
    except RecursionError:
        raise LimitError("the JSON is nested too deeply to be read", "", "flatten it") from None
