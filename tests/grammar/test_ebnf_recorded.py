"""What xgrammar answers for grammars, and where we answer otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dovetail.engine import accepts
from dovetail.errors import DovetailError
from dovetail.grammar import ebnf, ir
from tests.recorded import as_bytes, key, listed, records


def test_grammars_mean_what_they_mean_to_xgrammar(conformance: Path) -> None:
    recorded = {key(record): record for record in records(conformance / "xgrammar" / "ebnf.jsonl")}
    assert listed("ebnf", recorded) == {name for name, record in recorded.items() if differs(record)}


def differs(record: dict[str, Any]) -> bool:
    try:
        rule = ebnf.parse(record["ebnf"], record.get("root_rule_name", "root"))
    except DovetailError:
        return "error" not in record
    return "error" in record or any(wrong(rule, text, wanted) for text, wanted in record.get("cases", []))


def wrong(rule: ir.Rule, text: str | dict[str, str], wanted: bool) -> bool:
    return wanted != accepts(rule, as_bytes(text))
