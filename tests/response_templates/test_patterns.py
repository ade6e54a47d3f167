"""What is read off the text of an expression."""

from __future__ import annotations

import pytest

from dovetail.response_templates.patterns import Pattern

FACTS = [
    # expression, facts that are not the defaults
    ("abc", {}),
    (r"\s*abc", {"needs": "abc"}),
    (r"\s*a\.b", {"needs": "a.b"}),
    ("^a", {"context": 1, "positional": True, "needs": "a"}),
    (r"a\b", {"context": 1, "positional": True}),
    (r"[\b^$](a)\1", {"combines": False, "needs": "a"}),
    ("(?P<n>a)(?P=n)", {"combines": False}),
    ("(?i)a", {"combines": False}),
    ("(?i:a)", {}),
    ("(?m)a", {"combines": False, "patient": True}),
    ("(?x:a b)", {"patient": True}),
    (r"\Ga", {"patient": True, "needs": "a"}),
    ("(?R)?a", {"patient": True}),
    ("(?:abc){e<=1}", {"patient": True, "wild": True}),
    ("(?<=ab)c", {"looks_behind": True, "context": 8}),
    ("(?<=a+)c", {"looks_behind": True, "context": 8, "patient": True}),
    ("(?<=(?:a|b))c", {"looks_behind": True, "context": 13}),
    ("(?<=a(?<=b))c", {"looks_behind": True, "context": 13, "patient": True}),
    (r"(?<=\ba)c", {"looks_behind": True, "positional": True, "context": 9, "patient": True}),
    (r"(?<=\\b)c", {"looks_behind": True, "context": 9}),
    ("(?:a|aa)+c", {"wild": True}),
    ("(?:abc)?de*f", {"needs": "d"}),
    ("a(?#(b|)c", {}),
    ("(?!abc)d", {}),
    ("[[:alpha:]]b]c", {}),
    ("a|b", {}),
]


@pytest.mark.parametrize(("source", "facts"), FACTS)
def test_an_expression_has_these_facts(source: str, facts: dict[str, object]) -> None:
    pattern = Pattern.read(source)
    plain = {"context": 0, "looks_behind": False, "positional": False, "combines": True, "patient": False}
    plain |= {"wild": False, "needs": ""}
    assert plain | facts == {name: getattr(pattern, name) for name in plain}


def test_short_text_is_searched_without_a_clock_and_wild_expressions_never() -> None:
    assert Pattern.read("<tool_call>").safe_length == 1_000_000
    assert 50 < Pattern.read(r"<a>\s*<b=(\w+)>").safe_length < 200
    assert Pattern.read("(a*)*b").safe_length == 0
