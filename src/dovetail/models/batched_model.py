"""A model behind the scheduler: prompts become steps. What all backends share."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import AsyncGenerator, Sequence
from functools import cached_property

import numpy as np

from dovetail.dialects import Dialect
from dovetail.engine import Vocabulary
from dovetail.errors import ModelError
from dovetail.models.batching import Batcher, Job, Rows
from dovetail.models.model import DEFAULT_SAMPLING, Constraint, Sampling, Step, matcher_of
from dovetail.models.speaker_policy import Talker, Voice, exits_of
from dovetail.models.templated_model import TemplatedModel


class BatchedModel(TemplatedModel):
    """A model whose requests share forward passes."""

    def __init__(
        self,
        name: str,
        vocabulary: Vocabulary,
        dialect: Dialect,
        rows: Rows,
        max_rows: int,
        max_context: int,
        *,
        named: bool = False,
    ) -> None:
        self.vocabulary = vocabulary
        self.max_context = max_context
        self._batcher = Batcher(rows, vocabulary, max_rows)
        super().__init__(name, dialect, named=named)

    @abstractmethod
    def encode(self, text: str) -> list[int]:
        """The tokens of a text as the tokenizer cuts it; special tokens are recognized, and none are added."""

    async def generate(
        self,
        prompt: str | Sequence[int],
        constraint: Constraint | None = None,
        sampling: Sampling = DEFAULT_SAMPLING,
        *,
        prefix: str | bytes = "",
    ) -> AsyncGenerator[Step, None]:
        """The steps of one answer."""
        ids = self.encode(prompt) if isinstance(prompt, str) else list(prompt)
        room = self.max_context - len(ids)
        if not ids or room < 1:
            problem = f"the prompt has {len(ids)} tokens, and the model takes from 1 to {self.max_context - 1}"
            raise ModelError(problem, "/messages", "shorten the conversation" if ids else "say something")
        if not all(0 <= token < self.vocabulary.size for token in ids):
            raise ModelError("the prompt has a token that is not in the vocabulary", "/messages", "encode it anew")
        matcher = None if constraint is None else matcher_of(constraint, self.vocabulary, prefix)
        closer = None
        if constraint is not None and sampling.soft_limit is not None:
            closer = await asyncio.to_thread(self._closer, constraint, sampling)
        job = Job(ids, matcher, sampling, min(sampling.max_tokens or room, room), closer)
        self._batcher.submit(job)
        steps = job.steps()
        try:
            async for step in steps:
                yield step
        finally:
            await steps.aclose()

    def close(self) -> None:
        """End the thread of the model and let go of its memory."""
        self._batcher.close()

    def _closer(self, constraint: Constraint, sampling: Sampling) -> Talker:
        random = np.random.default_rng(abs(sampling.seed or 0))
        return Talker(self._voice, exits_of(constraint, self.dialect), random)

    @cached_property
    def _voice(self) -> Voice:
        return Voice(self.vocabulary)
