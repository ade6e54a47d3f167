"""Models that vLLM, SGLang or llama.cpp serve somewhere else: prompts and grammars go there, and text comes back.

format --constraints--> the engine's own language --wire--> a replica of the pool --streams--> Steps
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dovetail.deferred import deferred

if TYPE_CHECKING:
    from dovetail.models.engines.model import EngineModel, connect
    from dovetail.models.engines.pool import Pool, PoolLimits
else:
    __getattr__ = deferred(__name__, "model", "pool")

__all__ = ["EngineModel", "Pool", "PoolLimits", "connect"]
