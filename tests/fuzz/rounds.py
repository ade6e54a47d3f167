"""What programs that play random rounds share: their options, and what a finding looks like."""

from __future__ import annotations

import argparse
import itertools
import json
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

Counts = Counter[str]
Case = dict[str, Any]

_ROUND_S = 10


def play_rounds(description: str | None, play: Callable[[int], object], per_round: int = 1) -> int:
    """Play rounds until the time is over, or until they make as many outputs as were asked for; their number."""
    parser = _parser(description)
    parser.add_argument("--outputs", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--round", type=int)
    options = parser.parse_args()
    if options.round is not None:
        _watched(play, options.round)
        return 1
    end = time.monotonic() + options.seconds
    for number in itertools.count():
        if number * per_round >= options.outputs if options.outputs else time.monotonic() >= end:
            return number
        _watched(play, options.seed + number)
    raise AssertionError("unreachable")


def _watched(play: Callable[[int], object], seed: int) -> None:
    # Processor time, because a busy machine is no finding. The signal ends the process.
    signal.setitimer(signal.ITIMER_PROF, _ROUND_S)
    try:
        play(seed)
    except BaseException:
        print(f"finding in round {seed}")
        raise
    signal.setitimer(signal.ITIMER_PROF, 0)


def play_cases(
    description: str | None,
    play: Callable[[Case, int, int], tuple[Counts, list[str]]],
    wanted: Callable[[Case], object] = bool,
) -> Counts:
    """The documents shared out over the cases of a file; findings are printed, and their number is among the counts."""
    parser = _parser(description)
    parser.add_argument("file", type=Path)
    parser.add_argument("--documents", type=int, default=100_000)
    parser.add_argument("--only")
    options = parser.parse_args()
    cases = [json.loads(line) for line in options.file.open()]
    cases = [case for case in cases if options.only in (None, case["id"]) and wanted(case)]
    total: Counts = Counter()
    for index, case in enumerate(cases):
        share = options.documents * (index + 1) // len(cases) - options.documents * index // len(cases)
        counts, findings = play(case, share, options.seed + index)
        total += counts
        total["findings"] += len(findings)
        if findings:
            print("\n".join(findings), flush=True)
    print(", ".join(f"{count} {what}" for what, count in total.items()))
    return total


def _parser(description: str | None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    return parser
