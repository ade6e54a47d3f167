"""vLLM with the masks, the reader and the dialects of Dovetail; nothing of vLLM is forked.

    vllm serve MODEL --scheduler-cls dovetail.integrations.vllm.Scheduler \\
        --enable-auto-tool-choice --tool-call-parser dovetail --reasoning-parser dovetail

`register` is called by vLLM in each of its processes, through the entry point `vllm.general_plugins`. `Scheduler` turns
the masks on; without it the parsers work beside the masks of vLLM's own backends.
"""

from __future__ import annotations

import logging
from typing import Any

from dovetail.deferred import deferred

_NAME = "dovetail"
_TOOLS = f"{__name__}.tool_parser"
_REASONING = f"{__name__}.reasoning_parser"

__getattr__ = deferred(__name__, "scheduler")


def register() -> None:
    """Make the parsers known by name, and let the front end check what the masks can hold."""
    try:
        _register()
    except (ImportError, AttributeError, TypeError) as error:
        # Raised here, it would end a server that may not want Dovetail at all.
        logging.getLogger(__name__).warning("this vLLM is not known to Dovetail, which is left out: %s", error)


def _register() -> None:
    from vllm.reasoning import ReasoningParserManager
    from vllm.tool_parsers import ToolParserManager

    from dovetail import dialects
    from dovetail.integrations.vllm import frontend

    tools: Any = ToolParserManager
    reasoning: Any = ReasoningParserManager
    for name in ("", *dialects.names()):
        known, suffix = (f"{_NAME}-{name}", f"_{name}") if name else (_NAME, "")
        tools.register_lazy_module(known, _TOOLS, f"DovetailToolParser{suffix}")
        reasoning.register_lazy_module(known, _REASONING, f"DovetailReasoningParser{suffix}")
    frontend.attach()
