"""Masks of Dovetail behind vLLM's interface of structured output backends."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import torch
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)

from dovetail.engine import CompiledGrammar, Matcher, Vocabulary, compile
from dovetail.engine.compiled import Source
from dovetail.integrations import constraints


def format_of(kind: StructuredOutputOptions, spec: str, compact: bool) -> Source:
    """The format of a constraint as vLLM hands it on: its kind, and text in the language of that kind."""
    options = StructuredOutputOptions
    match kind:
        case options.JSON:
            return constraints.json_format(spec, compact=compact)
        case options.JSON_OBJECT:
            return constraints.json_format(constraints.ANY_OBJECT, compact=compact)
        case options.REGEX:
            return constraints.regex_format(spec)
        case options.CHOICE:
            return constraints.choice_format(spec)
        case options.GRAMMAR:
            return constraints.grammar_format(spec)
        case options.STRUCTURAL_TAG:
            return constraints.tag_format(spec)
    raise ValueError(f"vLLM has a kind of constraint that is not known: {kind}")


class Compiler:
    """Compiles the constraints of one vLLM configuration, for the engine core and for the front end alike."""

    def __init__(self, vllm_config: Any, tokenizer: Any, vocab_size: int) -> None:
        # Stop tokens come with each request, so the vocabulary has none.
        if hasattr(tokenizer, "is_tekken"):
            self.vocabulary = Vocabulary.from_mistral(tokenizer, (), size=vocab_size)
        else:
            self.vocabulary = Vocabulary.from_huggingface(tokenizer, (), size=vocab_size)
        self._compact = bool(vllm_config.structured_outputs_config.disable_any_whitespace)

    def compile(self, kind: StructuredOutputOptions, spec: str) -> CompiledGrammar:
        """The grammar of a constraint; an InputError where it cannot be held."""
        return compile(format_of(kind, spec, self._compact), self.vocabulary)


@dataclass
class DovetailGrammar(StructuredOutputGrammar):
    """The constraint of one request.

    Where a request ignores the end of the text, vLLM goes on behind it and would leave the text free there: so nothing
    but `end` may follow, forever, and the tokens behind the end are counted, because vLLM may take them back.
    """

    matcher: Matcher
    end: int
    behind: int = 0

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Take tokens; False where one of them may not come."""
        taken = self.matcher.accept_tokens(tokens)
        if taken < len(tokens) and not self.matcher.is_finished:
            return False
        self.behind += len(tokens) - taken
        return True

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """Those of the tokens that could be taken in a row."""
        return [] if self.matcher.is_finished else tokens[: self.matcher.validate(tokens)]

    def rollback(self, num_tokens: int) -> None:
        """Take back tokens."""
        behind = min(num_tokens, self.behind)
        self.behind -= behind
        self.matcher.rollback(num_tokens - behind)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Write the tokens that may come next into a row."""
        if not self.matcher.is_finished:
            self.matcher.fill_mask(bitmask, batch_index)
            return
        bitmask[batch_index] = 0
        bit = self.end % 32
        bitmask[batch_index, self.end // 32] = 1 << bit if bit < 31 else -(1 << 31)  # the words are signed

    def is_terminated(self) -> bool:
        """Never: a constraint that has ended holds on, and vLLM stops by the tokens."""
        return False

    def reset(self) -> None:
        """Go back to the start."""
        self.matcher.reset()
        self.behind = 0


@dataclass
class DovetailBackend(StructuredOutputBackend):
    """Makes the constraints of an engine."""

    def __post_init__(self) -> None:
        self._compiler = Compiler(self.vllm_config, self.tokenizer, self.vocab_size)

    def compile_grammar(
        self,
        request_type: StructuredOutputOptions,
        grammar_spec: str,
        stop_token_ids: Collection[int] | None = None,
    ) -> DovetailGrammar:
        """The constraint of a request that ends at these tokens."""
        compiled = self._compiler.compile(request_type, grammar_spec)
        end = self.tokenizer.eos_token_id
        stops = sorted(stop_token_ids) if stop_token_ids else [end]
        return DovetailGrammar(compiled.matcher(stops, only=True), end)

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """Rows that allow everything."""
        return torch.full((max_num_seqs, self._compiler.vocabulary.mask_words), -1, dtype=torch.int32)

    def destroy(self) -> None:
        """Let go of the vocabulary and its masks."""
        del self._compiler
