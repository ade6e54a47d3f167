"""What xgrammar answers for patterns, and the one place where we answer otherwise."""

from __future__ import annotations

import json
from pathlib import Path

from dovetail.errors import DovetailError
from dovetail.grammar import ir, regex
from tests.oracles import accepts

DIFFERENCES = {"regex-0054": "(?i) is regular, and we take it"}


def test_patterns_mean_what_they_mean_to_xgrammar(conformance: Path) -> None:
    differ: set[str] = set()
    for record in map(json.loads, (conformance / "xgrammar" / "regex.jsonl").read_text().splitlines()):
        try:
            node = regex.parse(record["regex"])
        except DovetailError:
            node = ir.NOTHING
        wrong = [text for text, wanted in record.get("cases", []) if accepts(node, text.encode()) != wanted]
        if wrong or ("error" in record) != (node == ir.NOTHING):
            differ.add(record["id"])
    assert DIFFERENCES.keys() == differ
