"""Grammars behind vLLM's interface of backends, and what is said of a vLLM that has another interface."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer
from vllm.exceptions import VLLMValidationError
from vllm.sampling_params import StructuredOutputsParams
from vllm.v1.structured_output import backend_types
from vllm.v1.structured_output.backend_types import StructuredOutputOptions as Kind

from dovetail.integrations.vllm import frontend, scheduler
from dovetail.integrations.vllm.backend import Compiler, DovetailBackend


@pytest.fixture(scope="module")
def backend() -> Any:
    tokenizer = AutoTokenizer.from_pretrained(os.environ["DOVETAIL_ENGINE_MODEL"])
    config = SimpleNamespace(structured_outputs_config=SimpleNamespace(disable_any_whitespace=True))
    return DovetailBackend(config, tokenizer, len(tokenizer))


def allowed(backend: Any, grammar: Any) -> list[str]:
    mask = backend.allocate_token_bitmask(2)
    grammar.fill_bitmask(mask, 1)
    assert bool((mask[0] == -1).all())
    shifts = torch.arange(32, dtype=torch.int32)
    bits = ((mask[1].unsqueeze(-1) >> shifts) & 1).flatten()
    return sorted(backend.tokenizer.decode([token]) for token in bits.nonzero().flatten().tolist())


def test_tokens_are_taken_validated_and_taken_back(backend: Any) -> None:
    a, b, c = (backend.tokenizer.encode(letter)[0] for letter in "abc")
    end = backend.tokenizer.eos_token_id
    grammar = backend.compile_grammar(Kind.REGEX, "a(b|c)", {end})
    assert grammar.validate_tokens([a, b, b]) == [a, b]
    assert grammar.validate_tokens([-1]) == []
    assert not grammar.accept_tokens("", [a, a])
    grammar.reset()
    # Those behind the end are counted, because vLLM takes back as many as it has given.
    assert grammar.accept_tokens("", [a, b, end, c, c])
    assert grammar.validate_tokens([c]) == []
    assert not grammar.is_terminated()
    assert allowed(backend, grammar) == [backend.tokenizer.eos_token]
    grammar.rollback(4)
    assert grammar.accept_tokens("", [c])
    assert allowed(backend, grammar) == [backend.tokenizer.eos_token]


def test_every_kind_of_constraint_is_compiled(backend: Any) -> None:
    tag = '{"structures": [{"begin": "<x>", "schema": {"type": "null"}, "end": "</x>"}], "triggers": ["<x"]}'
    for kind, spec, text in (
        (Kind.JSON, '{"enum": [1]}', "1"),
        (Kind.JSON_OBJECT, "", '{"a":1}'),
        (Kind.REGEX, "[0-9]", "7"),
        (Kind.CHOICE, '["yes", "no"]', "no"),
        (Kind.GRAMMAR, 'root ::= "a"', "a"),
        (Kind.GRAMMAR, 'start: "a" B\nB: /[0-9]/', "a1"),
        (Kind.STRUCTURAL_TAG, '{"format": {"type": "const_string", "value": "ab"}}', "ab"),
        (Kind.STRUCTURAL_TAG, tag, "so <x>null</x>"),
    ):
        grammar = backend.compile_grammar(kind, spec, {backend.tokenizer.eos_token_id})
        tokens = [*backend.tokenizer.encode(text), backend.tokenizer.eos_token_id]
        assert (spec, grammar.validate_tokens(tokens)) == (spec, tokens)


def test_what_cannot_be_held_is_an_error_of_the_request(backend: Any) -> None:
    compiler = Compiler(backend.vllm_config, backend.tokenizer, backend.vocab_size)
    for asked, words in (
        ({"json": {"type": "strin"}}, "strin"),
        ({"json": "{"}, "not JSON"),
        ({"regex": "(a"}, "not closed"),
        ({"choice": []}, "no list of strings"),
        ({"grammar": "nothing here"}, "neither EBNF"),
        ({"structural_tag": "[]"}, "is an object"),
    ):
        with pytest.raises(VLLMValidationError, match=words):
            frontend.check(StructuredOutputsParams(**asked), compiler)


def test_another_interface_is_told_before_a_request_finds_out(monkeypatch: pytest.MonkeyPatch) -> None:
    manager = SimpleNamespace(backend=None, grammar_init=None, vllm_config=None)
    scheduler.require(manager)
    with pytest.raises(scheduler.EngineError, match="no `grammar_init`"):
        scheduler.require(SimpleNamespace(backend=None, vllm_config=None))
    monkeypatch.setattr(backend_types.StructuredOutputGrammar, "__abstractmethods__", frozenset({"accept_token"}))
    with pytest.raises(scheduler.EngineError, match=r"accept_token.*more or less(.|\n)*start vLLM without"):
        scheduler.require(manager)
