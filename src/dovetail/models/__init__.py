"""Local generation under a mask.

chat --render--> Prompt --generate, under a grammar--> Steps
"""

from pathlib import Path

from dovetail.dialects import Dialect
from dovetail.models.model import Constraint, Model, Prompt, Sampling, Step
from dovetail.models.speaker import Speaker, Utterance

__all__ = ["Constraint", "Model", "Prompt", "Sampling", "Speaker", "Step", "Utterance", "load"]


def load(model: str | Path, *, dialect: Dialect | str | None = None, seed: int = 0) -> Model:
    """The speaker by its name, or the Transformers model in a directory; `seed` is for the speaker."""
    if model == Speaker.name:
        return Speaker(seed, dialect=dialect or "qwen_3")
    from dovetail.models.transformers import TransformersModel

    return TransformersModel(model, dialect=dialect)
