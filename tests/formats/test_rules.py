"""What is refused, where, and in which words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dovetail.engine import accepts
from dovetail.errors import DovetailError, FormatError
from dovetail.formats import load_format

TEXT = {"type": "any_text"}
X = {"type": "const_string", "value": "x"}
EXCLUDING = {"type": "any_text", "excludes": ["q"]}


def tag(begin: Any, content: Any, end: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def token(ref: int | str) -> dict[str, Any]:
    return {"type": "token", "token": ref}


REFUSED: list[tuple[dict[str, Any], str, str]] = [
    # format, path, words of the problem
    ({"type": "unknown"}, "/type", "no format has the type"),
    ({"type": 3}, "/type", "no format has the type 3"),
    ({"type": None, "value": "x"}, "/type", "no format has the type null"),
    ({}, "", "no format has just these fields: none"),
    ({"invalid": 1}, "", "no format has just these fields: invalid"),
    ({"type": "const_string"}, "/value", "`value` is missing"),
    ({"type": "const_string", "value": "\ud800"}, "/value", "half of a surrogate pair"),
    ({"type": "grammar", "grammar": ""}, "/grammar", '`grammar` is ""'),
    ({"type": "json_schema", "json_schema": 3}, "/json_schema", "`json_schema` is 3"),
    ({"type": "json_schema", "json_schema": {}, "style": "yaml"}, "/style", '`style` is "yaml"'),
    ({"type": "json_schema", "json_schema": {}, "any_order": 1}, "/any_order", "`any_order` is 1"),
    ({"type": "json_schema", "json_schema": {}, "max_whitespace_cnt": -1}, "/max_whitespace_cnt", "is -1"),
    ({"type": "any_text", "excludes": ["a", ""]}, "/excludes/1", "an item of `excludes`"),
    ({"type": "any_text", "max_chars": True}, "/max_chars", "`max_chars` is true"),
    ({"type": "any_text", "max_tokens": 2**31}, "/max_tokens", "2147483648"),
    ({"type": "sequence", "elements": []}, "/elements", "`elements` is []"),
    ({"type": "sequence", "elements": [X, {"type": "tag"}]}, "/elements/1/begin", "`begin` is missing"),
    ({"type": "sequence", "elements": [X, tag("a", X, 3)]}, "/elements/1/end", "`end` is 3"),
    ({"type": "sequence", "elements": [X, tag("a", X, [])]}, "/elements/1/end", "`end` is []"),
    ({"type": "sequence", "elements": [X, tag("a", X, ["a", 3])]}, "/elements/1/end/1", "an item of `end` is 3"),
    ({"type": "optional", "content": 3}, "/content", "must be an object, not 3"),
    ({"type": "repeat", "min": 3, "max": 2, "content": X}, "/max", "`min` is 3 but `max` is 2"),
    ({"type": "repeat", "min": 1.5, "max": 2, "content": X}, "/min", "`min` is 1.5"),
    ({"type": "repeat", "min": 0, "max": -2, "content": X}, "/max", "`max` is -2"),
    (tag(token(-1), X, "a"), "/begin/token", "`token` is -1"),
    (tag(token(""), X, "a"), "/begin/token", '`token` is ""'),
    ({"type": "dispatch", "rules": []}, "/rules", "`rules` is []"),
    ({"type": "dispatch", "rules": [["", X]]}, "/rules/0/0", 'an item of `rules` is ""'),
    ({"type": "dispatch", "rules": [["a"]]}, "/rules/0/1", "missing"),
    ({"type": "dispatch", "rules": [["a", {"type": "tag"}]]}, "/rules/0/1/begin", "`begin` is missing"),
    ({"type": "token_dispatch", "rules": [[1.5, X]]}, "/rules/0/0", "an item of `rules` is 1.5"),
    ({"type": "capture", "name": "", "content": X}, "/name", '`name` is ""'),
    (
        {"type": "tags_with_separator", "tags": [X], "separator": ","},
        "/tags/0/type",
        '`type` is "const_string" here',
    ),
    # triggers
    ({"type": "triggered_tags", "triggers": ["A", "AB"], "tags": [tag("ABC", X, "e")]}, "/tags/0/begin", "several"),
    ({"type": "triggered_tags", "triggers": ["A", "A"], "tags": [tag("AB", X, "e")]}, "/tags/0/begin", "several"),
    ({"type": "triggered_tags", "triggers": ["B"], "tags": [tag("AB", X, "e")]}, "/tags/0/begin", "no trigger"),
    ({"type": "triggered_tags", "triggers": ["AB"], "tags": [tag("A", X, "e")]}, "/tags/0/begin", "no trigger"),
    ({"type": "triggered_tags", "triggers": ["A"], "tags": [tag(token(1), X, "e")]}, "/tags/0/begin", "a token"),
    ({"type": "token_triggered_tags", "trigger_tokens": [1], "tags": [tag("A", X, "e")]}, "/tags/0/begin", "a string"),
    (
        {"type": "token_triggered_tags", "trigger_tokens": [1], "tags": [tag(token(2), X, "e")]},
        "/tags/0/begin",
        "no trigger",
    ),
    (
        {"type": "token_triggered_tags", "trigger_tokens": [1, 1], "tags": [tag(token(1), X, "e")]},
        "/tags/0/begin",
        "several",
    ),
    # excludes of styles
    (
        {"type": "json_schema", "json_schema": {}, "style": "cohere_xml", "excludes": ["a"]},
        "/excludes",
        "cohere_xml has no `excludes`",
    ),
    (
        {"type": "json_schema", "json_schema": {}, "style": "qwen_xml", "excludes": ["a", " b"]},
        "/excludes/1",
        "begins or ends with the white space",
    ),
]


@pytest.mark.parametrize(("fmt", "path", "words"), REFUSED, ids=[str(case[0])[:60] for case in REFUSED])
def test_a_malformed_format_is_refused_with_its_place(fmt: dict[str, Any], path: str, words: str) -> None:
    for source, base in ((fmt, ""), ({"type": "structural_tag", "format": fmt}, "/format")):
        with pytest.raises(FormatError) as caught:
            load_format(source)
        assert base + path == caught.value.path
        assert words in caught.value.problem
        assert caught.value.fix


ENDLESS: list[dict[str, Any]] = [
    TEXT,
    {"type": "star", "content": X},
    {"type": "plus", "content": X},
    {"type": "repeat", "min": 0, "max": -1, "content": X},
    {"type": "repeat", "min": 0, "max": 2, "content": TEXT},
    {"type": "optional", "content": TEXT},
    {"type": "optional", "content": EXCLUDING},
    {"type": "sequence", "elements": [X, TEXT]},
    {"type": "sequence", "elements": [TEXT, X]},
    {"type": "or", "elements": [X, TEXT]},
    {"type": "or", "elements": [X, {"type": "star", "content": X}]},
    {"type": "capture", "name": "c", "content": TEXT},
    {"type": "dispatch", "rules": [["a", X]]},
    {"type": "dispatch", "rules": [["a", X]], "loop": False},
    {"type": "triggered_tags", "triggers": ["a"], "tags": [tag("a", X, "e")]},
    {"type": "tags_with_separator", "tags": [tag("a", X, "e")], "separator": ","},
    {"type": "any_tokens"},
    {"type": "token_dispatch", "rules": [[1, X]]},
    {"type": "token_triggered_tags", "trigger_tokens": [1], "tags": [tag(token(1), X, "e")]},
]
ENDING: list[dict[str, Any]] = [
    X,
    EXCLUDING,
    {"type": "sequence", "elements": [EXCLUDING, X]},
    {"type": "or", "elements": [X, EXCLUDING]},
    {"type": "capture", "name": "c", "content": EXCLUDING},
    {"type": "repeat", "min": 0, "max": 0, "content": TEXT},
    {"type": "repeat", "min": 0, "max": 2, "content": X},
    {"type": "dispatch", "rules": [["a", X]], "excludes": ["q"]},
    {"type": "any_tokens", "exclude_tokens": [1]},
    {"type": "exclude_token"},
    tag("a", TEXT, "e"),
    # A budget or exactly one tag bounds the content, although peers refuse these.
    {"type": "any_text", "max_chars": 3},
    {"type": "any_tokens", "max_tokens": 3},
    {
        "type": "triggered_tags",
        "triggers": ["a"],
        "tags": [tag("a", X, "e")],
        "at_least_one": True,
        "stop_after_first": True,
    },
    {"type": "tags_with_separator", "tags": [tag("a", X, "e")], "separator": ",", "stop_after_first": True},
]


@pytest.mark.parametrize("content", ENDLESS, ids=str)
def test_endless_content_needs_an_end(content: dict[str, Any]) -> None:
    for end in ("", [""], ["", ""]):
        with pytest.raises(FormatError, match="forever") as caught:
            load_format({"format": tag("<", content, end)})
        assert "/format/end" == caught.value.path
    for end in (">", ["", ">"], token(3)):
        assert load_format(tag("<", content, end))


@pytest.mark.parametrize("content", ENDING, ids=str)
def test_content_that_ends_itself_needs_no_end(content: dict[str, Any]) -> None:
    assert load_format(tag("<", content, ""))


def test_an_id_and_a_text_may_name_the_same_trigger_token() -> None:
    assert load_format({"type": "token_triggered_tags", "trigger_tokens": ["<a>"], "tags": [tag(token(1), X, "e")]})


def test_a_misspelled_type_is_answered_with_the_right_one() -> None:
    with pytest.raises(FormatError) as caught:
        load_format({"type": "triggered_tag"})
    assert 'did you mean "triggered_tags"?' == caught.value.fix


def test_recorded_refusals_are_refused(conformance: Path) -> None:
    for line in (conformance / "xgrammar" / "structural_tag_errors.jsonl").read_text().splitlines():
        record = json.loads(line)
        source = record["structural_tag"] if "structural_tag" in record else record["structural_tag_text"]
        with pytest.raises(DovetailError):
            accepts(load_format(source), "")
