"""What Transformers answers for response templates, and where we answer otherwise."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dovetail as dt

DIFFERENCES = tomllib.loads((Path(__file__).parent.parent / "known_differences.toml").read_text())
RECORDS = "transformers"


def records(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    return map(json.loads, (folder / RECORDS / name).read_text().splitlines())


def plain(value: Any) -> Any:
    """A value as it is recorded: a float that is not finite is an object."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, list) else value


def same(left: Any, right: Any) -> bool:
    """Equal with equal types: 1, 1.0 and true are three things."""
    return repr(plain(left)) == repr(right)


def read(record: dict[str, Any]) -> Any:
    return dt.parse_response(record["text"], record["template"], prefix=record["prefix"], tools=record["tools"])


def test_messages_are_those_of_transformers_also_where_its_own_depend_on_the_chunks(conformance: Path) -> None:
    found = {
        record["id"]
        for record in records(conformance, "response_cases.jsonl")
        if not same(read(record), record["expected"])
    }
    assert DIFFERENCES["response_messages"].keys() == found


def same_stream(record: dict[str, Any]) -> bool:
    parser = dt.ResponseParser(record["template"], record["prefix"], tools=record["tools"])
    events = [parser.initial_events, *(parser.feed(chunk) for chunk in record["chunks"])]
    message, final = parser.finalize()
    return same(
        [*events, final, message],
        [record["initial_events"], *record["events"], record["final_events"], record["message"]],
    )


def test_events_come_with_the_chunks_that_they_come_with_in_transformers(conformance: Path) -> None:
    found = {
        record["id"].partition("#")[0]
        for record in records(conformance, "response_events.jsonl")
        if not record["error"] and record.get("equals_whole", True) and not same_stream(record)
    }
    assert (DIFFERENCES["response_messages"] | DIFFERENCES["response_events"]).keys() == found


def refused(record: dict[str, Any]) -> bool:
    try:
        dt.ResponseParser(record["template"], "") if record["kind"] == "template" else read(record)
    except dt.InputError:
        return True
    return False


def test_what_transformers_refuses_is_refused(conformance: Path) -> None:
    found = {record["id"] for record in records(conformance, "response_errors.jsonl") if not refused(record)}
    assert DIFFERENCES["response_refusals"].keys() == found


class Letters:
    """The tokenizer of the recorded ids: one token a character, printable ones first."""

    def decode(self, ids: Any) -> str | list[str]:
        ids = np.asarray(ids).tolist()
        return self._text(ids) if not ids or isinstance(ids[0], int) else [self._text(one) for one in ids]

    def _text(self, ids: list[int]) -> str:
        return "".join({198: "\n", 220: " "}.get(token, chr(token + 33)) for token in ids)


def given(value: Any) -> Any:
    return np.array(value["$array"]) if isinstance(value, dict) else value


def test_batches_are_read_like_their_parts(conformance: Path) -> None:
    wrong = []
    for record in records(conformance, "response_batches.jsonl"):
        response, prefix = given(record["response"]), given(record["prefix"])
        try:
            got = dt.parse_response(response, record["template"], prefix=prefix, tokenizer=Letters())
        except dt.InputError:
            got = None
        if got != record.get("result"):
            wrong.append(record["id"])
    assert [] == wrong


def test_after_an_error_the_rest_is_read_and_nothing_is_lost(conformance: Path) -> None:
    """Where Transformers stays in the broken region forever."""
    for record in records(conformance, "response_after_error.jsonl"):
        chunks = [step["chunk"] for step in record["log"]]
        kept = dt.ResponseParser(record["template"], record["prefix"], tools=record["tools"], on_malformed="keep")
        raising = dt.ResponseParser(record["template"], record["prefix"], tools=record["tools"])
        events, wanted = [], []
        for chunk in chunks:
            wanted += kept.feed(chunk)
            events += collected(raising, chunk)
        broken = [found.raw for found in kept.diagnostics]
        assert broken == [found.raw for found in raising.diagnostics]
        opened = [event["field"] for event in wanted if event["type"] == "region_open"]
        assert opened == [event["field"] for event in events if event["type"] == "region_open"]


def collected(parser: dt.ResponseParser, chunk: str) -> list[dict[str, Any]]:
    """All events of a chunk, those before each error included."""
    events: list[dict[str, Any]] = []
    while True:
        try:
            return events + parser.feed(chunk)
        except dt.ResponseError as error:
            events += error.events
            chunk = ""


@pytest.mark.parametrize("size", [1, 16, 1000])
def test_templates_on_which_transformers_never_ends_do_end(conformance: Path, size: int) -> None:
    for record in json.loads((conformance / RECORDS / "response_hangs.json").read_text()):
        text = record["text"]
        chunks = [text[at : at + size] for at in range(0, len(text), size)]
        kept = dt.ResponseParser(record["template"], "", on_malformed="keep", spans=True, time_limit=0.1)
        events = [event for chunk in chunks for event in kept.feed(chunk)]
        events += kept.finalize()[1]
        spans = [(event["start"], event["end"]) for event in events]
        spans += [(span.start, span.end) for span in kept.unclaimed]
        assert len(text) == sum(end - start for start, end in spans)
        problems = [found.code for found in kept.diagnostics]
        assert (["undecided"] if "backtracking" in record["id"] else []) == problems
        assert problems == told(dt.ResponseParser(record["template"], "", time_limit=0.1), chunks)


def told(parser: dt.ResponseParser, chunks: list[str]) -> list[str]:
    """The error that a parser raises, if it does."""
    try:
        for chunk in chunks:
            parser.feed(chunk)
        parser.finalize()
    except dt.ResponseError:
        return [found.code for found in parser.diagnostics]
    return []
