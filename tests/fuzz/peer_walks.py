"""Random documents of ours under real schemas, judged by XGrammar and llguidance.

    python -m tests.fuzz.peer_walks FILE.jsonl --limit 1000 --walks 3 --seed 0
    python -m tests.fuzz.peer_walks FILE.jsonl --only ID    the walks of one schema, after a finding

A line of the file has an `id`, a `schema` and `tests` with `data` and whether it is `valid`. A peer knows a schema if
it compiles it and judges all of these documents rightly. Where a peer knows a schema that we take too, one of those
that do must accept whatever the embedded speaker says under it, or `[peer_walks]` in `tests/known_differences.toml`
tells why not.

XGrammar takes keys in any order. llguidance takes them as they are declared, and knows few escapes: it is given walks
in the declared order, with their strings as `json.dumps` writes them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tomllib
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import xgrammar
from llguidance import LLMatcher, LLTokenizer
from xgrammar.testing import _is_grammar_accept_string

from dovetail.errors import DovetailError
from dovetail.models import Speaker

_LISTED = tomllib.loads((Path(__file__).parent.parent / "known_differences.toml").read_text())["peer_walks"]
EXPLAINED = {name: entry["reason"] for entry in _LISTED.values() for name in entry["schemas"]}
MAX_TOKENS, SOFT_LIMIT = 400, 40
XGRAMMAR_BYTES = 3000  # of a schema; with larger ones it may take minutes

Case = dict[str, Any]
Judge = Callable[[str], bool]


@dataclass(frozen=True)
class Peer:
    """An engine that judges whole documents; `compile` gives None for a schema that it refuses."""

    name: str
    any_order: bool
    compile: Callable[[Any], Judge | None]
    respelled: bool = False  # whether it is given each string in its canonical spelling

    def knows(self, case: Case) -> Judge | None:
        """Its judge of a schema, None where it refuses that or a recorded document is judged otherwise."""
        judge = self.compile(case["schema"])
        tests = case["tests"]
        if judge is None or any(judge(json.dumps(one["data"], ensure_ascii=False)) != one["valid"] for one in tests):
            return None
        return judge


def _xgrammar(schema: Any) -> Judge | None:
    text = json.dumps(schema)
    if len(text) > XGRAMMAR_BYTES:
        return None
    try:
        grammar = xgrammar.Grammar.from_json_schema(text, strict_mode=False, any_order=True)
    except RuntimeError:
        return None
    return lambda document: bool(_is_grammar_accept_string(grammar, document))


@cache
def _bytes() -> LLTokenizer:
    return LLTokenizer("byte")


def _llguidance(schema: Any) -> Judge | None:
    grammar = LLMatcher.grammar_from_json_schema(json.dumps(schema))
    if LLMatcher(_bytes(), grammar, log_level=0).get_error():
        return None

    def judge(document: str) -> bool:
        matcher = LLMatcher(_bytes(), grammar, log_level=0)
        return matcher.consume_tokens(list(document.encode())) and matcher.is_accepting()

    return judge


PEERS = (Peer("xgrammar", True, _xgrammar), Peer("llguidance", False, _llguidance, respelled=True))


def walks(case: Case, any_order: bool, count: int, seed: int) -> list[str]:
    """What the speaker says under a schema; nothing where it is refused, or a walk was cut off."""
    tag = {"type": "json_schema", "json_schema": case["schema"], "strict": False, "any_order": any_order}
    speaker = Speaker(seed)
    try:
        said = [speaker.speak(tag, MAX_TOKENS, SOFT_LIMIT) for _ in range(count)]
    except DovetailError:
        return []
    return [one.data.decode() for one in said if one.complete]


def respelled(text: str) -> str:
    """The document with each string in its canonical spelling."""
    decoder = json.JSONDecoder()
    found: list[str] = []
    at = 0
    while (quote := text.find('"', at)) >= 0:
        word, end = decoder.raw_decode(text, quote)
        found += (text[at:quote], json.dumps(word, ensure_ascii=False))
        at = end
    return "".join(found) + text[at:]


def play(case: Case, count: int, seed: int) -> tuple[Counter[str], list[str]]:
    """What became of the walks of one schema, and those refused where each peer that knows it refuses some."""
    seed += zlib.crc32(case["id"].encode())  # the same walks whichever cases are chosen
    rows = {peer: list(_verdicts(peer, judge, case, count, seed)) for peer in PEERS if (judge := peer.knows(case))}
    rows = {peer: found for peer, found in rows.items() if found}
    if not rows:
        return Counter({"schemas that no peer knows": 1}), []
    counts = Counter({"schemas judged": 1})
    for peer, found in rows.items():
        counts[f"walks accepted by {peer.name}"] += sum(ok for ok, _ in found)
        counts[f"walks refused by {peer.name}"] += sum(not ok for ok, _ in found)
    if any(all(ok for ok, _ in found) for found in rows.values()):
        return counts, []
    counts["schemas explained" if case["id"] in EXPLAINED else "schemas refused"] += 1
    refused = (f"{case['id']} {peer.name}: {text!r}" for peer, found in rows.items() for ok, text in found if not ok)
    return counts, [] if case["id"] in EXPLAINED else list(refused)


def _verdicts(peer: Peer, judge: Judge, case: Case, count: int, seed: int) -> Iterator[tuple[bool, str]]:
    for text in walks(case, peer.any_order, count, seed):
        given = respelled(text) if peer.respelled else text
        yield judge(given), given


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--limit", type=int, default=1000)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--walks", type=int, default=3)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only")
    options = parser.parse_args()
    cases = [json.loads(line) for line in options.file.open()]
    cases = [case for case in cases if options.only in (None, case["id"])][:: options.every][: options.limit]
    total: Counter[str] = Counter()
    for case in cases:
        counts, findings = play(case, options.walks, options.seed)
        total += counts
        if findings:
            print("\n".join(findings), flush=True)
    print(", ".join(f"{count} {what}" for what, count in total.items()))
    sys.exit(bool(total["schemas refused"]))


if __name__ == "__main__":
    main()
