"""A picture of what an analysis found: one turn cut into its regions, and the grammar of its calls."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from dovetail.dialects import Dialect
from dovetail.errors import DialectError
from dovetail.grammar.export import Gbnf, gbnf
from dovetail.grammar.lower import lower
from dovetail.messages import Message, ToolCall
from dovetail.templates.analysis import Analysis
from dovetail.templates.checks.features import tools_of, with_ids
from dovetail.templates.checks.turns import Turns
from dovetail.templates.sources import TemplateSource

_CALLS = (ToolCall.of("get_weather", {"city": "Paris", "days": 3}), ToolCall.of("get_time", {"zone": "Europe/Paris"}))
# From the richest turn down to the plainest: the first that the template writes is drawn.
_MESSAGES = (
    Message("I will look it up.", "They ask about Paris.", _CALLS),
    Message("I will look it up.", "They ask about Paris.", _CALLS[:1]),
    Message("", "They ask about Paris.", _CALLS[:1]),
    Message("I will look it up.", "", _CALLS),
    Message("", "", _CALLS[:1]),
    Message("It is sunny.", "They ask about Paris."),
    Message("It is sunny."),
)


@dataclass(frozen=True, slots=True)
class Region:
    """A piece of a turn: prompt, markup, reasoning, content, or the arguments of a call."""

    name: str
    text: str


def regions(source: TemplateSource, analysis: Analysis) -> tuple[Region, ...]:
    """The turn of the richest message that the template writes, piece by piece."""
    turns, dialect = Turns(source.text, analysis, source.bos_token, source.eos_token), analysis.dialect
    for message in _MESSAGES:
        if (message.reasoning and not dialect.reasoning) or (message.tool_calls and not dialect.calls):
            continue
        tools = tools_of(message) or None
        turn = turns.of(with_ids(message, dialect), tools)
        if turn is not None:
            prompt = Region("prompt", dialect.turn.start + (turn.prompt or "").rpartition(dialect.turn.start)[2])
            end = [Region("end", dialect.turn.end)] if dialect.turn.end and not dialect.turn.between else []
            return (prompt, *cut(dialect, tools, turn.prompt, turn.output), *end)
    return ()


def cut(dialect: Dialect, tools: Any, prompt: str | None, output: str) -> list[Region]:
    """An output in pieces, as the dialect reads it."""
    parser = dialect.parser(tools, prompt)
    data = output.encode()
    regions: list[Region] = []
    for event in [*parser.feed(data), *parser.close()]:
        text = data[max(event.start, 0) : max(event.end, 0)].decode("utf-8", "replace")
        name = {"tool_call": "arguments", "": "markup"}.get(event.region, event.region)
        if regions and regions[-1].name == name:
            regions[-1] = replace(regions[-1], text=regions[-1].text + text)
        elif text:
            regions.append(Region(name, text))
    return regions


def call_grammar(dialect: Dialect) -> Gbnf:
    """What llama.cpp needs: the grammar that holds from a trigger on, or that of the whole turn where no tool is."""
    if dialect.calls:
        try:
            made = gbnf(lower(dialect.format(tools_of(_MESSAGES[-3]), "required", False).format))
        except DialectError:
            made = gbnf(lower(dialect.format(tools_of(_MESSAGES[-3])).format))
        whole = gbnf(lower(dialect.format(tools_of(_MESSAGES[-3]), reasoning="auto").format))
        triggers = dict.fromkeys(way.opens_with for way in dialect.calls if way.opens_with and not way.tolerated)
        return Gbnf(made.grammar, True, tuple(triggers), whole.preserved_tokens)
    return gbnf(lower(dialect.format(reasoning="auto").format))
