"""What no render can show: markers that a template only talks about, or that its models write all the same.

Each row is keyed by a feature of the template, its texts or the layout that was found, and says why it is there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from dovetail.dialects import PYTHON, Content, Dialect, JsonCall, Reasoning, TaggedCall, ToolCalls
from dovetail.parsing.layouts import ARGUMENTS, NAME
from dovetail.templates.analysis.source import Source

_THOUGHTS = re.compile(r"thoughts? (?:\w+ )?between (<([\w:|-]+)>)(</\2>)")
_RESPONSE = re.compile(r"response between (<([\w:|-]+)>)(</\2>)")
# A call as instructions show it: in tags, with placeholders for the name and the arguments.
_EXAMPLE = re.compile(
    r"(?P<begin><[\w|:-]+>)(?P<lead>\s*)\{\"name\": ?[^,{}]{1,40}, ?\"(?P<key>arguments|parameters)\": ?[^{}]{1,60}\}"
    r"(?P<trail>\s*)(?P<end></[\w|:-]+>)"
)
_JSON_LIST = re.compile(r"with (<\|?[\w:-]+\|?>) followed by a JSON list")


@dataclass(frozen=True, slots=True)
class Correction:
    """One row: the name of the feature, why a dialect needs it, and the dialect with it, or None where it is absent."""

    name: str
    reason: str
    apply: Callable[[Source, Dialect], Dialect | None]


def _thoughts_in_prompt(source: Source, dialect: Dialect) -> Dialect | None:
    thoughts, response = _THOUGHTS.search(source.texts), _RESPONSE.search(source.texts)
    if not thoughts or dialect.reasoning:
        return None
    changed = replace(dialect, reasoning=Reasoning(thoughts[1], thoughts[3], "model"))
    if response and not dialect.content.wrapped:
        return replace(changed, content=Content((response[1],), (response[3],), optional=True))
    return changed


def _list_in_prompt(source: Source, dialect: Dialect) -> Dialect | None:
    match = _JSON_LIST.search(source.texts)
    if not match or dialect.calls:
        return None
    way = ToolCalls(JsonCall(), begin=match[1] + "[", end="]", separator=", ", trigger=match[1])
    return replace(dialect, calls=(way,))


def _example_in_prompt(source: Source, dialect: Dialect) -> Dialect | None:
    match = _EXAMPLE.search(source.texts)
    if not match or dialect.calls:
        return None
    call = JsonCall((("name", NAME), (match["key"], ARGUMENTS)))
    begin, end = match["begin"] + match["lead"], match["trail"] + match["end"]
    return replace(dialect, calls=(ToolCalls(call, begin, end, separator=match["lead"], trigger=match["begin"]),))


def _tool_tags(source: Source, dialect: Dialect) -> Dialect | None:
    if not {"<|tool|>", "<|/tool|>"} <= set(source.markers) or dialect.calls:
        return None
    way = ToolCalls(JsonCall(), begin="<|tool_call|>[", end="]<|/tool_call|>", separator=", ", trigger="<|tool_call|>")
    return replace(dialect, calls=(way,))


def _tool_list(source: Source, dialect: Dialect) -> Dialect | None:
    if "<|tool_list_start|>" not in source.markers or dialect.calls:
        return None
    dialect = replace(dialect, reasoning=dialect.reasoning or Reasoning("<think>", "</think>", "model"))
    way = ToolCalls(
        TaggedCall((NAME, ARGUMENTS), PYTHON),
        begin="<|tool_call_start|>[",
        end="]<|tool_call_end|>",
        separator=", ",
        trigger="<|tool_call_start|>",
    )
    return replace(dialect, calls=(way,))


def _sectioned_calls(_: Source, dialect: Dialect) -> Dialect | None:
    sections = any(way.begin == "<|tool_calls_section_begin|>" for way in dialect.calls)
    if not sections or dialect.reasoning:
        return None
    return replace(dialect, reasoning=Reasoning("<think>", "</think>", "model", ends_at_calls=True))


CORRECTIONS = (
    Correction(
        "thoughts between tags",
        "the system prompt tells the model between which tags to think and to answer; no turn is rendered with them",
        _thoughts_in_prompt,
    ),
    Correction(
        "a marker followed by a JSON list",
        "the system prompt tells the model how to call tools; the template never renders calls",
        _list_in_prompt,
    ),
    Correction(
        "an example of a call",
        "the system prompt shows the model a call between tags; the template never renders one",
        _example_in_prompt,
    ),
    Correction(
        "tools between <|tool|> and <|/tool|>",
        "the vocabulary that has these markers has <|tool_call|> and <|/tool_call|> too, between which its models list"
        " their calls; the template never renders one",
        _tool_tags,
    ),
    Correction(
        "a tool list between <|tool_list_start|> and <|tool_list_end|>",
        "the vocabulary that has these markers has <|tool_call_start|> and <|tool_call_end|> too, between which its"
        " models call tools in Python's syntax, and <think>; the template passes such turns through as content",
        _tool_list,
    ),
    Correction(
        "sections of calls that begin with <|tool_calls_section_begin|>",
        "models with this section think between <think> and </think>, also under a template that never shows it",
        _sectioned_calls,
    ),
)


def corrected(source: Source, dialect: Dialect) -> tuple[Dialect, list[Correction]]:
    """The dialect with all corrections that apply, and these."""
    applied: list[Correction] = []
    for row in CORRECTIONS:
        changed = row.apply(source, dialect)
        if changed is not None:
            dialect = changed
            applied.append(row)
    return dialect, applied
