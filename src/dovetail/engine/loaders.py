"""Where the tokens of a vocabulary come from: tokenizer objects and files, read down to bytes.

Each loader answers with the same three things, whatever the source: the bytes that each token stands for, the special
tokens by name, and the tokens that end an output. Tokenizer objects are read by what they say about themselves, so that
no tokenizer library is a dependency of this package.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from dovetail.errors import VocabularyError

# Ten times the largest vocabulary in use; a hostile file cannot ask for more memory than this.
MAX_TOKENS = 1 << 22

_SPELL_OUT = "make the Vocabulary from the bytes of each token: Vocabulary(tokens, special_tokens, stop_token_ids)"


class Loaded(NamedTuple):
    """What a source says about its tokens; an id that stands for nothing has empty bytes and is never allowed."""

    tokens: list[bytes]
    special_tokens: dict[str, int]
    stop_token_ids: list[int]


class TiktokenEncoding(Protocol):
    """The public part of `tiktoken.Encoding` that a vocabulary needs."""

    @property
    def n_vocab(self) -> int:
        """One more than the largest id."""

    @property
    def special_tokens_set(self) -> set[str]:
        """The texts of the special tokens."""

    def decode_single_token_bytes(self, token: int) -> bytes:
        """The bytes of one token; KeyError for an id that stands for nothing."""

    def encode_single_token(self, text_or_bytes: str | bytes) -> int:
        """The id of a token."""


def load_huggingface(source: object, stop_token_ids: Iterable[int] | None = None, size: int | None = None) -> Loaded:
    """Read a Transformers or `tokenizers` tokenizer, or a directory that holds tokenizer.json.

    Stop tokens are those of the generation configuration, the tokenizer and its configuration, unless given. `size` is
    the number of logits of the model where that is not the number of tokens: tokens beyond it cannot come.
    """
    description, stops = _describe(source)
    spelled, specials = _added_tokens(description)
    vocabulary = _model_vocabulary(description)
    to_bytes = _token_decoder(description)
    decoded = {index: to_bytes(text) for text, index in vocabulary.items()} | spelled
    chosen = list(stop_token_ids) if stop_token_ids is not None else _resolve_stops(stops, vocabulary, specials)
    if stop_token_ids is None and not chosen:
        raise VocabularyError(
            "the tokenizer names no token that ends an output", "", "pass stop_token_ids, or () where none shall end it"
        )
    return loaded(decoded, specials, chosen, size)


def load_tiktoken(
    encoding: TiktokenEncoding, stop_token_ids: Iterable[int] | None = None, size: int | None = None
) -> Loaded:
    """Read a tiktoken encoding; unless given, `<|endoftext|>` is the stop token."""
    specials = {name: encoding.encode_single_token(name) for name in sorted(encoding.special_tokens_set)}
    decoded: dict[int, bytes] = {}
    for index in range(encoding.n_vocab):
        try:
            decoded[index] = encoding.decode_single_token_bytes(index)
        except KeyError:  # real encodings have holes before their special tokens
            continue
    if stop_token_ids is None:
        if "<|endoftext|>" not in specials:
            raise VocabularyError(
                "the encoding has no <|endoftext|> token to end an output", "", "pass stop_token_ids, or () for none"
            )
        stop_token_ids = [specials["<|endoftext|>"]]
    return loaded(decoded, specials, stop_token_ids, size)


def huggingface_encode(source: object) -> Callable[[str], list[int]] | None:
    """How a Transformers or `tokenizers` tokenizer cuts text; None for a directory, which needs a library to say so."""
    backend: Any = getattr(source, "backend_tokenizer", source)
    if not callable(getattr(backend, "encode", None)):
        return None
    return lambda text: list(backend.encode(text, add_special_tokens=False).ids)


def tiktoken_encode(encoding: TiktokenEncoding) -> Callable[[str], list[int]] | None:
    """How a tiktoken encoding cuts text, special tokens spelled out."""
    encode = getattr(encoding, "encode_ordinary", None)
    return encode if callable(encode) else None


def lay_out(decoded: Mapping[int, bytes], size: int | None) -> list[bytes]:
    """The tokens as a list by id, with empty bytes for holes and for padding up to `size`."""
    needed = max(decoded, default=-1) + 1
    if size is not None and size < 1:
        raise VocabularyError(f"size is {size}", "", "pass the number of logits of the model")
    length = needed if size is None else size
    if length > MAX_TOKENS:
        raise VocabularyError(
            f"a vocabulary of {length} tokens is beyond the {MAX_TOKENS} supported", "", "check the token ids"
        )
    if decoded and min(decoded) < 0:
        raise VocabularyError(f"token id {min(decoded)} is negative", "", "number the tokens from 0")
    tokens = [b""] * length
    for index, data in decoded.items():
        if index < length:
            tokens[index] = data
    return tokens


def loaded(decoded: Mapping[int, bytes], specials: Mapping[str, int], stops: Iterable[int], size: int | None) -> Loaded:
    """What a source says, without the ids for which a model of `size` logits has none."""
    tokens = lay_out(decoded, size)
    below = {text: index for text, index in specials.items() if index < len(tokens)}
    return Loaded(tokens, below, [index for index in dict.fromkeys(stops) if index < len(tokens)])


@cache
def byte_of_letter() -> dict[str, int]:
    """The byte that each letter of a byte-level token stands for.

    Byte-level BPE writes bytes as letters: printable ones as themselves, the others as the letters from U+0100 on.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in set(printable)]
    return {chr(byte): byte for byte in printable} | {chr(0x100 + i): byte for i, byte in enumerate(hidden)}


def byte_level(text: str) -> bytes:
    """The bytes of a byte-level token; a token with any other letter stands for its own text."""
    table = byte_of_letter()
    try:
        return bytes([table[letter] for letter in text])
    except KeyError:
        return text.encode()


def byte_fallback(text: str) -> bytes | None:
    """The byte that `<0xHH>` stands for, or None for any other token."""
    if len(text) == 6 and text.startswith("<0x") and text.endswith(">"):
        try:
            return bytes([int(text[3:5], 16)])
        except ValueError:
            return None
    return None


class _Stops(NamedTuple):
    """Stop tokens as the files name them: ids where they give ids, texts where they give texts."""

    ids: list[int]
    texts: list[str]


def _describe(source: object) -> tuple[dict[str, Any], _Stops]:
    """The tokenizer.json of any source, and the stop tokens that are named beside it."""
    if isinstance(source, (str, Path)):
        path = Path(source)
        folder = path if path.is_dir() else path.parent
        return _read_json(path / "tokenizer.json" if path.is_dir() else path), _stops_beside(folder)
    backend = getattr(source, "backend_tokenizer", source)
    to_str = getattr(backend, "to_str", None)
    if not callable(to_str):
        raise VocabularyError(
            f"{type(source).__name__} is neither a fast Transformers tokenizer nor a tokenizers.Tokenizer",
            "",
            _SPELL_OUT,
        )
    stops = _Stops([], [])
    eos = getattr(source, "eos_token_id", None)
    if isinstance(eos, int):
        stops.ids.append(eos)
    folder = Path(str(getattr(source, "name_or_path", "") or ""))
    if getattr(source, "name_or_path", "") and folder.is_dir():
        beside = _stops_beside(folder)
        stops.ids.extend(beside.ids)
        stops.texts.extend(beside.texts)
    return _object(json.loads(to_str()), "tokenizer.json"), stops


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return _object(json.loads(path.read_text("utf-8")), str(path))
    except OSError as error:
        raise VocabularyError(
            f"cannot read {path.name}: {error.strerror}", str(path), "give a folder with tokenizer.json"
        ) from error
    except (ValueError, RecursionError) as error:
        raise VocabularyError(f"{path.name} is not JSON: {error}", str(path), "download the file again") from error


def _object(value: object, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise VocabularyError("expected a JSON object", path, "give the tokenizer.json of a Hugging Face tokenizer")
    return value


def _stops_beside(folder: Path) -> _Stops:
    """Stop tokens of the configuration files in a model's folder; each of them may be missing."""
    stops = _Stops([], [])
    for name in ("generation_config.json", "config.json"):
        if (folder / name).is_file():
            eos = _read_json(folder / name).get("eos_token_id")
            stops.ids.extend(i for i in (eos if isinstance(eos, list) else [eos]) if isinstance(i, int))
    if (folder / "tokenizer_config.json").is_file():
        eos = _read_json(folder / "tokenizer_config.json").get("eos_token")
        text = eos.get("content") if isinstance(eos, dict) else eos
        if isinstance(text, str):
            stops.texts.append(text)
    return stops


def _resolve_stops(stops: _Stops, vocabulary: Mapping[str, int], specials: Mapping[str, int]) -> list[int]:
    known = {**vocabulary, **specials}
    return [*stops.ids, *(known[text] for text in stops.texts if text in known)]


def _added_tokens(description: Mapping[str, Any]) -> tuple[dict[int, bytes], dict[str, int]]:
    """Added tokens stand for exactly their text; those marked special are also known by name."""
    spelled: dict[int, bytes] = {}
    specials: dict[str, int] = {}
    for number, token in enumerate(description.get("added_tokens") or []):
        try:
            index, text, special = int(token["id"]), str(token["content"]), bool(token["special"])
        except (KeyError, TypeError, ValueError) as error:
            raise VocabularyError(
                "an added token needs id, content and special", f"/added_tokens/{number}", "repair the file"
            ) from error
        spelled[index] = text.encode()
        if special:
            specials.setdefault(text, index)
    return spelled, specials


def _model_vocabulary(description: Mapping[str, Any]) -> dict[str, int]:
    """Texts and ids of the tokens that the tokenizer's model knows, whichever way the model lists them."""
    vocabulary = _object(description.get("model"), "/model").get("vocab")
    if isinstance(vocabulary, dict):
        pairs: Iterable[tuple[object, object]] = vocabulary.items()
    elif isinstance(vocabulary, list):  # Unigram: pairs of text and score, numbered by position
        pairs = ((entry[0] if isinstance(entry, list) and entry else None, i) for i, entry in enumerate(vocabulary))
    else:
        raise VocabularyError("the tokenizer's model has no vocabulary", "/model/vocab", _SPELL_OUT)
    ids: dict[str, int] = {}
    for text, index in pairs:
        if not isinstance(text, str) or not isinstance(index, int):
            raise VocabularyError(f"{text!r}: {index!r} is not a token", "/model/vocab", "repair the file")
        ids[text] = index
    return ids


def _token_decoder(description: Mapping[str, Any]) -> Callable[[str], bytes]:
    """How the text of a token becomes bytes, from the decoder that the tokenizer itself would use."""
    steps = _flatten(description.get("decoder"), "decoders", "/decoder")
    if not steps:
        # Without a decoder, what the pre-tokenizer did to the text tells what has to be undone.
        steps = [
            step
            for step in _flatten(description.get("pre_tokenizer"), "pretokenizers", "/pre_tokenizer")
            if step.get("type") in ("ByteLevel", "Metaspace")
        ]
    if not steps:
        raise VocabularyError(
            "the tokenizer has no decoder, so the bytes of its tokens are unknown", "/decoder", _SPELL_OUT
        )
    if any(step.get("type") == "ByteLevel" for step in steps):
        return byte_level
    replacements = [pair for i, step in enumerate(steps) if (pair := _replacement(step, f"/decoder/decoders/{i}"))]
    fallback = any(step.get("type") == "ByteFallback" for step in steps)

    def decode(text: str) -> bytes:
        if fallback and (byte := byte_fallback(text)) is not None:
            return byte
        for old, new in replacements:
            text = text.replace(old, new)
        return text.encode()

    return decode


def _flatten(step: object, key: str, path: str) -> Sequence[dict[str, Any]]:
    """The steps of a decoder or pre-tokenizer, with sequences opened up."""
    flat: list[dict[str, Any]] = []
    pending: list[object] = [] if step is None else [step]
    while pending:
        current = _object(pending.pop(), path)
        if current.get("type") == "Sequence":
            pending.extend(reversed(current.get(key) or []))
        else:
            flat.append(current)
    return flat


def _replacement(step: Mapping[str, Any], path: str) -> tuple[str, str] | None:
    """What one decoder step replaces in every token, or None where it leaves the middle of a text alone."""
    match step:
        case {"type": "Metaspace", "replacement": str(old)}:
            return old, " "
        case {"type": "Replace", "pattern": {"String": str(old)}, "content": str(new)} if old:
            return old, new
        # Strip touches only the first and last token of a whole text; what a model adds to a prompt has neither.
        case {"type": "ByteFallback" | "Fuse" | "Strip"}:
            return None
        case _:
            raise VocabularyError(
                f"the decoder step {step.get('type')} gives a token no bytes of its own", path, _SPELL_OUT
            )
