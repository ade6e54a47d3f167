"""Exported grammars accept the same texts in the engine that they are written for."""

from __future__ import annotations

from typing import Any

import pytest
import xgrammar
from hypothesis import given, settings
from hypothesis import strategies as st
from llguidance import LLMatcher, LLTokenizer
from xgrammar.testing import _is_grammar_accept_string

from dovetail import dialects
from dovetail.errors import ExportError
from dovetail.formats import load_format
from dovetail.grammar import ebnf, export, ir, regex
from tests.oracles import accepts

BYTES = LLTokenizer("byte")
BELOW_C = ir.Chars(((0x61, 0x62),))
AB_TWICE = ir.Repeat(BELOW_C, 2, None)


def rule(body: ir.Node) -> ir.Rule:
    return ir.Rule("root", body)


def looping() -> ir.Rule:
    loop = ir.Rule("tool calls", ir.NOTHING)
    arms = ((b"<a>", ir.seq(ir.lit("b"), ir.Call(loop))), (b"<b", ir.seq(ir.lit("a"), ir.Call(loop))))
    loop.body = ir.Text(excludes=(b"ab",), stops=arms)
    return loop


def left_recursive() -> ir.Rule:
    again = ir.Rule("start", ir.NOTHING)
    again.body = ir.alt(ir.seq(ir.Call(again), ir.lit("a")), ir.lit("b"), ir.EMPTY)
    return again


GRAMMARS = {
    "literal": rule(ir.lit('a"\\\n\r\t\x00\x01é😀/')),
    "counts": rule(ir.seq(ir.lit("ab"), ir.star(ir.lit("ba")), ir.Repeat(BELOW_C, 2, 3), ir.Repeat(ir.lit("b"), 0, 0))),
    "choices": rule(ir.seq(ir.alt(ir.lit("a"), ir.seq(ir.lit("b"), ir.optional(ir.lit("ab")))), AB_TWICE)),
    "class": rule(ir.chars([(0x2D, 0x2D), (0x5B, 0x5E), (0x61, 0x62), (0x22, 0x22), (0x1F600, 0x1F64F)])),
    "negated class": rule(ir.complement([(0x61, 0x62), (0x0A, 0x0A), (0xD800, 0xDFFF)])),
    "ascii bytes": rule(ir.Bytes(((0x61, 0x62),))),
    "dead branch": rule(ir.alt(ir.lit("a"), ir.seq(ir.lit("b"), ir.NOTHING), ir.Call(ir.Rule("dead", ir.Chars(()))))),
    "text": rule(ir.Text(excludes=(b"ab", b"b<"))),
    "text and then": rule(ir.Text(stops=((b"ab", ir.lit("b")), (b"b", ir.lit("a"))), after=ir.lit("a"))),
    "text to a stop": rule(ir.Text(stops=((b"ab", ir.EMPTY), (b"abb", ir.lit("<"))), after=None)),
    "stop inside a stop": rule(ir.Text(stops=((b"b", ir.lit("a")), (b"ab<", ir.lit("b"))))),
    "text loop": looping(),
    "short text": rule(ir.Text(max_chars=2, excludes=(b"ab",))),
    "short free text": rule(ir.seq(ir.Text(max_chars=3), ir.lit("b"))),
    "long free text": rule(ir.seq(ir.Text(min_chars=2), ir.lit("b"))),
    "long text": rule(ir.Text(min_chars=2, excludes=(b"ab",))),
    "short text to a stop": rule(ir.Text(stops=((b"ab", ir.EMPTY), (b"b<", ir.lit("a"))), after=None, max_chars=2)),
    "bounded text to a stop": rule(ir.Text((b"ba",), ((b"<b", ir.EMPTY),), None, max_chars=3, min_chars=2)),
    "without": rule(ir.seq(ir.Without(ir.star(ir.Chars(((0x3C, 0x3C), (0x61, 0x62)))), (b"aba", b"<<")), ir.lit("<"))),
    "counted without": rule(ir.Without(ir.Repeat(BELOW_C, 0, 4), (b"bb",))),
    "captures": rule(ir.Capture("x", ir.Text(captures=("y",), excludes=(b"b",)))),
    "left recursion": left_recursive(),
    "lookahead": rule(regex.parse("(?!ab)[ab]{2,4}|(?:(?!<b).)*<")),
}  # fmt: skip
PROBES = [
    *("", "a", "b", "<", "aa", "ab", "ba", "bb", "a<", "<a", "b<", "<<", "aab", "abb", "abba", "bab", "aba<", "abb<"),
    *("ababb", "<a>b", "x<a>bab", "<a>bz<ba<a>b", "<a>", "<b", "<ba", "xab", "ab<b", "b<b", "babab", "aaaa", "bbbbb"),
    *("-", "^", "]", "[", "\\", '"', "\n", "é", "😀", "zz", "zzz", "zzzz", "zzb", "zzzb", 'a"\\\n\r\t\x00\x01é😀/'),
]


def lark_accepts(grammar: str, text: str) -> bool:
    matcher = LLMatcher(BYTES, LLMatcher.grammar_from_lark(grammar), log_level=0)
    assert not matcher.is_error(), matcher.get_error()
    return (not text or bool(matcher.consume_tokens(list(text.encode())))) and bool(matcher.is_accepting())


@pytest.mark.parametrize("name", GRAMMARS)
def test_xgrammar_accepts_what_the_exported_grammar_accepts(name: str) -> None:
    theirs = xgrammar.Grammar.from_ebnf(export.ebnf(GRAMMARS[name]))
    wanted = [text for text in PROBES if accepts(GRAMMARS[name], text.encode())]
    assert wanted == [text for text in PROBES if _is_grammar_accept_string(theirs, text)]


@pytest.mark.parametrize("name", GRAMMARS)
def test_llguidance_accepts_what_the_exported_grammar_accepts(name: str) -> None:
    theirs = export.lark(GRAMMARS[name])
    wanted = [text for text in PROBES if accepts(GRAMMARS[name], text.encode())]
    assert wanted == [text for text in PROBES if lark_accepts(theirs, text)]


@pytest.mark.parametrize("name", GRAMMARS)
def test_an_exported_grammar_reads_back_as_the_same_language(name: str) -> None:
    for written in (export.gbnf(GRAMMARS[name]).grammar, export.ebnf(GRAMMARS[name])):
        again = ebnf.parse(written)
        for text in PROBES:
            assert accepts(GRAMMARS[name], text.encode()) == accepts(again, text.encode()), text


@pytest.mark.parametrize("name", GRAMMARS)
def test_behind_a_prefix_an_export_accepts_what_may_follow(name: str) -> None:
    texts = [text for text in PROBES if accepts(GRAMMARS[name], text.encode())]
    for prefix in sorted({text[:cut] for text in texts for cut in range(1, len(text) + 1)})[::5]:
        again = ebnf.parse(export.gbnf(GRAMMARS[name], prefix=prefix).grammar)
        for text in PROBES:
            assert accepts(GRAMMARS[name], (prefix + text).encode()) == accepts(again, text.encode()), (prefix, text)


def test_a_prefix_that_the_format_does_not_allow_is_refused() -> None:
    for write in (export.gbnf, export.ebnf, export.lark):
        with pytest.raises(ExportError, match="no text matches"):
            write({"type": "regex", "pattern": "ab+"}, prefix="ac")
        with pytest.raises(ExportError, match="20001 characters"):
            write({"type": "regex", "pattern": "a+"}, prefix="a" * 20_001)
    assert (
        "root ::= root-rest\nroot-rest ::= regex-rest\nregex-rest ::= [b]+\n"
        == export.gbnf({"type": "regex", "pattern": "ab+"}, prefix="a").grammar
    )


LEAVES = st.sampled_from(
    [
        *(ir.lit("a"), ir.lit("ab"), ir.Lit(b"<b", special=True), BELOW_C, ir.complement([(0x61, 0x61)]), ir.EMPTY),
        *(ir.Text(excludes=(b"b<",)), ir.Text(stops=((b"<a", ir.lit("b")),)), ir.Text(max_chars=1)),
        ir.Text(stops=((b"a", ir.EMPTY), (b"ab", ir.lit("a"))), after=None),
        ir.Text(stops=((b"<a", ir.EMPTY),), after=None, max_chars=2, min_chars=1),
        ir.Without(ir.star(BELOW_C), (b"ab", b"bb")),
    ]
)
NODES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(ir.seq, inner, inner),
        st.builds(ir.alt, inner, inner),
        st.builds(ir.Repeat, inner, st.sampled_from([0, 1, 2]), st.sampled_from([None, 2, 3])),
        st.builds(lambda body: ir.Call(ir.Rule("inner", body)), inner),
        st.builds(ir.Capture, st.just("name"), inner),
    ),
    max_leaves=5,
)
TEXTS = st.lists(st.text("ab<", max_size=5), min_size=5, max_size=5)


@settings(max_examples=80)
@given(body=NODES, texts=TEXTS)
def test_every_export_keeps_the_language(body: ir.Node, texts: list[str]) -> None:
    theirs = xgrammar.Grammar.from_ebnf(export.ebnf(rule(body)))
    read = ebnf.parse(export.gbnf(rule(body)).grammar)
    lark = export.lark(rule(body))
    for text in texts:
        wanted = accepts(rule(body), text.encode())
        assert wanted == _is_grammar_accept_string(theirs, text), text
        assert wanted == accepts(read, text.encode()), text
        assert wanted == lark_accepts(lark, text), text


REFUSED = [
    # node, languages that cannot say it, words of the message
    (ir.Lit(b"\xff"), "gbnf ebnf lark", "not well-formed UTF-8"),
    (ir.Bytes(((0x80, 0xFF),)), "gbnf ebnf lark", "no characters"),
    (ir.Text(excludes=(b"\xff",)), "gbnf ebnf lark", "not well-formed UTF-8"),
    (ir.Text(max_tokens=3), "gbnf ebnf lark", "budget of tokens"),
    (ir.Text(max_chars=5_000, excludes=(b"ab",)), "gbnf ebnf lark", "more than 10000 rules"),
    (ir.Text(excludes=(b"a" * 20_000,)), "gbnf ebnf lark", "more than 10000 rules"),
    (ir.NOTHING, "gbnf ebnf lark", "no text matches"),
    (ir.Chars(((0xD800, 0xDFFF),)), "gbnf ebnf lark", "no text matches"),
    (ir.Tokens(("<think>",)), "ebnf", "by id only"),
    (ir.Tokens(("think",)), "gbnf ebnf lark", "token"),
    (ir.Tokens(("<|a|>", "<|b|>"), exclude=True), "gbnf ebnf lark", "token"),
    (ir.Tokens((1, 2), exclude=True), "gbnf", "cannot exclude 2 tokens"),
    (ir.Tokens((), exclude=True), "gbnf ebnf", "token"),
    (ir.Repeat(ir.lit("a"), 0, 3_000), "gbnf", "no count above 2000"),
]


@pytest.mark.parametrize(("node", "languages", "words"), REFUSED, ids=lambda value: str(value)[:40])
def test_what_a_language_cannot_say_is_an_error_that_says_so(node: ir.Node, languages: str, words: str) -> None:
    for language in languages.split():
        with pytest.raises(ExportError) as caught:
            getattr(export, language)(rule(node))
        assert words in caught.value.problem
        assert "rule root" == caught.value.path
        assert caught.value.fix


def test_deep_nesting_is_refused_and_not_a_crash() -> None:
    node: ir.Node = ir.lit("a")
    for _ in range(5_000):
        node = ir.Repeat(node, 0, 2)
    with pytest.raises(ExportError, match="nest deeper"):
        export.ebnf(rule(node))


TOKENS = [
    # node, its GBNF, its EBNF, its Lark
    (ir.Tokens((7,)), "<[7]>", "Token(7)", "<[7]>"),
    (ir.Tokens((7, 8)), "(<[7]> | <[8]>)", "Token(7, 8)", "<[7,8]>"),
    (ir.Tokens((7,), exclude=True), "!<[7]>", "ExcludeToken(7)", "<[^7]>"),
]


@pytest.mark.parametrize(("node", "gbnf", "xgrammar_ebnf", "lark"), TOKENS)
def test_tokens_are_written_in_each_language(node: ir.Tokens, gbnf: str, xgrammar_ebnf: str, lark: str) -> None:
    assert f"root ::= {gbnf}\n" == export.gbnf(rule(node)).grammar
    assert f"root ::= {xgrammar_ebnf}\n" == export.ebnf(rule(node))
    assert f"%llguidance {{}}\nstart: {lark}\n" == export.lark(rule(node))
    assert not LLMatcher(BYTES, LLMatcher.grammar_from_lark(export.lark(rule(node))), log_level=0).is_error()
    assert xgrammar.Grammar.from_ebnf(export.ebnf(rule(node)))


def test_named_tokens_are_written_where_the_language_has_names() -> None:
    assert "root ::= <think>\n" == export.gbnf(rule(ir.Tokens(("<think>",)))).grammar
    assert "%llguidance {}\nstart: <|end|>\n" == export.lark(rule(ir.Tokens(("<|end|>",))))


def test_a_special_token_may_stand_for_its_text_in_lark() -> None:
    written = export.lark(rule(ir.Lit(b"x<t>", special=True)), special_tokens={"<t>": 7})
    assert '%llguidance {}\nstart: "x" ("<" "t" ">" | <[7]>)\n' == written
    assert "<[7]>" not in export.lark(rule(ir.Lit(b"x<t>")), special_tokens={"<t>": 7})


def test_names_are_made_fit_and_unique() -> None:
    inner = [ir.Rule(name, ir.lit(name)) for name in ("a b", "a_b", "a-b", "root", "1", "Start", "é")]
    whole = rule(ir.seq(*(ir.Call(each) for each in inner)))
    text = "".join(each.name for each in inner)
    assert _is_grammar_accept_string(xgrammar.Grammar.from_ebnf(export.ebnf(whole)), text)
    assert accepts(ebnf.parse(export.gbnf(whole).grammar), text.encode())
    assert lark_accepts(export.lark(whole), text)


def test_a_lazy_grammar_starts_at_its_triggers() -> None:
    lazy = export.gbnf(looping(), lazy=False)
    assert not lazy.lazy
    assert () == lazy.triggers
    called = ir.Rule("calls", ir.NOTHING)
    called.body = ir.Text(stops=((b"<tool_call>", ir.seq(ir.lit("{}"), ir.Call(called))),))
    lazy = export.gbnf(rule(ir.Capture("content", ir.Call(called))), lazy=True)
    assert lazy.lazy
    assert ("<tool_call>",) == lazy.triggers == lazy.preserved_tokens
    read = ebnf.parse(lazy.grammar)
    texts = (b"<tool_call>{}", b"<tool_call>{} then <tool_call>{}", b"hi <tool_call>{}", b"")
    assert [True, True, False, False] == [accepts(read, text) for text in texts]


@pytest.mark.parametrize("body", [ir.lit("a"), GRAMMARS["text and then"].body], ids=str)
def test_only_free_text_before_a_trigger_can_be_lazy(body: ir.Node) -> None:
    with pytest.raises(ExportError, match="begins with free text"):
        export.gbnf(rule(body), lazy=True)


def test_a_turn_with_forty_fields_is_small() -> None:
    kinds: list[dict[str, Any]] = [
        {"type": "string"},
        {"type": "integer", "minimum": 3, "maximum": 999},
        {"type": "string", "format": "date"},
        {"type": "array", "items": {"enum": ["a", "b"]}, "maxItems": 5},
        {"type": ["number", "null"]},
    ]
    fields = {f"field_{i}": kinds[i % len(kinds)] for i in range(40)}
    schema = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}
    tools = [{"type": "function", "function": {"name": "f", "parameters": schema}}]
    dialect = dialects.get("hermes")
    forced = export.gbnf(dialect.format(tools, tool_choice="required", reasoning=False))
    assert len(forced.grammar) < 10_000
    lazy = export.gbnf(dialect.format(tools, reasoning=False), lazy=True)
    assert len(lazy.grammar) < 10_000
    assert ("<tool_call>",) == lazy.triggers


def const(value: str) -> dict[str, Any]:
    return {"type": "const_string", "value": value}


def captured(value: str) -> dict[str, Any]:
    return {"type": "capture", "name": "n", "content": const(value)}


TAGS: list[tuple[dict[str, Any], list[str], list[str]]] = [
    # format, texts it accepts, texts it does not
    (captured("a"), ["a"], ["b"]),
    ({"type": "sequence", "elements": [captured("a"), const("b")]}, ["ab"], ["a"]),
    ({"type": "regex", "pattern": "[a-c]+x?"}, ["abcx"], ["x"]),
    ({"type": "regex", "pattern": "(?i)ab"}, ["aB", "AB"], ["b"]),
    ({"type": "regex", "pattern": r"(?!b)\p{L}+"}, ["é", "ab"], ["b1", "ba", "1"]),
    ({"type": "grammar", "grammar": 'root ::= . "b"'}, ["ab", "\nb"], ["b"]),
    ({"type": "grammar", "grammar": "root ::= [a-b]+"}, ["ab"], ["c"]),
    (
        {
            "type": "triggered_tags",
            "triggers": ["<f="],
            "tags": [{"type": "tag", "begin": "<f=a>", "content": captured("1"), "end": "</f>"}],
            "text_capture": "n",
        },
        ["x<f=a>1</f>y", ""],
        ["<f=b>"],
    ),
    (
        {"type": "dispatch", "rules": [["<c>", captured("1")]], "loop": False},
        ["x<c>1", ""],
        ["<c>2"],
    ),
    ({"type": "json_schema", "json_schema": {"type": "integer"}, "strict": True}, ["12"], ["a"]),
]  # fmt: skip


@pytest.mark.parametrize(("fmt", "yes", "no"), TAGS, ids=lambda value: str(value)[:60])
def test_xgrammar_reads_the_structural_tag(fmt: dict[str, Any], yes: list[str], no: list[str]) -> None:
    theirs = xgrammar.Grammar.from_structural_tag(export.structural_tag(load_format(fmt)))
    assert yes == [text for text in yes if _is_grammar_accept_string(theirs, text)]
    assert [] == [text for text in no if _is_grammar_accept_string(theirs, text)]


def test_a_whole_structural_tag_keeps_its_shape() -> None:
    tag = {"type": "structural_tag", "format": const("a")}
    assert tag == export.structural_tag(load_format(tag))


def test_an_open_schema_is_refused_with_its_path() -> None:
    inner = {"type": "json_schema", "json_schema": {"type": "object"}, "strict": False}
    with pytest.raises(ExportError) as caught:
        export.structural_tag(load_format({"type": "sequence", "elements": [const("a"), inner]}))
    assert "/format/elements/1/strict" == caught.value.path
