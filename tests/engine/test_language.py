"""Which texts a grammar matches, where the core once had it wrong or easily could."""

from __future__ import annotations

import pytest

import dovetail as dt
from dovetail.engine import accepts
from dovetail.grammar import ir
from tests.machines import byte_vocabulary

LANGUAGE = [
    # grammar, text, matches
    ('root ::= root ([cé] | "ab"){2} | "b"', "bcccc", True),
    ('root ::= root ([cé] | "ab"){2} | "b"', "bccc", False),
    ('root ::= x | "b"\nx ::= (root)+ ((root | [^a])){2,} | "c"', "bc", False),
    ('root ::= e root "a" | "b"\ne ::= "" | "c"', "ccbaaa", True),
    ('root ::= root root | "a" | ""', "aaaa", True),
    ('root ::= ("a"{1,40} ","){2,30}', "aa,a,", True),
    ('root ::= ("a"{1,40} ","){2,30}', "aa,", False),
    ('root ::= "a"{0,100} "a"{100,200}', "a" * 150, True),
    ('root ::= "a"{0,100} "a"{100,200}', "a" * 99, False),
]


@pytest.mark.parametrize(("grammar", "text", "matches"), LANGUAGE)
def test_a_grammar_matches_what_it_says(grammar: str, text: str, matches: bool) -> None:
    assert matches == dt.accepts({"type": "grammar", "grammar": grammar}, text)


def test_a_choice_between_a_thousand_captured_words_is_one_way() -> None:
    words = [f"w{number}" for number in range(1000)]
    ways = [ir.Seq((ir.Capture("word", ir.Lit(word.encode(), True)), ir.lit(f"={word}"))) for word in words]
    ways.append(ir.Seq((ir.Capture("word", ir.Lit(b"w7", True)), ir.lit("!"))))
    ways.append(ir.Capture("word", ir.Lit(b"w7=", True)))
    ways.append(ir.Seq((ir.Capture("other", ir.Lit(b"w7", True)), ir.lit("?"))))
    rule = ir.Rule("root", ir.Alt((*ways, ir.lit("none"))))
    for text in ("w7=w7", "w7!", "w7=", "w71=w71", "w999=w999", "w7?", "none"):
        assert accepts(rule, text), text
    for text in ("w7", "w7=w71", "w1000=w1000", "w8!", "w8=", "w8?"):
        assert not accepts(rule, text), text
    matcher = dt.compile(rule, byte_vocabulary()).matcher()
    assert matcher.accept_bytes(b"w71=w71")
    assert [("word", 0), ("word", 0), ("word", 3), ("", 3)] == [(event.name, event.start) for event in matcher.events()]


def test_a_word_that_nothing_can_follow_is_named() -> None:
    ways = [
        ir.Seq((ir.Capture("word", ir.Lit(word, True)), rest)) for word, rest in ((b"a", ir.EMPTY), (b"b", ir.NOTHING))
    ]
    with pytest.raises(dt.GrammarError, match='nothing can match what follows "b"'):
        dt.compile(ir.Rule("root", ir.Alt(tuple(ways))), byte_vocabulary()).matcher()


def test_a_request_brings_stop_tokens_of_its_own() -> None:
    vocabulary = dt.Vocabulary([b"a", b"\n", b"</s>"], stop_token_ids=[2])
    matcher = dt.compile({"type": "regex", "pattern": "a+"}, vocabulary).matcher([1])
    assert not matcher.accept(1)
    assert matcher.accept(0)
    assert matcher.fork().accept(2)
    assert matcher.accept(1)
    assert matcher.is_finished


def test_a_stop_token_outside_the_vocabulary_is_refused() -> None:
    vocabulary = dt.Vocabulary([b"a"])
    with pytest.raises(dt.MatcherError, match="outside the vocabulary"):
        dt.compile({"type": "regex", "pattern": "a+"}, vocabulary).matcher([9])
