"""Matcher calls recorded with XGrammar over small vocabularies, made again with ours."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

import dovetail as dt
from dovetail.grammar import ebnf
from tests.machines import mask

DIFFERENCES = tomllib.loads((Path(__file__).parent.parent / "known_differences.toml").read_text())["traces"]
FILES = {"structural_tag_token": "stt-", "ebnf_token": "ebnf-token-"}


@pytest.mark.parametrize("file", FILES)
def test_recorded_calls_get_the_same_answers(conformance: Path, file: str) -> None:
    found = set()
    for record in map(json.loads, (conformance / "xgrammar" / f"{file}.jsonl").read_text().splitlines()):
        for number, trace in enumerate(record["traces"]):
            try:
                same = replay(record, trace)
            except dt.DovetailError:
                same = False
            if not same:
                found.add(f"{record['id']}.{number}")
    assert {name for name in DIFFERENCES if name.startswith(FILES[file])} == found


def replay(record: dict[str, Any], trace: dict[str, Any]) -> bool:
    """Whether every call of the trace gets the recorded answer."""
    matcher = compile_record(record).matcher(trace["opts"].get("override_stop_tokens", ()))
    ends_alone = trace["opts"].get("terminate_without_stop_token", False)
    for call in trace["ops"]:
        match call:
            case ["accept_string", text, wanted]:
                data = bytes.fromhex(text["hex"]) if isinstance(text, dict) else text.encode()
                same = matcher.accept_bytes(data) == wanted
            case ["accept_token", token, wanted]:
                same = matcher.accept(token) == wanted
            case ["fill_next_token_bitmask", wanted, _]:  # the last part: whether there is anything to forbid
                same = mask(matcher) == set(wanted)
            case ["is_terminated", wanted]:
                same = (matcher.is_complete if ends_alone else matcher.is_finished) == wanted
            case ["is_completed", wanted]:
                same = matcher.is_complete == wanted
            case ["rollback", steps]:
                matcher.rollback(steps)
                same = True
            case ["reset"]:
                matcher.reset()
                same = True
            case ["temperature", _]:  # a hint for samplers, which says nothing about the language
                same = True
        if not same:
            return False
    return True


def compile_record(record: dict[str, Any]) -> dt.CompiledGrammar:
    tokenizer = record["tokenizer"]
    texts = [bytes.fromhex(t["hex"]) if isinstance(t, dict) else t.encode() for t in tokenizer["vocab"]]
    texts += [b""] * ((tokenizer["vocab_size"] or 0) - len(texts))
    vocabulary = dt.Vocabulary(texts, {}, tokenizer["stop_token_ids"])
    if record["kind"] == "structural_tag":
        return dt.compile(record["structural_tag"], vocabulary)
    return dt.compile(ebnf.parse(record["ebnf"], record.get("root_rule_name", "root")), vocabulary)
