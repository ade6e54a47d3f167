"""What tests of local models share: an answer, and its steps all at once."""

from __future__ import annotations

import asyncio
from typing import Any

from dovetail.models import Model, Sampling, Step
from dovetail.models.batched_model import BatchedModel

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
FORMAT = {"type": "json_schema", "json_schema": PERSON}


async def take(model: Model, prompt: str, constraint: Any = None, **sampling: Any) -> list[Step]:
    return [step async for step in model.generate(prompt, constraint, Sampling(**sampling))]


def run(model: Model, prompt: str, constraint: Any = None, **sampling: Any) -> list[Step]:
    return asyncio.run(take(model, prompt, constraint, **sampling))


def data(steps: list[Step]) -> bytes:
    return b"".join(step.data for step in steps)


def rows_after_leaving(model: BatchedModel, prompt: str) -> int:
    """How many rows of the batch are taken once a stream was left after its first token."""

    async def leave() -> int:
        stream = model.generate(prompt, None, Sampling(max_tokens=3000))
        await anext(stream)
        await stream.aclose()
        for _ in range(200):
            if not model._batcher._talking:
                break
            await asyncio.sleep(0.01)
        return len(model._batcher._talking)

    return asyncio.run(leave())
