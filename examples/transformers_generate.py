"""Transformers under a format: a tiny model of random weights, three beams, and valid JSON all the same."""

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import dovetail as dt
from dovetail.integrations.transformers import DovetailLogitsProcessor

FORMAT = {
    "type": "json_schema",
    "json_schema": {
        "type": "object",
        "properties": {"city": {"enum": ["Rome", "Oslo", "Lima"]}, "days": {"enum": [1, 3, 7]}},
        "required": ["city", "days"],
    },
    "max_whitespace_cnt": 1,
}


def byte_tokenizer() -> PreTrainedTokenizerFast:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokenizer = Tokenizer(models.BPE({letter: i for i, letter in enumerate(letters)}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<|end|>", pad_token="<|pad|>")


def main() -> None:
    torch.manual_seed(0)
    tokenizer = byte_tokenizer()
    config = LlamaConfig(
        vocab_size=320,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    model = LlamaForCausalLM(config).eval()
    vocabulary = dt.Vocabulary.from_huggingface(tokenizer, size=config.vocab_size)
    prompt = tokenizer("weather please", return_tensors="pt", return_token_type_ids=False)
    processor = DovetailLogitsProcessor(FORMAT, vocabulary)
    rows = model.generate(**prompt, logits_processor=[processor], max_new_tokens=80, num_beams=3, do_sample=False)
    answer = "".join(tokenizer.decode(rows[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True))
    print(answer)
    assert dt.accepts(FORMAT, answer)


if __name__ == "__main__":
    main()
