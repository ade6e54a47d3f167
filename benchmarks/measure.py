"""How the benchmarks take their times, and how they print them.

Warm: a grammar that has been walked before. The same outputs are walked several rounds, engines taking turns, and each
step counts with its fastest round: a step does the same work every time, so what is slower is the machine.

New: a grammar that comes after others in the same process. Requests are compiled and walked once, in a fixed order; a
round repeats that with fresh engines, so that a step meets the same caches in each round, and it counts with its
fastest one. Percentiles are then taken over all steps of all outputs. XGrammar compiles for many seconds and computes
nothing later, so it compiles a few of these requests once, and a step counts with its fastest of several walks.

Compiling counts only in the first round, since a process may remember what it has lowered before, and in processor
time, which is the time on the clock of a machine that does nothing else; the median over all requests is reported.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import platform
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from engines import STOP, Engine, Request


class RefusedTokenError(AssertionError):
    """An engine forbade a token of an output that fits the request; its times would mean nothing."""


@dataclass(frozen=True)
class Case:
    """A request and outputs that fit it, as tokens that end with the stop token."""

    name: str
    request: Request
    outputs: Sequence[Sequence[int]]


@dataclass
class Walk:
    """Nanoseconds per step."""

    masks: list[int] = field(default_factory=list)
    accepts: list[int] = field(default_factory=list)


@dataclass
class First:
    """What a new request costs; nanoseconds."""

    compile: int
    first_mask: int
    walk: Walk


def walk(engine: Engine, matcher: Any, tokens: Sequence[int], first_mask: int | None = None) -> Walk:
    """Before each token a mask, then the token; the mask of the first step may have been filled and timed before."""
    times = Walk()
    fill, accept = engine.calls(matcher)
    mask, clock = engine.mask, time.perf_counter_ns
    for token in tokens:
        if first_mask is None:
            start = clock()
            fill()
            times.masks.append(clock() - start)
        else:
            times.masks.append(first_mask)
            first_mask = None
        if not int(mask[token >> 5]) >> (token & 31) & 1:
            raise RefusedTokenError(f"{engine.name} forbids token {token} at step {len(times.masks) - 1}")
        if token != STOP:
            start = clock()
            taken = accept(token)
            times.accepts.append(clock() - start)
            if not taken:
                raise RefusedTokenError(f"{engine.name} refuses token {token} at step {len(times.masks) - 1}")
    return times


def first(engine: Engine, case: Case, walks: int = 1) -> tuple[Any, First]:
    """Compile a request that the engine has not seen and walk its output; more `walks` only make it look faster."""
    clock = time.perf_counter_ns
    gc.collect(0)
    start = time.process_time_ns()
    compiled = engine.compile(case.request)
    matcher = engine.start(compiled)
    spent = time.process_time_ns() - start
    fill, _ = engine.calls(matcher)
    filling = clock()
    fill()
    done = clock()
    repeats = [walk(engine, matcher, case.outputs[0], done - filling)]
    repeats += [walk(engine, engine.start(compiled), case.outputs[0]) for _ in range(walks - 1)]
    return compiled, First(spent, spent + done - filling, fastest(repeats))


def again(engine: Engine, case: Case, rounds: int) -> int:
    """An equal request after the first, up to a matcher: the median of `rounds`, in nanoseconds."""
    times = []
    for _ in range(rounds):
        request = case.request.again()
        start = time.perf_counter_ns()
        engine.start(engine.compile_again(request))
        times.append(time.perf_counter_ns() - start)
    return int(np.median(times))


def warm(compiled: Mapping[str, tuple[Engine, Any]], case: Case, rounds: int) -> dict[str, list[Walk]]:
    """The outputs of one grammar by each engine in turn; a step counts with its fastest round, the first left out."""
    seen: dict[str, list[list[Walk]]] = {name: [[] for _ in case.outputs] for name in compiled}
    for turn in range(rounds + 1):
        for i, tokens in enumerate(case.outputs):
            for name, (engine, grammar) in compiled.items():
                times = walk(engine, engine.start(grammar), tokens)
                if turn:
                    seen[name][i].append(times)
    return {name: [fastest(repeats) for repeats in outputs] for name, outputs in seen.items()}


def fastest(repeats: Sequence[Walk]) -> Walk:
    """Each step with its fastest repeat."""
    return Walk(
        np.min([w.masks for w in repeats], axis=0).tolist(), np.min([w.accepts for w in repeats], axis=0).tolist()
    )


def fastest_first(repeats: Sequence[First]) -> First:
    """Each step with its fastest repeat; only the first repeat compiled something new."""
    return First(repeats[0].compile, repeats[0].first_mask, fastest([r.walk for r in repeats]))


def spread(nanoseconds: Iterable[int]) -> dict[str, float]:
    """p50, mean, p99 and max in microseconds."""
    us = np.fromiter(nanoseconds, dtype=float) / 1000
    p50, p99 = np.percentile(us, [50, 99])
    return {"p50": float(p50), "mean": float(us.mean()), "p99": float(p99), "max": float(us.max())}


def resident_bytes() -> int:
    """Memory of this process, after handing back what the allocator keeps."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def keep(engine: Engine, cases: Sequence[Case]) -> list[Any]:
    """Compile and walk these, and keep what was compiled."""
    kept = []
    for case in cases:
        kept.append(engine.compile(case.request))
        walk(engine, engine.start(kept[-1]), case.outputs[0])
    return kept


@contextmanager
def quiet() -> Iterator[None]:
    """No garbage collection inside a measurement; it runs between them."""
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def progress(message: str) -> None:
    """What runs now, on stderr."""
    print(f"  {message}", file=sys.stderr, flush=True)


def machine() -> dict[str, str]:
    """Where the figures come from."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        cpu = next((line.split(":")[1].strip() for line in info.open() if line.startswith("model name")), cpu)
    packages = {name: version(name) for name in ("xgrammar", "llguidance", "numpy")}
    return {"cpu": cpu, "cores": str(os.cpu_count()), "python": platform.python_version(), **packages}


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Plain text columns: the first to the left, the others to the right."""
    cells = [list(header), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    lines = [
        "  ".join(
            cell.ljust(w) if i == 0 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def _cell(value: object) -> str:
    match value:
        case None:
            return "-"
        case float() if value >= 100:
            return f"{value:,.0f}"
        case float():
            return f"{value:.3g}" if value < 1 else f"{value:.2f}"
    return str(value)


def verdict(claim: str, holds: bool, measured: str) -> str:
    """One line per promise."""
    return f"{'PASS' if holds else 'FAIL'}  {claim}: {measured}"


def write_json(path: Path | None, result: Mapping[str, Any]) -> None:
    """The figures for other programs."""
    if path:
        path.write_text(json.dumps({"machine": machine(), **result}, indent=1) + "\n")
