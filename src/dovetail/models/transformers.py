"""Any causal language model of Transformers, from its directory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dovetail import dialects
from dovetail.dialects import Dialect
from dovetail.engine import Vocabulary
from dovetail.errors import InputError, MessageError, ModelError
from dovetail.models.chat import begun, continued, for_template, render_plainly, settled
from dovetail.models.model import DEFAULT_SAMPLING, Constraint, Prompt, Sampling, Step, matcher_of
from dovetail.models.voice import Talker, Voice, exits_of
from dovetail.response_templates.detect import detect

try:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from dovetail.models.batching import Batcher, Job
    from dovetail.models.quiet import quietly
except ImportError as error:
    raise ModelError("Transformers is not installed", "", "pip install 'dovetail[transformers]'") from error


class TransformersModel:
    """A model with its tokenizer, on CUDA where there is one; requests that come together share its forward passes.

    The dialect is found out from the tokenizer and its templates unless it is given. Nothing is fetched, and no code
    out of the directory is run.
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        dialect: Dialect | str | None = None,
        device: str | None = None,
        dtype: str = "auto",
        max_rows: int = 32,
        max_context: int | None = None,
    ) -> None:
        path = Path(directory)
        self.name = path.resolve().name
        self._tokenizer, model = _load(path, dtype)
        self._model = model.to(device or ("cuda" if torch.cuda.is_available() else "cpu")).eval()
        self.vocabulary = Vocabulary.from_huggingface(path, size=_logits(model))
        limits = [max_context, getattr(model.config.get_text_config(), "max_position_embeddings", None)]
        self.max_context = min(limit for limit in (*limits, 1 << 20) if limit)
        self._batcher = Batcher(self._model, self.vocabulary, max_rows)
        self.dialect = self._settle(_find_dialect(path, dialect))

    def encode(self, text: str) -> list[int]:
        """The tokens of a text as the tokenizer cuts it."""
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        tools: Sequence[Mapping[str, Any]] | None = None,
        *,
        reasoning: bool = True,
        continue_final: bool = False,
        options: Mapping[str, Any] | None = None,
    ) -> Prompt:
        """The chat through the model's own template, or with the markers of its dialect where it has none."""
        if not self._tokenizer.chat_template:
            return render_plainly(self.dialect, messages, tools, reasoning=reasoning, continue_final=continue_final)
        turns = for_template(messages)
        last = continued(turns) if continue_final else None
        text = self._apply_template(turns, tools, reasoning, options or {})
        prefix = begun(self.dialect, last, reasoning) if last else ""
        return Prompt(text + prefix, prefix)

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
        """End the thread of the model."""
        self._batcher.close()

    def _closer(self, constraint: Constraint, sampling: Sampling) -> Talker:
        random = np.random.default_rng(abs(sampling.seed or 0))
        return Talker(self._voice, exits_of(constraint, self.dialect), random)

    @cached_property
    def _voice(self) -> Voice:
        return Voice(self.vocabulary)

    def _apply_template(
        self, turns: list[dict[str, Any]], tools: Any, reasoning: bool, options: Mapping[str, Any]
    ) -> str:
        # The names under which templates ask whether to reason.
        asked = {"enable_thinking": reasoning, "thinking": reasoning}
        try:
            text: str = self._tokenizer.apply_chat_template(
                turns, tools=tools or None, tokenize=False, add_generation_prompt=True, **{**asked, **options}
            )
        except Exception as error:  # whatever a template runs into, or raises on purpose
            problem = f"the chat template refuses these messages: {error}"
            raise MessageError(problem, "/messages", "see which roles and orders the model knows") from None
        return text

    def _settle(self, dialect: Dialect) -> Dialect:
        """The dialect with what the model's own prompts tell: whether they open the reasoning."""
        block = dialect.reasoning
        if block is None or not self._tokenizer.chat_template:
            return settled(dialect)
        prompt = self._apply_template([{"role": "user", "content": "hi"}], None, True, {})
        return settled(dialect, "prompt" if prompt.rstrip().endswith(block.start.strip()) else "model")


def _load(path: Path, dtype: str) -> tuple[Any, Any]:
    if not path.is_dir():
        raise ModelError(f"there is no directory {str(path)!r}", "", "give the directory of a Transformers model")
    try:
        with quietly():
            tokenizer = AutoTokenizer.from_pretrained(path, local_files_only=True)
            model = AutoModelForCausalLM.from_pretrained(path, local_files_only=True, dtype=dtype)
    except (OSError, ValueError, KeyError, ImportError) as error:
        first = str(error).strip().split("\n")[0]
        problem = f"this is not a causal language model that Transformers can load: {first}"
        raise ModelError(problem, str(path), "check config.json, the weights and the tokenizer in it") from error
    return tokenizer, model


def _logits(model: Any) -> int:
    """How many logits a step has, which may be more than the tokenizer has tokens."""
    head = model.get_output_embeddings()
    return int(head.weight.shape[0]) if head is not None else int(model.config.get_text_config().vocab_size)


def _find_dialect(path: Path, given: Dialect | str | None) -> Dialect:
    if isinstance(given, Dialect):
        return given
    if given:
        return dialects.get(given)
    try:
        return detect(path).dialect
    except InputError as error:
        raise ModelError(
            f"it is not known how this model talks: {error.problem}", str(path), "name its dialect"
        ) from error
