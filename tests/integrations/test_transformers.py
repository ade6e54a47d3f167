"""The logits processor under a real tiny model of random weights and a real tokenizer trained here."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import dovetail as dt
from dovetail.integrations.transformers import DovetailLogitsProcessor
from tests.byte_level import trained

# More logits than tokens, as real models have.
LOGITS = 384


@cache
def tokenizer() -> PreTrainedTokenizerFast:
    texts = ['{"name": "get_weather", "arguments": {"city": "Rome"}}', "2024-10-31 is a day"] * 50
    fast = PreTrainedTokenizerFast(tokenizer_object=trained(texts, 340), eos_token="<|end|>", pad_token="<|pad|>")
    fast.padding_side = "left"
    return fast


@cache
def model() -> LlamaForCausalLM:
    torch.manual_seed(0)
    shape = LlamaConfig(
        vocab_size=LOGITS,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=256,
        bos_token_id=None,
        eos_token_id=tokenizer().eos_token_id,
        pad_token_id=tokenizer().pad_token_id,
        initializer_range=0.5,
    )
    return LlamaForCausalLM(shape).eval()


@cache
def vocabulary() -> dt.Vocabulary:
    return dt.Vocabulary.from_huggingface(tokenizer(), size=LOGITS)


DATE = {"type": "regex", "pattern": r"\d{4}-\d{2}-\d{2}( is a (day|year))?"}
CITY = {"type": "regex", "pattern": r'\{"city": "(Rome|Oslo|Lima)"\}'}
DATE_TEXT = re.compile(r"\d{4}-\d{2}-\d{2}( is a (day|year))?")
CITY_TEXT = re.compile(r'\{"city": "(Rome|Oslo|Lima)"\}')
PROMPTS = ["when?", "the day of the weather in Rome is"]


def generate(prompts: list[str], processor: DovetailLogitsProcessor, **options: Any) -> list[str]:
    torch.manual_seed(1)
    batch = tokenizer()(prompts, return_tensors="pt", padding=True, return_token_type_ids=False)
    rows = model().generate(**batch, logits_processor=[processor], max_new_tokens=60, **options)
    return tokenizer().batch_decode(rows[:, batch["input_ids"].shape[1] :], skip_special_tokens=True)


WAYS = {
    "greedy": {"do_sample": False},
    "sampling": {"do_sample": True, "temperature": 1.5},
    "sampling several": {"do_sample": True, "num_return_sequences": 3},
    "beams": {"do_sample": False, "num_beams": 4},
    "beams, several": {"do_sample": False, "num_beams": 4, "num_return_sequences": 2},
    "beams and sampling": {"do_sample": True, "num_beams": 3},
    "prompt lookup": {"do_sample": False, "prompt_lookup_num_tokens": 3},
}


@pytest.mark.parametrize("options", WAYS.values(), ids=WAYS.keys())
def test_every_way_to_generate_stays_inside_the_format(options: dict[str, Any]) -> None:
    prompts = PROMPTS[:1] if "prompt_lookup_num_tokens" in options else PROMPTS
    answers = generate(prompts, DovetailLogitsProcessor(DATE, vocabulary()), **options)
    assert len(prompts) * options.get("num_return_sequences", 1) == len(answers)
    assert [] == [answer for answer in answers if not DATE_TEXT.fullmatch(answer)]


@pytest.mark.parametrize("beams", [1, 3])
def test_each_prompt_of_a_batch_may_have_its_own_format(beams: int) -> None:
    processor = DovetailLogitsProcessor([DATE, dt.compile(CITY, vocabulary())], vocabulary())
    date, city = generate(PROMPTS, processor, do_sample=False, num_beams=beams)
    assert DATE_TEXT.fullmatch(date)
    assert CITY_TEXT.fullmatch(city)


def test_a_processor_serves_again() -> None:
    processor = DovetailLogitsProcessor(CITY, vocabulary())
    first = generate(PROMPTS, processor, do_sample=False)
    assert first == generate(PROMPTS, processor, do_sample=False)
    processor.reset()
    assert first == generate(PROMPTS, processor, do_sample=False)
    assert CITY_TEXT.fullmatch(generate(["another"], processor, do_sample=False)[0])


def test_without_the_processor_the_model_talks_nonsense() -> None:
    batch = tokenizer()(PROMPTS[:1], return_tensors="pt", return_token_type_ids=False)
    rows = model().generate(**batch, max_new_tokens=20, do_sample=False)
    assert not DATE_TEXT.fullmatch(tokenizer().decode(rows[0, batch["input_ids"].shape[1] :]))


def allowed(scores: torch.Tensor) -> list[set[int]]:
    return [set(torch.nonzero(torch.isfinite(row)).flatten().tolist()) for row in scores]


def expected(fmt: dict[str, Any], history: list[int]) -> set[int]:
    """What a fresh matcher allows after `history`; after the end, or off the track, the stop tokens."""
    matcher = dt.compile(fmt, vocabulary()).matcher()
    if not all(map(matcher.accept, history)) or matcher.is_finished:
        return set(vocabulary().stop_token_ids)
    mask = np.zeros(vocabulary().mask_words, dtype=np.int32)
    matcher.fill_mask(mask)
    return set(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist())


def test_rows_may_be_reordered_doubled_cut_and_led_astray_between_calls() -> None:
    random = np.random.default_rng(3)
    processor = DovetailLogitsProcessor(DATE, vocabulary(), prompt_length=2)
    prompt = [5, 6]
    histories: list[list[int]] = [[], [], [], []]
    for _ in range(60):
        ids = torch.tensor([prompt + history for history in histories])
        masks = allowed(processor(ids, torch.zeros(4, LOGITS + 7)))
        assert [expected(DATE, history) for history in histories] == masks
        histories = [histories[i] for i in random.integers(4, size=4)]
        masks = [expected(DATE, history) for history in histories]
        histories = [[*h, int(random.choice(sorted(m)))] for h, m in zip(histories, masks, strict=True)]
        if random.random() < 0.2:
            histories[0][-1] = int(random.integers(LOGITS))  # as a beam of probability zero
        if random.random() < 0.2 or len(histories[0]) > 14:
            keep = int(random.integers(len(histories[0])))
            histories = [history[:keep] for history in histories]


@pytest.mark.parametrize("columns", [340, 352, LOGITS, LOGITS + 100])
def test_scores_narrower_or_wider_than_the_vocabulary_are_masked(columns: int) -> None:
    scores = DovetailLogitsProcessor(DATE, vocabulary())(torch.tensor([[1]]), torch.zeros(1, columns))
    assert [{i for i in expected(DATE, []) if i < columns}] == allowed(scores)


def test_formats_that_do_not_divide_the_rows_are_refused() -> None:
    processor = DovetailLogitsProcessor([DATE, CITY], vocabulary())
    with pytest.raises(dt.MatcherError, match="2 formats do not divide 3 rows"):
        processor(torch.ones(3, 1, dtype=torch.long), torch.zeros(3, LOGITS))
