"""Which texts a grammar matches, where the core once had it wrong or easily could."""

from __future__ import annotations

import pytest

import dovetail as dt

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
