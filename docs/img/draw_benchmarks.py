"""Draw the benchmarks: charts and tables of figures that programs have measured.

python benchmarks/bench_tools.py --json benchmarks/results/tools.json        minutes, on a quiet machine
python benchmarks/bench_formats.py --json benchmarks/results/formats.json
python benchmarks/bench_parse.py --json benchmarks/results/parse.json
python benchmarks/bench_real.py --results benchmarks/results/real.json
python docs/img/draw_benchmarks.py        writes docs/img/bench-*.svg and the tables of docs/benchmarks.md
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from drawing import BLUE, BROWN, GREY, INK, LINE, PURPLE, SANS, box, picture, text, write

ROOT = Path(__file__).parent.parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGE = ROOT / "docs" / "benchmarks.md"
COLOURS = {"dovetail": BLUE, "llguidance": BROWN, "xgrammar": PURPLE, "transformers": BROWN, "openai-harmony": PURPLE}
WIDTH, LEFT, BARS, ROOM = 960, 28, 250, 560  # where bars begin, and how long the longest is
ROW, GAP = 20, 14
RIGHT = ' text-anchor="end"'


class Bar(NamedTuple):
    """One engine in a group: its figure, and a second one such as a percentile, or 0."""

    engine: str
    value: float
    more: float = 0


Groups = dict[str, list[Bar]]


def result(name: str) -> dict[str, Any]:
    """What a benchmark has written."""
    found: dict[str, Any] = json.loads((RESULTS / f"{name}.json").read_text())
    return found


def chart(title: str, unit: str, groups: Groups) -> str:
    """Horizontal bars on a logarithmic scale, group by group; a thin line goes on to the second figure."""
    values = [figure for bars in groups.values() for bar in bars for figure in (bar.value, bar.more) if figure]
    low, high = math.floor(math.log10(min(values))), math.log10(max(values))

    def length(value: float) -> float:
        return round(ROOM * (math.log10(value) - low) / (high - low), 1)

    drawn, y = [text(LEFT, 34, title, GREY, SANS)], 64.0
    bottom = y + sum(ROW * len(bars) + GAP for bars in groups.values())
    for power in range(low, math.floor(high) + 1):
        x = BARS + length(10.0**power)
        drawn.append(f'<path d="M{x:g},{y - 12:g} V{bottom - 6:g}" stroke="{LINE}"/>')
        drawn.append(text(x, bottom + 10, f"{10.0**power:g} {unit}", GREY, f'{SANS} text-anchor="middle"'))
    for label, bars in groups.items():
        drawn.append(text(LEFT, y + 5, label, INK, SANS))
        for bar in bars:
            color = COLOURS[bar.engine]
            drawn.append(text(BARS - 8, y + 5, bar.engine, color, RIGHT + ' font-size="13"'))
            end = length(bar.more or bar.value)
            drawn.append(box(BARS, y - 7, max(2, length(bar.value)), 14, f'rx="2" fill="{color}" opacity="0.75"'))
            if bar.more:
                drawn.append(box(BARS, y - 1, end, 2, f'fill="{color}"'))
            shown = shortened(bar.value) + (f" … {shortened(bar.more)}" if bar.more else "")
            drawn.append(text(BARS + end + 8, y + 5, shown, INK, ' font-size="13"'))
            y += ROW
        y += GAP
    return picture(WIDTH, bottom + 28, title, drawn)


def shortened(value: float) -> str:
    """Three digits, with commas between thousands."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def studies() -> dict[str, dict[str, Any]]:
    """Each request with the figures of each engine."""
    return {label.strip(): found for name in ("tools", "formats") for label, found in result(name)["studies"].items()}


def table() -> str:
    """Requests and engines, as columns of text."""
    header = [
        "request, engine",
        "compile ms",
        "warm p50",
        "mean",
        "p99",
        "new p50",
        "mean",
        "p99",
        "accept p50",
        "kB/grammar",
    ]
    rows = []
    for label, engines in studies().items():
        for engine, found in engines.items():
            figures = [found["compile_ms"], *(found["warm_us"][key] for key in ("p50", "mean", "p99"))]
            figures += [*(found["new_us"][key] for key in ("p50", "mean", "p99")), found["accept_us"]["p50"]]
            rows.append([f"{label}, {engine}", *map(shortened, figures), cell(found.get("memory_kb"))])
    return columns([header, *rows])


def machine() -> str:
    """Where the figures of the tables come from."""
    found = result("tools")["machine"]
    versions = ", ".join(f"{name} {found[name]}" for name in ("xgrammar", "llguidance"))
    return f"{found['cpu']}, {found['cores']} cores, Python {found['python']}, {versions}\n"


def parse_table() -> str:
    """Microseconds per piece by family and reader, as columns of text."""
    readers = ["dovetail", "transformers", "openai-harmony"]
    families = {name: found for name, found in result("parse").items() if name != "flatness"}
    return columns(
        [["", *readers], *([name, *(cell(found.get(one)) for one in readers)] for name, found in families.items())]
    )


def real_table() -> str:
    """What masks do to the answers of a real model, as columns of text."""
    header = ["", "valid", "ended", "odd", "tokens", "right", "tokens/s", "first choice refused"]
    rows = []
    for name, one in result("real")["ways"].items():
        valid, ended, right = (f"{one[key]:.0%}" for key in ("valid", "ended", "right"))
        taken = "-" if "alone" in name else f"{one['taken']:.1%}"
        rows.append(
            [
                name,
                valid,
                ended,
                f"{one['odd']:.0f}",
                f"{one['tokens']:.1f}",
                right,
                f"{one['tokens_per_s']:.0f}",
                taken,
            ]
        )
    return columns([header, *rows])


def cell(value: float | None) -> str:
    """A figure, or a dash where there is none."""
    return "-" if value is None else shortened(value)


def columns(rows: Sequence[Sequence[str]]) -> str:
    """Plain text: the first column to the left, the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines: Iterable[str] = (
        "  ".join(
            one.rjust(width) if i else one.ljust(width) for i, (one, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )
    return "".join(f"{line.rstrip()}\n" for line in lines)


def page() -> str:
    """The page with its tables as they were measured: the blocks of text below the comments that name them."""
    made = {"machine": machine(), "studies": table(), "parse": parse_table(), "real": real_table()}
    return re.sub(
        r"(<!-- figures: (\w+) -->\n\n```text\n).*?(```)",
        lambda block: block[1] + made[block[2]] + block[3],
        PAGE.read_text(),
        flags=re.DOTALL,
    )


def figures() -> list[str]:
    """What the README says: a mask, the time to the first one of a request, templates that hold, reading."""
    found = studies()["10 tools"]["dovetail"]
    rows = [line for line in (ROOT / "docs" / "template-support.md").read_text().splitlines() if line.startswith("| ")][
        1:
    ]
    held = [row for row in rows if "✗" not in row]
    return [
        f"{found['new_us']['p50']:.2g} µs",
        f"{found['compile_ms']:.2g} ms",
        f"{len(held)} of {len(rows)}",
        f"{result('parse')['qwen_3']['dovetail']:.2g} µs",
    ]


def draw() -> dict[str, str]:
    """The charts, by the names of their files."""
    tools = {label: engines for label, engines in studies().items() if label.endswith("tools")}
    compiled: Groups = {
        label: [Bar(engine, found["compile_ms"]) for engine, found in engines.items()]
        for label, engines in tools.items()
    }
    masks: Groups = {
        label: [Bar(engine, found["new_us"]["mean"], found["new_us"]["p99"]) for engine, found in engines.items()]
        for label, engines in tools.items()
    }
    reading: Groups = {
        name: [Bar(reader, cost) for reader, cost in found.items() if reader in COLOURS]
        for name, found in result("parse").items()
        if name != "flatness"
    }
    return {
        "bench-compile.svg": chart("From a new request with tools to its matcher", "ms", compiled),
        "bench-masks.svg": chart(
            "A mask of a new grammar: the mean as a bar, the 99th percentile as a line", "µs", masks
        ),
        "bench-parse.svg": chart("Reading four bytes of an output", "µs", reading),
        "../benchmarks.md": page(),
    }


if __name__ == "__main__":
    write(draw())
