"""SGLang's own registry, caches, masks and parsers, driven without its kernels over the classes of Dovetail."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from sglang.srt.constrained import base_grammar_backend as home
from sglang.srt.entrypoints.openai.protocol import Tool
from sglang.srt.function_call.function_call_parser import FunctionCallParser
from sglang.srt.parser.reasoning_parser import ReasoningParser
from sglang.srt.plugins import load_plugins
from transformers import AutoTokenizer

from dovetail.integrations.sglang import backend as ours

SCHEMA = json.dumps({"type": "object", "properties": {"city": {"enum": ["Rome"]}}, "required": ["city"]})
TOOL = Tool(type="function", function={"name": "get_weather", "parameters": json.loads(SCHEMA)})
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Rome"}}\n</tool_call>'


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    load_plugins()  # by the entry point of the installed package
    return AutoTokenizer.from_pretrained(os.environ["DOVETAIL_ENGINE_MODEL"])


@pytest.fixture(scope="module")
def backend(tokenizer: Any) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        serving = SimpleNamespace(constrained_json_disable_any_whitespace=True, reasoning_parser=None)
        patch.setattr(ours, "get_serving", lambda: serving)
        patch.setattr(home, "get_serving", lambda: serving)
        patch.setattr(home, "get_exec", lambda: SimpleNamespace(kernel=SimpleNamespace(grammar_backend="dovetail")))
        return home.create_grammar_backend(None, tokenizer, len(tokenizer), {tokenizer.eos_token_id})


def made(backend: Any, kind: str, spec: str) -> Any:
    """A grammar as the scheduler gets it: compiled in a thread, then out of the cache."""
    value, known = backend.get_cached_or_future_value((kind, spec), False)
    if not known:
        backend.set_cache((kind, spec), value.result())
    grammar, known = backend.get_cached_or_future_value((kind, spec), False)
    assert known
    return grammar


def test_grammars_of_all_kinds_take_what_they_describe(backend: Any, tokenizer: Any) -> None:
    tag = {"type": "structural_tag", "format": {"type": "const_string", "value": "ab"}}
    old = {"structures": [{"begin": "<x>", "schema": {"type": "null"}, "end": "</x>"}], "triggers": ["<x"]}
    for kind, spec, text in (
        ("json", SCHEMA, '{"city":"Rome"}'),
        ("json", "$$ANY$$", '{"a":[1]}'),
        ("regex", "[0-9]{3}", "123"),
        ("ebnf", 'root ::= "a" [0-9]', "a1"),
        ("structural_tag", json.dumps(tag), "ab"),
        ("structural_tag", json.dumps(old), "so <x>null</x>"),
    ):
        grammar = made(backend, kind, spec)
        for token in tokenizer.encode(text):
            grammar.accept_token(token)
        assert not grammar.is_terminated()
        grammar.accept_token(tokenizer.eos_token_id)
        assert (kind, grammar.is_terminated()) == (kind, True)


def test_a_constraint_that_cannot_be_held_is_an_error_of_the_request(backend: Any) -> None:
    value, _ = backend.get_cached_or_future_value(("json", '{"type": "strin"}'), False)
    invalid = value.result()
    assert isinstance(invalid, home.InvalidGrammarObject)
    assert "strin" in invalid.error_message
    assert "fix" in invalid.error_message


def test_masks_of_scattered_rows_are_filled_and_applied(backend: Any, tokenizer: Any) -> None:
    rows = {0: made(backend, "regex", "a"), 3: made(backend, "regex", "b")}
    mask = rows[0].allocate_vocab_mask(len(tokenizer), 4, "cpu")
    entries = [home.GrammarRow(row, grammar) for row, grammar in rows.items()]
    type(rows[0]).fill_vocab_mask_batched(entries, mask)
    logits = torch.zeros((4, len(tokenizer)))
    home.GrammarMask(rows[0], rows[0].move_vocab_mask(mask, "cpu")).apply(logits)
    assert [int(logits[row].isfinite().sum()) for row in range(4)] == [1, len(tokenizer), len(tokenizer), 1]
    assert int(logits[3].argmax()) == tokenizer.encode("b")[0]
    rows[0].reset_vocab_mask(mask)
    assert bool((mask == -1).all())


def test_forced_text_is_jumped_over(backend: Any, tokenizer: Any) -> None:
    grammar = made(backend, "json", SCHEMA)
    first = tokenizer.encode('{"')[:1]
    grammar.accept_token(first[0])
    helper = grammar.try_jump_forward(tokenizer)
    text, state = grammar.jump_forward_str_state(helper)
    assert tokenizer.decode(first) + text == '{"city":"Rome"}'
    grammar.jump_and_retokenize(first, tokenizer.encode('{"city":"Rome"}'), state)
    grammar.rollback(1)
    grammar.accept_token(tokenizer.encode('{"city":"Rome"}')[-1])
    with pytest.raises(ValueError, match="does not allow"):
        grammar.accept_token(tokenizer.encode("x")[0])


def test_a_constraint_begins_behind_reasoning(tokenizer: Any) -> None:
    plain = ours.DovetailBackend(tokenizer, len(tokenizer), [tokenizer.eos_token_id])
    wrapped = ours.behind_reasoning(plain, tokenizer, "dovetail-qwen_3")
    grammar = wrapped.get_cached_or_future_value(("regex", "ab"), True)[0].result()
    for token in tokenizer.encode("<think>anything</think>ab"):
        grammar.accept_token(token)
    with pytest.raises(ValueError, match="does not allow"):
        grammar.accept_token(tokenizer.encode("c")[0])


def test_calls_are_read_whole_and_streamed(tokenizer: Any) -> None:
    text = f"Let me see.\n{CALL}\n{CALL}"
    for name in ("dovetail", "dovetail-hermes"):
        content, calls = FunctionCallParser([TOOL], name, tokenizer=tokenizer).parse_non_stream(text)
        assert (content, [(call.tool_index, call.name) for call in calls]) == (
            "Let me see.",
            [(0, "get_weather"), (1, "get_weather")],
        )
        for size in (1, 7, len(text)):
            parser = FunctionCallParser([TOOL], name, tokenizer=tokenizer)
            told, pieces = "", []
            for at in range(0, len(text), size):
                more, some = parser.parse_stream_chunk(text[at : at + size])
                told, pieces = told + more, pieces + some
            more, some = parser.parse_stream_end()
            told, pieces = told + more, pieces + some
            assert told == content
            for index, call in enumerate(calls):
                mine = [piece for piece in pieces if piece.tool_index == index]
                assert [piece.name for piece in mine if piece.name] == ["get_weather"]
                assert "".join(piece.parameters for piece in mine) == call.parameters


def test_reasoning_is_read_whole_and_streamed() -> None:
    text = "<think>\nhm\n</think>\n\nSo: " + CALL
    whole = ReasoningParser("dovetail-qwen_3").parse_non_stream(text)
    assert whole == ("hm", "So: " + CALL)
    for size in (1, 7, len(text)):
        parser = ReasoningParser("dovetail-qwen_3")
        pieces = [parser.parse_stream_chunk(text[at : at + size]) for at in range(0, len(text), size)]
        pieces.append(parser.parse_stream_end())
        assert tuple("".join(part or "" for part in column) for column in zip(*pieces, strict=True)) == whole


def test_requests_that_force_calls_are_constrained(backend: Any, tokenizer: Any) -> None:
    parser = FunctionCallParser([TOOL], "dovetail", tokenizer=tokenizer)
    kind, tag = parser.get_structure_constraint("required", parallel_tool_calls=False)
    spec = tag if isinstance(tag, str) else json.dumps(tag.model_dump())
    grammar = made(backend, kind, spec)
    for token in tokenizer.encode(CALL):
        grammar.accept_token(token)
    with pytest.raises(ValueError, match="does not allow"):
        made(backend, kind, spec).accept_token(tokenizer.encode("No")[0])
