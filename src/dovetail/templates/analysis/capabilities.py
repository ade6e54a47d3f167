"""What a template can carry, each found by a conversation that has it and one that has not."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Literal

from dovetail.templates.analysis.calls import FoundCalls
from dovetail.templates.analysis.cores import FIRST
from dovetail.templates.analysis.evidence import Capabilities
from dovetail.templates.analysis.frame import Frame, Settings
from dovetail.templates.analysis.probes import (
    CONTENT,
    NAMES,
    OTHER_USER,
    REASONING,
    SYSTEM,
    USER,
    Prober,
    Shape,
    assistant,
    user,
)
from dovetail.templates.analysis.reasoning import FoundReasoning
from dovetail.templates.analysis.source import Source
from dovetail.templates.analysis.spelling import find_spelling

_RESULT = "Zqresultq"
_MAX_VARIABLES = 12


def find_capabilities(
    prober: Prober,
    source: Source,
    frame: Frame,
    reasoning: FoundReasoning,
    calls: FoundCalls | None,
    shape: Shape,
) -> Capabilities:
    """The capabilities of a template whose layout is known."""
    with_tools = prober.render([user()]) or ""
    system = prober.render([{"role": "system", "content": SYSTEM}, user()]) or ""
    parts = prober.render([{"role": "user", "content": [{"type": "text", "text": USER}]}]) or ""
    return Capabilities(
        tools=NAMES[0] in with_tools,
        tool_calls=calls is not None,
        parallel_calls=bool(calls and calls.parallel),
        tool_role=bool(calls) and _tool_role(prober, shape),
        call_ids=bool(calls and calls.id_position != "NONE"),
        content_with_calls=bool(calls and calls.with_content),
        system_role=SYSTEM in system,
        arguments=_arguments(prober, shape) if calls else "none",
        typed_content=USER in parts and '"type"' not in parts and "'type'" not in parts,
        reasoning_field=reasoning.shape,
        reasoning_in_history=_in_history(prober, reasoning, shape),
        history_switch=_history_switch(prober, source, reasoning, shape),
        thinking_switch=_switch(frame, reasoning),
    )


def _tool_role(prober: Prober, shape: Shape) -> bool:
    result = {"role": "tool", "content": _RESULT, "tool_call_id": FIRST.id, "name": FIRST.name}
    return _RESULT in (prober.render([user(), assistant(calls=(FIRST,), shape=shape), result]) or "")


def _arguments(prober: Prober, shape: Shape) -> Literal["object", "string", "either"]:
    if shape.arguments == "string":
        return "string"
    turn = prober.turn(assistant(calls=(FIRST,), shape=replace(shape, arguments="string"))) or ""
    spelling = find_spelling(turn, dict(FIRST.arguments))
    escaped = json.dumps(json.dumps(dict(FIRST.arguments)))
    return "either" if spelling and escaped not in turn else "object"


def _in_history(prober: Prober, reasoning: FoundReasoning, shape: Shape, settings: Settings = ()) -> bool:
    own = replace(shape, reasoning=reasoning.shape)
    earlier = [user(), assistant(CONTENT, REASONING, (), own), user(OTHER_USER)]
    shown = prober.render(earlier, settings=(*reasoning.settings, *settings))
    return bool(reasoning.shape) and REASONING in (shown or "")


def _history_switch(prober: Prober, source: Source, reasoning: FoundReasoning, shape: Shape) -> str:
    """The variable under which reasoning of earlier turns is kept, where it is dropped."""
    if not reasoning.shape or _in_history(prober, reasoning, shape):
        return ""
    names = [name for name, _ in source.variables if name not in dict(reasoning.settings)]
    ways = [(name, value) for name in names[:_MAX_VARIABLES] for value in (True, False)]
    return next((way[0] for way in ways if _in_history(prober, reasoning, shape, (way,))), "")


def _switch(frame: Frame, reasoning: FoundReasoning) -> str:
    """The variable that changes what the prompt says about reasoning, or else whether it is shown at all."""
    if not reasoning.end:
        return ""
    first = dict(frame.prompts)[()]
    for settings, text in frame.prompts:
        if settings and text != first and not isinstance(settings[0][1], str):
            return settings[0][0]
    for settings, text in frame.prompts:
        if settings and text != first:
            return settings[0][0]
    return reasoning.settings[0][0] if reasoning.settings else ""
