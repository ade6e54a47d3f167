"""A rule is read once for a store: its later grammars take what it has become there."""

from __future__ import annotations

import gc
import random

import dovetail as dt
from dovetail.grammar.ir import Call, Chars, Lit, Repeat, Rule, Seq, Unlisted


def vocabulary() -> dt.Vocabulary:
    return dt.Vocabulary([bytes([byte]) for byte in range(256)])


def accepts(rule: Rule, over: dt.Vocabulary, text: bytes) -> bool:
    matcher = dt.compile(rule, over).matcher()
    return matcher.accept_bytes(text) and matcher.is_complete


def letters(low: int, high: int) -> Rule:
    return Rule("letters", Repeat(Chars(((97, 122),)), low, high))


def test_a_rule_means_the_same_in_every_grammar_and_store() -> None:
    shared = letters(30, 40)
    first, second = vocabulary(), vocabulary()
    for over in (first, second, first):
        for mark in b"<[":
            around = Rule("around", Seq((Lit(bytes([mark])), Call(shared), Lit(b"."))))
            for count in (29, 30, 40, 41):
                text = bytes([mark]) + b"a" * count + b"."
                assert accepts(around, over, text) == (30 <= count <= 40)


def test_a_rule_whose_grammars_are_gone_is_read_again() -> None:
    shared = Rule("shared", Seq((Call(letters(1, 50)), Lit(b"!"))))
    over = vocabulary()
    for _ in range(3):
        grammar = dt.compile(Rule("root", Seq((Lit(b"("), Call(shared), Lit(b")")))), over)
        matcher = grammar.matcher()
        assert matcher.accept_bytes(b"(abc!)")
        assert matcher.is_complete
        del grammar, matcher
        gc.collect()


def test_grammars_that_come_and_go_are_found_by_their_content() -> None:
    over = vocabulary()

    def walked(number: int) -> dt.CompiledGrammar:
        """A grammar of new rules."""
        body = Seq((Lit(f"{number} is ".encode()), Call(letters(number, number + 50)), Lit(b".")))
        grammar = dt.compile(Rule("root", body), over)
        for count in (number - 1, number):
            matcher = grammar.matcher()
            assert matcher.accept_bytes(f"{number} is ".encode() + b"a" * count)
            assert matcher.accept_bytes(b".") == (count == number)
        return grammar

    held: dict[int, dt.CompiledGrammar] = {}
    dice = random.Random(0)
    for _ in range(2_000):
        number = dice.randrange(1, 200)
        if held.pop(number, None) is None:
            held[number] = walked(number)
        before = over._store.automaton_bytes
        again = [walked(known) for known in dice.sample(sorted(held), min(3, len(held)))]
        assert over._store.automaton_bytes == before
        del again


def test_a_grammar_that_is_refused_leaves_its_rules_usable() -> None:
    shared = letters(1, 3)
    over = vocabulary()
    kept = dt.compile(Rule("kept", Seq((Lit(b"("), Call(shared)))), over)
    loop = Rule("loop", Lit(b""))
    loop.body = Seq((Call(shared), Call(loop)))
    try:
        dt.compile(loop, over)
    except dt.GrammarError as error:
        assert "matches nothing" in str(error)
    else:
        raise AssertionError("a rule without an end was compiled")
    assert accepts(Rule("root", Seq((Call(shared), Lit(b"!")))), over, b"abc!")
    assert kept.matcher().accept_bytes(b"(ab")


def test_a_saved_grammar_holds_the_rules_that_were_known() -> None:
    shared = letters(2, 3)
    over = vocabulary()
    kept = dt.compile(Rule("kept", Seq((Lit(b"("), Call(shared)))), over)
    again = dt.compile(Rule("root", Seq((Call(shared), Lit(b"!")))), over)
    matcher = dt.CompiledGrammar.load(again.save(), vocabulary()).matcher()
    assert matcher.accept_bytes(b"abc!")
    assert matcher.is_complete
    assert kept.save() != again.save()


def test_an_unlisted_text_means_the_same_in_every_store() -> None:
    letters = Chars(((97, 122),))
    escape = Seq((Lit(b"\\"), Call(Rule("escape", Lit(b"!")))))
    other = Rule("other", Unlisted(("a",), letters, Repeat(letters, 0, None), escape, Lit(b".")))
    first, second = vocabulary(), vocabulary()
    for over in (first, second, first, vocabulary(), second):
        for text, is_other in (
            (b"bcd", True),
            (b"\\!", True),
            (b"ab", True),
            (b"a\\!", True),
            (b"a.", False),
            (b"\\?", False),
        ):
            assert accepts(Rule("root", Call(other)), over, text) == is_other
        gc.collect()
