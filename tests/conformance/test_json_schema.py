"""What XGrammar answers for JSON Schemas: where we answer otherwise, a validator says the same or it is listed why."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonschema_rs

import dovetail as dt
from tests.fuzz.speak_schemas import read
from tests.recorded import as_bytes, key, listed, records

OPTIONS = {
    "json_format": "style",
    "strict_mode": "strict",
    "any_order": "any_order",
    "max_whitespace_cnt": "max_whitespace_cnt",
}


def as_format(record: dict[str, Any]) -> dict[str, Any]:
    """A recorded schema with those of its options that are about values, not about their spelling."""
    options = {OPTIONS[name]: value for name, value in record["options"].items() if name in OPTIONS}
    return {"type": "json_schema", "json_schema": record["schema"], **options}


def answer(source: dict[str, Any], text: bytes) -> bool:
    """Whether the text is accepted; a schema that is refused accepts nothing."""
    try:
        return dt.accepts(source, text)
    except dt.DovetailError:
        return False


def is_shown(schema: Any, text: bytes, ours: bool) -> bool:
    """Whether an independent validator gives our answer; a document with a key twice is none."""
    try:
        value = read(text)
    except ValueError:
        return not ours
    return ours == jsonschema_rs.validator_for(schema, validate_formats=True).is_valid(value)


def is_explained(record: dict[str, Any], source: dict[str, Any], text: bytes, theirs: bool) -> bool:
    ours = answer(source, text)
    return ours == theirs or (source.get("style", "json") == "json" and is_shown(record["schema"], text, ours))


def test_an_answer_that_differs_is_shown_to_be_right_or_listed(conformance: Path) -> None:
    found, present = set(), set()
    for record in records(conformance / "xgrammar" / "json_schema.jsonl"):
        present.add(key(record))
        source = as_format(record)
        cases = record.get("cases", [])
        if not all(is_explained(record, source, as_bytes(text), theirs) for text, theirs in cases):
            found.add(key(record))
    assert listed("json_schema", present) == found


def test_what_the_peer_refuses_is_refused_or_listed(conformance: Path) -> None:
    taken, present = set(), set()
    for record in records(conformance / "xgrammar" / "json_schema.jsonl"):
        if "error" in record:
            present.add(key(record))
            try:
                dt.accepts(as_format(record), "")
            except dt.DovetailError:
                continue
            taken.add(key(record))
    assert listed("json_schema_refusals", present) == taken
