"""SGLang with the masks, the reader and the dialects of Dovetail; nothing of SGLang is forked.

    python -m sglang.launch_server --model-path MODEL --grammar-backend dovetail \\
        --tool-call-parser dovetail --reasoning-parser dovetail

`register` is called by SGLang in each of its processes, through the entry point `sglang.srt.plugins`.
"""

from __future__ import annotations

from typing import Any

from dovetail.dialects.registry import names

NAME = "dovetail"


def register() -> None:
    """Make the backend and the detectors known: "dovetail", and "dovetail-" with the name of a dialect."""
    from sglang.srt.constrained.base_grammar_backend import GRAMMAR_BACKEND_REGISTRY, register_grammar_backend
    from sglang.srt.function_call.function_call_parser import FunctionCallParser
    from sglang.srt.parser.reasoning_parser import ReasoningParser
    from sglang.srt.server_args import add_grammar_backend_choices

    from dovetail.integrations.sglang.backend import make_backend
    from dovetail.integrations.sglang.detectors import DovetailReasoningDetector, DovetailToolDetector, named

    if NAME not in GRAMMAR_BACKEND_REGISTRY:
        add_grammar_backend_choices([NAME])
    register_grammar_backend(NAME, make_backend)
    tools: dict[str, Any] = FunctionCallParser.ToolCallParserEnum
    reasoning: dict[str, Any] = ReasoningParser.DetectorMap
    for name in ("", *names()):
        known = f"{NAME}-{name}" if name else NAME
        tools[known] = named(DovetailToolDetector, name)
        reasoning[known] = named(DovetailReasoningDetector, name)
