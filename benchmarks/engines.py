"""Three engines behind one face, over one vocabulary, so that a benchmark can run them side by side.

A `Request` says the same thing to all of them: a structural tag for Dovetail and XGrammar, which both read it, and a
Lark grammar for llguidance, which has its own language. Each engine is driven through its documented Python calls.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

STOP = 2
"""The id of `</s>` in the Tekken vocabulary."""


@dataclass(frozen=True)
class Request:
    """What a server receives; the Lark text is made when llguidance compiles, as a server would have to."""

    tag: dict[str, Any]
    lark: Callable[[], str]

    def again(self) -> Request:
        """An equal request that shares no object with this one."""
        return Request(copy.deepcopy(self.tag), self.lark)


@dataclass(frozen=True, eq=False)
class Tokens:
    """The 131,072 tokens of Tekken as bytes; the first `special` of them are control tokens and hold no text."""

    texts: list[bytes]
    special: int
    encode: Callable[[str], list[int]]


def load_tokens() -> Tokens:
    """The vocabulary that the mistral-common package carries, with its own encoder."""
    import mistral_common
    from mistral_common.tokens.tokenizers.tekken import Tekkenizer

    tekken = Tekkenizer.from_file(os.path.join(os.path.dirname(mistral_common.__file__), "data", "tekken_240911.json"))
    special, model = tekken.num_special_tokens, tekken._model
    texts = [b""] * special
    texts += [model.decode_single_token_bytes(i) for i in range(tekken.n_words - special)]

    def encode(text: str) -> list[int]:
        return [i + special for i in model.encode(text, allowed_special=set(), disallowed_special=())]

    return Tokens(texts, special, encode)


class Dovetail:
    """This library."""

    name: ClassVar[str] = "dovetail"

    def __init__(self, tokens: Tokens) -> None:
        import dovetail

        self._dovetail = dovetail
        special = {f"<special_{i}>": i for i in range(tokens.special)}
        self.vocabulary = dovetail.Vocabulary(tokens.texts, special, [STOP])
        self.mask = np.zeros(self.vocabulary.mask_words, dtype=np.int32)

    def compile(self, request: Request) -> Any:
        """From the request to something that starts matchers."""
        return self._dovetail.compile(request.tag, self.vocabulary)

    compile_again = compile
    """What a second request with the same content costs, where the engine remembers the first."""

    def start(self, compiled: Any) -> Any:
        """A matcher at the beginning of an output."""
        return compiled.matcher()

    def calls(self, matcher: Any) -> tuple[Callable[[], object], Callable[[int], bool]]:
        """The two calls of a decoding step: fill `self.mask`, take a token."""
        fill, mask = matcher.fill_mask, self.mask
        return lambda: fill(mask), matcher.accept

    def grammar_bytes(self, compiled: Any) -> int:
        """What one grammar takes, or 0 where the engine does not tell."""
        return 0

    def cache_bytes(self) -> int:
        """What all grammars and their masks take, or 0 where the engine does not tell."""
        held = self.vocabulary.memory()
        return held["automata"] + held["masks"]


class XGrammar:
    """XGrammar on one thread; its grammar cache is on only where it is asked for the same request again."""

    name: ClassVar[str] = "xgrammar"

    def __init__(self, tokens: Tokens) -> None:
        import xgrammar

        self._xgrammar = xgrammar
        texts = [b"<special_%d>" % i if i < tokens.special else text for i, text in enumerate(tokens.texts)]
        info = xgrammar.TokenizerInfo(
            texts, vocab_type=xgrammar.VocabType.RAW, vocab_size=len(texts), stop_token_ids=[STOP]
        )
        self._compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self._caching = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=True)
        self._bitmask = xgrammar.allocate_token_bitmask(1, len(texts))
        self.mask = self._bitmask.numpy()[0]

    def compile(self, request: Request) -> Any:
        """From the request to something that starts matchers."""
        return self._compiler.compile_structural_tag(request.tag)

    def compile_again(self, request: Request) -> Any:
        """The same through a compiler that keeps what it has compiled."""
        return self._caching.compile_structural_tag(request.tag)

    def start(self, compiled: Any) -> Any:
        """A matcher at the beginning of an output."""
        return self._xgrammar.GrammarMatcher(compiled)

    def calls(self, matcher: Any) -> tuple[Callable[[], object], Callable[[int], bool]]:
        """The two calls of a decoding step: fill `self.mask`, take a token."""
        fill, bitmask = matcher.fill_next_token_bitmask, self._bitmask
        return lambda: fill(bitmask, 0), matcher.accept_token

    def grammar_bytes(self, compiled: Any) -> int:
        """What one grammar takes, or 0 where the engine does not tell."""
        return int(compiled.memory_size_bytes)

    def cache_bytes(self) -> int:
        """What all grammars and their masks take, or 0 where the engine does not tell."""
        return 0


class _CallableTokenizer:
    """What llguidance asks of a tokenizer that is not from Hugging Face."""

    def __init__(self, tokens: Tokens) -> None:
        self.eos_token_id, self.bos_token_id = STOP, 1
        self.special_token_ids = list(range(tokens.special))
        # A control token begins with a byte that no text has, so that no text can spell it.
        special = [b"\xff<special_%d>" % i for i in range(tokens.special)]
        self.tokens = special + tokens.texts[tokens.special :]
        self._encode = tokens.encode

    def __call__(self, text: str | bytes) -> list[int]:
        return self._encode(text.decode("utf-8", "replace") if isinstance(text, bytes) else text)


class LLGuidance:
    """llguidance through a Lark grammar."""

    name: ClassVar[str] = "llguidance"

    def __init__(self, tokens: Tokens) -> None:
        import llguidance
        import llguidance.numpy

        self._matcher = llguidance.LLMatcher
        self._fill = llguidance.numpy.fill_next_token_bitmask
        self._tokenizer = llguidance.LLTokenizer(
            llguidance.TokenizerWrapper(_CallableTokenizer(tokens)), len(tokens.texts)
        )
        self._bitmask = np.zeros((1, (len(tokens.texts) + 31) // 32), dtype=np.int32)
        self.mask = self._bitmask[0]

    def compile(self, request: Request) -> Any:
        """From the request to something that starts matchers."""
        compiled = self._matcher(self._tokenizer, self._matcher.grammar_from_lark(request.lark()))
        if compiled.get_error():
            raise ValueError(compiled.get_error())
        return compiled

    compile_again = compile

    def start(self, compiled: Any) -> Any:
        """A matcher at the beginning of an output."""
        return compiled.deep_copy()

    def calls(self, matcher: Any) -> tuple[Callable[[], object], Callable[[int], bool]]:
        """The two calls of a decoding step: fill `self.mask`, take a token."""
        fill, bitmask = self._fill, self._bitmask
        return lambda: fill(matcher, bitmask, 0), matcher.consume_token

    def grammar_bytes(self, compiled: Any) -> int:
        """What one grammar takes, or 0 where the engine does not tell."""
        return 0

    def cache_bytes(self) -> int:
        """What all grammars and their masks take, or 0 where the engine does not tell."""
        return 0


Engine = Dovetail | XGrammar | LLGuidance
ENGINES: dict[str, type[Engine]] = {engine.name: engine for engine in (Dovetail, LLGuidance, XGrammar)}
