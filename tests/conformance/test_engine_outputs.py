"""Outputs from the tests of vLLM's and SGLang's parsers, read by our dialects, whole and in pieces.

A case holds every answer that its peer may give. Tests of parsers that read calls or reasoning alone say nothing about
the other. Where no prompt is known a plug-in reads as the first start does; an engine can tell the three apart.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dovetail import dialects
from dovetail.dialects import Dialect
from dovetail.messages import Message

TESTS = Path(__file__).parent.parent
DIFFERENCES = tomllib.loads((TESTS / "known_differences.toml").read_text())["engine_outputs"]
FAMILIES = json.loads((TESTS / "dialects" / "engine_families.json").read_text())
COUNTED = ("agree", "wrong", "wrong-minor", "other", "missing family")
SPELLINGS = {"mistral": ("mistral", "ministral"), "qwen_3_5": ("qwen_3_5", "qwen_3")}


def starts(dialect: Dialect) -> Iterator[dict[str, str]]:
    """What an engine may know about the start of the output; the first one is nothing."""
    yield {}
    yield {"prompt": ""}
    if dialect.reasoning:
        yield {"prompt": dialect.turn.start + dialect.reasoning.start}


def read(dialect: Dialect, text: str, tools: Any, start: dict[str, str], size: int) -> Message:
    parser = dialect.parser(tools, **start)
    data = text.encode("utf-8", "surrogatepass")
    for at in range(0, len(data), size):
        parser.feed(data[at : at + size])
    return parser.finish()


def packed(arguments: Any) -> str:
    try:
        value = json.loads(arguments) if isinstance(arguments, str) else arguments
    except ValueError:
        return str(arguments)
    return json.dumps(value, sort_keys=True)


def agrees(message: Message, want: dict[str, Any], kind: str) -> bool:
    reasoning = message.reasoning.strip() == want["reasoning"].strip()
    content = message.content.strip() == want["content"].strip()
    if kind == "reasoning":
        return reasoning and content
    wanted = [(name, told[1] if isinstance(told, list) else packed(told)) for name, told in want["calls"]]
    calls = message.tool_calls
    made = (
        [(call.name, packed(call.arguments)) for call in calls],
        [(call.name, packed(call.value)) for call in calls],
    )
    return content and wanted in made and (reasoning if kind == "both" else not message.reasoning)


def good_starts(case: dict[str, Any], family: str) -> set[int]:
    """The starts from which the case is read as it should be."""
    found = set()
    for dialect in map(dialects.get, SPELLINGS.get(family, (family,))):
        for number, start in enumerate(starts(dialect)):
            for tools in [case["tools"]] if case["tools"] else [None, []]:
                whole = read(dialect, case["text"], tools, start, 1 << 20)
                assert whole == read(dialect, case["text"], tools, start, 3), case["text"]
                if any(agrees(whole, want, case["kind"]) for want in case["wants"]):
                    found.add(number)
    return found


def test_every_output_is_read_as_its_engine_reads_it_or_the_reason_is_known(conformance: Path) -> None:
    lines = (conformance / "engines" / "parser_cases.jsonl").read_text().splitlines()
    cases = [(number, json.loads(line)) for number, line in enumerate(lines, 1)]
    counted = [(number, case) for number, case in cases if case["judged"] in COUNTED]
    assert len(counted) == 906
    good = {number: good_starts(case, case["family"] or FAMILIES[case["peer"]]) for number, case in counted}
    known = {number for group in DIFFERENCES.values() for number in group.get("lines", ())}
    known_without_prompt = {number for group in DIFFERENCES.values() for number in group.get("without_prompt", ())}
    assert known == {number for number, found in good.items() if not found}
    assert known_without_prompt == {number for number, found in good.items() if found and 0 not in found}
