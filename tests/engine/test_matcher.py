"""The state of one generation: back again, copies, batches, the end, threads, caches."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import dovetail as dt
from dovetail.grammar import ir
from tests.machines import bits, compiled, mask, vocabulary, walk, within_limits
from tests.strategies import SeededDice, Tokens, make_rule, make_tokens, rules, token_tables

SEEDS = st.integers(0, 2**32)


def letters() -> dt.Vocabulary:
    return dt.Vocabulary([b"a", b"b", b"c", b"", b"ab"], {"<t>": 3}, [2])


AB = ir.Rule("root", ir.Seq((ir.lit("a"), ir.star(ir.lit("b")))))


def picture(matcher: dt.Matcher) -> object:
    """Everything that can be asked of a matcher."""
    return (
        mask(matcher),
        matcher.is_complete,
        matcher.is_finished,
        matcher.forced(),
        matcher.events(),
        matcher.steps,
        matcher.position,
    )


@settings(max_examples=150)
@given(rule=rules(token_level=True), table=token_tables(), seed=SEEDS, back=st.integers(0, 6))
@within_limits
def test_going_back_and_on_equals_a_fresh_run(rule: ir.Rule, table: Tokens, seed: int, back: int) -> None:
    grammar = compiled(rule, vocabulary(table))
    matcher = grammar.matcher()
    path = [token for _, token in walk(matcher, SeededDice(seed), 6)]
    fresh = grammar.matcher()
    pictures = [picture(fresh)]
    for token in path:
        assert fresh.accept(token)
        pictures.append(picture(fresh))
    back = min(back, len(path))
    matcher.rollback(back)
    assert pictures[len(path) - back] == picture(matcher)
    for token in path[len(path) - back :]:
        assert matcher.accept(token)
    assert pictures[-1] == picture(matcher)
    matcher.reset()
    assert pictures[0] == picture(matcher)


@settings(max_examples=150)
@given(rule=rules(token_level=True), table=token_tables(), seeds=st.tuples(SEEDS, SEEDS, SEEDS))
@within_limits
def test_a_fork_goes_its_own_way(rule: ir.Rule, table: Tokens, seeds: tuple[int, int, int]) -> None:
    matcher = compiled(rule, vocabulary(table)).matcher()
    for _ in walk(matcher, SeededDice(seeds[0]), 3):
        pass
    before = picture(matcher)
    fork = matcher.fork()
    assert before == picture(fork)
    for _ in walk(fork, SeededDice(seeds[1]), 4):
        pass
    assert before == picture(matcher)
    after = picture(fork)
    for _ in walk(matcher, SeededDice(seeds[2]), 4):
        pass
    assert after == picture(fork)


@settings(max_examples=150)
@given(rule=rules(token_level=True), table=token_tables(), seed=SEEDS, draft=st.lists(st.integers(0, 64), max_size=6))
@within_limits
def test_validate_counts_what_accept_would_take(rule: ir.Rule, table: Tokens, seed: int, draft: list[int]) -> None:
    matcher = compiled(rule, vocabulary(table)).matcher()
    path = [token for _, token in walk(matcher.fork(), SeededDice(seed), 4)] + draft
    assume(all(token < len(table.tokens) for token in path))
    before, other = picture(matcher), matcher.fork()
    taken = 0
    while taken < len(path) and other.accept(path[taken]):
        taken += 1
    assert taken == matcher.validate(path)
    assert before == picture(matcher)


@settings(max_examples=100)
@given(tables=token_tables(), made=st.lists(rules(), min_size=1, max_size=4), seed=SEEDS)
@within_limits
def test_a_batch_fills_what_single_calls_fill(tables: Tokens, made: list[ir.Rule], seed: int) -> None:
    known = vocabulary(tables)
    matchers = [compiled(rule, known).matcher() for rule in made]
    for matcher in matchers:
        for _ in walk(matcher, SeededDice(seed), 2):
            pass
    rows = np.full((len(matchers), known.mask_words), -1, dtype=np.int32)
    dt.fill_masks(matchers, rows)
    for matcher, row in zip(matchers, rows, strict=True):
        assert (row == -1).all() if matcher.is_finished else mask(matcher) == bits(row)


@settings(max_examples=100)
@given(rule=rules(), table=token_tables(), seed=SEEDS)
@within_limits
def test_saving_and_loading_keeps_the_grammar(rule: ir.Rule, table: Tokens, seed: int) -> None:
    grammar = compiled(rule, vocabulary(table))
    again = dt.CompiledGrammar.load(grammar.save(), vocabulary(table)).matcher()
    matcher = grammar.matcher()
    for _, token in walk(matcher, SeededDice(seed), 5):
        assert again.accept(token)
        assert mask(again.fork()) == mask(again)
    assert picture(matcher) == picture(again)


@pytest.mark.parametrize("cache_bytes", [0, 1, 4096])
def test_a_tiny_cache_forgets_and_changes_nothing(cache_bytes: int) -> None:
    for seed in range(80):
        dice = SeededDice(f"cache {seed}")
        table = make_tokens(dice)
        made = [make_rule(dice) for _ in range(3)]
        small, large = vocabulary(table, cache_bytes=cache_bytes), vocabulary(table)
        for rule in made * 2:
            try:
                pair = [dt.compile(rule, known).matcher() for known in (small, large)]
            except (dt.GrammarError, dt.LimitError):
                continue
            for allowed, token in walk(pair[0], dice, 4):
                assert allowed == mask(pair[1])
                assert pair[1].accept(token)


# The end.


def test_after_the_end_nothing_is_allowed_and_going_back_reopens_it() -> None:
    matcher = compiled(AB, letters()).matcher()
    assert matcher.accept(0)
    assert {1, 2} == mask(matcher)
    assert matcher.accept(2)
    assert matcher.is_finished
    assert matcher.is_complete
    assert set() == mask(matcher)
    assert b"" == matcher.forced()
    assert not matcher.accept(1)
    assert not matcher.accept(2)
    assert not matcher.accept_bytes(b"b")
    assert 0 == matcher.validate([1])
    matcher.rollback(1)
    assert not matcher.is_finished
    assert {1, 2} == mask(matcher)


def test_a_refused_token_changes_nothing() -> None:
    matcher = compiled(AB, letters()).matcher()
    before = picture(matcher)
    assert not matcher.accept(1)
    assert not matcher.accept(2)
    assert not matcher.accept(3)
    assert not matcher.accept_bytes(b"ax")
    assert before == picture(matcher)


def test_a_special_token_named_by_a_literal_counts_as_its_text() -> None:
    rule = ir.Rule("root", ir.Seq((ir.Lit(b"<t>", special=True), ir.Capture("x", ir.lit("a")))))
    matcher = compiled(rule, letters()).matcher()
    assert matcher.accept(3)
    assert matcher.accept(0)
    assert 4 == matcher.position
    assert [("text", "", 0, 3), ("open", "x", 3, 3), ("text", "x", 3, 4), ("close", "x", 4, 4)] == [
        tuple(event) for event in matcher.events()
    ]


def test_a_stop_token_that_the_grammar_names_is_content_until_the_output_is_complete() -> None:
    rule = ir.Rule("root", ir.Seq((ir.lit("a"), ir.Tokens((2,)))))
    matcher = compiled(rule, letters()).matcher()
    assert matcher.accept(0)
    assert {2} == mask(matcher)
    assert matcher.accept(2)
    assert not matcher.is_finished
    assert matcher.accept(2)
    assert matcher.is_finished


# Misuse.

WRONG: list[tuple[str, Callable[[dt.Matcher], object]]] = [
    ("more steps back than were made", lambda m: m.rollback(1)),
    ("a negative number of steps", lambda m: m.rollback(-1)),
    ("a mask with too few words", lambda m: m.fill_mask(np.zeros(0, dtype=np.int32))),
    ("a mask of the wrong type", lambda m: m.fill_mask(np.zeros(1, dtype=np.int64))),
    ("a row beyond the mask", lambda m: m.fill_mask(np.zeros((1, 1), dtype=np.int32), 1)),
    ("a mask that is no buffer", lambda m: m.fill_mask(object())),
]


@pytest.mark.parametrize(("what", "call"), WRONG, ids=[what for what, _ in WRONG])
def test_misuse_is_an_error_and_no_crash(what: str, call: Callable[[dt.Matcher], object]) -> None:
    with pytest.raises((dt.DovetailError, IndexError, TypeError, ValueError)):
        call(compiled(AB, letters()).matcher())


@pytest.mark.parametrize("token", [-1, 5, 2**31, 2**40])
def test_a_token_outside_the_vocabulary_is_never_taken(token: int) -> None:
    matcher = compiled(AB, letters()).matcher()
    with contextlib.suppress(dt.DovetailError, TypeError, ValueError):
        assert not matcher.accept(token)
    assert 0 == matcher.steps


# Threads.


def test_threads_share_a_compiled_grammar() -> None:
    table = make_tokens(SeededDice("threads"), 65)
    word = ir.Alt((ir.lit("ab"), ir.lit("a𝄞"), ir.Capture("x", ir.star(ir.ANY_CHAR))))
    known = vocabulary(table, cache_bytes=1 << 16)
    grammar = compiled(ir.Rule("root", ir.Seq((word, ir.star(word)))), known)

    def utter(seed: int) -> list[object]:
        matcher = grammar.matcher()
        for _ in walk(matcher, SeededDice(seed), 30):
            pass
        return [picture(matcher)]

    expected = [utter(seed) for seed in range(32)]
    with ThreadPoolExecutor(8) as pool:
        assert expected * 4 == list(pool.map(utter, list(range(32)) * 4))


@settings(max_examples=100)
@given(rule=rules(token_level=True), table=token_tables(), extra=st.integers(0, 64), seed=SEEDS)
@within_limits
def test_a_stop_token_of_the_request_ends_what_is_complete(rule: ir.Rule, table: Tokens, extra: int, seed: int) -> None:
    assume(extra < len(table.tokens))
    grammar = compiled(rule, vocabulary(table))
    matcher, plain = grammar.matcher([extra]), grammar.matcher()
    for allowed, token in walk(matcher, SeededDice(seed), 5):
        # Elsewhere it is no text, unless nothing else can come or the grammar asks for that very token.
        others = mask(plain) - {extra}
        assert allowed - {extra} == others
        assert extra in allowed or not plain.is_complete
        assert allowed
        assert {other for other in range(len(table.tokens)) if matcher.fork().accept(other)} == allowed
        if token == extra and plain.is_complete:
            assert matcher.fork().accept(extra)
            return
        assert plain.accept(token)
    assert plain.is_finished == matcher.is_finished


@pytest.mark.parametrize("cache_bytes", [1 << 16, 1 << 26])
def test_a_rule_with_hundreds_of_callers_has_the_mask_of_each(cache_bytes: int) -> None:
    tokens = [bytes([byte]) for byte in range(128)] + [f"a{number}".encode() for number in range(400)]
    known = dt.Vocabulary(tokens, cache_bytes=cache_bytes)
    word = ir.Rule("word", ir.Repeat(ir.lit("a"), 1, None))
    ways = [ir.Seq((ir.lit(f"{number:03}"), ir.Call(word), ir.lit(f"{number:03}!"))) for number in range(400)]
    grammar = dt.compile(ir.Rule("root", ir.Alt(tuple(ways))), known)
    for _ in range(2):
        for number in range(400):
            end = f"{number:03}"
            matcher = grammar.matcher()
            assert matcher.accept_bytes(f"{end}a".encode())
            longer = {128 + int(end[:size]) for size in (1, 2, 3) if str(int(end[:size])) == end[:size]}
            assert mask(matcher) == {ord("a"), ord(end[0])} | longer


def test_any_token_but_the_only_ones_is_no_way() -> None:
    others = ir.Tokens((0, 1), exclude=True)
    few = dt.Vocabulary([b"a", b"b", b"c", b""], stop_token_ids=[2])
    with pytest.raises(dt.GrammarError, match="matches nothing"):
        dt.compile(ir.Rule("root", others), few)
    either = dt.compile(ir.Rule("root", ir.alt(ir.Seq((ir.lit("a"), others)), ir.lit("b"))), few)
    assert mask(either.matcher()) == {1}


def test_the_way_out_of_the_words_may_be_unlisted_in_turn() -> None:
    letters = ir.Chars(((0x61, 0x7A),))
    escape = ir.Rule("escape", ir.EMPTY)
    again = ir.Seq((ir.lit("\\"), ir.Call(escape)))
    escape.body = ir.Unlisted(("a",), letters, ir.EMPTY, again, ir.lit("!"))
    root = ir.Rule("root", ir.Call(escape))
    for text, taken in (("b", True), ("\\b", True), ("\\\\!", True), ("\\\\", False), ("a", False), ("a!", False)):
        assert dt.accepts(root, text) == taken


def test_the_way_out_of_the_words_may_begin_with_a_call() -> None:
    inner = ir.Rule("inner", ir.EMPTY)
    inner.body = ir.alt(ir.Seq((ir.lit("("), ir.Call(inner), ir.lit(")"))), ir.lit("n"))
    other = ir.Seq((ir.Call(inner), ir.lit("?")))
    root = ir.Rule("root", ir.Unlisted(("a",), ir.Chars(((0x61, 0x6D),)), ir.lit("?"), other, ir.lit("!")))
    for text, taken in (
        ("b?", True),
        ("(n)?", True),
        ("n?", True),
        ("n)?", False),
        ("(n)!", False),
        ("!", True),
        ("a!", False),
        ("a(n)?", True),
    ):
        assert dt.accepts(root, text) == taken


def test_an_unlisted_word_is_made_of_the_characters_of_the_text() -> None:
    letters = ir.Chars(((0x61, 0x63), (0x65, 0x7A)))
    for word in ("d", "ad", "0"):
        with pytest.raises(dt.DovetailError, match="unlisted word"):
            dt.accepts(ir.Rule("root", ir.Unlisted((word,), letters, ir.EMPTY, ir.NOTHING, ir.EMPTY)), "x")


def test_members_that_nothing_separates_come_alone() -> None:
    # Only the empty text stays inside the words, and that is listed.
    nothing = ir.Unlisted(("",), ir.Chars(((0x61, 0x7A),)), ir.NOTHING, ir.NOTHING, ir.lit("!"))
    members = tuple((ir.lit(name), False) for name in "ab")
    rule = ir.Rule("root", ir.AnyOrder(members, None, nothing, ir.lit("c")))
    grammar = dt.compile(rule, dt.Vocabulary([b"a", b"b", b"c", b""], stop_token_ids=[3]))
    matcher = grammar.matcher()
    assert matcher.accept(0)
    assert mask(matcher) == {2}


@pytest.mark.parametrize("token", [-1, 3, 1 << 40])
def test_a_token_that_does_not_exist_is_an_error(token: int) -> None:
    matcher = dt.compile({"type": "any_text"}, dt.Vocabulary([b"a", b"b", b"<end>"], {"<end>": 2}, [2])).matcher()
    with pytest.raises(dt.MatcherError, match=f"token id {token} is outside the vocabulary of 3 tokens"):
        matcher.accept(token)
    assert 2 == matcher.validate([0, 1, token, 0])
    assert 0 == matcher.steps
