"""Forms side by side: how long does each mask of a schema with 40 fields take when it is seen for the first time?

Every request brings a form of its own: 40 fields with names, choices and limits that no form before had, filled once
with random values. Dovetail and XGrammar fill their masks into numpy arrays and into torch tensors; each engine must
allow each token. One process, one thread, 131,072 tokens (Tekken); a form is walked once, so nothing is warm but what
other forms have in common. Time is that of the processor, so that other programs on the machine matter less.

  python benchmarks/bench_forms.py
  python benchmarks/bench_forms.py --quick      one form: to see that it runs

The last lines say PASS or FAIL: Dovetail is ahead of XGrammar at the median and in the mean, in both kinds of buffer.
"""

from __future__ import annotations

import argparse
import gc
import json
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from engines import STOP, Dovetail, Request, Tokens, XGrammar, load_tokens
from measure import RefusedTokenError, verdict

FIELDS = 40

_WORDS = "account address amount billing city code contact country currency date delivery department discount".split()
_WORDS += "email first invoice item language last manager name note number order owner payment phone price".split()


def form(seed: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A schema with 40 fields, and a value that fits it."""
    random_ = random.Random(seed)
    properties: dict[str, Any] = {}
    value: dict[str, Any] = {}

    def text(most: int) -> str:
        return " ".join(random_.choice(_WORDS) for _ in range(random_.randint(1, 6)))[:most]

    while len(properties) < FIELDS:
        name = "_".join(random_.sample(_WORDS, random_.randint(1, 3)))
        kind = random_.randrange(8)
        if kind == 0:
            choices = [f"{random_.choice(_WORDS)} {random_.randrange(100)}" for _ in range(random_.randint(2, 8))]
            properties[name], value[name] = {"enum": choices}, random_.choice(choices)
        elif kind == 1:
            high = random_.randint(10, 10_000)
            properties[name] = {"type": "integer", "minimum": 0, "maximum": high}
            value[name] = random_.randint(0, high)
        elif kind == 2:
            properties[name], value[name] = {"type": "number"}, round(random_.uniform(-100, 1000), 2)
        elif kind == 3:
            properties[name], value[name] = {"type": "boolean"}, random_.random() < 0.5
        elif kind == 4:
            properties[name] = {"type": "array", "items": {"type": "string"}}
            value[name] = [text(100) for _ in range(random_.randint(1, 4))]
        elif kind == 5:
            most = random_.randint(20, 200)
            properties[name], value[name] = {"type": "string", "maxLength": most}, text(most)
        else:
            properties[name], value[name] = {"type": "string"}, text(1000)
    required = [name for name in properties if random_.random() < 0.7 or name in list(properties)[:1]]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return schema, {name: value[name] for name in properties}


class TorchDovetail(Dovetail):
    """This library with a tensor for its masks, whose memory numpy shares."""

    def __init__(self, tokens: Tokens) -> None:
        import torch

        super().__init__(tokens)
        self._tensor = torch.from_numpy(self.mask)

    def calls(self, matcher: Any) -> tuple[Callable[[], object], Callable[[int], bool]]:
        """The two calls of a decoding step: fill the tensor, take a token."""
        fill, mask = matcher.fill_mask, self._tensor
        return lambda: fill(mask), matcher.accept


def walk(engine: Dovetail | XGrammar, schema: dict[str, Any], ids: Sequence[int]) -> list[int]:
    """Nanoseconds of each mask."""
    tag = {"type": "structural_tag", "format": {"type": "json_schema", "json_schema": schema}}
    fill, accept = engine.calls(engine.start(engine.compile(Request(tag, str))))
    words, clock = engine.mask, time.thread_time_ns
    times: list[int] = []
    for token in ids:
        start = clock()
        fill()
        times.append(clock() - start)
        if not int(words[token >> 5]) >> (token & 31) & 1 or not accept(token):
            raise RefusedTokenError(f"{type(engine).__name__} refuses token {token} at step {len(times) - 1}")
    return times


def summary(times: Sequence[int]) -> dict[str, float]:
    """The median, the mean and the slowest of a hundred, in microseconds."""
    all_ = np.array(times) / 1000
    return {"p50": float(np.percentile(all_, 50)), "mean": float(all_.mean()), "p99": float(np.percentile(all_, 99))}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="one form")
    parser.add_argument("--forms", type=int, default=24, help="how many forms each engine sees (24)")
    parser.add_argument("--json", type=Path, help="write the figures there too")
    options = parser.parse_args(arguments)
    forms = [form(seed) for seed in range(1 if options.quick else options.forms)]
    tokens = load_tokens()
    encoded = [[*tokens.encode(json.dumps(value)), STOP] for _, value in forms]
    engines: dict[str, Dovetail | XGrammar] = {
        "Dovetail, numpy": Dovetail(tokens),
        "Dovetail, torch": TorchDovetail(tokens),
        "XGrammar": XGrammar(tokens),
    }
    times: dict[str, list[int]] = {name: [] for name in engines}
    gc.disable()
    for (schema, _), ids in zip(forms, encoded, strict=True):
        for name, engine in engines.items():
            times[name] += walk(engine, schema, ids)
        gc.collect(0)
    gc.enable()
    figures = {name: summary(found) for name, found in times.items()}
    print(f"{'microseconds a mask':<24}{'p50':>9}{'mean':>9}{'p99':>9}")
    for name, found in figures.items():
        print(f"{name:<24}{found['p50']:>9.2f}{found['mean']:>9.2f}{found['p99']:>9.1f}")
    for name in ("Dovetail, numpy", "Dovetail, torch"):
        for figure in ("p50", "mean"):
            ratio = figures["XGrammar"][figure] / figures[name][figure]
            print(verdict(f"{name}: {figure} ahead of XGrammar", ratio > 1, f"{ratio:.2f} x"))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
