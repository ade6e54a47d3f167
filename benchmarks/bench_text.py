"""Does a byte of free text cost the same in a long output as in a short one?

Text goes through `accept_bytes`, in pieces of 64 bytes as a stream brings them and in one piece, at 1 kB, 100 kB and
10 MB: once as free text in which a trigger may come at any time, once inside a JSON string. A size counts with the
processor time of its fastest repeat. The last line says PASS or FAIL for the promise of a constant cost per byte.

  python benchmarks/bench_text.py                          a minute
  python benchmarks/bench_text.py --quick                  up to 100 kB, one repeat: to see that it runs
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engines import Dovetail, load_tokens
from measure import progress, quiet, resident_bytes, table, verdict, write_json

PIECE = 64
FLAT = 1.25
"""How much dearer a byte may be at the largest size than at 100 kB, on a machine that does other things too."""

_TEXT = (
    "The parser reads one character at a time; if `a < b` holds, it moves on, and <tool> is not <tool_call. Größe und "
    "Gewicht stehen in der Tabelle, 詳しくは次の節で説明します。 Then comes the next sentence, and one more after it. "
)
_CALL = {
    "type": "tag",
    "begin": "<tool_call>",
    "content": {"type": "json_schema", "json_schema": {"type": "string"}},
    "end": "</tool_call>",
}
FORMATS: dict[str, tuple[dict[str, Any], bytes]] = {
    "free text": ({"type": "triggered_tags", "triggers": ["<tool_call>"], "tags": [_CALL]}, b""),
    "JSON string": ({"type": "json_schema", "json_schema": {"type": "string"}}, b'"'),
}


def text_of(size: int) -> bytes:
    """That many bytes of text, a character at the end possibly cut."""
    unit = _TEXT.encode()
    return (unit * (size // len(unit) + 1))[:size]


def cost(compiled: Any, opening: bytes, data: bytes, piece: int, repeats: int) -> float:
    """Nanoseconds per byte, of the fastest repeat."""
    pieces = [data[i : i + piece] for i in range(0, len(data), piece)]
    best = None
    for _ in range(repeats):
        matcher = compiled.matcher()
        matcher.accept_bytes(opening)
        accept = matcher.accept_bytes
        # A size of which each repeat takes longer than a time slice would show other programs on the clock.
        start = time.process_time_ns()
        taken = all(map(accept, pieces))
        spent = time.process_time_ns() - start
        if not taken:
            raise AssertionError("a piece of text was refused")
        best = spent if best is None else min(best, spent)
    assert best is not None
    return best / len(data)


def growth(compiled: Any, opening: bytes, data: bytes) -> float:
    """Bytes of memory that a matcher keeps per byte of text taken in pieces."""
    pieces = [data[i : i + PIECE] for i in range(0, len(data), PIECE)]
    matcher = compiled.matcher()
    matcher.accept_bytes(opening)
    before = resident_bytes()
    for each in pieces:
        matcher.accept_bytes(each)
    return max(0, resident_bytes() - before) / len(data)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5, help="times that the largest size is taken (%(default)s)")
    parser.add_argument("--quick", action="store_true", help="up to 100 kB, one repeat")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures there as well")
    options = parser.parse_args(arguments)
    sizes = [1_000, 100_000] if options.quick else [1_000, 100_000, 10_000_000]
    repeats = 1 if options.quick else options.repeats
    engine = Dovetail(load_tokens())
    result: dict[str, dict[str, Any]] = {}
    with quiet():
        for label, (form, opening) in FORMATS.items():
            compiled = engine._dovetail.compile(form, engine.vocabulary)
            for name, piece in ((f"{label}, pieces of {PIECE}", PIECE), (f"{label}, one piece", sizes[-1])):
                figures: dict[str, float] = {}
                for size in sizes:
                    progress(f"{name}: {size:,} bytes")
                    # Small sizes are repeated more often, or the clock and the machine would be all they show.
                    figures[str(size)] = cost(
                        compiled, opening, text_of(size), piece, min(200, repeats * sizes[-1] // size)
                    )
                result[name] = {"ns_per_byte": figures}
            result[f"{label}, pieces of {PIECE}"]["kept_per_byte"] = growth(compiled, opening, text_of(sizes[-1]))
    rows = [[name, *r["ns_per_byte"].values(), r.get("kept_per_byte")] for name, r in result.items()]
    print(table(["text", *(f"{size:,} B, ns/byte" for size in sizes), "kept bytes/byte"], rows))
    worst = max(list(r["ns_per_byte"].values())[-1] / r["ns_per_byte"]["100000"] for r in result.values())
    print(verdict(f"a byte at {sizes[-1]:,} costs what it costs at 100,000", worst <= FLAT, f"{worst:.2f} times"))
    write_json(options.json, {"text": result})


if __name__ == "__main__":
    main()
