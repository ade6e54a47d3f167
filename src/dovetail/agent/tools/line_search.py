"""A search in a process of its own, so that a pattern that runs away can be killed.

It runs as a script that imports nothing of the package, which takes 50 ms instead of half a second; its one argument is
the folder of the package `regex`. On standard input
comes one JSON line with the pattern, then each text as its length in eight bytes and its UTF-8; on standard output a
JSON line answers each of them: {"error": ...} for the pattern, and the numbers and lines that match for a text.
"""

from __future__ import annotations

import json
import re
import resource
import sys
from collections.abc import Iterator
from typing import Any, BinaryIO

sys.path.append(sys.argv[1])
import regex

MAX_MEMORY_BYTES = 4 << 30
MAX_LINE = 4096  # more of a line is never shown
# What means something else in a whole text than in its lines.
_BY_LINE = re.compile(r"\\[AZzGKRX]|\(\?(?![:aiLmsux<P])|\(\?<[=!]")


def main(given: BinaryIO, answers: BinaryIO) -> None:
    """Answer until there is nothing more to search."""
    order = json.loads(given.readline())
    resource.setrlimit(resource.RLIMIT_AS, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))
    # Whoever started this may be killed and cannot end it then.
    resource.setrlimit(resource.RLIMIT_CPU, (order["seconds"], order["seconds"]))
    flags = regex.IGNORECASE if order["ignore_case"] else 0
    try:
        by_line = regex.compile(order["pattern"], flags)
        # A look at the whole text rules most files out at once, and never one that has a line that matches.
        at_once = None if _BY_LINE.search(order["pattern"]) else regex.compile(order["pattern"], flags | regex.M)
    except (regex.error, RecursionError, OverflowError, MemoryError) as error:
        _tell(answers, {"error": str(error)})
        return
    _tell(answers, {"error": ""})
    while size := given.read(8):
        text = given.read(int.from_bytes(size, "big")).decode("utf-8", "surrogatepass")
        matches = [] if at_once and not at_once.search(text) else list(_lines(by_line, text, order["limit"]))
        _tell(answers, matches)


def _lines(compiled: Any, text: str, limit: int) -> Iterator[tuple[int, str]]:
    """The lines that match, and one more than `limit` where there are so many."""
    left = limit + 1
    for number, line in enumerate(text.removesuffix("\n").split("\n"), 1):
        if left and compiled.search(line):
            left -= 1
            yield number, line[:MAX_LINE]


def _tell(answers: BinaryIO, answer: Any) -> None:
    answers.write(json.dumps(answer).encode() + b"\n")
    answers.flush()


if __name__ == "__main__":
    main(sys.stdin.buffer, sys.stdout.buffer)
