"""Shortcuts of the mask walk change nothing: without any, without each one and with all, masks are the same bits."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dovetail as dt
from dovetail import _core
from dovetail.grammar import ir
from dovetail.grammar.lower import lower
from tests.laws.test_real_vocabulary import CASES, tekken
from tests.machines import bits
from tests.random_formats import Json, formats
from tests.strategies import SeededDice, Tokens, rules, token_tables

ALL = (1 << len(_core.shortcuts())) - 1
SETS = [0, *(ALL & ~(1 << bit) for bit in range(len(_core.shortcuts()))), ALL]
SEEDS = st.integers(0, 2**32)
CACHE_BYTES = 64 << 20

COUNTED = {
    "properties": {
        "name": {"type": "string", "maxLength": 9},
        "title": {"type": "string", "minLength": 3, "maxLength": 300},
        "slug": {"type": "string", "pattern": "^[a-z0-9-]{3,24}$"},
        "short": {"type": "string", "pattern": r"^\w+(\.\w+)*$", "minLength": 4, "maxLength": 16},
        "host": {"type": "string", "format": "hostname"},
        "kind": {"enum": ["é", "end", "energy", "日本", 'a"b']},
        "n": {"type": "integer", "minimum": 3, "maximum": 4096},
        "tags": {"type": "array", "items": {"type": "string", "maxLength": 5}, "minItems": 1, "maxItems": 3},
    },
    "additionalProperties": {"type": "string", "pattern": ".b$"},
}
DOCUMENT = (
    '{"name": "Łódź \\u0041", "title": "a title of 日本 that goes on", "slug": "a-slug-of-some-length", '
    '"short": "ab.cdefg", "host": "www.example-a.org", "kind": "energy", "n": 407, "tags": ["ab", "ééé"], "né": "a€b"}'
)
SCHEMAS: list[tuple[str, Any, str]] = [
    ("counted", {"type": "json_schema", "json_schema": COUNTED, "strict": False}, DOCUMENT),
    (
        "loose text",
        {"type": "regex", "pattern": "[a-z ]+(?: [A-Za-z]{2,7}){0,3}[^é]{0,12}x"},
        "some words With Caps 日本x",
    ),
]


def stores(tokens: Tokens) -> list[_core.Store]:
    """A store of the same tokens for each set of shortcuts."""
    special = list(tokens.special_tokens.items())
    return [_core.Store(tokens.tokens, special, tokens.stop_token_ids, CACHE_BYTES, shortcuts) for shortcuts in SETS]


@cache
def real_stores() -> list[_core.Store]:
    tokenizer, _, tokens = tekken()
    special = {f"<special_{token}>": token for token in range(tokenizer.num_special_tokens)}
    return stores(Tokens(tuple(tokens), special, (2,)))


def same_masks(matchers: list[_core.Matcher]) -> np.ndarray:
    rows = np.zeros((len(matchers), matchers[0].mask_words), dtype=np.int32)
    for row, matcher in enumerate(matchers):
        matcher.fill_mask(rows, row)
    for shortcuts, row in zip(SETS, rows, strict=True):
        assert bits(row ^ rows[0]) == set(), f"the shortcuts {shortcuts:b} differ from none"
    return rows[0]


def follow(rule: ir.Rule, table: Tokens, seed: int) -> None:
    """Walks at random, twice, so that the second meets what the first one left."""
    try:
        grammars = [store.compile(rule) for store in stores(table)]
    except dt.DovetailError:
        assume(False)
    for turn in range(2):
        matchers = [grammar.matcher() for grammar in grammars]
        dice = SeededDice(f"{seed}.{turn}")
        for _ in range(6):
            try:
                allowed = bits(same_masks(matchers))
            except (dt.GrammarError, dt.LimitError):
                assume(False)
            if not allowed:
                break
            token = dice.pick(sorted(allowed))
            try:
                assert all(matcher.accept(token) for matcher in matchers)
            except dt.LimitError:  # where the token leads to, the grammar may be too ambiguous
                assume(False)


@settings(max_examples=150)
@given(rule=rules(token_level=True), table=token_tables(), seed=SEEDS)
def test_masks_of_rules_are_the_same(rule: ir.Rule, table: Tokens, seed: int) -> None:
    follow(rule, table, seed)


@settings(max_examples=100)
@given(fmt=formats(tokens=True, captures=True), table=token_tables(), seed=SEEDS)
def test_masks_of_formats_are_the_same(fmt: Json, table: Tokens, seed: int) -> None:
    try:
        rule = lower(dt.load_format(fmt))
    except dt.DovetailError:
        assume(False)
    follow(rule, table, seed)


@pytest.mark.parametrize(
    ("fmt", "text"), [case[1:] for case in (*CASES, *SCHEMAS)], ids=[case[0] for case in (*CASES, *SCHEMAS)]
)
def test_masks_of_a_real_vocabulary_are_the_same(fmt: Any, text: str) -> None:
    rule = lower(dt.load_format(fmt))
    matchers = [store.compile(rule).matcher() for store in real_stores()]
    for token in tekken()[0].encode(text, bos=False, eos=False):
        same_masks(matchers)
        assert all(matcher.accept(token) for matcher in matchers)
    same_masks(matchers)


CLASSES = ["a-z", "A-Za-z", r"\w", r"\S", "^é€", "^/", "a-zA-Z0-9_-", "^あ-う", " -~", "."]
COUNTS = ["", "+", "*", "{3}", "{1,7}", "{2,}", "{0,40}"]


@given(st.lists(st.tuples(st.sampled_from(CLASSES), st.sampled_from(COUNTS)), min_size=1, max_size=3), SEEDS)
@settings(max_examples=12)
def test_masks_of_random_patterns_are_the_same(parts: list[tuple[str, str]], seed: int) -> None:
    pattern = "".join(("." if chars == "." else f"[{chars}]") + count for chars, count in parts)
    dice = SeededDice(seed)
    schema: dict[str, Any] = {"type": "string", "pattern": f"^{pattern}$"}
    if dice.number(0, 1):
        schema["maxLength"] = dice.number(4, 44)
    try:
        rule = lower(dt.load_format({"type": "json_schema", "json_schema": schema}))
        matchers = [store.compile(rule).matcher() for store in real_stores()]
    except dt.DovetailError:
        assume(False)
    assert all(matcher.accept_bytes(b'"') for matcher in matchers)
    for _ in range(3):
        allowed = sorted(bits(same_masks(matchers)))
        if not allowed:
            return
        token = dice.pick(allowed)
        assert all(matcher.accept(token) for matcher in matchers)
        if matchers[0].is_finished:
            return
