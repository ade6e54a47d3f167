"""Local generation under a mask.

chat --render--> Prompt --generate, under a grammar--> Steps

`plan_turn` makes the prompt, the grammar and the parser of a whole turn; the server and runs use nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dovetail.deferred import deferred
from dovetail.models.locate import Located, locate

if TYPE_CHECKING:
    from dovetail.dialects import Dialect
    from dovetail.models.model import Constraint, Model, Prompt, Sampling, Step
    from dovetail.models.speaker import Speaker, Utterance
    from dovetail.models.turn import LocalTurn, Note, plan_turn
else:
    __getattr__ = deferred(__name__, "model", "speaker", "turn")

__all__ = [
    "Constraint",
    "LocalTurn",
    "Located",
    "Model",
    "Note",
    "Prompt",
    "Sampling",
    "Speaker",
    "Step",
    "Utterance",
    "load",
    "locate",
    "plan_turn",
]


def load(
    model: str | Path,
    *,
    dialect: Dialect | str | None = None,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Model:
    """The model that a name means: a GGUF file, a directory of Transformers, one in the hub's cache, the speaker.

    `smollm2` is the small model that the extra `smol` brings. Nothing is fetched. `seed` is for the speaker; `progress`
    is told how much is loaded, from 0 to 1.
    """
    kind, name, path = locate(model)
    if kind == "speaker":
        from dovetail.models.speaker import Speaker

        return Speaker(seed, dialect=dialect or "qwen_3")
    if kind == "gguf":
        from dovetail.models.llama import LlamaModel

        return LlamaModel(path, name=name, dialect=dialect, progress=progress)
    from dovetail.models.transformers import TransformersModel

    return TransformersModel(path, name=name, dialect=dialect)
