"""What formats mean: tables of texts, the shape of the grammar where speed hangs on it, and a peer as oracle."""

from __future__ import annotations

import json
from typing import Any

import pytest
import xgrammar
from hypothesis import given, settings
from hypothesis import strategies as st
from xgrammar.testing import _is_grammar_accept_string

from dovetail.engine import Vocabulary, accepts, compile
from dovetail.errors import DovetailError, GrammarError, LimitError, SchemaError
from dovetail.formats import load_format
from dovetail.grammar import ir
from dovetail.grammar.lower import lower

TEXT = {"type": "any_text"}


def const(value: str) -> dict[str, Any]:
    return {"type": "const_string", "value": value}


def text(*excludes: str, **budget: int) -> dict[str, Any]:
    return {"type": "any_text", "excludes": list(excludes), **budget}


def tag(begin: Any, content: Any, end: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def sequence(*elements: Any) -> dict[str, Any]:
    return {"type": "sequence", "elements": list(elements)}


def choice(*elements: Any) -> dict[str, Any]:
    return {"type": "or", "elements": list(elements)}


def triggered(triggers: list[str], *tags: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "triggered_tags", "triggers": triggers, "tags": list(tags), **fields}


def separated(separator: str, *tags: Any, **fields: Any) -> dict[str, Any]:
    return {"type": "tags_with_separator", "tags": list(tags), "separator": separator, **fields}


def dispatch(*rules: tuple[str, Any], **fields: Any) -> dict[str, Any]:
    return {"type": "dispatch", "rules": [list(rule) for rule in rules], **fields}


def repeat(low: int, high: int, content: Any) -> dict[str, Any]:
    return {"type": "repeat", "min": low, "max": high, "content": content}


def many(kind: str, content: Any) -> dict[str, Any]:
    return {"type": kind, "content": content}


def named(name: str, content: Any) -> dict[str, Any]:
    return {"type": "capture", "name": name, "content": content}


F, G = tag("<f>", const("1"), "</f>"), tag("<g>", const("2"), "</g>")

LANGUAGES: list[tuple[str, dict[str, Any], list[str], list[str]]] = [
    # what it shows, format, accepted, refused
    ("a constant", const("é"), ["é"], ["", "e", "éé"]),
    ("an empty constant", const(""), [""], ["a"]),
    ("free text", TEXT, ["", "a", "é🦋", "<think>"], []),
    ("excluded text may begin at the end", text("abc"), ["ab", "aab"], ["abc", "xabcx"]),
    ("a budget of characters", text(max_chars=2), ["", "é", "🦋🦋"], ["abc"]),
    ("a budget of none", tag("<", text(max_chars=0), ">"), ["<>"], ["<a>"]),
    ("a budget that is none", tag("<", text(max_chars=2**31 - 1), ">"), ["<>", "<abc>"], ["<a>>"]),
    ("sequence", sequence(const("a"), const("b")), ["ab"], ["a", "ba"]),
    ("or", choice(const("a"), const("b")), ["a", "b"], ["", "ab"]),
    ("optional", many("optional", const("a")), ["", "a"], ["aa"]),
    ("plus", many("plus", const("a")), ["a", "aaa"], ["", "ab"]),
    ("star", many("star", const("a")), ["", "a", "aaa"], ["ab"]),
    ("repeat", repeat(2, 3, const("a")), ["aa", "aaa"], ["a", "aaaa"]),
    ("repeat without bound", repeat(2, -1, const("a")), ["aa", "a" * 50], ["a"]),
    ("repeat beyond counting", repeat(1, 2**31 - 1, const("a")), ["a", "a" * 50], [""]),
    ("regex", {"type": "regex", "pattern": "[A-Z]{3}-[0-9]{4}"}, ["ABC-1234"], ["ABC-123", "abc-1234"]),
    ("grammar", {"type": "grammar", "grammar": 'root ::= "yes" | "no"'}, ["yes", "no"], ["", "maybe"]),
    # ends
    ("a tag ends at its end", tag("<t>", TEXT, "</t>"), ["<t></t>", "<t>a</t</t>"], ["<t>", "<t></t></t>"]),
    ("any of several ends", tag("<", TEXT, [">", "!"]), ["<a>", "<a!"], ["<a>!", "<a>>"]),
    ("an end that begins another one", tag("<", TEXT, ["a", "ab"]), ["<a", "<xab"], ["<aab", "<abb"]),
    ("an empty end makes the end optional", tag("<", TEXT, ["", ">"]), ["<", "<a", "<a>"], ["<a>>"]),
    ("an optional end after a constant", tag("<", const("k"), ["", "x"]), ["<k", "<kx"], ["<", "<kxx"]),
    ("only free text knows the end", tag("<", const("a>b"), ">"), ["<a>b>"], ["<a>"]),
    ("the end reaches into sequences", tag("<", sequence(const("a"), TEXT), ">"), ["<a>", "<ab>"], ["<ab>>"]),
    ("and to their first element", tag("<", sequence(TEXT, const("X")), ">"), ["<X>", "<XX>"], ["<>X>"]),
    ("an element is no end", sequence(TEXT, const("X")), ["X", "XX", "aXX"], ["", "Xa"]),
    ("an end inside a choice", tag("<", choice(TEXT, const(">!")), ">"), ["<a>", "<>!>"], ["<a>>", "<>!"]),
    ("an end through optional", tag("<", many("optional", TEXT), ">"), ["<>", "<a>"], ["<>>"]),
    ("an end through repetition", tag("<", many("star", text("b")), ">"), ["<>", "<aa>"], ["<>>", "<ab>"]),
    ("an end through captures", tag("<", named("a", named("b", TEXT)), ">"), ["<>", "<a>"], ["<>>"]),
    ("an end through a captured choice", tag("<", named("a", choice(TEXT, const("x"))), ">"), ["<x>"], ["<>>"]),
    ("only the nearest tag counts", tag("(", tag("<", TEXT, ">"), ")"), ["(<)>)"], ["(<)>"]),
    ("an inner tag without ends too", tag("(", tag("<", text("q"), ""), ")"), ["(<)", "(<))"], ["(<q)"]),
    ("ends that run into themselves", tag("<", TEXT, "aba"), ["<aba", "<ababa"], ["<abaaba", "<abababa"]),
    ("an exclude that runs into the end", tag("<", text("xa"), "ab"), ["<xab", "<ab"], ["<xaab"]),
    ("an exclude inside the end", tag("<", text("b"), "ab"), ["<ab", "<xab"], ["<bab"]),
    ("an exclude that holds the end", tag("<", text("xaby"), "ab"), ["<xab"], ["<xaby"]),
    # triggered tags
    ("free text, then a tag", triggered(["<f"], F), ["", "a<", "a<f>1</f>b", "<f>1</f><f>1</f>"], ["<f", "<f>2"]),
    ("a trigger for two tags", triggered(["<"], F, G), ["<f>1</f>", "a<g>2</g>b"], ["<h>", "<"]),
    ("two triggers", triggered(["<f", "<g"], F, G), ["<f>1</f><g>2</g>", "<h>"], ["<f>2</f>"]),
    ("a trigger without a tag", triggered(["<f", "<q"], F), ["<f>1</f>", "<"], ["<q", "<q>"]),
    ("two tags with one begin", triggered(["<f>"], F, tag("<f>", const("3"), "")), ["<f>1</f>", "<f>3x"], ["<f>4"]),
    ("at least one", triggered(["<f"], F, at_least_one=True), ["<f>1</f>", "<f>1</f>a"], ["", "a<f>1</f>"]),
    ("stop after first", triggered(["<f"], F, stop_after_first=True), ["", "a", "a<f>1</f>"], ["<f>1</f>a"]),
    (
        "exactly one",
        triggered(["<f"], F, at_least_one=True, stop_after_first=True),
        ["<f>1</f>"],
        ["", "a<f>1</f>", "<f>1</f>a", "<f>1</f><f>1</f>"],
    ),
    ("excludes hold for free text", triggered(["<f"], tag("<f>", const("q"), "."), excludes=["q"]), ["<f>q."], ["q"]),
    ("an exclude before the trigger wins", triggered(["<f"], F, excludes=["<"]), ["", "a"], ["<f>1</f>", "<"]),
    ("an exclude equal to the trigger wins", triggered(["<f"], F, excludes=["<f"]), ["", "<"], ["<f>1</f>"]),
    ("triggered tags inside a tag", tag("[", triggered(["<f"], F), "]"), ["[]", "[a<f>1</f>b]"], ["[]]", "[<f>1</f>"]),
    (
        "the first of them inside a tag",
        tag("[", triggered(["<f"], F, stop_after_first=True), "]"),
        ["[]", "[a]", "[a<f>1</f>]"],
        ["[<f>1</f>a]"],
    ),
    (
        "exactly one of them inside a tag",
        tag("[", triggered(["<f"], F, at_least_one=True, stop_after_first=True), "]"),
        ["[<f>1</f>]"],
        ["[]"],
    ),
    (
        "an end that runs into a trigger",
        tag("<", triggered(["ab"], tag("ab", const("1"), "")), "ba"),
        ["<aba"],
        ["<ab"],
    ),
    ("a trigger that holds the end", tag("<", triggered(["abc"], tag("abc", TEXT, "e")), "ab"), ["<ab"], ["<abce"]),
    # tags with a separator
    ("separated tags", separated(",", F, G), ["", "<f>1</f>", "<f>1</f>,<g>2</g>"], ["<f>1</f>,", "<f>1</f><g>2</g>"]),
    ("at least one of them", separated(",", F, at_least_one=True), ["<f>1</f>", "<f>1</f>,<f>1</f>"], [""]),
    ("the first of them", separated(",", F, stop_after_first=True), ["", "<f>1</f>"], ["<f>1</f>,<f>1</f>"]),
    ("an empty separator", separated("", F), ["", "<f>1</f><f>1</f>"], ["<f>1</f>,<f>1</f>"]),
    ("at least one without separator", separated("", F, at_least_one=True), ["<f>1</f><f>1</f>"], [""]),
    # dispatch
    ("dispatch", dispatch(("A", const("1"))), ["", "x", "xA1y", "A1A1"], ["A", "A2", "AA1"]),
    ("dispatch once", dispatch(("A", const("1")), loop=False), ["", "x", "xA1"], ["A1x", "A1A1"]),
    ("patterns that begin one another", dispatch(("A", const("1")), ("AB", const("2"))), ["A1", "AB2"], ["AB1", "A2"]),
    ("one pattern twice", dispatch(("A", const("1")), ("A", const("2"))), ["A1", "A2A1"], ["A3"]),
    ("dispatch excludes", dispatch(("A", const("q")), excludes=["q"]), ["Aq", "x"], ["q", "Aqq"]),
    ("dispatch has no automatic end", tag("<", dispatch(("A", const("1"))), ">"), ["<>>", "<A1>", "<a>A1>"], ["<A>"]),
    ("its excludes are its end", tag("<", dispatch(("A", const("1")), excludes=[">"]), ">"), ["<xA1y>"], ["<>>"]),
    ("text behind a pattern knows the end", tag("<", dispatch(("A", TEXT), loop=False), ">"), ["<xAy>"], ["<A>>"]),
]


@pytest.mark.parametrize(
    ("fmt", "accepted", "refused"), [case[1:] for case in LANGUAGES], ids=[case[0] for case in LANGUAGES]
)
def test_a_format_accepts_its_texts_and_no_others(fmt: Any, accepted: list[str], refused: list[str]) -> None:
    loaded = load_format(fmt)
    assert accepted == [sample for sample in accepted if accepts(loaded, sample)]
    assert [] == [sample for sample in refused if accepts(loaded, sample)]


# The shape of the grammar, where the core's caches and its speed hang on it.


def body(fmt: dict[str, Any]) -> ir.Node:
    return lower(load_format(fmt)).body


def test_free_text_reads_the_end_of_its_tag() -> None:
    expected = ir.Seq((ir.Lit(b"<t>", special=True), ir.Text((b"q",), ((b"</t>", ir.EMPTY),), after=None)))
    assert expected == body(tag("<t>", text("q"), "</t>"))


def test_an_optional_end_leaves_the_text_free_to_end() -> None:
    assert ir.Text((), ((b">", ir.EMPTY),), after=ir.EMPTY) == body(tag("", TEXT, ["", ">"]))


def test_the_end_moves_into_the_last_element_and_every_branch() -> None:
    stopping = ir.Text((), ((b">", ir.EMPTY),), after=None)
    one = ir.Lit(b"1", special=True)
    assert ir.Seq((one, stopping)) == body(tag("", sequence(const("1"), TEXT), ">"))
    assert ir.Alt((stopping, ir.Seq((one, ir.Lit(b">", special=True))))) == body(tag("", choice(TEXT, const("1")), ">"))


def test_captured_text_names_itself() -> None:
    assert ir.Text((), ((b">", ir.EMPTY),), None, ("a", "b")) == body(tag("", named("a", named("b", TEXT)), ">"))
    assert ir.Text(captures=("a",)) == body(named("a", TEXT))


def test_the_text_between_triggered_tags_can_be_named_alone() -> None:
    tags = {"type": "triggered_tags", "triggers": ["<"], "tags": [tag("<", const("x"), ">")], "text_capture": "a"}
    for fmt in (tags, tag("", tags, "!")):
        node = body(fmt)
        assert isinstance(node, ir.Call)
        assert isinstance(node.rule.body, ir.Text)
        assert ("a",) == node.rule.body.captures


def test_excludes_that_hold_an_end_are_left_out() -> None:
    assert ir.Text((b"q",), ((b">", ir.EMPTY),), after=None) == body(tag("", text("q", "->", ">"), ">"))


def test_text_with_a_budget_of_characters_reads_its_end_too() -> None:
    assert ir.Text((), ((b">", ir.EMPTY),), None, max_chars=3) == body(tag("", text(max_chars=3), ">"))


def test_a_budget_of_tokens_keeps_the_end_outside() -> None:
    node = body(tag("", text(max_tokens=3), ">"))
    assert isinstance(node, ir.Seq)
    assert ir.Lit(b">", special=True) == node.parts[1]
    assert isinstance(node.parts[0], ir.Text)
    assert ((b">",), ()) == (node.parts[0].excludes, node.parts[0].stops)


def test_triggered_tags_are_one_rule_that_calls_itself_last() -> None:
    call = body(tag("", triggered(["<f"], F), "]"))
    assert isinstance(call, ir.Call)
    rule = call.rule
    assert isinstance(rule.body, ir.Text)
    (trigger, arm), end = rule.body.stops
    assert (b"<f", (b"]", ir.EMPTY)) == (trigger, end)
    assert isinstance(arm, ir.Seq)
    assert ir.Call(rule) == arm.parts[-1]


def test_every_schema_is_a_rule_of_its_own() -> None:
    schema = {"type": "json_schema", "json_schema": {"type": "integer"}}
    tags = [tag(f"<{name}>", schema, ".") for name in "abc"]
    root = lower(load_format(triggered(["<"], *tags, at_least_one=True)))
    assert 3 == sum(rule.name == "json_schema" for rule in ir.reachable(root))


def test_the_tokens_of_a_format_stay_tokens() -> None:
    fmt = tag({"type": "token", "token": 1}, {"type": "any_tokens", "exclude_tokens": ["<a>"], "max_tokens": 4}, ">")
    expected = (ir.Tokens((1,)), ir.Repeat(ir.Tokens(("<a>",), exclude=True), 0, 4), ir.Lit(b">", special=True))
    assert ir.Seq(expected) == body(fmt)


# Tokens.

TOKENS = [b"a", b"b", b"<f>", b"</f>", b"<end>"]
SPECIAL = {"<f>": 2, "</f>": 3, "<end>": 4}


def matches(fmt: dict[str, Any], *ids: int) -> bool:
    matcher = compile(fmt, Vocabulary(TOKENS, SPECIAL, [4])).matcher()
    return all(map(matcher.accept, ids)) and matcher.is_complete


def token(ref: int | str) -> dict[str, Any]:
    return {"type": "token", "token": ref}


TOKEN_TAG = tag(token("<f>"), const("a"), token("</f>"))
LEVELS: list[tuple[str, dict[str, Any], list[list[int]], list[list[int]]]] = [
    ("a token by id", token(2), [[2]], [[0], []]),
    ("a token by its text", token("<f>"), [[2]], [[0], []]),
    ("any token but", {"type": "exclude_token", "exclude_tokens": ["a"]}, [[1], [2]], [[0], [1, 1]]),
    ("the end token is excluded", tag(token(2), {"type": "exclude_token"}, token(3)), [[2, 0, 3]], [[2, 3, 3]]),
    (
        "tokens up to the end token",
        tag(token(2), {"type": "any_tokens"}, token(3)),
        [[2, 3], [2, 0, 2, 3]],
        [[2, 3, 3]],
    ),
    ("a string end cuts no tokens", tag("", {"type": "any_tokens"}, "b"), [[1], [1, 1], [0, 1, 1]], [[0]]),
    ("a budget of tokens", {"type": "any_tokens", "max_tokens": 2}, [[], [0, 1]], [[0, 1, 0]]),
    (
        "token triggers",
        {"type": "token_triggered_tags", "trigger_tokens": ["<f>"], "tags": [TOKEN_TAG], "exclude_tokens": ["b"]},
        [[], [0], [2, 0, 3], [0, 2, 0, 3, 0]],
        [[1], [2], [2, 1, 3]],
    ),
    (
        "token triggers, at least one",
        {"type": "token_triggered_tags", "trigger_tokens": [2], "tags": [tag(token(2), const("a"), "")]}
        | {"at_least_one": True},
        [[2, 0], [2, 0, 1], [2, 0, 2, 0]],
        [[], [0, 2, 0]],
    ),
    (
        "token triggers, the first",
        {"type": "token_triggered_tags", "trigger_tokens": [2], "tags": [TOKEN_TAG], "stop_after_first": True},
        [[], [0], [0, 2, 0, 3]],
        [[2, 0, 3, 0]],
    ),
    (
        "token triggers, exactly one",
        {"type": "token_triggered_tags", "trigger_tokens": ["<f>"], "tags": [TOKEN_TAG]}
        | {"at_least_one": True, "stop_after_first": True},
        [[2, 0, 3]],
        [[], [0, 2, 0, 3], [2, 0, 3, 0]],
    ),
    (
        "token dispatch",
        {"type": "token_dispatch", "rules": [[2, const("a")], ["</f>", const("b")]]},
        [[], [0, 2, 0, 3, 1, 1], [2, 0, 2, 0]],
        [[2], [2, 1], [3, 0]],
    ),
    (
        "token dispatch once",
        {"type": "token_dispatch", "rules": [[2, const("a")]], "loop": False},
        [[2, 0]],
        [[2, 0, 0]],
    ),
]


@pytest.mark.parametrize(
    ("fmt", "accepted", "refused"), [case[1:] for case in LEVELS], ids=[case[0] for case in LEVELS]
)
def test_token_formats_match_ids(fmt: Any, accepted: list[list[int]], refused: list[list[int]]) -> None:
    assert accepted == [ids for ids in accepted if matches(fmt, *ids)]
    assert [] == [ids for ids in refused if matches(fmt, *ids)]


# Errors of what is inside.


@pytest.mark.parametrize(
    ("content", "error", "path"),
    [
        ({"type": "regex", "pattern": "("}, GrammarError, "/elements/1/content/pattern, "),
        ({"type": "grammar", "grammar": "root ::= )"}, GrammarError, "/elements/1/content/grammar, line 1"),
        ({"type": "json_schema", "json_schema": {"type": 3}}, SchemaError, "/elements/1/content/json_schema"),
    ],
    ids=["regex", "grammar", "json_schema"],
)
def test_an_error_inside_tells_its_place(content: dict[str, Any], error: type[DovetailError], path: str) -> None:
    with pytest.raises(error) as caught:
        body(sequence(const("a"), tag("<", content, ">")))
    assert str(caught.value.path).startswith(path)  # type: ignore[attr-defined]


def test_too_many_triggers_and_excludes_are_a_limit() -> None:
    rules = [(f"<{i}>", const("")) for i in range(1100)]
    with pytest.raises(LimitError):
        body(dispatch(*rules, excludes=[f"[{i}]" for i in range(1000)]))


def test_long_strings_that_overlap_everywhere_cost_little() -> None:
    excludes = ["a" * 10_000 + str(i) for i in range(500)]
    body(tag("<", text(*excludes), "a" * 200 + "b"))  # quadratic would be minutes


# A peer as oracle.


def peer_accepts(fmt: dict[str, Any], sample: str) -> bool:
    tag_json = json.dumps({"type": "structural_tag", "format": fmt})
    return bool(_is_grammar_accept_string(xgrammar.Grammar.from_structural_tag(tag_json), sample))


DIFFERENCES = [
    # format, text, what the peer answers, why we answer the opposite
    (
        dispatch(("abc", const("1")), ("b", const("2"))),
        "ab",
        True,
        "the pattern b has appeared, so its format must follow",
    ),
    (dispatch(("abc", const("1")), ("b", const("2"))), "abc1", True, "b commits before abc is complete"),
    (triggered(["a"], tag("a", const("1"), "")) | {"excludes": ["aaa"]}, "aa", True, "a trigger commits at once"),
    (dispatch(("ab", const("1")), ("b", const("2"))), "ab2", False, "both patterns have appeared"),
    (dispatch(("ab", const("1")), excludes=["xa"]), "xab1", False, "the free text is x, without an excluded string"),
]


@pytest.mark.parametrize(
    ("fmt", "sample", "peer"), [case[:3] for case in DIFFERENCES], ids=[case[3] for case in DIFFERENCES]
)
def test_differences_from_the_peer_are_these(fmt: dict[str, Any], sample: str, peer: bool) -> None:
    assert (peer, not peer) == (peer_accepts(fmt, sample), accepts(fmt, sample))


def formats(words: st.SearchStrategy[str], triggers: bool) -> st.SearchStrategy[dict[str, Any]]:
    """Formats over a few words; with `triggers` the words must not overlap, for there the peer has its own ways."""
    ends = words | st.lists(words | st.just(""), min_size=1, max_size=2).filter(any)
    leaves = st.one_of(
        st.builds(const, words),
        st.builds(lambda excludes: text(*excludes), st.lists(words, max_size=2)),
        st.builds(lambda excludes, n: text(*excludes, max_chars=n), st.lists(words, max_size=1), st.integers(0, 3)),
    )

    def extend(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
        tags = st.builds(tag, words, inner, ends)
        flags = st.fixed_dictionaries({"at_least_one": st.booleans(), "stop_after_first": st.booleans()})
        some = [
            tags,
            st.builds(lambda parts: sequence(*parts), st.lists(inner, min_size=1, max_size=3)),
            st.builds(lambda parts: choice(*parts), st.lists(inner, min_size=1, max_size=3)),
            st.builds(many, st.sampled_from(["optional", "plus", "star"]), inner),
            st.builds(
                lambda low, more, part: repeat(low, low + more, part), st.integers(0, 2), st.integers(0, 2), inner
            ),
            st.builds(lambda w, t, options: separated(w, *t, **options), words, st.lists(tags, min_size=1), flags),
        ]
        if triggers:
            some += [
                st.builds(
                    lambda t, options, excludes: triggered([t["begin"][:2]], t, excludes=excludes, **options),
                    tags,
                    flags,
                    st.lists(words, max_size=1),
                ),
                st.builds(
                    lambda word, part, loop, excludes: dispatch((word, part), loop=loop, excludes=excludes),
                    words,
                    inner,
                    st.booleans(),
                    st.lists(words, max_size=1),
                ),
            ]
        return st.one_of(some)

    return st.recursive(leaves, extend, max_leaves=4)


def pieces(node: Any) -> list[str]:
    if isinstance(node, dict):
        return [word for key, value in node.items() if key != "type" for word in pieces(value)]
    if isinstance(node, list):
        return [word for value in node for word in pieces(value)]
    return [node] if isinstance(node, str) else []


def assert_the_peer_agrees(fmt: dict[str, Any], data: st.DataObject) -> None:
    samples = data.draw(st.lists(st.lists(st.sampled_from([*pieces(fmt), "a", "c"]), max_size=7), max_size=12))
    try:
        loaded = load_format(fmt)
        grammar = xgrammar.Grammar.from_structural_tag(json.dumps({"type": "structural_tag", "format": fmt}))
    except (DovetailError, RuntimeError):
        return  # Refusals have tables of their own.
    for sample in map("".join, samples):
        assert bool(_is_grammar_accept_string(grammar, sample)) == accepts(loaded, sample), sample


@settings(max_examples=300)
@given(fmt=formats(st.text("ab", min_size=1, max_size=3), triggers=False), data=st.data())
def test_the_peer_agrees_however_ends_and_excludes_overlap(fmt: dict[str, Any], data: st.DataObject) -> None:
    assert_the_peer_agrees(fmt, data)


@settings(max_examples=300)
@given(fmt=formats(st.sampled_from(["<a>", "[b]", "(c)", "{d}"]), triggers=True), data=st.data())
def test_the_peer_agrees_on_triggers(fmt: dict[str, Any], data: st.DataObject) -> None:
    assert_the_peer_agrees(fmt, data)
