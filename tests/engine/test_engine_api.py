"""What engines ask of a matcher and a vocabulary, each beside a peer that has it."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import mistral_common
import numpy as np
import pytest
import tiktoken
import torch
import xgrammar as xgr
from hypothesis import given, settings
from hypothesis import strategies as st
from mistral_common.tokens.tokenizers.tekken import Tekkenizer

import dovetail as dt
from dovetail.grammar import ir
from tests.machines import bits, mask

TOKENS = [bytes([byte]) for byte in range(256)] + [b"", b"", b"12", b"th", b"the", b" the"]
EOS, END = 256, 257
DIGITS = "[0-9]{8}"


def vocabulary(**options: object) -> dt.Vocabulary:
    return dt.Vocabulary(TOKENS, {"<eos>": EOS, "<end>": END}, (EOS,), **options)  # type: ignore[arg-type]


def peer(pattern: str, stops: list[int]) -> xgr.GrammarMatcher:
    info = xgr.TokenizerInfo(TOKENS, xgr.VocabType.RAW, vocab_size=len(TOKENS), stop_token_ids=[EOS, END])
    return xgr.GrammarMatcher(xgr.GrammarCompiler(info).compile_regex(pattern), override_stop_tokens=stops)


def peer_mask(matcher: xgr.GrammarMatcher) -> set[int]:
    rows = xgr.allocate_token_bitmask(1, len(TOKENS))
    matcher.fill_next_token_bitmask(rows)
    return {token for token in bits(rows.numpy()[0]) if token < len(TOKENS)}


@pytest.mark.parametrize("stops", [[EOS], [END], [ord("3")], [ord("3"), END], [258]])
@pytest.mark.parametrize("pattern", [DIGITS, "[0-9]*", "a[0-9]{2}b?"])
def test_stop_tokens_of_a_request_alone_are_those_of_the_peer(pattern: str, stops: list[int]) -> None:
    matcher = dt.compile({"type": "regex", "pattern": pattern}, vocabulary()).matcher(stops, only=True)
    other, dice = peer(pattern, stops), random.Random(3)
    for _ in range(9):
        allowed = mask(matcher)
        assert allowed == peer_mask(other)
        token = dice.choice(sorted(allowed - set(stops)) or sorted(allowed))
        assert matcher.accept(token)
        assert other.accept_token(token)
        if matcher.is_finished:
            break
    assert matcher.is_finished == other.is_terminated()


def test_a_stop_token_is_text_where_nothing_else_can_spell_what_must_come() -> None:
    matcher = dt.compile({"type": "regex", "pattern": "a3b"}, vocabulary()).matcher([ord("3")], only=True)
    assert matcher.accept(ord("a"))
    assert {ord("3")} == mask(matcher)
    assert matcher.accept(ord("3"))
    assert not matcher.is_finished


def test_a_stop_token_that_the_grammar_names_comes_before_the_end() -> None:
    rule = ir.Rule("root", ir.Seq((ir.lit("a"), ir.Tokens((END,)), ir.lit("b"))))
    matcher = dt.compile(rule, vocabulary()).matcher([END], only=True)
    assert 3 == matcher.accept_tokens([ord("a"), END, ord("b")])
    assert {END} == mask(matcher)


@pytest.mark.parametrize(("pattern", "text"), [("ab", "ab"), ("", ""), ("a{2,3}", "aaa"), ('"x*"', '"xx"')])
def test_without_stop_tokens_an_output_ends_by_itself(pattern: str, text: str) -> None:
    matcher = dt.compile({"type": "regex", "pattern": pattern}, vocabulary()).matcher((), only=True)
    for letter in text.encode():
        assert not matcher.is_finished
        assert matcher.accept(letter)
    assert matcher.is_finished
    assert matcher.is_complete
    rows = np.zeros((1, matcher.mask_words), dtype=np.int32)
    dt.fill_masks([matcher], rows)
    assert (rows == -1).all()
    matcher.rollback(len(text) and 1)
    assert matcher.is_finished == (not text)


def test_without_stop_tokens_what_can_go_on_does_not_end() -> None:
    matcher = dt.compile({"type": "regex", "pattern": "a+"}, vocabulary()).matcher((), only=True)
    assert 2 == matcher.accept_tokens([97, 97])
    assert not matcher.is_finished
    assert {ord("a")} == mask(matcher)


@settings(max_examples=50)
@given(st.lists(st.sampled_from([*b"0123a", EOS, 258]), max_size=12))
def test_tokens_in_a_row_are_taken_as_the_peer_takes_them(tokens: list[int]) -> None:
    matcher = dt.compile({"type": "regex", "pattern": "[0-9]{2,5}"}, vocabulary()).matcher()
    other = peer("[0-9]{2,5}", [EOS])
    taken = 0
    while taken < len(tokens) and not other.is_terminated() and other.accept_token(tokens[taken]):
        taken += 1
    assert taken == matcher.validate(tokens)
    assert 0 == matcher.steps
    assert taken == matcher.accept_tokens(tokens)
    assert (taken, other.is_terminated()) == (matcher.steps, matcher.is_finished)


@pytest.mark.parametrize("make", [np.zeros, torch.zeros], ids=["numpy", "torch"])
def test_rows_of_a_batch_may_be_scattered(make: Callable[..., object]) -> None:
    known = vocabulary()
    matchers = [dt.compile({"type": "regex", "pattern": pattern}, known).matcher() for pattern in ("a", "[b-d]", "1?")]
    assert matchers[2].accept(EOS)
    dtype = torch.int32 if make is torch.zeros else np.int32
    rows = make((6, known.mask_words), dtype=dtype)
    dt.fill_masks(matchers, rows, rows=[4, 1, 5])
    array = np.asarray(rows)
    assert [bits(array[4]), bits(array[1])] == [{97}, {98, 99, 100}]
    assert (array[5] == -1).all()
    assert not array[[0, 2, 3]].any()


@pytest.mark.parametrize("rows", [[0], [0, 1, 2], [0, 6], [-1, 0]])
def test_rows_that_do_not_fit_are_refused(rows: list[int]) -> None:
    known = vocabulary()
    matchers = [dt.compile({"type": "regex", "pattern": "a"}, known).matcher() for _ in range(2)]
    with pytest.raises((ValueError, IndexError)):
        dt.fill_masks(matchers, np.zeros((6, known.mask_words), dtype=np.int32), rows=rows)


WRONG_TENSORS = {
    "64 bits": lambda words: torch.zeros((1, words), dtype=torch.int64),
    "too short": lambda words: torch.zeros((1, words - 1), dtype=torch.int32),
    "not contiguous": lambda words: torch.zeros((words, 2), dtype=torch.int32).T,
    "three dimensions": lambda words: torch.zeros((1, 1, words), dtype=torch.int32),
    "no memory": lambda words: torch.zeros((1, words), dtype=torch.int32, device="meta"),
}


@pytest.mark.parametrize("make", WRONG_TENSORS.values(), ids=WRONG_TENSORS.keys())
def test_a_tensor_that_cannot_hold_a_mask_is_refused(make: Callable[[int], torch.Tensor]) -> None:
    matcher = dt.compile({"type": "regex", "pattern": "a"}, vocabulary()).matcher()
    with pytest.raises((ValueError, TypeError, RuntimeError)):
        matcher.fill_mask(make(matcher.mask_words))


def test_a_slice_of_a_tensor_is_filled_where_it_is() -> None:
    known = vocabulary()
    rows = torch.zeros((4, known.mask_words), dtype=torch.int32)
    dt.compile({"type": "regex", "pattern": "a"}, known).matcher().fill_mask(rows[2:], 1)
    assert [set(), set(), set(), {97}] == [bits(row) for row in rows.numpy()]


def test_many_threads_fill_warm_masks_as_one_does() -> None:
    known = vocabulary()
    grammar = dt.compile({"type": "json_schema", "json_schema": {"enum": ["a", "bc", "bd"]}}, known)
    matchers = [grammar.matcher() for _ in range(64)]
    for number, matcher in enumerate(matchers):
        matcher.accept_bytes('"bc"'[: number % 4])

    def fill(_: int) -> list[set[int]]:
        rows = np.zeros((64, known.mask_words), dtype=np.int32)
        dt.fill_masks(matchers, rows)
        return [bits(row) for row in rows]

    expected = [mask(matcher) for matcher in matchers]
    with ThreadPoolExecutor(16) as pool:
        assert all(found == expected for found in pool.map(fill, range(64)))


# Forced tokens.


def encoding() -> tiktoken.Encoding:
    ranks = {bytes([byte]): byte for byte in range(256)}
    for word in (b"na", b"me", b"name", b'{"', b'":', b' "', b'"c', b"ci", b"ty", b"city", b'":"', b"am"):
        ranks[word] = len(ranks)
    return tiktoken.Encoding("small", pat_str=r"(?s).+", mergeable_ranks=ranks, special_tokens={"<|endoftext|>": 400})


KEYS = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": False,
}


def test_forced_tokens_are_cut_as_the_tokenizer_would_whatever_follows() -> None:
    tokenizer = encoding()
    known = dt.Vocabulary.from_tiktoken(tokenizer)
    for words in (["name", "namely"], ["city", "cities"], ["amen", "amber"], ['"c"ci', '"c"ty']):
        matcher = dt.compile({"type": "or", "elements": [{"type": "const_string", "value": w} for w in words]}, known)
        forced = matcher.matcher().forced_tokens()
        assert all(tokenizer.encode_ordinary(word)[: len(forced)] == forced for word in words)
    schema = dt.compile({"type": "json_schema", "json_schema": KEYS, "max_whitespace_cnt": 0}, known).matcher()
    forced = schema.forced_tokens()
    whole = tokenizer.encode_ordinary('{"name":"x"}')
    assert forced
    assert whole[: len(forced)] == forced
    assert len(forced) == schema.accept_tokens(forced)


def test_a_token_that_alone_may_come_is_forced_without_a_tokenizer() -> None:
    rule = ir.Rule("root", ir.Seq((ir.Tokens((END,)), ir.lit("a"))))
    assert [END, ord("a")] == dt.compile(rule, vocabulary()).matcher().forced_tokens()


# Vocabularies.


def test_a_vocabulary_of_mistral_has_the_bytes_of_its_tokens() -> None:
    path = next((Path(mistral_common.__file__).parent / "data").glob("tekken_*.json"))
    tokenizer = Tekkenizer.from_file(path)
    known = dt.Vocabulary.from_mistral(tokenizer, size=20_000)
    text = 'Ein Satz, {"name": "Ödön"}\n\tand 12345 more.'
    tokens = tokenizer.encode(text, bos=False, eos=False)
    assert text.encode() == b"".join(
        known.token_bytes(t) if t < known.size else tokenizer.id_to_byte_piece(t) for t in tokens
    )
    assert (tokenizer.eos_id,) == known.stop_token_ids
    assert tokenizer.get_special_token("[INST]") == known.special_tokens["[INST]"]
    with pytest.raises(dt.VocabularyError, match=r"no tokenizer of mistral-common"):
        dt.Vocabulary.from_mistral(object())


def test_a_vocabulary_may_be_smaller_than_its_tokenizer() -> None:
    known = dt.Vocabulary.from_tiktoken(encoding(), size=260)
    assert 260 == known.size
    assert () == known.stop_token_ids
    assert {97, 98} == mask(dt.compile({"type": "regex", "pattern": "a|b"}, known).matcher())


def test_a_compiled_grammar_goes_to_another_process_with_its_vocabulary() -> None:
    known = vocabulary()
    grammars = [dt.compile({"type": "regex", "pattern": pattern}, known) for pattern in ("a|b", "[0-9]+")]
    again = [pickle.loads(pickle.dumps(grammar)) for grammar in grammars]
    assert [mask(grammar.matcher()) for grammar in grammars] == [mask(grammar.matcher()) for grammar in again]
    assert again[0].vocabulary is again[1].vocabulary
    assert known.digest == again[0].vocabulary.digest
    assert (known.stop_token_ids, known.special_tokens) == (
        again[0].vocabulary.stop_token_ids,
        again[0].vocabulary.special_tokens,
    )
