"""What xgrammar answers for patterns, and the one place where we answer otherwise."""

from __future__ import annotations

from pathlib import Path

from dovetail.errors import DovetailError
from dovetail.grammar import ir, regex
from tests.oracles import accepts
from tests.recorded import key, listed, records


def test_patterns_mean_what_they_mean_to_xgrammar(conformance: Path) -> None:
    differ: set[str] = set()
    recorded = list(records(conformance / "xgrammar" / "regex.jsonl"))
    for record in recorded:
        try:
            node = regex.parse(record["regex"])
        except DovetailError:
            node = ir.NOTHING
        wrong = [text for text, wanted in record.get("cases", []) if accepts(node, text.encode()) != wanted]
        if wrong or ("error" in record) != (node == ir.NOTHING):
            differ.add(key(record))
    assert listed("regex", map(key, recorded)) == differ
