"""The analysis of one template, from its source to its dialect."""

from __future__ import annotations

import hashlib
from functools import lru_cache

from dovetail.errors import TemplateError
from dovetail.templates.analysis.assemble import assemble
from dovetail.templates.analysis.calls import find_calls
from dovetail.templates.analysis.content import find_content
from dovetail.templates.analysis.evidence import Analysis, Modes
from dovetail.templates.analysis.frame import call_shape, frame
from dovetail.templates.analysis.probes import Prober
from dovetail.templates.analysis.reasoning import find_reasoning
from dovetail.templates.analysis.source import read_source


@lru_cache(maxsize=256)
def analyse_template(source: str, bos_token: str = "", eos_token: str = "") -> Analysis:
    """What a template says about how its model talks; the same source is analysed once."""
    prober = Prober(source, bos_token, eos_token)
    facts = read_source(source)
    shape = call_shape(prober)
    turn = frame(prober, facts, shape)
    if turn is None:
        problem = "the chat template renders no turn of an assistant"
        fix = "render messages with the roles user and assistant"
        raise TemplateError(problem, "", fix)
    reasoning = find_reasoning(prober, facts, turn, shape)
    content = find_content(prober, turn, reasoning, shape)
    calls = find_calls(prober, turn, reasoning, content, shape) if shape else None
    name = "template-" + hashlib.sha256(source.encode()).hexdigest()[:8]
    dialect = assemble(name, turn, reasoning, content, calls)
    modes = Modes(
        reasoning.mode,
        content.mode,
        calls.format if calls else "NONE",
        calls.id_position if calls else "NONE",
    )
    return Analysis(dialect, modes, generation_prompt=turn.start + (turn.prompts[0][1] if turn.prompts else ""))
