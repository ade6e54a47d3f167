"""Counts the work of readers: calls of functions, and bytes that searches run over.

    python -m tests.laws.reading_work < requests.json > counts.json

A request is a dialect, the tools, how the output begins, and what it repeats; the answer is the work for each part of
the output. It is a program because patterns are counted from where the package compiles them, when it is imported.
"""

from __future__ import annotations

import json
import re
import sys
from typing import Any

SIZE, PART, CHUNK = 96_000, 6_000, 8


class Work:
    """All that has been done so far."""

    total = 0

    @classmethod
    def note(cls, frame: object, event: str, argument: object) -> None:
        cls.total += event in ("call", "c_call")


class Counted:
    """A pattern that counts how far its searches run."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self._pattern = pattern

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pattern, name)

    def search(self, text: Any, start: int = 0, end: int = sys.maxsize) -> Any:
        found = self._pattern.search(text, start, end)
        Work.total += (found.end() if found else min(len(text), end)) - start
        return found

    def match(self, text: Any, start: int = 0, end: int = sys.maxsize) -> Any:
        found = self._pattern.match(text, start, end)
        Work.total += found.end() - start if found else 0
        return found


def compiled(*arguments: Any) -> Any:
    return Counted(_compile(*arguments))


_compile = re.compile


def parts(name: str, tools: list[dict[str, Any]], begin: str, repeated: str) -> list[int]:
    """The work for each part of an output, one after the other."""
    from dovetail import dialects

    text = begin + repeated * (SIZE // len(repeated))
    parser = dialects.get(name).parser(tools, "")
    done = []
    for start in range(0, len(text) - PART, PART):
        before = Work.total
        sys.setprofile(Work.note)
        for at in range(start, start + PART, CHUNK):
            parser.feed(text[at : at + CHUNK])
        sys.setprofile(None)
        done.append(Work.total - before)
    parser.finish()
    return done


if __name__ == "__main__":
    re.compile = compiled  # type: ignore[assignment]
    json.dump([parts(*request) for request in json.load(sys.stdin)], sys.stdout)
