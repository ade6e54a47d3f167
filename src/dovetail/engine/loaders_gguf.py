"""The tokens in the header of a GGUF model file, read without trusting a single length in it."""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from dovetail.engine.loaders import MAX_TOKENS, Loaded, byte_fallback, byte_level, loaded
from dovetail.errors import VocabularyError

MAX_KEYS = 1 << 16
MAX_NESTING = 4
MAX_STRING = 1 << 20

_STRING, _ARRAY = 8, 9
_SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_PREFIX = "tokenizer.ggml."
_STOP_KEYS = ("eos_token_id", "eot_token_id", "eom_token_id")
_WANTED = {_PREFIX + name for name in ("model", "tokens", "token_type", "bos_token_id", *_STOP_KEYS)}
_WANTED |= {"tokenizer.chat_template", "tokenizer.chat_template.tool_use"}

# Token types; what is none of these is ordinary text in the spelling of the tokenizer's model.
_UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = 2, 3, 4, 5, 6


def load_gguf(
    path: str | os.PathLike[str], stop_token_ids: Iterable[int] | None = None, size: int | None = None
) -> Loaded:
    """Read tokens, their types and the stop tokens from the metadata of a GGUF file; the tensors are not touched."""
    metadata = read_metadata(Path(path))
    texts = metadata.get(_PREFIX + "tokens")
    if not isinstance(texts, list) or not texts or not isinstance(texts[0], bytes):
        raise VocabularyError(
            "the file holds no tokenizer tokens", _PREFIX + "tokens", "give a model file with a tokenizer"
        )
    types = metadata.get(_PREFIX + "token_type")
    if not isinstance(types, list) or len(types) != len(texts):
        types = [1] * len(texts)
    ordinary = _spelling(metadata.get(_PREFIX + "model"))
    decoded: dict[int, bytes] = {}
    specials: dict[str, int] = {}
    for index, (data, kind) in enumerate(zip(texts, types, strict=True)):
        text = data.decode("utf-8", "replace")
        if kind in (_UNKNOWN, _CONTROL, _UNUSED):
            specials.setdefault(text, index)
        decoded[index] = (
            data if kind in (_UNKNOWN, _CONTROL, _UNUSED, _USER_DEFINED) else _ordinary(text, kind, ordinary)
        )
    if stop_token_ids is None:
        named = (metadata.get(_PREFIX + key) for key in _STOP_KEYS)
        stop_token_ids = dict.fromkeys(i for i in named if isinstance(i, int) and i < len(texts))
        if not stop_token_ids:
            raise VocabularyError(
                "the file names no token that ends an output", _PREFIX + "eos_token_id", "pass stop_token_ids"
            )
    return loaded(decoded, specials, stop_token_ids, size)


def _spelling(model: object) -> Callable[[str], bytes]:
    match model:
        case b"gpt2":
            return byte_level
        case b"llama" | b"t5":
            return lambda text: text.replace("\u2581", " ").encode()
        case _:
            raise VocabularyError(
                f"the tokenizer model {model!r} is unknown", _PREFIX + "model", "use a file of model gpt2, llama or t5"
            )


def _ordinary(text: str, kind: object, spelling: Callable[[str], bytes]) -> bytes:
    byte = byte_fallback(text) if kind == _BYTE else None
    return spelling(text) if byte is None else byte


def read_metadata(path: Path) -> dict[str, Any]:
    """The values of the keys that describe the tokenizer."""
    try:
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
            return _Reader(view, path).metadata()
    except OSError as error:
        raise VocabularyError(
            f"cannot read the file: {error.strerror}", str(path), "give the path of a GGUF file"
        ) from error
    except ValueError as error:
        if isinstance(error, VocabularyError):
            raise
        raise VocabularyError("the file is empty", str(path), "give the path of a GGUF file") from error


class _Reader:
    """A cursor over the header; each read is checked against the end of the file before anything is made of it."""

    def __init__(self, view: mmap.mmap, path: Path) -> None:
        self._view = view
        self._path = path
        self._at = 0
        self._order = "<"

    def metadata(self) -> dict[str, Any]:
        if self._take(4) != b"GGUF":
            raise self._wrong("this is not a GGUF file")
        version = self._scalar("I")
        if version & 0xFFFF == 0:  # written on a machine of the other byte order
            self._order = ">"
            version = int.from_bytes(version.to_bytes(4, "little"), "big")
        if version not in (2, 3):
            raise self._wrong(f"GGUF version {version} is not supported", "use a file of version 2 or 3")
        self._scalar("Q")  # the number of tensors
        count = self._scalar("Q")
        if count > MAX_KEYS:
            raise self._wrong(f"{count} metadata keys are beyond the {MAX_KEYS} supported")
        fields: dict[str, Any] = {}
        for _ in range(count):
            key = self._string().decode("utf-8", "replace")
            value = self._value(self._scalar("I"), keep=key in _WANTED)
            if key in _WANTED:
                fields[key] = value
        return fields

    def _value(self, kind: int, keep: bool, depth: int = 0) -> Any:
        if kind in _SCALARS:
            return self._scalar(_SCALARS[kind])
        if kind == _STRING:
            return self._string(keep)
        if kind != _ARRAY or depth >= MAX_NESTING:
            raise self._wrong(f"value type {kind} at nesting {depth} is unknown")
        element, count = self._scalar("I"), self._scalar("Q")
        if element in _SCALARS:
            return self._scalars(_SCALARS[element], count, keep)
        # An element takes eight bytes or more, so the rest of the file bounds how many there can be.
        if count > (len(self._view) - self._at) // 8:
            raise self._wrong(f"an array of {count} elements does not fit into the file")
        if keep and count > MAX_TOKENS:
            raise self._wrong(f"{count} tokens are beyond the {MAX_TOKENS} supported")
        values = [self._value(element, keep, depth + 1) for _ in range(count)]
        return values if keep else None

    def _scalars(self, code: str, count: int, keep: bool) -> list[Any] | None:
        data = self._take(count * struct.calcsize(code), keep and count <= MAX_TOKENS)
        return list(struct.unpack(f"{self._order}{count}{code}", data)) if data else None

    def _string(self, keep: bool = True) -> bytes:
        length = self._scalar("Q")
        if keep and length > MAX_STRING:
            raise self._wrong(f"a name or token of {length} bytes is beyond the {MAX_STRING} supported")
        return self._take(length, keep)

    def _scalar(self, code: str) -> Any:
        return struct.unpack(self._order + code, self._take(struct.calcsize(self._order + code)))[0]

    def _take(self, length: int, keep: bool = True) -> bytes:
        if length > len(self._view) - self._at:
            raise self._wrong(f"{length} bytes are announced but the file ends before them")
        start, self._at = self._at, self._at + length
        return self._view[start : self._at] if keep else b""

    def _wrong(self, problem: str, fix: str = "download the file again") -> VocabularyError:
        return VocabularyError(problem, f"{self._path.name}, offset {self._at}", fix)
