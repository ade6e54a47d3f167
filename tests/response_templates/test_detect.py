"""Which dialect a model speaks, and why."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest

import dovetail as dt

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}{% for c in m.tool_calls or [] %}<tool_call>\n"
    '{{ {"name": c.function.name, "arguments": c.function.arguments} | tojson }}\n</tool_call>{% endfor %}<|im_end|>\n'
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
RESPONSE = {"start_anchor": "<|im_start|>assistant\n", "fields": {"content": {"content": "text"}}}
TOKENS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<|im_start|>", "<|im_end|>")


def test_a_chat_template_is_analyzed() -> None:
    found = dt.detect(CHATML)
    assert "chat_template" == found.how
    assert "<tool_call>\n" == found.dialect.calls[0].call_begin
    assert "analyzed" in found.why
    assert found.analysis is not None
    assert found.dialect == dt.analyze(CHATML)


def test_a_response_template_comes_first(tmp_path: Path) -> None:
    tokenizer = SimpleNamespace(chat_template=CHATML, response_template=RESPONSE, bos_token=None, eos_token=None)
    config = {"chat_template": CHATML, "response_template": RESPONSE, "eos_token": "<|im_end|>"}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    for source in (tokenizer, tmp_path, str(tmp_path)):
        found = dt.detect(source)
        assert "response_template" == found.how
        assert found.response_template is not None
        assert "<tool_call>\n" == found.dialect.calls[0].call_begin
        assert "response template" in found.why


def test_a_response_template_that_is_malformed_is_not_passed_over() -> None:
    tokenizer = SimpleNamespace(chat_template=CHATML, response_template={"fields": {}}, bos_token=None, eos_token=None)
    with pytest.raises(dt.ResponseTemplateError):
        dt.detect(tokenizer)


def test_without_templates_the_vocabulary_tells() -> None:
    ids = {token: index + 1 for index, token in enumerate(TOKENS)}
    vocabulary = dt.Vocabulary([b"a", *(token.encode() for token in TOKENS)], ids, stop_token_ids=[0])
    found = dt.detect(vocabulary)
    assert ("vocabulary", "qwen_3") == (found.how, found.dialect.name)
    assert "qwen_3_coder" in found.why  # which has the same markers


def test_a_model_that_nothing_tells_of_is_refused() -> None:
    vocabulary = dt.Vocabulary([b"a", b"b"], stop_token_ids=[0])
    with pytest.raises(dt.DialectError, match="nothing tells how this model talks"):
        dt.detect(vocabulary)


def test_markers_that_are_special_tokens_of_the_tokenizer_are_known_as_such(tmp_path: Path) -> None:
    added = {7: SimpleNamespace(content="<tool_call>", special=True), 8: SimpleNamespace(content="<x>", special=True)}
    tokenizer = SimpleNamespace(chat_template=CHATML, added_tokens_decoder=added, bos_token=None, eos_token=None)
    assert ("<tool_call>",) == dt.analyze(tokenizer).special_tokens
    rows = {number: {"content": token.content, "special": True} for number, token in added.items()}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": CHATML, "added_tokens_decoder": rows}))
    assert ("<tool_call>",) == dt.analyze(tmp_path).special_tokens == dt.analyze(str(tmp_path)).special_tokens
    assert () == dt.analyze(CHATML).special_tokens
