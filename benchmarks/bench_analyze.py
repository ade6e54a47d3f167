"""How long does it take to derive a dialect from a chat template, the first time and from the cache?

    python benchmarks/bench_analyze.py                       all templates of the conformance data, with a verdict
    python benchmarks/bench_analyze.py FOLDER --top 5        the templates of a folder, and the slowest five of them
    python benchmarks/bench_analyze.py --quick --json OUT    a few templates, and the figures as JSON

The first time counts everything: compiling the template, all renders, inference and verification. It is processor time
of this process, because other processes only add to the time on the wall.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import platform
import statistics
import time
from pathlib import Path

from dovetail.errors import TemplateError
from dovetail.templates.analysis import analyze_template

PROMISES = {"first": 100.0, "cached": 0.1}  # milliseconds per template, on average
ROUNDS = 1000
QUICK = 4


def first(sources: dict[str, str]) -> dict[str, float]:
    """Milliseconds that each template takes the first time, also one of which nothing is read back."""
    found = {}
    for name, source in sources.items():
        analyze_template.cache_clear()
        start = time.process_time()
        with contextlib.suppress(TemplateError):  # what is refused costs its time, too
            analyze_template(source)
        found[name] = (time.process_time() - start) * 1000
    return found


def cached(source: str) -> float:
    """Milliseconds that a template takes that was analyzed before."""
    analyze_template(source)
    start = time.perf_counter()
    for _ in range(ROUNDS):
        analyze_template(source)
    return (time.perf_counter() - start) / ROUNDS * 1000


def templates() -> Path:
    """The templates of the conformance data, or where that is not at hand our own example."""
    repository = Path(__file__).resolve().parent.parent
    data = Path(os.environ.get("DOVETAIL_CONFORMANCE", repository.parent / "shared" / "conformance"))
    folder = data / "llama_cpp" / "templates"
    return folder if folder.is_dir() else repository / "examples"


def main() -> None:
    """Print the figures and how they stand against what is promised."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", nargs="?", type=Path, default=templates())
    arguments.add_argument("--quick", action="store_true", help="a few templates only")
    arguments.add_argument("--top", type=int, default=3, help="how many of the slowest to show")
    arguments.add_argument("--json", type=Path, help="write the figures there")
    given = arguments.parse_args()
    paths = sorted(given.folder.glob("*.jinja"))
    sources = {path.stem: path.read_text() for path in (paths[:QUICK] if given.quick else paths)}
    if not sources:
        arguments.error(f"there are no templates in {given.folder}")
    analyze_template(next(iter(sources.values())))  # what is compiled once per process is not a template's cost
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
