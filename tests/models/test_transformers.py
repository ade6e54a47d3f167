"""Transformers models behind the common face: one batch for all, under masks, with the same answers as alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

import dovetail as dt
from dovetail.models import Step, tiny
from dovetail.models.transformers import TransformersModel
from tests.models.stepping import FORMAT, PERSON, data, rows_after_leaving, run, take

PROMPTS = ["the river", "a list of plants, a short history of the harbour " * 30, "x", "two children"]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.make(tmp_path_factory.mktemp("tiny") / "little", "qwen_3")


@pytest.fixture(scope="module")
def model(directory: Path) -> Iterator[TransformersModel]:
    model = TransformersModel(directory, dialect="qwen_3", device="cpu")
    yield model
    model.close()


def test_greedy_tokens_are_those_of_transformers(model: TransformersModel, directory: Path) -> None:
    peer = AutoModelForCausalLM.from_pretrained(directory)
    for prompt in PROMPTS:
        ids = torch.tensor([model.encode(prompt)])
        theirs = peer.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_new_tokens=12, do_sample=False)[
            0, ids.shape[1] :
        ]
        ours = run(model, prompt, temperature=0, max_tokens=12)
        assert theirs.tolist() == [step.token for step in ours]


def test_rows_of_a_batch_say_what_they_would_say_alone(model: TransformersModel) -> None:
    alone = [
        [s.token for s in run(model, prompt, temperature=0, max_tokens=9 + 4 * i)] for i, prompt in enumerate(PROMPTS)
    ]

    async def together() -> list[list[int]]:
        async def one(index: int, prompt: str) -> list[int]:
            await asyncio.sleep(index * 0.01)  # some join while others talk
            steps = await take(model, prompt, temperature=0, max_tokens=9 + 4 * index)
            return [step.token for step in steps]

        return await asyncio.gather(*(one(i, prompt) for i, prompt in enumerate(PROMPTS)))

    for _ in range(3):
        assert alone == asyncio.run(together())


def test_random_weights_say_valid_json_and_come_to_an_end(model: TransformersModel) -> None:
    async def together() -> list[list[Step]]:
        jobs = [take(model, prompt, FORMAT, seed=i, soft_limit=20) for i, prompt in enumerate(PROMPTS * 4)]
        return await asyncio.gather(*jobs)

    for steps in asyncio.run(together()):
        assert "stop" == steps[-1].finish
        assert {"name", "age"} <= set(json.loads(data(steps)))


def test_constrained_and_free_requests_share_a_batch(model: TransformersModel) -> None:
    async def together() -> list[list[Step]]:
        free = [take(model, "hi", seed=i, max_tokens=15) for i in range(3)]
        bound = [take(model, "hi", {"type": "regex", "pattern": "(ab|ba){4}"}, seed=i) for i in range(3)]
        return await asyncio.gather(*free, *bound)

    said = asyncio.run(together())
    assert all(len(steps) == 15 or steps[-1].finish == "stop" for steps in said[:3])
    assert all(dt.accepts({"type": "regex", "pattern": "(ab|ba){4}"}, data(steps)) for steps in said[3:])


def test_the_same_seed_says_the_same(model: TransformersModel) -> None:
    once = run(model, "hi", seed=4, max_tokens=20)
    assert once == run(model, "hi", seed=4, max_tokens=20)
    assert once != run(model, "hi", seed=5, max_tokens=20)


def test_top_p_keeps_to_the_likeliest_tokens(model: TransformersModel) -> None:
    greedy = run(model, "hi", temperature=0, max_tokens=10)
    assert [s.token for s in greedy] == [s.token for s in run(model, "hi", top_p=1e-9, max_tokens=10, seed=1)]


def test_logprobs_are_those_under_the_mask(model: TransformersModel) -> None:
    fmt = {"type": "or", "elements": [{"type": "const_string", "value": word} for word in ("a", "b")]}
    first, last = run(model, "hi", fmt, logprobs=5)
    assert 2 == len(first.top)
    assert pytest.approx(1.0) == sum(torch.tensor([chance for _, chance in first.top]).exp().tolist())
    assert pytest.approx(0.0, abs=1e-6) == last.logprob


def test_a_stream_that_is_left_early_frees_its_row(model: TransformersModel) -> None:
    assert 0 == rows_after_leaving(model, "hi")


def test_stop_texts_limits_and_context(model: TransformersModel, directory: Path) -> None:
    said = run(model, "hi", {"type": "const_string", "value": "one two three"}, stop=("two",))
    assert (b"one ", "two") == (data(said), said[-1].stopped_by)
    small = TransformersModel(directory, dialect="qwen_3", device="cpu", max_context=20)
    assert "length" == run(small, "x", {"type": "regex", "pattern": "[ab]{99}"}, seed=1)[-1].finish
    with pytest.raises(dt.ModelError, match="the prompt has"):
        run(small, "a very long prompt for so small a model, which cannot take it")
    small.close()
    with pytest.raises(dt.ModelError, match="closed"):
        run(small, "x")


def test_a_broken_step_is_told_to_those_in_it_and_to_nobody_else(
    model: TransformersModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(model._batcher._rows, "_forward", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(model, "hi", max_tokens=3)
    assert 3 == len(run(model, "hi", seed=1, max_tokens=3))


@pytest.mark.parametrize("name", ["qwen_3", "deepseek_v3_1", "harmony", "minimax", "kimi_k3"])
def test_a_chat_goes_through_the_template_and_is_answered(tmp_path: Path, name: str) -> None:
    model = TransformersModel(tiny.make(tmp_path, name), dialect=name, device="cpu")
    tools = [{"type": "function", "function": {"name": "look", "parameters": PERSON}}]
    chat = [{"role": "user", "content": "Who?"}]
    prompt = model.render(chat, tools)
    assert "Who?" in prompt.text
    fmt = model.dialect.format(tools, tool_choice="required")
    steps = run(model, prompt.text, fmt, seed=1, soft_limit=30)
    message = model.dialect.parse(data(steps), tools, prompt.text)
    assert ({"look"}, ()) == ({call.name for call in message.tool_calls}, message.diagnostics)
    last = {"role": "assistant", "content": "Well then"}
    begun = model.render([*chat, last], reasoning=False, continue_final=True)
    assert begun.text.endswith(begun.prefix)
    assert dt.compile(model.dialect.format(reasoning=False), model.vocabulary).matcher().accept_bytes(begun.prefix)
    model.close()


def test_the_dialect_is_found_out_from_the_template(directory: Path) -> None:
    model = TransformersModel(directory, device="cpu")
    known = dt.dialects.get("qwen_3")
    assert known.calls[0].call_begin == model.dialect.calls[0].call_begin
    assert model.dialect.reasoning is not None
    assert ("<think>", "model") == (model.dialect.reasoning.start, model.dialect.reasoning.opened_by)


def test_what_cannot_be_loaded_is_told_with_its_place(tmp_path: Path) -> None:
    with pytest.raises(dt.ModelError, match="no directory"):
        TransformersModel(tmp_path / "nowhere")
    with pytest.raises(dt.ModelError, match="not a causal language model"):
        TransformersModel(tmp_path)
