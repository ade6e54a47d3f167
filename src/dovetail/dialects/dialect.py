"""How a model family lays out one turn, as data.

    turn.start | [reasoning] [content] [calls] ... turn.closing | turn.end

What stands between the bars is the output of the model, and what formats and parsers are about. The blocks come in this
order, unless `turn.between` is given: then they come in any order, joined by it (Harmony's channels).

The formats that a dialect makes name what they read. These are the captures, by which a parser finds its way:

| capture | what it spans |
|---|---|
| reasoning | the text inside one reasoning block, without its markers |
| content | a piece of free text, or the answer that a schema describes; several pieces are one content |
| tool_call | one call from behind its `call_begin` to before its `call_end`; the captures below are inside |
| name | the name of the tool, as the tool list has it |
| id | the part of a call that `id_pattern` describes |
| arguments | the arguments as written: JSON, tagged parameters, or the literals of a call syntax |

Everything outside them is markup. A call has exactly one name and one arguments, in any order, and at most one id.
"""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.parsing.layouts import (
    ARGUMENTS,
    GEMMA,
    ID,
    NAME,
    PYTHON,
    ArgumentStyle,
    CallLayout,
    Content,
    Field,
    JsonCall,
    KeyedCall,
    Literals,
    Reasoning,
    TaggedCall,
    TaggedStyle,
    ToolCalls,
    Turn,
)

__all__ = [
    "ARGUMENTS",
    "GEMMA",
    "ID",
    "NAME",
    "PYTHON",
    "ArgumentStyle",
    "CallLayout",
    "Content",
    "Dialect",
    "Field",
    "JsonCall",
    "KeyedCall",
    "Literals",
    "Reasoning",
    "TaggedCall",
    "TaggedStyle",
    "ToolCalls",
    "Turn",
]


@dataclass(frozen=True, slots=True)
class Dialect:
    """How one model family talks; `calls` lists the spellings of calls, the first of which is the one written."""

    name: str
    calls: tuple[ToolCalls, ...] = ()
    reasoning: Reasoning | None = None
    content: Content = Content()
    turn: Turn = Turn()
    special_tokens: tuple[str, ...] = ()  # markers that the family's vocabulary holds as single tokens
    excludes: tuple[str, ...] = ()  # what free text may not hold beside the reasoning markers
