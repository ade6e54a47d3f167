"""Vocabulary loaders: the bytes of the tokens, joined, are the text that was tokenized."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from dovetail.engine.loaders import byte_of_letter, lay_out, load_huggingface, load_tiktoken
from dovetail.errors import VocabularyError
from tests.byte_level import trained

CORPUS = ["the quick brown fox jumps over the lazy dog", 'a call {"name": "get_weather"}', "größer 你好 🙂"] * 20


def byte_level_tokenizer() -> Tokenizer:
    tokenizer = trained(CORPUS, 400)
    tokenizer.add_tokens(["<tool_call>", "naïve text"])
    return tokenizer


def metaspace_tokenizer() -> Tokenizer:
    bytes_as_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    words = ["<unk>", "<s>", "</s>", *bytes_as_tokens, "\u2581", "\u2581the", "o", "n", "e", "\u2581one", "Ċ"]
    tokenizer = Tokenizer(
        models.BPE({word: i for i, word in enumerate(words)}, [], unk_token="<unk>", byte_fallback=True)
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    tokenizer.add_special_tokens(["<unk>", "<s>", "</s>"])
    return tokenizer


BYTE_LEVEL = byte_level_tokenizer()
BYTE_LEVEL_TOKENS = load_huggingface(BYTE_LEVEL, stop_token_ids=[0]).tokens


@given(st.text())
def test_the_bytes_of_byte_level_tokens_join_to_the_text(text: str) -> None:
    ids = BYTE_LEVEL.encode(text, add_special_tokens=False).ids
    assert text.encode() == b"".join(BYTE_LEVEL_TOKENS[i] for i in ids)


def test_the_letters_of_byte_level_tokens_cover_every_byte_once() -> None:
    assert list(range(256)) == sorted(byte_of_letter().values())
    assert set(pre_tokenizers.ByteLevel.alphabet()) == set(byte_of_letter())


def test_byte_fallback_tokens_are_single_bytes_and_the_metaspace_is_a_blank() -> None:
    loaded = load_huggingface(metaspace_tokenizer(), stop_token_ids=[2])
    assert [bytes([byte]) for byte in range(256)] == loaded.tokens[3:259]
    assert [b" ", b" the", b"o", b"n", b"e", b" one", "Ċ".encode()] == loaded.tokens[259:]
    assert {"<unk>": 0, "<s>": 1, "</s>": 2} == loaded.special_tokens


def test_a_unigram_model_lists_its_tokens_by_position() -> None:
    tokenizer = Tokenizer(models.Unigram([("<unk>", 0.0), ("\u2581a", -1.0), ("b", -2.0)], unk_id=0))
    tokenizer.decoder = decoders.Metaspace()
    loaded = load_huggingface(tokenizer, stop_token_ids=())
    assert ([b"<unk>", b" a", b"b"], {}, []) == loaded


def test_without_a_decoder_the_pre_tokenizer_tells_how_tokens_are_spelled() -> None:
    tokenizer = Tokenizer(models.BPE({"Ġa": 0, "b": 1}, []))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Digits(), pre_tokenizers.ByteLevel()])
    assert [b" a", b"b"] == load_huggingface(tokenizer, stop_token_ids=()).tokens


def test_added_tokens_stand_for_their_text_and_only_special_ones_have_names() -> None:
    loaded = load_huggingface(BYTE_LEVEL, stop_token_ids=[0])
    added = {BYTE_LEVEL.token_to_id(text): text for text in ("<|end|>", "<|pad|>", "<tool_call>", "naïve text")}
    assert {index: text.encode() for index, text in added.items()} == {i: loaded.tokens[i] for i in added}
    assert {"<|end|>": 0, "<|pad|>": 1} == loaded.special_tokens


def test_a_transformers_tokenizer_brings_its_own_stop_token() -> None:
    fast = PreTrainedTokenizerFast(tokenizer_object=BYTE_LEVEL, eos_token="<|end|>")
    loaded = load_huggingface(fast)
    assert [0] == loaded.stop_token_ids
    assert BYTE_LEVEL_TOKENS == loaded.tokens


def test_a_token_made_special_by_transformers_has_a_name() -> None:
    fast = PreTrainedTokenizerFast(tokenizer_object=byte_level_tokenizer(), eos_token="<|end|>")
    fast.add_special_tokens({"extra_special_tokens": [AddedToken("<|think|>", special=True)]})
    loaded = load_huggingface(fast)
    assert loaded.tokens[loaded.special_tokens["<|think|>"]] == b"<|think|>"


STOPS = [
    # files beside tokenizer.json, the stop tokens they make
    ({"generation_config.json": {"eos_token_id": [1, 0]}}, [1, 0]),
    ({"generation_config.json": {"eos_token_id": 1}}, [1]),
    ({"config.json": {"eos_token_id": 0, "vocab_size": 512}}, [0]),
    ({"tokenizer_config.json": {"eos_token": "<|pad|>"}}, [1]),
    ({"tokenizer_config.json": {"eos_token": {"content": "<|end|>", "special": True}}}, [0]),
    (
        {
            "generation_config.json": {"eos_token_id": [1]},
            "config.json": {"eos_token_id": 1},
            "tokenizer_config.json": {"eos_token": "<|end|>"},
        },
        [1, 0],
    ),
]


@pytest.mark.parametrize(("files", "stops"), STOPS)
def test_stop_tokens_come_from_the_files_of_a_model(tmp_path: Path, files: dict[str, Any], stops: list[int]) -> None:
    BYTE_LEVEL.save(str(tmp_path / "tokenizer.json"))
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    assert stops == load_huggingface(tmp_path).stop_token_ids
    assert stops == load_huggingface(str(tmp_path / "tokenizer.json")).stop_token_ids


def test_a_transformers_tokenizer_from_a_folder_adds_the_stop_tokens_beside_it(tmp_path: Path) -> None:
    PreTrainedTokenizerFast(tokenizer_object=BYTE_LEVEL, eos_token="<|end|>").save_pretrained(str(tmp_path))
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": [1, 0]}')
    assert [0, 1] == load_huggingface(PreTrainedTokenizerFast.from_pretrained(str(tmp_path))).stop_token_ids


def test_padding_up_to_the_size_of_the_model_stands_for_nothing() -> None:
    loaded = load_huggingface(BYTE_LEVEL, stop_token_ids=[0], size=512)
    assert 512 == len(loaded.tokens)
    assert {b""} == set(loaded.tokens[BYTE_LEVEL.get_vocab_size() :])


def tokenizer_json(**changes: Any) -> dict[str, Any]:
    return {"added_tokens": [], "decoder": {"type": "ByteLevel"}, "model": {"vocab": {"a": 0}}} | changes


REFUSED = [
    # content of tokenizer.json, words the message must contain
    ("[]", "expected a JSON object"),
    ("{", "not JSON"),
    ("[" * 100_000, "not JSON"),
    (tokenizer_json(model=None), "expected a JSON object"),
    (tokenizer_json(model={}), "no vocabulary"),
    (tokenizer_json(model={"vocab": {"a": "b"}}), "is not a token"),
    (tokenizer_json(model={"vocab": [[]]}), "is not a token"),
    (tokenizer_json(model={"vocab": {"a": 1 << 40}}), "beyond"),
    (tokenizer_json(model={"vocab": {"a": -1}}), "negative"),
    (tokenizer_json(decoder=None), "no decoder"),
    (tokenizer_json(decoder={"type": "WordPiece", "prefix": "##"}), "WordPiece"),
    (tokenizer_json(decoder={"type": "Replace", "pattern": {"Regex": "a"}, "content": ""}), "Replace"),
    (tokenizer_json(added_tokens=[{"id": 3}]), "an added token needs"),
]


@pytest.mark.parametrize(("content", "words"), REFUSED)
def test_a_file_that_is_no_tokenizer_is_refused_with_its_reason(tmp_path: Path, content: Any, words: str) -> None:
    text = content if isinstance(content, str) else json.dumps(content)
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(VocabularyError, match=words):
        load_huggingface(tmp_path, stop_token_ids=())


def test_what_is_no_tokenizer_is_refused() -> None:
    with pytest.raises(VocabularyError, match="int is neither"):
        load_huggingface(7)
    with pytest.raises(VocabularyError, match=r"cannot read tokenizer\.json"):
        load_huggingface("/nowhere/tokenizer.json")
    with pytest.raises(VocabularyError, match="names no token that ends"):
        load_huggingface(BYTE_LEVEL)
    with pytest.raises(VocabularyError, match="size is 0"):
        load_huggingface(BYTE_LEVEL, stop_token_ids=[0], size=0)


def small_encoding(special_tokens: dict[str, int]) -> tiktoken.Encoding:
    ranks = {bytes([byte]): byte for byte in range(256)} | {b"th": 256, b"the": 257, b" the": 258}
    return tiktoken.Encoding("small", pat_str=r"\s*\w+|.", mergeable_ranks=ranks, special_tokens=special_tokens)


def test_a_tiktoken_encoding_keeps_its_holes_and_its_special_tokens() -> None:
    loaded = load_tiktoken(small_encoding({"<|endoftext|>": 260, "<|call|>": 263}))
    assert [b"th", b"the", b" the", b"", b"<|endoftext|>", b"", b"", b"<|call|>"] == loaded.tokens[256:]
    assert {"<|endoftext|>": 260, "<|call|>": 263} == loaded.special_tokens
    assert [260] == loaded.stop_token_ids


def test_a_tiktoken_encoding_without_its_usual_end_needs_stop_tokens() -> None:
    with pytest.raises(VocabularyError, match="token to end an output"):
        load_tiktoken(small_encoding({"<|eot|>": 259}))
    loaded = load_tiktoken(small_encoding({"<|eot|>": 259}), stop_token_ids=[259], size=300)
    assert ([259], 300) == (loaded.stop_token_ids, len(loaded.tokens))


@given(st.dictionaries(st.integers(0, 50), st.binary(max_size=3)))
def test_laying_out_tokens_keeps_each_at_its_id(decoded: dict[int, bytes]) -> None:
    tokens = lay_out(decoded, None)
    assert decoded == {index: tokens[index] for index in decoded}
    assert all(not data for index, data in enumerate(tokens) if index not in decoded)
