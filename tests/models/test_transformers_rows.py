"""Rows of one batch say what they would say alone, whatever the model remembers of them."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import (
    Gemma3ForCausalLM,
    Gemma3TextConfig,
    Lfm2Config,
    Lfm2ForCausalLM,
    MistralConfig,
    MistralForCausalLM,
)

from dovetail.models.transformers_rows import TransformersRows

SIZES: dict[str, Any] = {
    "vocab_size": 64,
    "hidden_size": 32,
    "intermediate_size": 64,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "pad_token_id": 0,
    "bos_token_id": None,
    "eos_token_id": None,
}
PROMPTS = [[1, 2, 3], [5] * 30, [7, 8, 9, 10, 11, 12]]
MODELS = {
    "sliding": lambda: MistralForCausalLM(MistralConfig(**SIZES, num_hidden_layers=2, sliding_window=8)),
    "some layers sliding": lambda: Gemma3ForCausalLM(
        Gemma3TextConfig(**SIZES, num_hidden_layers=7, head_dim=16, sliding_window=8)
    ),
    "convolutions": lambda: Lfm2ForCausalLM(
        Lfm2Config(**SIZES, num_hidden_layers=3, layer_types=["conv", "full_attention", "conv"])
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_rows_join_step_and_leave_without_touching_each_other(name: str) -> None:
    torch.manual_seed(0)
    model = MODELS[name]().eval()
    said: list[list[int]] = []
    rows = TransformersRows(model)
    for prompt in PROMPTS:
        row = rows.new_row([])
        for at in range(0, len(prompt), 4):
            logits = rows.read(row, prompt[at : at + 4])
        rows.join(row)
        said.append([int(logits.argmax())])
    talking = [0, 1, 2]
    for step in range(12):
        if step == 6:
            rows.leave({1})
            talking.remove(1)
        tokens = rows.step([said[row][-1] for row in talking]).argmax(-1).tolist()
        for row, token in zip(talking, tokens, strict=True):
            said[row].append(token)
    assert [alone(model, PROMPTS[0], 13), alone(model, PROMPTS[1], 7), alone(model, PROMPTS[2], 13)] == said


def alone(model: Any, prompt: list[int], count: int) -> list[int]:
    ids = torch.tensor([prompt])
    rows = model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=count, do_sample=False)
    return list(rows[0, len(prompt) :].tolist())
