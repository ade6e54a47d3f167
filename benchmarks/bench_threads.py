"""What does a step cost whose 64 rows are all warm: in one call, and shared out among 16 threads?

    python benchmarks/bench_threads.py --quick             few steps: to see that it runs
    python benchmarks/bench_threads.py --threads 8 --json OUT

The matchers stand at different places in outputs of ten tools, over one vocabulary of 131,072 tokens. Each figure is
the fastest of many steps. Threads of Python take tens of microseconds to be woken, so below that they cannot gain; each
thread also fills its rows again and again, which shows whether threads wait for each other.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from engines import Dovetail, load_tokens
from tool_sets import outputs, request, tool_set

import dovetail

ROWS, STEPS, FILLS = 64, 200, 100


def matchers(engine: Dovetail, encode: Callable[[str], list[int]]) -> list[Any]:
    """Matchers of one grammar, each some tokens further than the one before."""
    tools = tool_set(10, seed=0)
    compiled = engine.compile(request(tools))
    made = []
    for row, text in zip(range(ROWS), outputs(tools, ROWS, seed=1), strict=True):
        matcher = engine.start(compiled)
        tokens = encode(text)
        matcher.accept_tokens(tokens[: row * len(tokens) // ROWS])
        made.append(matcher)
    return made


def fastest(step: Callable[[], object], steps: int) -> float:
    """Microseconds of the fastest of some steps."""
    times = []
    for _ in range(steps):
        start = time.perf_counter_ns()
        step()
        times.append(time.perf_counter_ns() - start)
    return min(times) / 1e3


def main() -> None:
    """Print a line for each way to fill the rows."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--threads", type=int, default=16)
    options.add_argument("--quick", action="store_true", help="few steps")
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    tokens = load_tokens()
    engine = Dovetail(tokens)
    steps, fills = (5, 5) if given.quick else (STEPS, FILLS)
    made = matchers(engine, tokens.encode)
    mask = np.zeros((ROWS, engine.vocabulary.mask_words), dtype=np.int32)
    share = -(-ROWS // given.threads)
    parts = [range(at, min(at + share, ROWS)) for at in range(0, ROWS, share)]

    def fill(part: range, times: int) -> None:
        chosen, rows = [made[row] for row in part], list(part)
        for _ in range(times):
            dovetail.fill_masks(chosen, mask, rows)

    with ThreadPoolExecutor(given.threads) as pool:
        written = {
            "cores": os.cpu_count(),
            "threads": given.threads,
            "one_call_us": fastest(lambda: dovetail.fill_masks(made, mask), steps),
            "shared_out_us": fastest(lambda: list(pool.map(fill, parts, [1] * len(parts))), steps),
            "one_thread_again_us": fastest(lambda: fill(range(ROWS), fills), steps // 5) / fills,
            "threads_again_us": fastest(lambda: list(pool.map(fill, parts, [fills] * len(parts))), steps // 5) / fills,
        }
    for name, value in written.items():
        print(f"{name:20} {value}")
    if given.json:
        given.json.write_text(json.dumps(written, indent=1))


if __name__ == "__main__":
    main()
