"""The engine and the slow matcher side by side."""

from __future__ import annotations

import atexit
import functools
from collections.abc import Callable, Iterator
from typing import ParamSpec

import numpy as np
from hypothesis import assume

import dovetail as dt
from dovetail.grammar import ir
from tests.derivatives import Grammar, Tokenizer
from tests.oracles import Run
from tests.strategies import Dice, Tokens

P = ParamSpec("P")


@functools.cache
def byte_vocabulary() -> dt.Vocabulary:
    """A token for every byte."""
    return dt.Vocabulary([bytes([byte]) for byte in range(256)])


# Hypothesis keeps test modules alive to the very end, when nanobind reports whatever of ours still lives as a leak.
atexit.register(byte_vocabulary.cache_clear)


def vocabulary(table: Tokens, **options: int) -> dt.Vocabulary:
    """The engine's form of a table of tokens."""
    return dt.Vocabulary(table.tokens, table.special_tokens, table.stop_token_ids, **options)


def compiled(rule: ir.Rule, known: dt.Vocabulary | None = None) -> dt.CompiledGrammar:
    """The compiled rule; one that is refused, as matching nothing, proves nothing here."""
    try:
        grammar = dt.compile(rule, known or byte_vocabulary())
        grammar.matcher()
    except dt.GrammarError:
        assume(False)
    return grammar


def slow_run(rule: ir.Rule, table: Tokens | None = None) -> Run:
    """The slow matcher at the start of an output."""
    if table is None:
        return Run(Grammar(rule))
    return Run(Grammar(rule, Tokenizer(table.tokens, table.special_tokens, table.stop_token_ids)))


def within_limits(test: Callable[P, None]) -> Callable[P, None]:
    """Random grammars may be hopelessly ambiguous or refused where they are first used; those prove nothing."""

    @functools.wraps(test)
    def limited(*args: P.args, **kwargs: P.kwargs) -> None:
        try:
            test(*args, **kwargs)
        except (dt.GrammarError, dt.LimitError):
            assume(False)

    return limited


def mask(matcher: dt.Matcher) -> set[int]:
    """The tokens that the matcher allows."""
    row = np.full(matcher.mask_words, -1, dtype=np.int32)
    matcher.fill_mask(row)
    return bits(row)


def bits(row: np.ndarray) -> set[int]:
    """The numbers of the bits that are set."""
    return set(np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little")).tolist())


def walk(matcher: dt.Matcher, dice: Dice, steps: int) -> Iterator[tuple[set[int], int]]:
    """Take random allowed tokens, giving before each step the mask and the token that will be taken."""
    for _ in range(steps):
        allowed = mask(matcher)
        if not allowed:
            return
        token = dice.pick(sorted(allowed))
        yield allowed, token
        assert matcher.accept(token)


def check_exact_masks(rule: ir.Rule, table: Tokens, dice: Dice) -> None:
    """A walk on which masks equal brute force, allow what is accepted, and are the same when the grammar was saved."""
    known = vocabulary(table)
    grammar = compiled(rule, known)
    matcher, again = grammar.matcher(), dt.CompiledGrammar.load(grammar.save(), known).matcher()
    slow = slow_run(rule, table)
    for allowed, token in walk(matcher, dice, 8):
        assert slow.allowed() == allowed
        assert mask(again) == allowed
        assert allowed == {other for other in range(len(table.tokens)) if matcher.fork().accept(other)}
        assert again.accept(token)
        slow.feed_token(token)
