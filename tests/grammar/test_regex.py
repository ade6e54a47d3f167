"""Regular expressions: what they match, as a whole and inside of a text, and what is refused."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail import engine
from dovetail.errors import GrammarError, LimitError
from dovetail.grammar import ir, regex
from dovetail.grammar.regex.automaton import Automaton, minimize
from tests.oracles import accepts

WHOLE = [
    # pattern, texts it matches from end to end, texts it does not
    ("", [""], ["a"]),
    ("abc", ["abc"], ["ab", "abcd", "xabc"]),
    ("a|", ["", "a"], ["b"]),
    ("a||b", ["", "a", "b"], ["ab"]),
    ("(a|[bc]{4,}){2,3}", ["aaa", "abcbc", "bcbcbcbcbc"], ["d", "aaaa"]),
    ("a{2}b{1,2}c{1,}", ["aabc", "aabbccc"], ["abc", "aabbbc", "aab"]),
    ("a{0}b", ["b"], ["ab"]),
    ("a+?b*?c??", ["a", "aabbc"], ["c"]),
    ("(?:a)(?<n>b)(?P<m>c)", ["abc"], ["a"]),
    ("[a-c-]+", ["a-c"], ["d"]),
    (r"[^a-c\n]", ["d", "é"], ["a", "\n"]),
    (r"[\]\\^-]+", ["]\\^-"], ["a"]),
    (r"[\w-.]+", ["a-.b"], [","]),
    (r"[\b]", ["\b"], ["b"]),
    ("[.*+?]+", [".*+?"], ["a"]),
    (r"\d\w\s", ["1a ", "0_\u2028", "9Z\ufeff"], ["a1 ", "1é ", "٣a ", "1a\x85"]),
    (r"\D\W\S", ["a.b", "٣é\x1f"], ["1.b", "aab", "a. "]),
    (r"\t\n\v\f\r\0\a\e\cJ\x41\u0042\u{43}\U00000044", ["\t\n\v\f\r\0\a\x1b\nABCD"], []),
    (r"\ud83d\ude00", ["😀"], []),
    (r"\^\$\.\*\+\?\(\)\[\]\{\}\|\/\-", ["^$.*+?()[]{}|/-"], []),
    ("a{x}]}", ["a{x}]}"], []),
    (".", ["a", "\n", "\u2028", "😀"], ["", "ab"]),
    ("(?#note)a", ["a"], []),
    ("^a$", ["a"], ["^a$"]),
    ("^$|^https://x", ["", "https://x"], ["$"]),
    ("(^a|b)c$", ["ac", "bc"], ["c"]),
    ("(a|^)b", ["ab", "b"], ["a"]),
    (r"\Aa\Z", ["a"], ["AaZ"]),
    (r"\p{Lu}\p{L}*", ["Éa", "Ж"], ["é", "1"]),
    (r"\P{L}", ["1", " "], ["a"]),
    (r"[\p{Nd}_]+", ["1٣_"], ["Ⅷ"]),
    (r"\p{Letter}\p{gc=Lu}\p{General_Category=Decimal_Number}\p{digit}", ["aA12"], ["1A12"]),
    (r"\p{ASCII}\p{Any}\P{Assigned}", ["aé\u0378"], ["éaa"]),
    ("(?i)straße", ["STRAẞE", "Straße"], ["STRASSE"]),
    ("(?i)[k-m]σ", ["Kς", "\u212aΣ", "Lσ"], ["Jσ"]),
    ("(?i)[^k]", ["a", "x"], ["k", "K", "\u212a"]),
    (r"(?i)\w\W", ["\u017f-"], ["a\u017f"]),
    ("a(?i:b)c", ["abc", "aBc"], ["ABc", "abC"]),
    ("(?i)a(?-i:b)", ["Ab"], ["AB"]),
    ("(?-s:.)(?s:.)", ["a\n"], ["\na", "\u2028a"]),
    ("(?m)a$\n^b", ["a\nb"], ["ab"]),
    ("(?m)a\n?^b", ["a\nb"], ["ab"]),
]

ASSERTIONS = [
    ("(?=a)[ab]c", ["ac"], ["bc"]),
    ("(?!foo).*", ["", "fo", "bar"], ["foo", "food"]),
    ("(?:(?!END).)*END", ["END", "xENEND", "E END"], ["ENDEND", "xENDx"]),
    (r"(?=.*[A-Z])(?=.*\d).{4,}", ["aA1b", "1Abcdef"], ["aA1", "abcd1", "ABCD"]),
    (r"\w+(?<!ing)", ["sin", "ingx"], ["ing", "doing"]),
    (r"(?!-)[a-z-]{1,9}(?<!-)", ["a", "a-b"], ["-a", "a-", "aaaaaaaaaa"]),
    (r"a.?\bb", ["a b"], ["ab", "acb"]),
    (r"a\Bb", ["ab"], []),
    (r"(?!(?:con|nul)(?:\.|$))[^/]{1,255}", ["config", "nul2", "c" * 255], ["con", "nul.txt", "c" * 256]),
    (r"^(?=a$|bc).+$", ["a", "bcd"], ["ab"]),
    (r"(?:^|,)(?!,)\w(?:(?<=a),\w)?", ["a", "a,b", ",a,b"], ["b,a"]),
    (r"x(?=(?!a)[ab])\w+", ["xb", "xbq"], ["xa", "xc"]),
]

REFUSED = [
    # pattern, words of the message, offset
    ("(", "not closed", 0),
    ("a)", "without a group", 1),
    ("*a", "nothing to repeat", 0),
    ("a|*", "nothing to repeat", 2),
    ("{2}", "nothing to repeat", 0),
    ("^*", "only an assertion", 0),
    (r"\b+", "only an assertion", 0),
    ("a**", "repetition of a repetition", 2),
    ("a{1,3}?{1,3}", "repetition of a repetition", 7),
    ("a++", "possessive", 2),
    ("a{2}+", "possessive", 4),
    ("a{3,2}", "backwards", 1),
    ("a{,3}", "Python", 1),
    ("[z-a]", "backwards", 1),
    ("[a", "class is not closed", 0),
    ("[", "class is not closed", 0),
    ("[]", "empty class", 0),
    ("[^]", "empty class", 0),
    ("\\", "ends in a backslash", 0),
    (r"\q", r"unknown escape \q", 0),
    (r"\x4", "needs 2 hexadecimal digits", 0),
    (r"a\uZZ", "needs 4 hexadecimal digits", 1),
    (r"\u{110000}", "not a character", 0),
    (r"\ud800", "not a character", 0),
    (r"\01", "octal", 0),
    (r"\c1", "needs a letter", 0),
    (r"(a)\1", "backreference", 3),
    (r"(?<n>a)\k<n>", "backreference", 7),
    ("(?P<n>a)(?P=n)", "backreference", 8),
    ("(?>a)", "atomic", 0),
    ("(a)(?(1)b|c)", "conditional", 3),
    ("a(?R)", "recursion", 1),
    ("(?x)a", "flag x", 0),
    ("(?<1>a)", "unknown kind of group", 0),
    ("(?", "unknown kind of group", 0),
    (r"\p{Script=Greek}", "Script=Greek is not supported", 0),
    (r"\p{Nope}", "Nope is not supported", 0),
    (r"\pL", "property in braces", 0),
    ("a\0", "null character", 1),
    ("[\0]", "null character", 1),
    ("a(?=b)", "lookahead looks at what stands after", 1),
    ("a(?!b)", "negative lookahead looks at what stands after", 1),
    ("(?<=a)b", "lookbehind looks at what stands before", 0),
    ("(?<!a)b", "negative lookbehind looks at what stands before", 0),
    (r"a\b", r"\b looks at what stands after", 1),
    (r".(?<=a(?=b)).", "lookahead inside a lookbehind", 6),
    ("a(?=b)c", "no text can match", 0),
    (r"a[^\s\S]", "no text can match", 0),
    ("a^b", "no text can match", 0),
]

FOUND = [
    # pattern, texts in which it is found, texts in which it is not
    ("b", ["b", "abc", "\nb\n"], ["", "a"]),
    ("", ["", "a"], []),
    ("^b", ["bc"], ["ab"]),
    ("b$", ["ab"], ["bc", "b\n"]),
    ("^b$", ["b"], ["bb"]),
    ("^a|b$", ["ax", "xb"], ["xa"]),
    ("(^|,)a(,|$)", ["a", "x,a", "a,x", "x,a,x"], ["xa", "ax"]),
    ("^(a|b)?$", ["", "a"], ["ab"]),
    ("(^a)?b", ["ab", "xb"], ["a"]),
    (r"\ba\b", ["a", "x a."], ["ba", "ab"]),
    ("a(?=b)", ["xab"], ["a", "ba"]),
    ("a(?!b)", ["a", "aba"], ["ab"]),
    ("(?<=a)b", ["ab"], ["b"]),
    ("a.b", ["axb"], ["a\nb", "a\u2028b"]),
    ("a^b", [], ["ab", "a^b"]),
    ("(?m)^a$", ["x\na\ny", "a"], ["xa"]),
    ("^[^\0]\0$", ["a\0"], ["\0\0"]),
]


@pytest.mark.parametrize(("pattern", "yes", "no"), WHOLE + ASSERTIONS, ids=lambda value: str(value)[:40])
def test_a_pattern_matches_whole_texts(pattern: str, yes: list[str], no: list[str]) -> None:
    node = regex.parse(pattern)
    assert yes == [text for text in yes if accepts(node, text.encode())]
    assert [] == [text for text in no if accepts(node, text.encode())]


@pytest.mark.parametrize(("pattern", "yes", "no"), FOUND, ids=lambda value: str(value)[:40])
def test_a_search_finds_its_pattern_anywhere(pattern: str, yes: list[str], no: list[str]) -> None:
    node = regex.search(pattern)
    assert yes == [text for text in yes if accepts(node, text.encode())]
    assert [] == [text for text in no if accepts(node, text.encode())]


@pytest.mark.parametrize(("pattern", "words", "offset"), REFUSED)
def test_what_is_no_regular_pattern_is_refused_by_name_and_place(pattern: str, words: str, offset: int) -> None:
    with pytest.raises(GrammarError) as caught:
        regex.parse(pattern)
    assert words in caught.value.problem
    assert f"offset {offset}" == caught.value.path
    assert caught.value.fix


def test_an_assertion_at_the_edge_is_exact_once_the_edge_is_anchored() -> None:
    assert accepts(regex.parse("a(?!b)$"), b"a")
    assert accepts(regex.parse(r"^\bfoo\b$"), b"foo")


def test_flags_are_taken_as_an_argument_too() -> None:
    node = regex.parse("a.b", flags="i", dotall=False)
    assert accepts(node, b"AxB")
    assert not accepts(node, b"A\nB")
    assert accepts(regex.parse("a.b", flags="is", dotall=False), b"A\nB")
    with pytest.raises(GrammarError, match="flag x"):
        regex.parse("a", flags="x")


def test_counts_stay_counts() -> None:
    assert ir.Repeat(ir.Chars(((97, 122),)), 2, 50_000) == regex.parse("[a-z]{2,50000}")
    inner = ir.Repeat(ir.Chars(((97, 98),)), 1000, 1000)
    assert ir.Repeat(inner, 1000, 1000) == regex.parse("(?:[ab]{1000}){1000}")


def test_counts_behind_a_resolved_lookahead_stay_counts() -> None:
    node = regex.parse("(?!ab)[a-z]{1,5000}")
    assert sum(1 for _ in ir.walk(node)) < 40
    assert accepts(node, b"ac" + b"z" * 100)
    assert not accepts(node, b"ab" + b"z" * 100)


HOSTILE = [
    "(" * 10_000,
    "(" * 10_000 + "a" + ")" * 10_000,
    "(?:" * 10_000 + "a" + ")*" * 10_000,
    "a" * 1_000_000,
    "a{99999999999}",
    "".join(f"(?=.*{chr(97 + i)}.*{chr(98 + i)}.*{chr(99 + i)})" for i in range(20)) + ".*",
]


@pytest.mark.parametrize("pattern", HOSTILE, ids=lambda pattern: pattern[:12])
def test_hostile_patterns_hit_a_limit_and_not_the_stack(pattern: str) -> None:
    with pytest.raises(LimitError):
        regex.parse(pattern)


LABORIOUS = [
    "(?!(a|b)*a(a|b){25}$).*",
    "(?:(?=(a|b)*a(a|b){12}c).)*c",
    "(?=.{0,100000}x).{0,100000}y",
    "(?!x)((((a{0,99}){0,99}){0,99}){0,99})b",
    "(?:(?=a))?" * 5000 + "a",
    r"\b" * 10_000 + "a",
    "^" * 50_000 + "a" + "$" * 50_000,
    "(^|a)" * 40_000,
    "(?!a)" + "".join(f"[^{chr(0x4E00 + i)}]" for i in range(3000)),
    "(?!x)(?:" + "|".join(f"a{i}.*b" for i in range(20_000)) + ")c",
    "|".join(f"(?=.*{one}.*{two}).*" for one in "abcdefgh" for two in "abcdefgh"),
]


@pytest.mark.parametrize("pattern", LABORIOUS, ids=lambda pattern: pattern[:12])
@pytest.mark.slow
def test_laborious_patterns_end_in_an_answer_or_a_limit(pattern: str) -> None:
    for ask in (
        lambda: regex.search(pattern),
        lambda: regex.language([pattern], ["a.*b"], 5, 500),
        lambda: regex.language([], [pattern]),
        lambda: regex.measured((pattern,), (), 5, 500),
        lambda: regex.grows(regex.search(pattern)),
    ):
        with contextlib.suppress(LimitError):
            ask()


def test_patterns_that_are_limited_together_share_one_budget() -> None:
    def combine(count: int) -> None:
        for index in range(count):
            regex.language([f"(a|b)*a(a|b){{6}}{index}"], [f"b.*{index}.*a"], 0, 50)

    with pytest.raises(LimitError), regex.limited():
        combine(100)
    combine(1)


ORDERED = """
from dovetail.grammar import ir, regex
junk = [object() for _ in range(hash("x") % 1000)]
for pattern in (r"(?:\\b\\w+\\b\\s?){0,20}x", "(?:(?!END).)*END|b(?=c)[a-z]{1,9}c"):
    rules = ir.reachable(ir.Rule("root", regex.language([pattern, "a.*c|d"], ["x.*y"], 3, 9, ["abc", "abd"])))
    names = {id(rule): at for at, rule in enumerate(rules)}
    for rule in rules:
        print([names[id(one.rule)] if isinstance(one, ir.Call) else type(one).__name__ for one in ir.walk(rule.body)])
"""


def test_a_pattern_is_the_same_grammar_in_every_process() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", ORDERED], env={**os.environ, "PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(outputs) == 1
    assert outputs != {b""}


def test_many_lookaheads_before_nested_counts_cost_little() -> None:
    node = regex.parse("(?=.*a)" * 12 + "(?:" * 20 + "a" + "{1,50})" * 20)
    assert accepts(node, b"aaa")
    assert not accepts(node, b"aab")


def test_an_unanchored_search_with_a_lookahead_stays_small() -> None:
    # Its deterministic automaton is exponential in the length of the pattern.
    node = regex.search("[ab](?=[bc])" + "[abc]" * 12 + "1")
    assert sum(1 for _ in ir.walk(node)) < 2_000
    assert accepts(node, b"xxab" + b"c" * 11 + b"1xx")


def test_an_anchor_at_the_edge_of_what_is_repeated_needs_no_automaton() -> None:
    for pattern in (r"^(?:/?[a-z]+(?:/|$))+$", r"(?:(?:^|,)[a-z]+)*$"):
        node = regex.search(pattern)
        assert not any(isinstance(part, ir.Call) for part in ir.walk(node))
        for text in ("", "a", "/a", "/a/b", "a,b", "a//b", "a/", ",a", "a,", "1,a", "a/1"):
            assert (re.search(pattern, text) is not None) == accepts(node, text.encode()), text


ATOMS = st.sampled_from(["a", "b", "1", " ", ".", "[ab]", "[^a]", r"\w", r"\W", "a{2}"])
LOOKS = st.sampled_from([r"\b", "(?<=a)", "(?<!b)", "(?<=[ab]1)", "(?<!a.)", "^", "$"])


def patterns(depth: int) -> st.SearchStrategy[str]:
    if not depth:
        return ATOMS | LOOKS
    inner = patterns(depth - 1)
    return st.one_of(
        ATOMS | LOOKS,
        st.builds("{}{}".format, inner, inner),
        st.builds("(?:{}|{})".format, inner, inner),
        st.builds("(?:{}){}".format, inner, st.sampled_from(["*", "+", "?", "{1,2}", "{2,}"])),
        st.builds("(?={})".format, inner),
        st.builds("(?!{})".format, inner),
    )


PATTERNS = patterns(3)
TEXTS = st.lists(st.text("ab1 ", max_size=6), min_size=8, max_size=8)


@settings(max_examples=150, deadline=None)
@given(pattern=PATTERNS, texts=TEXTS)
def test_a_search_agrees_with_python(pattern: str, texts: list[str]) -> None:
    node = regex.search(pattern, dotall=True)
    for text in texts:
        assert (re.search(pattern, text, re.DOTALL) is not None) == accepts(node, text.encode()), text


@settings(max_examples=150, deadline=None)
@given(pattern=PATTERNS, texts=TEXTS)
def test_a_whole_match_agrees_with_python(pattern: str, texts: list[str]) -> None:
    try:
        node = regex.parse(f"^(?:{pattern})$")
    except GrammarError as error:
        assert "no text can match the pattern" == error.problem
        node = ir.NOTHING
    for text in texts:
        assert (re.fullmatch(pattern, text, re.DOTALL) is not None) == accepts(node, text.encode()), text


def test_nodes_combine_as_sets() -> None:
    word, short = regex.parse("[a-z]+1?"), regex.parse(".{0,3}")
    both = regex.intersect(word, short)
    assert [True, False, False] == [accepts(both, text) for text in (b"ab1", b"abc1", b"1")]
    other = regex.intersect(barred=(word,))
    assert [False, True, True] == [accepts(other, text) for text in (b"ab1", b"1", b"")]
    assert [True, False] == [accepts(regex.shortest(regex.parse("a+b?|aab")), text) for text in (b"a", b"aab")]
    plain = regex.restrict(regex.parse('[^x]*|"'), ir.complement([(34, 34), (92, 92)]))
    assert [True, False, False] == [accepts(plain, text) for text in (b"ab", b'"', b"a\\")]


def test_nodes_with_calls_combine_too() -> None:
    # Lookarounds in a search leave rules behind, which call each other at their end.
    odd = regex.search("^(?!.*aa)(?!.*bb)[ab]{2,}$")
    assert any(isinstance(node, ir.Call) for node in ir.walk(odd))
    both = regex.intersect(odd, regex.parse("a.*"), barred=[regex.parse(".*b")])
    assert [True, False, False] == [accepts(both, text) for text in (b"aba", b"bab", b"ab")]
    assert [False, True] == [accepts(regex.intersect(barred=(odd,)), text) for text in (b"aba", b"aab")]
    plain = regex.restrict(regex.search("^(?!.*aa)(?!.*cc)[abc]{2,}$"), ir.complement([(97, 97)]))
    assert [True, False] == [accepts(plain, text) for text in (b"bcb", b"aba")]
    bare = regex.without(odd, [b"ba"])
    assert [True, False] == [accepts(bare, text) for text in (b"ab", b"bab")]


LENGTHS = [
    # pattern, fewest and most characters, most nodes in which it can be said
    ("^https?://.+$", 0, 2000, 20),
    ("^[a-z]+$", 5, 50_000, 2),
    ("^(?:ab|c)d*$", 3, 90, 12),
    ("^[a-z]{1,32}(?:-[a-z]{1,32}){1,3}$", 0, 128, 3_000),
    ("^(?![^@]{9})[a-z]+(?:-[a-z]+)*@[a-z]{1,9}$", 0, 17, 200),
]


@pytest.mark.parametrize(("pattern", "low", "high", "most"), LENGTHS)
def test_a_length_beside_a_pattern_stays_small(pattern: str, low: int, high: int, most: int) -> None:
    rule = ir.Rule("root", regex.language([pattern], (), low, high))
    assert sum(1 for one in ir.reachable(rule) for _ in ir.walk(one.body)) <= most


def test_a_length_that_needs_too_many_states_is_refused() -> None:
    with pytest.raises(LimitError, match="too many states"):
        regex.language([r"^(?:\S+\s+){0,499}\S+$"], (), 0, 5000)


SIZED = st.sampled_from(["a*b?", "(ab|a)+", "a{2,3}b*", "[ab]+1[ab]+", "(a|bb)*1?", "(?!ab)[ab]*", "", "a.*b"])


@settings(max_examples=100, deadline=None)
@given(patterns=st.lists(SIZED, max_size=2), low=st.integers(0, 3), more=st.integers(0, 3), texts=TEXTS)
def test_lengths_beside_patterns_agree_with_python(patterns: list[str], low: int, more: int, texts: list[str]) -> None:
    node = regex.language([f"^(?:{pattern})$" for pattern in patterns], (), low, low + more)
    for text in texts:
        fits = low <= len(text) <= low + more and all(re.fullmatch(pattern, text) for pattern in patterns)
        assert fits == accepts(node, text.encode()), text


KEYS = st.lists(
    st.sampled_from(["^a", "^(?:a|b1)$", "a1", "^(ab|b)", "b$", "^[ab]$", "^ab1(?: .*)?$", "^b{1,2}$", "^1+"])
)
WORDS = st.lists(st.text("ab1 \0é", max_size=3), max_size=5)


@settings(max_examples=200, deadline=None)
@given(wanted=KEYS, barred=KEYS, words=WORDS, texts=TEXTS)
def test_barred_words_and_patterns_agree_with_python(
    wanted: list[str], barred: list[str], words: list[str], texts: list[str]
) -> None:
    node = regex.language(wanted, barred, words=words)
    again = regex.intersect(node, barred=[regex.intersect(barred=(node,))])
    for text in (*texts, *words, "a", "b1", "ab", "bb"):
        fits = text not in words and all(re.search(one, text) for one in wanted)
        fits = fits and not any(re.search(one, text) for one in barred)
        assert fits == accepts(node, text.encode()) == accepts(again, text.encode()), text


DISTINCT = [
    # patterns that are wanted, and barred ones, words among them, that say nothing or little beside these
    (["^http://a/x$"], ["^http://a/y", "^https"], [], 2),
    (["^a.*"], ["^b", "^(?:c|d)$"], ["b", "cd"], 4),
    ([], ["^(?:id|kind|size)$", "^name$"], ["id", "x" * 200, "y" * 200], 1),
    ([], ["^_"], ["alpha", "beta" * 50], 20),
    ([], [r"^[\ud7fe-\ue001]$"], ["a"], 99),
]


@pytest.mark.parametrize(("wanted", "barred", "words", "most"), DISTINCT)
def test_patterns_that_exclude_each_other_and_words_are_not_multiplied(
    wanted: list[str], barred: list[str], words: list[str], most: int
) -> None:
    pending = [regex.language(wanted, barred, words=words)]
    count = 0
    while pending:
        node = pending.pop()
        count += 1
        if isinstance(node, ir.Call):
            pending.append(node.rule.body)
        elif not isinstance(node, ir.Unlisted):
            pending += ir.children(node)
    assert count <= most


def test_words_that_would_be_long_are_not_written_out() -> None:
    long = "^(?:(?:(?:a{200}){200}){200}){200}$"
    with pytest.raises(LimitError):
        regex.language([], [long])
    node = regex.language(["^b"], [long, "^" + "c" * 10_000], words=["bc", "b" * 300])
    rule = ir.Rule("root", node)
    assert [True, False, False] == [engine.accepts(rule, text) for text in (b"b" * 299, b"b" * 300, b"bc")]


@given(
    edges=st.lists(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 9)), max_size=3), min_size=1, max_size=8),
    accepting=st.sets(st.integers(0, 7), min_size=1),
)
@settings(max_examples=500)
def test_the_smallest_automaton_tells_all_its_states_apart(
    edges: list[list[tuple[int, int]]], accepting: set[int]
) -> None:
    count = len(edges)
    given: list[dict[int, int]] = [{} for _ in edges]
    for at, one in enumerate(edges):
        for symbol, target in dict(one).items():
            given[at][target % count] = given[at].get(target % count, 0) | 1 << symbol
    full = Automaton([((97 + symbol, 97 + symbol),) for symbol in range(2)], given)
    full.accepting = {state for state in accepting if state < count}
    small = minimize(full)
    words = ["".join(word) for length in range(8) for word in product("ab", repeat=length)]
    assert [word for word in words if takes(full, 0, word)] == [word for word in words if takes(small, 0, word)]
    if small.accepting:
        # Two of at most eight states, and one that is dead, differ in a word of less than eight characters.
        rests = {tuple(takes(small, state, word) for word in words) for state in range(len(small.edges))}
        assert len(rests) == len(small.edges)


def takes(automaton: Automaton, state: int | None, word: str) -> bool:
    for char in word:
        edges = {} if state is None else automaton.edges[state]
        state = next((to for to, mask in edges.items() if mask >> (ord(char) - 97) & 1), None)
    return state in automaton.accepting


@settings(max_examples=150, deadline=None)
@given(pattern=PATTERNS, texts=TEXTS)
def test_what_is_asked_about_a_language_agrees_with_python(pattern: str, texts: list[str]) -> None:
    node = regex.search(f"^(?:{pattern})$", dotall=True)
    short = ["".join(word) for length in range(4) for word in product("ab1 ", repeat=length)]
    taken = [word for word in short if re.search(f"^(?:{pattern})$(?!\n)", word, re.DOTALL)]
    assert taken == [word for word in short if regex.admits(node, word)]
    few = regex.intersect(node, ir.Repeat(ir.chars([(ord(char), ord(char)) for char in "ab1 "]), 0, 3))
    assert len(taken) == regex.count(few, 200)
    assert regex.count(few, len(taken)) is None
    for text in texts:
        assert (re.fullmatch(pattern, text, re.DOTALL) is not None) == regex.admits(node, text), text


GROWS = [("^a*$", True), ("^a*b$", False), ("a", True), ("^(ab)+$", True), ("^[a-z]{1,9}$", False), ("^(a+|b)$", False)]


@pytest.mark.parametrize(
    ("pattern", "expected"), [*GROWS, ("^a{0,100000}b*$", True), ("^a{0,100000}(bb)*$", False), ("^(?!a)[ab]*$", True)]
)
def test_a_language_grows_where_every_beginning_goes_on_forever(pattern: str, expected: bool) -> None:
    assert expected == regex.grows(regex.search(pattern))
