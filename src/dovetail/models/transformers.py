"""Any causal language model of Transformers, from its directory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dovetail.dialects import Dialect
from dovetail.engine import Vocabulary
from dovetail.errors import ModelError
from dovetail.extras import install
from dovetail.models.batched_model import BatchedModel
from dovetail.models.templated_model import find_dialect

try:
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from dovetail.models.progress_bars import quietly
    from dovetail.models.transformers_rows import TransformersRows
except ImportError as error:
    raise ModelError("Transformers is not installed", "", install("transformers")) from error


class TransformersModel(BatchedModel):
    """A model with its tokenizer, on CUDA where there is one.

    The dialect is found out from the tokenizer and its templates unless it is given. Nothing is fetched, and no code
    out of the directory is run.
    """

    def __init__(
        self,
        directory: str | Path,
        *,
        name: str | None = None,
        dialect: Dialect | str | None = None,
        device: str | None = None,
        dtype: str = "auto",
        max_rows: int = 32,
        max_context: int | None = None,
    ) -> None:
        path = Path(directory)
        self._tokenizer, model = _load(path, dtype)
        model = model.to(device or ("cuda" if torch.cuda.is_available() else "cpu")).eval()
        limits = [max_context, getattr(model.config.get_text_config(), "max_position_embeddings", None)]
        super().__init__(
            name or path.resolve().name,
            Vocabulary.from_huggingface(path, size=_logits(model)),
            find_dialect(path, dialect),
            TransformersRows(model),
            max_rows,
            min(limit for limit in (*limits, 1 << 20) if limit),
            named=bool(dialect),
        )

    def encode(self, text: str) -> list[int]:
        """The tokens of a text as the tokenizer cuts it; special tokens are recognized, and none are added."""
        return list(self._tokenizer.encode(text, add_special_tokens=False))

    @property
    def _source(self) -> str:
        template = self._tokenizer.chat_template or ""
        return "\n".join(template.values()) if isinstance(template, dict) else str(template)

    def _apply_template(self, turns: list[dict[str, Any]], tools: Any, options: Mapping[str, Any]) -> str:
        text: str = self._tokenizer.apply_chat_template(
            turns, tools=tools, tokenize=False, add_generation_prompt=True, **options
        )
        return text


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
