"""What XGrammar accepts under its built-in model styles, and where we answer otherwise."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import dovetail as dt

DIFFERENCES = tomllib.loads((Path(__file__).parent.parent / "known_differences.toml").read_text())


def test_model_styles_accept_what_they_accept_elsewhere(conformance: Path) -> None:
    found = set()
    for line in (conformance / "xgrammar" / "model_tags.jsonl").read_text().splitlines():
        record = json.loads(line)
        if record["via"] != "get_model_structural_tag":
            continue
        tag = dt.get_model_structural_tag(
            record["model"],
            tools=record["tools"],
            tool_choice=record["tool_choice"],
            reasoning=record["reasoning"],
            **record["options"],
        )
        if any(dt.accepts(tag, text) != wanted for text, wanted in record["cases"]):
            found.add(record["id"])
    assert DIFFERENCES["model_tags"].keys() == found
