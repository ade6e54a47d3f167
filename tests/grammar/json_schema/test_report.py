"""What is not held exactly is told, and can be left out."""

from __future__ import annotations

from typing import Any

import pytest

import dovetail as dt

UNIQUE = {"type": "array", "items": {"type": "string"}, "uniqueItems": True}


@pytest.mark.parametrize("style", ["json", "qwen_xml"])
def test_a_pattern_that_is_too_large_is_reported_in_every_style(style: str) -> None:
    long = {"type": "string", "pattern": "(a|b)*a(a|b){25}$", "not": {"pattern": "(a|b)*a(a|b){25}c$"}}
    report = dt.explain_schema({"type": "object", "properties": {"a": long}}, style=style)
    assert [("/properties/a", "pattern")] == [(one.pointer, one.keyword) for one in report.of("widened")]


def test_every_keyword_is_reported_with_its_place() -> None:
    schema = {"type": "object", "properties": {"a": UNIQUE, "b": {"type": "string", "enum": [1]}}, "title": "T"}
    report = dt.explain_schema(schema)
    assert [(f.pointer, f.keyword, f.status) for f in report.findings] == [
        ("", "type", "exact"),
        ("", "properties", "exact"),
        ("/properties/a", "type", "exact"),
        ("/properties/a", "items", "exact"),
        ("/properties/a", "uniqueItems", "widened"),
        ("/properties/a/items", "type", "exact"),
        ("/properties/b", "type", "impossible"),
        ("/properties/b", "enum", "impossible"),
    ]
    assert not report.is_exact
    assert "remembered" in report.of("widened")[0].why


def test_a_schema_without_values_is_impossible() -> None:
    assert {finding.status for finding in dt.explain_schema({"type": "string", "enum": [1]}).findings} == {"impossible"}


def test_all_keywords_that_are_not_exact_are_told_at_once() -> None:
    schema = {"type": "object", "properties": {"a": UNIQUE, "b": {"type": "string", "format": "regex"}}}
    with pytest.raises(dt.SchemaError) as caught:
        dt.accepts({"type": "json_schema", "json_schema": schema}, "{}")
    assert "/properties/a/uniqueItems" in caught.value.problem
    assert "/properties/b/format" in caught.value.problem


@pytest.mark.parametrize(("text", "wanted"), [('["a","b"]', True), ('["a","a"]', True), ("[1]", False)])
def test_what_is_too_much_can_be_left_out(text: str, wanted: bool) -> None:
    fmt: dict[str, Any] = {"type": "json_schema", "json_schema": UNIQUE, "on_inexact": "widen"}
    assert dt.accepts(fmt, text) == wanted


def test_documents_of_the_caller_can_be_referred_to() -> None:
    registry = {"https://example.com/name": {"type": "string", "maxLength": 3}}
    schema = {"$ref": "https://example.com/name"}
    assert dt.explain_schema(schema, registry=registry).is_exact
    with pytest.raises(dt.SchemaError, match="another document"):
        dt.explain_schema(schema)
