"""Law 1 (exact masks): a token is allowed exactly when some continuation after it completes the format."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dovetail as dt
from dovetail.grammar import ir
from dovetail.grammar.lower import lower
from tests.machines import byte_vocabulary, compiled, mask, slow_run, vocabulary, walk, within_limits
from tests.oracles import allowed_tokens
from tests.random_formats import Json, formats
from tests.strategies import (
    TABLE_SIZES,
    SeededDice,
    Tokens,
    make_rule,
    make_tokens,
    rules,
    rules_with_outputs,
    token_tables,
)

SEEDS = st.integers(0, 2**32)


def follow(rule: ir.Rule, table: Tokens, seed: int, steps: int = 6) -> None:
    """Compare every mask along a random output with the definition."""
    matcher = compiled(rule, vocabulary(table)).matcher()
    slow = slow_run(rule, table)
    for allowed, token in walk(matcher, SeededDice(seed), steps):
        assert slow.allowed() == allowed
        assert slow.complete == matcher.is_complete
        slow.feed_token(token)
    assert slow.allowed() == mask(matcher)
    assert slow.finished == matcher.is_finished


@settings(max_examples=300)
@given(rule=rules(), table=token_tables(), seed=SEEDS)
@within_limits
def test_masks_equal_brute_force(rule: ir.Rule, table: Tokens, seed: int) -> None:
    follow(rule, table, seed)


@settings(max_examples=200)
@given(rule=rules(token_level=True), table=token_tables(), seed=SEEDS)
@within_limits
def test_masks_with_token_sets_and_budgets_equal_brute_force(rule: ir.Rule, table: Tokens, seed: int) -> None:
    follow(rule, table, seed)


@settings(max_examples=300)
@given(fmt=formats(tokens=True, captures=True), table=token_tables(), seed=SEEDS)
@within_limits
def test_masks_of_formats_equal_brute_force(fmt: Json, table: Tokens, seed: int) -> None:
    try:
        rule = lower(dt.load_format(fmt))
    except dt.DovetailError:
        assume(False)
    follow(rule, table, seed, 4)


@pytest.mark.parametrize("size", TABLE_SIZES)
@pytest.mark.parametrize("seed", range(12))
def test_masks_equal_brute_force_at_the_edges_of_a_word(size: int, seed: int) -> None:
    dice = SeededDice(f"{size}.{seed}")
    table, rule = make_tokens(dice, size), make_rule(dice)
    try:
        matcher = dt.compile(rule, vocabulary(table)).matcher()
    except (dt.GrammarError, dt.LimitError):
        return
    slow = slow_run(rule, table)
    for allowed, token in walk(matcher, dice, 4):
        assert slow.allowed() == allowed
        slow.feed_token(token)


@pytest.mark.parametrize("size", TABLE_SIZES)
def test_the_last_token_of_a_table_is_seen_and_no_bit_is_set_beyond_it(size: int) -> None:
    table = Tokens((b"x",) * (size - 1) + (b"y",), {}, ())
    matcher = compiled(ir.Rule("root", ir.lit("y")), vocabulary(table)).matcher()
    assert {size - 1} == mask(matcher)
    everything = compiled(ir.Rule("root", ir.star(ir.ANY_CHAR)), vocabulary(table)).matcher()
    assert set(range(size)) == mask(everything)


@settings(max_examples=200)
@given(rule=rules(token_level=True), table=token_tables(), seed=SEEDS)
@within_limits
def test_accept_agrees_with_the_mask_for_every_token(rule: ir.Rule, table: Tokens, seed: int) -> None:
    matcher = compiled(rule, vocabulary(table)).matcher()
    for allowed, _ in walk(matcher, SeededDice(seed), 4):
        assert allowed == {token for token in range(len(table.tokens)) if matcher.fork().accept(token)}


@settings(max_examples=400)
@given(case=rules_with_outputs())
@within_limits
def test_bytes_are_taken_exactly_while_they_can_be_completed(case: tuple[ir.Rule, bytes]) -> None:
    rule, data = case
    matcher, slow = compiled(rule).matcher(), slow_run(rule)
    for index in range(len(data)):
        slow.feed_bytes(data[index : index + 1])
        assert slow.alive == matcher.accept_bytes(data[index : index + 1])
        if not slow.alive:
            return
        assert slow.complete == matcher.is_complete


@settings(max_examples=150)
@given(rule=rules(), seed=SEEDS)
@within_limits
def test_no_output_runs_into_a_dead_end(rule: ir.Rule, seed: int) -> None:
    # Every byte is a token here, so that whatever can be continued at all can be continued by a token.
    dice = SeededDice(seed)
    matcher = compiled(rule).matcher()
    for _ in range(60):
        allowed = mask(matcher)
        assert allowed or matcher.is_complete
        if not allowed:
            return
        assert matcher.accept(dice.pick(sorted(allowed)))


@settings(max_examples=150)
@given(case=rules_with_outputs())
@within_limits
def test_what_is_forced_is_the_only_way_on(case: tuple[ir.Rule, bytes]) -> None:
    rule, data = case
    matcher = compiled(rule).matcher()
    taken = 0
    while taken < len(data) and matcher.accept_bytes(data[taken : taken + 1]):
        taken += 1
    for byte in matcher.forced():
        assert not matcher.is_complete
        assert {byte} == mask(matcher)
        assert matcher.accept(byte)
    assert matcher.is_complete or len(mask(matcher)) != 1


def test_the_slow_matcher_and_the_engine_share_no_vocabulary_rules_by_accident() -> None:
    """The definition itself on a few cases that can be read."""
    tokens = [b"<", b"a", b"b", b"", b"<t", b"x"]
    special = {"<t>": 3}
    triggered = ir.Text(stops=((b"<t>", ir.lit("x")),))
    cases: list[tuple[ir.Node, list[int], set[int]]] = [
        (triggered, [], {0, 1, 2, 3, 4, 5}),
        (triggered, [3], {5}),
        (ir.Seq((ir.Lit(b"<t>", special=True), ir.lit("a"))), [], {0, 3, 4}),
        (ir.Seq((ir.Lit(b"<t>"), ir.lit("a"))), [], {0, 4}),
        (ir.Seq((ir.Tokens((3,)), ir.lit("a"))), [], {3}),
        (ir.star(ir.Tokens((3,), exclude=True)), [1, 2], {0, 1, 2, 4, 5}),
        (ir.star(ir.ANY_CHAR), [], {0, 1, 2, 4, 5}),
    ]
    for node, prefix, expected in cases:
        assert expected == allowed_tokens(node, tokens, special, prefix)
        matcher = dt.compile(ir.Rule("root", node), dt.Vocabulary(tokens, special)).matcher()
        assert all(matcher.accept(token) for token in prefix)
        assert expected == mask(matcher)


def test_the_byte_vocabulary_has_a_token_for_every_byte() -> None:
    assert set(range(256)) == mask(compiled(ir.Rule("root", ir.Bytes(((0, 255),))), byte_vocabulary()).matcher())
