"""From a format to a compiled grammar."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Hashable, Sequence

from dovetail import _core
from dovetail._core import Matcher
from dovetail.engine.vocabulary import Vocabulary
from dovetail.formats import FormatSource, load_format
from dovetail.formats.loading import bare_schema
from dovetail.grammar import ir
from dovetail.grammar.lower import lower, lower_schema

MAX_CACHED_GRAMMARS = 1024

Source = FormatSource | ir.Rule


class CompiledGrammar:
    """A grammar ready to match over one vocabulary; immutable and shared by threads."""

    __slots__ = ("_grammar", "vocabulary")

    def __init__(self, grammar: _core.Grammar, vocabulary: Vocabulary) -> None:
        self._grammar = grammar
        self.vocabulary = vocabulary

    def matcher(self, stop_token_ids: Sequence[int] = (), *, only: bool = False) -> Matcher:
        """A matcher at the start of an output, which a request's own stop tokens end beside those of the vocabulary.

        With `only` they end it in place of those. Before the output is complete a stop token of the request is no text.
        Where there is none at all, the output ends by itself once it is complete and nothing can follow.
        """
        return self._grammar.matcher(stop_token_ids, only) if stop_token_ids or only else self._grammar.matcher()

    def save(self) -> bytes:
        """The grammar as versioned bytes, independent of the vocabulary."""
        return self._grammar.save()

    def __reduce__(self) -> tuple[object, ...]:
        return CompiledGrammar.load, (self.save(), self.vocabulary)

    @classmethod
    def load(cls, saved: bytes, vocabulary: Vocabulary) -> CompiledGrammar:
        """What `save` gave, over any vocabulary."""
        return cls(vocabulary._store.load(saved), vocabulary)


def compile(source: Source, vocabulary: Vocabulary) -> CompiledGrammar:
    """Compile a format, a response_format, a JSON Schema, a Python type, JSON text, or a rule.

    What is known already is not made again.
    """
    if isinstance(source, ir.Rule):
        return CompiledGrammar(vocabulary._store.compile(source), vocabulary)
    key, lowered = _named(source)
    known = _recalled(vocabulary, key)
    if known is None:
        known = CompiledGrammar(vocabulary._store.compile(lowered()), vocabulary)
        _remember(vocabulary, key, known)
    return known


def _named(source: FormatSource) -> tuple[Hashable, Callable[[], ir.Rule]]:
    """What equal sources have in common, and how this one becomes a grammar."""
    bare = bare_schema(source)
    if bare is None:
        key, _ = _core.fingerprint(source if isinstance(source, dict | str) else load_format(source).model_dump())
        return key, lambda: lower(load_format(source))
    content = _core.fingerprint(bare.schema)
    return (content, bare.strict, bare.any_order), lambda: lower_schema(bare, content)


def _recalled(vocabulary: Vocabulary, key: Hashable) -> CompiledGrammar | None:
    known = vocabulary._compiled.get(key)
    if known is not None:
        with contextlib.suppress(KeyError):  # another thread may have dropped it in the meantime
            vocabulary._compiled.move_to_end(key)
    return known


def _remember(vocabulary: Vocabulary, key: Hashable, made: CompiledGrammar) -> None:
    cache = vocabulary._compiled
    cache[key] = made
    while len(cache) > 1 and (
        len(cache) > MAX_CACHED_GRAMMARS or vocabulary._store.automaton_bytes > vocabulary.cache_bytes
    ):
        cache.popitem(last=False)


@functools.cache
def byte_vocabulary() -> Vocabulary:
    """One token per byte, for texts without a tokenizer."""
    return Vocabulary([bytes([b]) for b in range(256)], cache_bytes=16 << 20)


def accepts(source: Source, text: str | bytes) -> bool:
    """Does the format match the whole text? No vocabulary is needed, so token-level formats cannot match."""
    matcher = compile(source, byte_vocabulary()).matcher()
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return matcher.accept_bytes(data) and matcher.is_complete
