"""What XGrammar answers for structural tags and operations on grammars, and where we answer otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dovetail as dt
from dovetail.grammar import ebnf, ir
from dovetail.grammar.lower import lower
from tests.recorded import DIFFERENCES, as_bytes, key, listed, records

OPERATIONS = {"union": ir.alt, "concat": ir.seq}


def differs(source: Any, cases: list[tuple[Any, bool]]) -> bool:
    try:
        return any(dt.accepts(source, as_bytes(text)) != wanted for text, wanted in cases)
    except dt.DovetailError:
        return True


def test_structural_tags_accept_what_they_accept_elsewhere(conformance: Path) -> None:
    recorded = {key(record): record for record in records(conformance / "xgrammar" / "structural_tag.jsonl")}
    found = {name for name, record in recorded.items() if differs(record["structural_tag"], record["cases"])}
    assert listed("structural_tag", recorded) == found


def test_structural_tags_refused_elsewhere_are_refused(conformance: Path) -> None:
    taken = []
    for record in records(conformance / "xgrammar" / "structural_tag_errors.jsonl"):
        try:
            dt.accepts(record.get("structural_tag", record.get("structural_tag_text")), "")
        except dt.DovetailError:
            continue
        taken.append(record["id"])
    assert [] == taken


def test_unions_and_concatenations_of_grammars(conformance: Path) -> None:
    found = set()
    for record in records(conformance / "xgrammar" / "grammar_ops.jsonl"):
        parts = [part_rule(part) for part in record["parts"]]
        calls = [ir.Call(part) for part in parts if part is not None]
        if len(calls) < len(parts) or differs(ir.Rule("root", OPERATIONS[record["op"]](*calls)), record["cases"]):
            found.add(record["id"])
    assert DIFFERENCES["grammar_ops"].keys() == found


def part_rule(part: dict[str, Any]) -> ir.Rule | None:
    if part["kind"] == "structural_tag":
        return lower(dt.load_format(part["structural_tag"]))
    return ebnf.parse(part["ebnf"]) if part["kind"] == "ebnf" else None
