"""What each shortcut of the mask walk saves: the same documents with all of them, without each one, and without any.

Documents of recorded schemas (--data) and of requests with tools are walked token by token; a mask is new where the
masks that are held grow with it. Times are processor time, each mask with its fastest round; a round begins with a
fresh vocabulary. Masks must be the same whatever is left out, or the program fails. 131,072 tokens (Tekken).

  python benchmarks/bench_shortcuts.py --data FILE         minutes; lines of {"schema": ..., "tests": [{"data": ...}]}
  python benchmarks/bench_shortcuts.py                     requests with tools alone
  python benchmarks/bench_shortcuts.py --quick             few requests, one round: to see that it runs

columns
  vocabulary   making a vocabulary, with the masks that nearly every request needs; milliseconds
  mean         of all masks; microseconds
  new mean, new p99, new max
               of the masks that were new
  helps        share of the new masks that take at least half as long again without the shortcut
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tool_sets
from engines import STOP, Tokens, load_tokens
from measure import progress, quiet, table, write_json

from dovetail import DovetailError, _core, load_format
from dovetail.engine.prewarm import prewarm
from dovetail.engine.vocabulary import DEFAULT_CACHE_BYTES
from dovetail.grammar.ir import Rule
from dovetail.grammar.lower import lower

ALL = (1 << len(_core.shortcuts())) - 1
OUTPUTS = 4  # of each request


@dataclass(frozen=True)
class Case:
    """A grammar and outputs, as tokens that end with the stop token."""

    rule: Rule
    outputs: Sequence[Sequence[int]]


@dataclass(frozen=True)
class Round:
    """Nanoseconds, and which masks were new; `digest` is that of all masks."""

    vocabulary: int
    masks: np.ndarray
    new: np.ndarray
    digest: str


def variants() -> dict[str, int]:
    """Sets of shortcuts by name."""
    without = {f"without {name}": ALL & ~(1 << bit) for bit, name in enumerate(_core.shortcuts())}
    return {"all": ALL, **without, "none": 0}


def recorded(path: Path, tokens: Tokens) -> Iterator[Case]:
    """The schemas of a file that can be compiled, each with its documents."""
    for line in path.open(encoding="utf-8"):
        record: dict[str, Any] = json.loads(line)
        texts = [json.dumps(test["data"], ensure_ascii=False) for test in record["tests"]]
        try:
            rule = lower(load_format({"type": "json_schema", "json_schema": record["schema"], "strict": False}))
        except DovetailError:
            continue
        yield Case(rule, [[*tokens.encode(text), STOP] for text in texts])


def requests(count: int, sets: int, tokens: Tokens) -> Iterator[Case]:
    """Requests with that many tools, each with calls of them."""
    for seed in range(sets):
        declared = tool_sets.tool_set(count, seed)
        texts = tool_sets.outputs(declared, OUTPUTS, seed)
        rule = lower(load_format(tool_sets.request(declared).tag))
        yield Case(rule, [[*tokens.encode(text), STOP] for text in texts])


def run(tokens: Tokens, cases: Sequence[Case], shortcuts: int) -> Round:
    """Walk all documents once over a fresh vocabulary."""
    clock = time.thread_time_ns
    special = [(f"<special_{token}>", token) for token in range(tokens.special)]
    start = clock()
    store = _core.Store(tokens.texts, special, [STOP], DEFAULT_CACHE_BYTES, shortcuts)
    kept = prewarm(store, store.longest_token)
    vocabulary = clock() - start
    mask = np.zeros((store.size + 31) // 32, dtype=np.int32)
    times, new, digest = [], [], hashlib.sha256()
    for case in cases:
        grammar = store.compile(case.rule)
        for output in case.outputs:
            matcher = grammar.matcher()
            for token in output:
                held, start = store.mask_bytes, clock()
                matcher.fill_mask(mask)
                times.append(clock() - start)
                new.append(store.mask_bytes != held)
                digest.update(mask)
                if not matcher.accept(token):
                    break
    del kept
    return Round(vocabulary, np.array(times), np.array(new), digest.hexdigest())


def measure(tokens: Tokens, cases: Sequence[Case], rounds: int) -> dict[str, Round]:
    """The fastest of several rounds for each set of shortcuts, which take turns."""
    best: dict[str, Round] = {}
    for turn in range(rounds):
        for name, shortcuts in variants().items():
            progress(f"round {turn + 1}: {name}")
            now, known = run(tokens, cases, shortcuts), best.get(name)
            if now.digest != best.get("all", now).digest:
                raise SystemExit(f"masks {name} differ from those with all shortcuts")
            masks = now.masks if known is None else np.minimum(known.masks, now.masks)
            vocabulary = now.vocabulary if known is None else min(known.vocabulary, now.vocabulary)
            best[name] = Round(vocabulary, masks, now.new if known is None else known.new, now.digest)
    return best


def figures(result: Round, full: Round) -> dict[str, float]:
    """One row of the table."""
    us, base = result.masks / 1000, full.masks[full.new] / 1000
    new = us[full.new]
    return {
        "vocabulary": result.vocabulary / 1e6,
        "mean": float(us.mean()),
        "new_mean": float(new.mean()),
        "new_p99": float(np.percentile(new, 99)),
        "new_max": float(new.max()),
        "helps": float((new > base * 1.5).mean()),
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="recorded schemas, one JSON object a line")
    parser.add_argument("--limit", type=int, help="how many of them")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="one small request, one round")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here")
    options = parser.parse_args(arguments)
    tokens = load_tokens()
    sizes = ((1, 1),) if options.quick else ((10, 12), (100, 3))
    cases = [case for count, sets in sizes for case in requests(count, sets, tokens)]
    if options.data:
        cases += list(recorded(options.data, tokens))[: options.limit]
    with quiet():
        results = measure(tokens, cases, 1 if options.quick else options.rounds)
    rows = {name: figures(result, results["all"]) for name, result in results.items()}
    full = results["all"]
    print(f"{len(full.masks)} masks, {full.new.mean():.1%} of them new")
    print(
        table(
            ["", "vocabulary ms", "mean us", "new mean us", "new p99 us", "new max us", "helps"],
            [[name, *list(row.values())[:-1], f"{row['helps']:.1%}"] for name, row in rows.items()],
        )
    )
    write_json(options.json, {"shortcuts": rows})


if __name__ == "__main__":
    main()
