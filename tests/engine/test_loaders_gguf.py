"""GGUF metadata: what a small writer puts in comes out, and a hostile file ends in an error with its offset."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import gguf
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.engine.loaders_gguf import load_gguf
from dovetail.errors import VocabularyError

U32, I32, STRING, ARRAY, U64 = 4, 5, 8, 9, 10


def string(text: str | bytes, order: str = "<") -> bytes:
    data = text if isinstance(text, bytes) else text.encode()
    return struct.pack(order + "Q", len(data)) + data


def value(kind: int, content: Any, order: str = "<") -> bytes:
    if kind == STRING:
        return string(content, order)
    if kind == ARRAY:
        element, items = content
        body = b"".join(value(element, item, order) for item in items)
        return struct.pack(order + "IQ", element, len(items)) + body
    return struct.pack(order + {U32: "I", I32: "i", U64: "Q"}[kind], content)


def gguf_file(entries: dict[str, tuple[int, Any]], *, order: str = "<", version: int = 3) -> bytes:
    data = b"GGUF" + struct.pack(order + "IQQ", version, 0, len(entries))
    for key, (kind, content) in entries.items():
        data += string(key, order) + struct.pack(order + "I", kind) + value(kind, content, order)
    return data


def tokenizer(model: str, tokens: list[str], types: list[int], **ids: int) -> dict[str, tuple[int, Any]]:
    entries: dict[str, tuple[int, Any]] = {
        "general.architecture": (STRING, "llama"),
        "llama.block_count": (U32, 2),
        "tokenizer.ggml.model": (STRING, model),
        "tokenizer.ggml.tokens": (ARRAY, (STRING, tokens)),
        "tokenizer.ggml.scores": (ARRAY, (I32, [0] * len(tokens))),
        "tokenizer.ggml.token_type": (ARRAY, (I32, types)),
        "tokenizer.ggml.merges": (ARRAY, (STRING, ["a b", "c d"])),
    }
    return entries | {f"tokenizer.ggml.{name}": (U32, index) for name, index in ids.items()}


SPM = tokenizer("llama", ["<unk>", "</s>", "<0x0A>", "▁the", "<tool>", "<spare>"], [2, 3, 6, 1, 4, 5], eos_token_id=1)
BPE = tokenizer(
    "gpt2", ["a", "Ġa", "Ċ", "<|eot|>", "<|eom|>"], [1, 1, 1, 3, 3], eos_token_id=3, eot_token_id=3, eom_token_id=4
)


def test_a_sentencepiece_tokenizer_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_file(SPM))
    loaded = load_gguf(path)
    assert [b"<unk>", b"</s>", b"\n", b" the", b"<tool>", b"<spare>"] == loaded.tokens
    assert {"<unk>": 0, "</s>": 1, "<spare>": 5} == loaded.special_tokens
    assert [1] == loaded.stop_token_ids


@pytest.mark.parametrize(("order", "version"), [("<", 2), ("<", 3), (">", 3)])
def test_a_byte_level_tokenizer_is_read_in_either_byte_order(tmp_path: Path, order: str, version: int) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(gguf_file(BPE, order=order, version=version))
    loaded = load_gguf(str(path), size=8)
    assert [b"a", b" a", b"\n", b"<|eot|>", b"<|eom|>", b"", b"", b""] == loaded.tokens
    assert [3, 4] == loaded.stop_token_ids


def test_a_file_of_the_reference_writer_is_read(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "model.gguf", "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_token_list(["Ġa", "<|end|>"])
    writer.add_token_types([1, 3])
    writer.add_eos_token_id(1)
    writer.add_tensor("weights", np.zeros((4, 4), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert ([b" a", b"<|end|>"], {"<|end|>": 1}, [1]) == load_gguf(tmp_path / "model.gguf")


HEAD = b"GGUF" + struct.pack("<I", 3)
TOKENS = string("tokenizer.ggml.tokens")
REFUSED = [
    # bytes of the file, words the message must contain
    (b"", "empty"),
    (b"GGUX", "not a GGUF file"),
    (b"GGUF\x03", "the file ends"),
    (b"GGUF" + struct.pack("<IQQ", 1, 0, 0), "version 1"),
    (HEAD + struct.pack("<QQ", 0, 1 << 60), "metadata keys"),
    (HEAD + struct.pack("<QQQ", 0, 1, 1 << 62), "beyond"),
    (HEAD + struct.pack("<QQ", 0, 1) + TOKENS + struct.pack("<I", 99), "value type 99"),
    (HEAD + struct.pack("<QQ", 0, 1) + TOKENS + struct.pack("<IIQ", ARRAY, STRING, 1 << 61), "does not fit"),
    (HEAD + struct.pack("<QQ", 0, 1) + TOKENS + struct.pack("<IIQ", ARRAY, U32, 1 << 61), "the file ends"),
    (HEAD + struct.pack("<QQ", 0, 1) + TOKENS + struct.pack("<I", ARRAY) + struct.pack("<IQ", ARRAY, 1) * 9, "nesting"),
    (gguf_file({}), "no tokenizer tokens"),
    (gguf_file({"tokenizer.ggml.tokens": (ARRAY, (U32, [1, 2]))}), "no tokenizer tokens"),
    (gguf_file(tokenizer("bert", ["a"], [1], eos_token_id=0)), "b'bert' is unknown"),
    (gguf_file(tokenizer("gpt2", ["a"], [1])), "no token that ends"),
    (gguf_file(tokenizer("gpt2", ["a"], [1], eos_token_id=7)), "no token that ends"),
]


@pytest.mark.parametrize(("data", "words"), REFUSED)
def test_a_malformed_file_is_refused_with_its_reason(tmp_path: Path, data: bytes, words: str) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(data)
    with pytest.raises(VocabularyError, match=words):
        load_gguf(path)


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(VocabularyError, match="cannot read the file"):
        load_gguf(tmp_path / "none.gguf")


@settings(max_examples=300)
@given(data=st.data())
def test_any_damage_to_a_file_ends_in_a_vocabulary_or_a_typed_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    whole = bytearray(gguf_file(BPE))
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "damaged.gguf"
    path.write_bytes(whole[: data.draw(st.integers(0, len(whole)))])
    try:
        loaded = load_gguf(path)
    except VocabularyError as error:
        assert error.problem
        return
    assert all(isinstance(token, bytes) for token in loaded.tokens)
