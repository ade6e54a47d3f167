"""Masks of Dovetail behind SGLang's interface of grammar backends."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    GrammarRow,
    InvalidGrammarObject,
)
from sglang.srt.parser.reasoning_parser import ReasoningParser
from sglang.srt.runtime_context import get_serving
from xgrammar import apply_token_bitmask_inplace

from dovetail.engine import CompiledGrammar, Matcher, Vocabulary, compile, fill_masks
from dovetail.engine.compiled import Source
from dovetail.errors import DovetailError, InputError
from dovetail.integrations import constraints

ANY_JSON = "$$ANY$$"  # SGLang's spelling of `json_object`


class _Masks:
    """What a grammar and its backend both do with masks."""

    @staticmethod
    def allocate_vocab_mask(vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Rows that allow everything, where they can be copied to a GPU beside its work."""
        pinned = torch.cuda.is_available()
        return torch.full((batch_size, (vocab_size + 31) // 32), -1, dtype=torch.int32, pin_memory=pinned)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """The mask on the device of the logits."""
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Logits of refused tokens become minus infinity."""
        apply_token_bitmask_inplace(logits, vocab_mask)


class DovetailGrammar(_Masks, BaseGrammarObject):
    """The constraint of one request."""

    def __init__(self, compiled: CompiledGrammar, stops: Sequence[int]) -> None:
        super().__init__()
        self._compiled, self._stops = compiled, stops
        self.matcher: Matcher = compiled.matcher(stops, only=True)

    def accept_token(self, token: int) -> None:
        """Take a token; SGLang aborts the request where it may not come."""
        if not self.matcher.is_finished and not self.matcher.accept(token):
            raise ValueError(f"the constraint does not allow token {token} here")

    def rollback(self, k: int) -> None:
        """Take back tokens."""
        self.matcher.rollback(k)

    def is_terminated(self) -> bool:
        """Whether a stop token has ended the answer."""
        return self.matcher.is_finished

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Write the tokens that may come next into a row."""
        self.matcher.fill_mask(vocab_mask, idx)

    @staticmethod
    def fill_vocab_mask_batched(entries: list[GrammarRow], vocab_mask: torch.Tensor) -> None:
        """Write the rows of several requests in one call."""
        fill_masks([entry.grammar.matcher for entry in entries], vocab_mask, [entry.row for entry in entries])

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Allow everything again."""
        vocab_mask.fill_(-1)

    def copy(self) -> DovetailGrammar:
        """A matcher of this constraint for another request, at its start."""
        return DovetailGrammar(self._compiled, self._stops)

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The text that must come next."""
        text = self.matcher.forced().decode("utf-8", "ignore")
        return ([], text) if text else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """The text of `try_jump_forward`; the matcher needs no state beside."""
        return helper[1], -1

    def jump_and_retokenize(self, old_output_ids: list[int], new_output_ids: list[int], next_state: int) -> None:
        """Go back to where the tokens part, and take the new ones."""
        pairs = zip(old_output_ids, new_output_ids, strict=False)
        same = next((at for at, (old, new) in enumerate(pairs) if old != new), None)
        same = min(len(old_output_ids), len(new_output_ids)) if same is None else same
        self.matcher.rollback(len(old_output_ids) - same)
        for token in new_output_ids[same:]:
            self.accept_token(token)


class DovetailBackend(_Masks, BaseGrammarBackend):
    """Makes the constraints of a server."""

    def __init__(self, tokenizer: Any, vocab_size: int, stops: Collection[int], *, compact: bool = False) -> None:
        super().__init__()
        self._vocabulary = Vocabulary.from_huggingface(tokenizer, (), size=vocab_size)
        self._stops = sorted(stops)
        self._compact = compact

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """JSON that a schema describes."""
        schema = constraints.ANY_OBJECT if key_string == ANY_JSON else key_string
        return self._made(lambda: constraints.json_format(schema, compact=self._compact))

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """What a regular expression matches."""
        return self._made(lambda: constraints.regex_format(key_string))

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """What a grammar matches."""
        return self._made(lambda: constraints.grammar_format(key_string))

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """What a structural tag describes."""
        return self._made(lambda: constraints.tag_format(key_string))

    def _made(self, source: Any) -> BaseGrammarObject:
        try:
            made: Source = source()
            return DovetailGrammar(compile(made, self._vocabulary), self._stops)
        except InputError as error:
            return InvalidGrammarObject(str(error))  # SGLang answers it as an error of the request


def make_backend(
    server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Collection[int] | None
) -> BaseGrammarBackend:
    """The backend of a server; where it parses reasoning, constraints begin behind that."""
    serving = get_serving()
    backend = DovetailBackend(
        tokenizer,
        vocab_size,
        eos_token_ids or (tokenizer.eos_token_id,),
        compact=bool(serving.constrained_json_disable_any_whitespace),
    )
    return behind_reasoning(backend, tokenizer, serving.reasoning_parser) if serving.reasoning_parser else backend


def behind_reasoning(backend: BaseGrammarBackend, tokenizer: Any, reasoning_parser: str) -> BaseGrammarBackend:
    """The backend in SGLang's own wrapper, which a registered backend does not get by itself."""
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend

    parser = ReasoningParser(model_type=reasoning_parser, stream_reasoning=False, tokenizer=tokenizer)
    if not parser.detector.think_end_token:
        return backend
    try:
        wrapped: BaseGrammarBackend = ReasonerGrammarBackend(backend, parser, tokenizer)
    except (AttributeError, TypeError) as error:
        raise DovetailError(f"this SGLang wraps backends in another way than 0.5.23: {error}") from error
    return wrapped
