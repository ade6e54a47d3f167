"""Vocabularies of the tokenizers of mistral-common: Tekken, and its older ones over SentencePiece."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dovetail.engine.loaders import Loaded, byte_fallback, loaded
from dovetail.errors import VocabularyError

_SPACE = "\u2581"


def load_mistral(source: object, stop_token_ids: Iterable[int] | None = None, size: int | None = None) -> Loaded:
    """Read a MistralTokenizer, the tokenizer inside it, or an engine's wrapper; unless given, its EOS is the stop."""
    tokenizer = _inner(source)
    special = {index for index in range(tokenizer.n_words) if tokenizer.is_special(index)}
    specials = {tokenizer.id_to_piece(index): index for index in sorted(special, reverse=True)}
    to_bytes = _byte_pieces(tokenizer)
    decoded = {
        index: tokenizer.id_to_piece(index).encode() if index in special else to_bytes(index)
        for index in range(tokenizer.n_words)
    }
    stops = [tokenizer.eos_id] if stop_token_ids is None else stop_token_ids
    return loaded(decoded, specials, stops, size)


def mistral_encode(source: object) -> Callable[[str], list[int]]:
    """How the tokenizer cuts text, special tokens spelled out."""
    tokenizer = _inner(source)
    return lambda text: list(tokenizer.encode(text, bos=False, eos=False))


def _inner(source: object) -> Any:
    """The tokenizer that knows pieces, out of up to three wrappers, such as `MistralTokenizer` or one of an engine."""
    opened: Any = source
    for _ in range(4):
        if callable(getattr(opened, "id_to_piece", None)) and isinstance(getattr(opened, "n_words", None), int):
            return opened
        opened = next(
            (
                inner
                for name in ("tokenizer", "instruct_tokenizer", "mistral")
                if (inner := getattr(opened, name, None))
            ),
            None,
        )
    raise VocabularyError(
        f"{type(source).__name__} is no tokenizer of mistral-common", "", "give a MistralTokenizer or its tokenizer"
    )


def _byte_pieces(tokenizer: Any) -> Callable[[int], bytes]:
    exact = getattr(tokenizer, "id_to_byte_piece", None)
    if callable(exact):
        return lambda index: bytes(exact(index))

    def piece(index: int) -> bytes:
        text = tokenizer.id_to_piece(index)
        byte = byte_fallback(text)
        return text.replace(_SPACE, " ").encode() if byte is None else byte

    return piece
