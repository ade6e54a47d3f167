"""llama.cpp behind the common face: exact masks on its own logits, one batch for all, the same answers as alone."""

from __future__ import annotations

import asyncio
import ctypes
import json
import re
from pathlib import Path

import llama_cpp
import numpy as np
import pytest

import dovetail as dt
from dovetail.models import Step
from dovetail.models.llama import LlamaModel, model_params
from tests.models.stepping import FORMAT, data, rows_after_leaving, run, take

pytestmark = pytest.mark.real_model

QUESTIONS = ["What is the capital of France?", "Name a fruit.", "Who wrote Hamlet?", "Count to five."]


def prompt(model: LlamaModel, question: str) -> str:
    return model.render([{"role": "user", "content": question}]).text


def test_the_vocabulary_is_that_of_llama_cpp(model: LlamaModel) -> None:
    buffer = ctypes.create_string_buffer(1024)
    for token in range(model.vocabulary.size):
        length = llama_cpp.llama_token_to_piece(model._handle, token, buffer, 1024, 0, True)
        assert model.vocabulary.token_bytes(token) == buffer.raw[:length]


@pytest.mark.parametrize("text", ["", "The  river\n\tis 12 km long.", "<|im_start|>user\nhé<|im_end|>", "日本語 🙂"])
def test_texts_are_cut_as_llama_cpp_cuts_them(model: LlamaModel, text: str) -> None:
    ids = model.encode(text)
    assert text.encode() == b"".join(model.vocabulary.token_bytes(token) for token in ids)
    assert ("<|im_start|>" in text) == (1 in ids)


def test_greedy_tokens_are_those_of_llama_cpp(model_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = LlamaModel(model_file, max_context=1024)
    monkeypatch.setattr(llama_cpp.llama_cpp, "llama_model_default_params", model_params)
    peer = llama_cpp.Llama(str(model_file), n_ctx=1024, verbose=False, flash_attn=True)
    for question in QUESTIONS:
        ids = model.encode(prompt(model, question))
        theirs = []
        for token in peer.generate(ids, temp=0.0, repeat_penalty=1.0):
            theirs.append(token)
            if len(theirs) == 12 or token in model.vocabulary.stop_token_ids:
                break
        assert theirs == [step.token for step in run(model, prompt(model, question), temperature=0, max_tokens=12)]
    model.close()


def test_a_mask_takes_away_what_the_format_refuses_and_nothing_else(model: LlamaModel) -> None:
    text = prompt(model, QUESTIONS[0])
    (free,) = run(model, text, temperature=0, max_tokens=1, logprobs=1000)
    fmt = {"type": "regex", "pattern": "[A-Z][a-z]+"}
    (bound,) = run(model, text, fmt, temperature=0, max_tokens=1, logprobs=1000)
    spelled = model.vocabulary.token_bytes
    fitting = [token for token, _ in free.top if re.fullmatch(b"[A-Z][a-z]*", spelled(token))]
    likeliest = [token for token, _ in bound.top][: len(fitting)]
    assert fitting
    assert fitting == likeliest
    shift = np.diff([dict(free.top)[token] - dict(bound.top)[token] for token in fitting])
    assert np.abs(shift).max() < 1e-3


def test_requests_in_one_batch_fit_their_formats(model: LlamaModel) -> None:
    async def together() -> list[list[Step]]:
        free = [take(model, prompt(model, q), temperature=0, max_tokens=12) for q in QUESTIONS]
        bound = [take(model, prompt(model, q), FORMAT, seed=i, soft_limit=30) for i, q in enumerate(QUESTIONS)]
        return await asyncio.gather(*free, *bound)

    said = asyncio.run(together())
    for steps in said[4:]:
        assert "stop" == steps[-1].finish
        assert {"name", "age"} == set(json.loads(data(steps)))
    assert all(len(steps) == 12 or steps[-1].finish == "stop" for steps in said[:4])


def test_the_same_seed_says_the_same(model_file: Path) -> None:
    model = LlamaModel(model_file)
    text = prompt(model, QUESTIONS[1])
    once = run(model, text, seed=4, max_tokens=20)
    assert once == run(model, text, seed=4, max_tokens=20)
    assert once != run(model, text, seed=5, max_tokens=20)
    model.close()


def test_a_prompt_that_begins_like_another_one_is_read_from_where_they_part(model: LlamaModel) -> None:
    rows = model._batcher._rows
    shared = prompt(model, "A list of words: " + "river stone " * 100)
    first, second = model.encode(shared + "one"), model.encode(shared + "two three")
    alone = run(model, shared + "two three", temperature=0, max_tokens=5)
    run(model, shared + "one", temperature=0, max_tokens=5)
    row = rows.new_row(second)
    assert row.length >= len(first) - 2
    rows.drop(row)
    assert [step.token for step in alone] == [
        step.token for step in run(model, shared + "two three", temperature=0, max_tokens=5)
    ]


def test_where_the_cache_is_full_requests_wait_and_all_of_them_end(model_file: Path) -> None:
    small = LlamaModel(model_file, max_context=256, max_rows=8)

    async def together() -> list[list[Step]]:
        async def one(index: int) -> list[Step]:
            text = prompt(small, f"Write about the number {index}, and what it means to you.")
            return await take(small, text, {"type": "regex", "pattern": "([a-z]{1,5} ){30}"}, seed=index)

        return await asyncio.gather(*map(one, range(8)))

    said = asyncio.run(together())
    small.close()
    assert ["stop"] * 8 == [steps[-1].finish for steps in said]
    assert all(30 == data(steps).count(b" ") for steps in said)


def test_a_stream_that_is_left_early_frees_its_row(model: LlamaModel) -> None:
    assert 0 == rows_after_leaving(model, prompt(model, "Tell a long story."))


def test_a_prompt_that_is_too_long_is_refused_and_a_closed_model_says_so(model_file: Path) -> None:
    small = LlamaModel(model_file, max_context=64)
    with pytest.raises(dt.ModelError, match="the prompt has"):
        run(small, "river " * 100)
    small.close()
    with pytest.raises(dt.ModelError, match="closed"):
        run(small, "x")


def test_a_file_that_llama_cpp_cannot_run_is_refused_with_its_reason(tmp_path: Path, model_file: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(model_file.read_bytes()[: 5 << 20])
    with pytest.raises(dt.ModelError, match=r"llama\.cpp cannot load this file: \w"):
        LlamaModel(broken)
