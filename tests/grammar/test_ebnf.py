"""EBNF and GBNF: what a grammar means, and the place of a mistake in it."""

from __future__ import annotations

import pytest
import xgrammar
from hypothesis import given, settings
from hypothesis import strategies as st
from xgrammar.testing import _is_grammar_accept_string

from dovetail.errors import GrammarError, LimitError
from dovetail.grammar import ebnf, ir
from tests.oracles import accepts

LANGUAGES = [
    # grammar, texts it accepts, texts it does not
    ('root ::= "a"', ["a"], ["", "aa"]),
    ('root ::= ""', [""], ["a"]),
    ('root ::= "a" ( ) "b"', ["ab"], ["a"]),
    ('root ::= "a" | "b" "c"', ["a", "bc"], ["ab"]),
    ('root ::= ("a" | "b")* "c"+ "d"?', ["c", "abccd"], ["d"]),
    ('root ::= "a"{2} "b"{1,2} "c"{1,} "d" { 0 , 1 }', ["aabc", "aabbccd"], ["abc", "aabbbc"]),
    ("root ::= [a]{2, -1}", ["aa", "aaaa"], ["a"]),
    ("root ::= [a-c] [^a-c] [-x] [x-]", ["ad-x", "béx-"], ["aax-"]),
    (r"root ::= [\x41\u0042\U00000043\]\-\^\\\n]+", ["ABC]-^\\\n"], ["D"]),
    ("root ::= [] | [^]", ["a", "\n", "😀"], [""]),
    (r'root ::= "\x41\u00e9\U0001F600\n\r\t\\\"\'\/\?\0\[\]"', ["Aé😀\n\r\t\\\"'/?\0[]"], []),
    (r'root ::= "\x123"', ["\x123"], []),
    ('root ::= "héllo 😀"', ["héllo 😀"], []),
    ("root ::= . .", ["ab", "\n😀"], ["a"]),
    ('root ::= a.b c-d _e 1f\na.b ::= "1"\nc-d ::= "2"\n_e ::= "3"\n1f ::= "4"', ["1234"], []),
    ('# head\nroot ::= a # tail\n  | "#"\r\n\r\na ::=\n\n  "x"\n  "y"\n# end', ["xy", "#"], ["x"]),
    ('root::="a"\rb::="c"', ["a"], []),
    ('root ::= (\n  "a" |\n  "b"\n)', ["a", "b"], []),
    ('root ::= root "a" | "a"', ["a", "aaa"], ["", "b"]),
    ('root ::= x "a" | "b"\nx ::= root', ["b", "baa"], ["a"]),
    ('root ::= y root "a" | "b"\ny ::= "" | "c"', ["b", "baa", "cba", "ccbaa"], ["a"]),
    ('root ::= "(" root ")" | ""', ["", "(())"], ["(", "())"]),
    ('root ::= a "c"\na ::= "a" (="b")', ["ac"], ["ab"]),
    ('root ::= TagDispatch(("<a>", b), ("<c>", b), excludes=("X",))\nb ::= "!"', ["", "x<a>!y<c>!z"], ["<a>", "X"]),
    ('root ::= TagDispatch(("t", b), loop_after_dispatch=false)\nb ::= "!"', ["", "xt!"], ["xt!y"]),
    ('root ::= TagDispatch(("t", b), ("t", c))\nb ::= "!"\nc ::= "?"', ["t!t?"], ["t"]),
    ('root ::= Substring("ab", "", "c", "d")', ["", "ab", "abcd", "cd"], ["a", "abd", "ac"]),
    (r'root ::= "<" Regex("[0-9]{2}\\.\\d") ">"', ["<12.3>"], ["<1.2>"]),
    ('root ::= Regex("a.b", flags="i")', ["AxB"], ["a\nb"]),
    (r'root ::= Regex(".+", json_string=true)', ["é x"], ['a"', "a\\", "\n"]),
    ('root ::= a "]"\na[max_chars=2, temperature=0.5] ::= [a-z]*', ["]", "ab]"], ["abc]"]),
    ('root ::= a\na[max_chars=3] ::= b "x"\nb ::= ("a" | "bc")*', ["x", "aax", "bcx"], ["aaax"]),
    ('root ::= a\na[max_chars=2] ::= TagDispatch(excludes=("z",))', ["", "ab"], ["abc", "z"]),
    ('root ::= "<" a ">"\na[lazy] ::= [a-z]+ "."?', ["<a>"], ["<ab>", "<a.>"]),
]

REFUSED = [
    # grammar, words of the message, place
    ("", "no rule `root`", "line 1, column 1"),
    ('a ::= "a"', "no rule `root`", "line 1, column 1"),
    ("root ::= a b", "`a` is not defined", "line 1, column 10"),
    ('root ::= "a"\nroot ::= "b"', "defined twice", "line 2, column 1"),
    ('::= "a"', "without a rule name", "line 1, column 1"),
    ('root ::= "a" b ::= "c"', "does not begin its line", "line 1, column 14"),
    ('root ::= "a" "', "does not end", "line 1, column 14"),
    ('root ::= "a\n"', "does not end", "line 1, column 10"),
    ("root ::= [a\n]", "does not end", "line 1, column 10"),
    ('root ::= "\\@"', "unknown escape", "line 1, column 11"),
    ('root ::= "\\uFF"', "needs 4 hexadecimal digits", "line 1, column 11"),
    ('root ::= "\\ud800"', "not a character", "line 1, column 11"),
    ("root ::= [\\d]", "unknown escape", "line 1, column 11"),
    ("root ::= [Z-A]", "backwards", "line 1, column 11"),
    ("root ::=", "expected an element, found the end", "line 1, column 9"),
    ('root ::= "a" |', "expected an element", "line 1, column 15"),
    ('root ::= ("a" | )', "expected an element, found `)`", "line 1, column 17"),
    ('root ::= ("a"', "expected `)`", "line 1, column 14"),
    ('root ::= "a")', "expected a rule", "line 1, column 13"),
    ('root ::= "a"++', "second repetition", "line 1, column 14"),
    ('root ::= "a"{1,3}{1,3}', "second repetition", "line 1, column 18"),
    ('root ::= "a"{3,2}', "backwards", "line 1, column 13"),
    ('root ::= "a"{,3}', "number of repetitions", "line 1, column 14"),
    ('root ::= "a"{1.5}', "not a number of repetitions", "line 1, column 14"),
    ('root ::= "a"{1 2}', "in a repetition", "line 1, column 16"),
    ("root ::= é", "unexpected character 'é'", "line 1, column 10"),
    ('root ::= "é" é', "unexpected character", "line 1, column 14"),
    ('root ::= "a" (="a") (="b")', "expected a rule", "line 1, column 21"),
    ('root ::= "a" (=("a" | "b"))', "lookahead with choices", "line 1, column 14"),
    ("root ::= Token()", "at least one", "line 1, column 10"),
    ('root ::= Token("a")', "must be a token id", "line 1, column 10"),
    ("root ::= Token(1", "expected `,` or `)`", "line 1, column 17"),
    ('root ::= TagDispatch(("", b))\nb ::= "a"', "is empty", "line 1, column 10"),
    ('root ::= TagDispatch("t", b)\nb ::= "a"', "pairs", "line 1, column 10"),
    ('root ::= TagDispatch(("t", "b"))', "name of a rule", "line 1, column 10"),
    ('root ::= TagDispatch(("t", b))', "`b` is not defined", "line 1, column 28"),
    ('root ::= TagDispatch(("ab", b), excludes=("a"))\nb ::= "a"', "never come", "line 1, column 10"),
    ('root ::= TagDispatch(excludes="a")', "must be a tuple", "line 1, column 22"),
    ('root ::= TagDispatch(stop="a")', "no argument `stop`", "line 1, column 22"),
    ('root ::= TagDispatch(loop_after_dispatch="a")', "true or false", "line 1, column 22"),
    ('root ::= TokenTagDispatch((3, b), excludes=(3,))\nb ::= "a"', "both a trigger", "line 1, column 10"),
    ('root ::= Regex("a", flags="m")', "flag 'm'", "line 1, column 10"),
    (r'root ::= Regex("(a)\\1")', "backreference", "line 1, column 10"),
    ("root ::= Regex()", "exactly one pattern", "line 1, column 10"),
    ("root ::= Substring(abc)", "must be a string", "line 1, column 10"),
    ('root[temperature=-0.1] ::= "a"', "no value", "line 1, column 1"),
    ('root[foo=1] ::= "a"', "`foo` of `root` is not supported", "line 1, column 1"),
    ('root[] ::= "a"', "malformed", "line 1, column 1"),
    ('root[max_chars=1, max_chars=2] ::= "a"', "malformed", "line 1, column 1"),
    ('root[max_tokens=3] ::= "a"*', "free text only", "line 1, column 1"),
    ('root[lazy] ::= "a" root | "a"', "recursive", "line 1, column 1"),
]

HOSTILE = [
    "root ::= " + "(" * 10_000,
    "root ::= " + "(" * 10_000 + '"a"' + ")" * 10_000,
    "root ::= Token(" + "(" * 10_000,
    'root ::= "a"{99999999999}',
    "root ::= <[99999999999]>",
    "#" * (1 << 23),
]


@pytest.mark.parametrize(("grammar", "yes", "no"), LANGUAGES, ids=lambda value: str(value)[:40])
def test_a_grammar_means_what_it_says(grammar: str, yes: list[str], no: list[str]) -> None:
    rule = ebnf.parse(grammar)
    assert yes == [text for text in yes if accepts(rule, text.encode())]
    assert [] == [text for text in no if accepts(rule, text.encode())]


@pytest.mark.parametrize(("grammar", "words", "place"), REFUSED, ids=lambda value: str(value)[:40])
def test_a_malformed_grammar_is_refused_with_its_place(grammar: str, words: str, place: str) -> None:
    with pytest.raises(GrammarError) as caught:
        ebnf.parse(grammar)
    assert words in caught.value.problem
    assert place == caught.value.path


@pytest.mark.parametrize("grammar", HOSTILE, ids=lambda grammar: grammar[:20])
def test_hostile_grammars_hit_a_limit_and_not_the_stack(grammar: str) -> None:
    with pytest.raises(LimitError):
        ebnf.parse(grammar)


def test_another_rule_may_be_the_root() -> None:
    assert accepts(ebnf.parse('a ::= "x"\nb ::= a "y"', root="b"), b"xy")


def test_a_lone_carriage_return_and_windows_line_ends_count_as_lines() -> None:
    for end in ("\n", "\r\n", "\r"):
        with pytest.raises(GrammarError, match="line 3, column 10"):
            ebnf.parse(f'# one{end}b ::= "x"{end}root ::= oops')


def test_literals_are_plain_text() -> None:
    assert ir.Lit(b"<|im_end|>", special=False) == ebnf.parse('root ::= "<|im_end|>"').body


TOKENS = [
    ("Token(3, 1, 3)", ir.Tokens((1, 3))),
    ("ExcludeToken(7)", ir.Tokens((7,), exclude=True)),
    ("<[1234]>", ir.Tokens((1234,))),
    ("!<[1234]>", ir.Tokens((1234,), exclude=True)),
    ("<think>", ir.Tokens(("<think>",))),
    ("!<|im_end|>", ir.Tokens(("<|im_end|>",), exclude=True)),
    ("<[5]>*", ir.star(ir.Tokens((5,)))),
]


@pytest.mark.parametrize(("element", "node"), TOKENS)
def test_tokens_are_read_in_both_spellings(element: str, node: ir.Node) -> None:
    assert node == ebnf.parse(f"root ::= {element}").body


def test_a_token_dispatch_is_free_tokens_between_tags() -> None:
    looped = ebnf.parse('root ::= TokenTagDispatch((3, b), excludes=(5,))\nb ::= "x"').body
    assert isinstance(looped, ir.Repeat)
    assert isinstance(looped.body, ir.Alt)
    assert ir.Tokens((3, 5), exclude=True) == looped.body.parts[0]
    once = ebnf.parse('root ::= TokenTagDispatch((3, b), loop_after_dispatch=false)\nb ::= "x"').body
    assert isinstance(once, ir.Seq)
    assert ir.star(ir.Tokens((3,), exclude=True)) == once.parts[0]


def test_a_rule_with_capture_reports_its_text() -> None:
    rule = ebnf.parse('root ::= a b\na[capture] ::= "x"\nb[capture="name"] ::= "y"')
    assert isinstance(rule.body, ir.Seq)
    bodies = [part.rule.body for part in rule.body.parts if isinstance(part, ir.Call)]
    assert [ir.Capture("a", ir.Lit(b"x")), ir.Capture("name", ir.Lit(b"y"))] == bodies


ELEMENTS = st.sampled_from(['"a"', '"ab"', "[ab]", "[^a]", "x", "y", '""'])
BODIES = st.recursive(
    ELEMENTS,
    lambda inner: st.one_of(
        st.builds("{} {}".format, inner, inner),
        st.builds("({} | {})".format, inner, inner),
        st.builds("({}){}".format, inner, st.sampled_from(["*", "+", "?", "{2}", "{0,2}", "{1,}"])),
    ),
    max_leaves=5,
)


@settings(max_examples=100, deadline=None)
@given(
    bodies=st.tuples(BODIES, BODIES, BODIES),
    texts=st.lists(st.text("abc", max_size=5), min_size=6, max_size=6),
)
def test_random_grammars_accept_what_xgrammar_accepts(bodies: tuple[str, str, str], texts: list[str]) -> None:
    grammar = 'root ::= {}\nx ::= {} | "c"\ny ::= {} | "b"\n'.format(*bodies)
    ours, theirs = ebnf.parse(grammar), xgrammar.Grammar.from_ebnf(grammar)
    for text in texts:
        assert _is_grammar_accept_string(theirs, text) == accepts(ours, text.encode()), (grammar, text)
