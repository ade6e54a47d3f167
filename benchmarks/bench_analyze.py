"""How long does it take to derive a dialect from a chat template, the first time and from the cache?

    python benchmarks/bench_analyze.py                     all templates of the conformance data, with a verdict
    python benchmarks/bench_analyze.py FOLDER --top 5      the templates of a folder, and the slowest five of them
    python benchmarks/bench_analyze.py --json OUT          the figures as JSON

The first time counts everything: compiling the template, all renders, inference and verification. It is processor time
of this process, because other processes only add to the time on the wall.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import time
from pathlib import Path

from dovetail.templates.analysis import analyse_template

PROMISES = {"first": 100.0, "cached": 0.1}  # milliseconds per template, on average
ROUNDS = 1000


def first(sources: dict[str, str]) -> dict[str, float]:
    """Milliseconds that each template takes the first time."""
    found = {}
    for name, source in sources.items():
        analyse_template.cache_clear()
        start = time.process_time()
        analyse_template(source)
        found[name] = (time.process_time() - start) * 1000
    return found


def cached(source: str) -> float:
    """Milliseconds that a template takes that was analysed before."""
    analyse_template(source)
    start = time.perf_counter()
    for _ in range(ROUNDS):
        analyse_template(source)
    return (time.perf_counter() - start) / ROUNDS * 1000


def main() -> None:
    """Print the figures and how they stand against what is promised."""
    beside = Path(__file__).resolve().parent.parent.parent / "shared" / "conformance"
    data = Path(os.environ.get("DOVETAIL_CONFORMANCE", beside))
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("folder", nargs="?", type=Path, default=data / "llama_cpp" / "templates")
    arguments.add_argument("--top", type=int, default=3, help="how many of the slowest to show")
    arguments.add_argument("--json", type=Path, help="write the figures there")
    given = arguments.parse_args()
    sources = {path.stem: path.read_text() for path in sorted(given.folder.glob("*.jinja"))}
    if not sources:
        arguments.error(f"there are no templates in {given.folder}")
    analyse_template(next(iter(sources.values())))  # what is compiled once per process is not a template's cost
    times = first(sources)
    figures = {"first": statistics.fmean(times.values()), "cached": cached(next(iter(sources.values())))}
    print(f"{len(sources)} templates, Python {platform.python_version()}, {platform.machine()}")
    print(f"  median {statistics.median(times.values()):.1f} ms, slowest {max(times.values()):.1f} ms")
    for name in sorted(times, key=lambda name: -times[name])[: given.top]:
        print(f"    {name:60}{times[name]:8.1f} ms")
    for what, figure in figures.items():
        verdict = "PASS" if figure <= PROMISES[what] else "FAIL"
        print(f"  {verdict}  {what:8}{figure:10.4f} ms on average, at most {PROMISES[what]} promised")
    if given.json:
        given.json.write_text(json.dumps({"times": times, **figures}, indent=2))


if __name__ == "__main__":
    main()
