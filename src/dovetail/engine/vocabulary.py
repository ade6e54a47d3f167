"""The tokens of one tokenizer, and the caches that all grammars over them share."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

from dovetail import _core
from dovetail.engine import loaders, loaders_gguf, loaders_mistral
from dovetail.engine.forced import Encode
from dovetail.engine.prewarm import prewarm
from dovetail.errors import GrammarError, VocabularyError

if TYPE_CHECKING:
    from dovetail.engine.compiled import CompiledGrammar

DEFAULT_CACHE_BYTES = 256 << 20


class Vocabulary:
    """Tokens as bytes by id, special tokens by text, and stop tokens.

    Special and stop tokens never match as bytes: a special token stands for its text in literals and triggers only.
    `cache_bytes` bounds the masks, and once more the automata of recently compiled grammars. `encode` gives the token
    ids of a text as the tokenizer cuts it; only `Matcher.forced_tokens` asks it.
    """

    def __init__(
        self,
        tokens: Sequence[bytes],
        special_tokens: Mapping[str, int] | None = None,
        stop_token_ids: Sequence[int] = (),
        *,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
        encode: Encode | None = None,
    ) -> None:
        special = list((special_tokens or {}).items())
        stops = list(stop_token_ids)
        for text, token in special:
            _check_id(token, len(tokens), f"special token {text!r}")
        for token in stops:
            _check_id(token, len(tokens), "a stop token")
        try:
            self._store = _core.Store(tokens, special, stops, cache_bytes)
        except GrammarError as e:
            raise VocabularyError(str(e), "", "check the tokens, their ids and their number") from None
        except TypeError:
            raise VocabularyError(
                "a token is not bytes", "", "give every token as bytes, in the order of ids"
            ) from None
        self._prewarmed = prewarm(self._store, self._store.longest_token)
        self._tokens = tokens
        if encode is not None:
            # Kept with the store, because a matcher knows nothing else of where it comes from.
            self._store.encode = encode  # type: ignore[attr-defined]
        self._compiled: OrderedDict[Hashable, CompiledGrammar] = OrderedDict()
        self.cache_bytes = cache_bytes
        self._digest: bytes | None = None
        self.special_tokens: Mapping[str, int] = dict(special)
        self.stop_token_ids: tuple[int, ...] = tuple(stops)

    @classmethod
    def from_huggingface(
        cls,
        tokenizer: object,
        stop_token_ids: Sequence[int] | None = None,
        *,
        size: int | None = None,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
    ) -> Vocabulary:
        """From a Transformers or `tokenizers` tokenizer or its directory; `size` is how many logits the model has."""
        loaded = loaders.load_huggingface(tokenizer, stop_token_ids, size)
        return cls(*loaded, cache_bytes=cache_bytes, encode=loaders.huggingface_encode(tokenizer))

    @classmethod
    def from_tiktoken(
        cls,
        encoding: loaders.TiktokenEncoding,
        stop_token_ids: Sequence[int] | None = None,
        *,
        size: int | None = None,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
    ) -> Vocabulary:
        """From a `tiktoken.Encoding`."""
        loaded = loaders.load_tiktoken(encoding, stop_token_ids, size)
        return cls(*loaded, cache_bytes=cache_bytes, encode=loaders.tiktoken_encode(encoding))

    @classmethod
    def from_mistral(
        cls,
        tokenizer: object,
        stop_token_ids: Sequence[int] | None = None,
        *,
        size: int | None = None,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
    ) -> Vocabulary:
        """From a tokenizer of mistral-common, or one of the wrappers that engines put around it."""
        loaded = loaders_mistral.load_mistral(tokenizer, stop_token_ids, size)
        return cls(*loaded, cache_bytes=cache_bytes, encode=loaders_mistral.mistral_encode(tokenizer))

    @classmethod
    def from_gguf(
        cls,
        path: str | Path,
        stop_token_ids: Sequence[int] | None = None,
        *,
        size: int | None = None,
        cache_bytes: int = DEFAULT_CACHE_BYTES,
    ) -> Vocabulary:
        """From the metadata of a GGUF model file."""
        return cls(*loaders_gguf.load_gguf(path, stop_token_ids, size), cache_bytes=cache_bytes)

    def __reduce__(self) -> tuple[object, ...]:
        tokens = [bytes(token) for token in self._tokens]
        # Taken whole: the tokenizer is not sent along, so `forced_tokens` knows only what no other token could spell.
        return _shared, (tokens, dict(self.special_tokens), self.stop_token_ids, self.cache_bytes, self.digest)

    @property
    def digest(self) -> bytes:
        """A hash of the tokens, the special tokens and the stop tokens: equal vocabularies have the same masks."""
        if self._digest is None:
            digest = hashlib.sha256(repr((self.stop_token_ids, sorted(self.special_tokens.items()))).encode())
            for token in self._tokens:
                digest.update(len(token).to_bytes(4, "little") + token)
            self._digest = digest.digest()
        return self._digest

    @property
    def size(self) -> int:
        """How many tokens there are."""
        return self._store.size

    @property
    def mask_words(self) -> int:
        """How many 32-bit words a mask row has."""
        return (self.size + 31) // 32

    def token_id(self, text: str) -> int | None:
        """The token with this text, special ones first."""
        return self._store.find(text)

    def token_bytes(self, token: int) -> bytes:
        """What a token stands for."""
        _check_id(token, len(self._tokens), "the token")
        return self._tokens[token]

    def memory(self) -> dict[str, int]:
        """Bytes held: the tokens themselves, the automata of live grammars, the cached masks."""
        store = self._store
        return {"tokens": store.vocabulary_bytes, "automata": store.automaton_bytes, "masks": store.mask_bytes}


_known: WeakValueDictionary[tuple[bytes, int], Vocabulary] = WeakValueDictionary()
_knowing = threading.Lock()


def _shared(
    tokens: list[bytes], special: dict[str, int], stops: Iterable[int], cache_bytes: int, digest: bytes
) -> Vocabulary:
    """The vocabulary of this process with that content: grammars that are unpickled one by one share its masks."""
    with _knowing:
        known = _known.get((digest, cache_bytes))
        if known is None:
            known = _known[digest, cache_bytes] = Vocabulary(tokens, special, tuple(stops), cache_bytes=cache_bytes)
        return known


def _check_id(token: int, size: int, what: str) -> None:
    if not isinstance(token, int) or not 0 <= token < size:
        raise VocabularyError(f"{what} has the id {token!r}, but ids go from 0 to {size - 1}", "", "correct the id")
