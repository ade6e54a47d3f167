"""All figures about one kind of request: what it costs when it is new and when it is known, and its memory."""

from __future__ import annotations

import argparse
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from engines import ENGINES, Dovetail, Engine, Tokens
from measure import (
    Case,
    First,
    Walk,
    again,
    fastest_first,
    first,
    keep,
    progress,
    resident_bytes,
    spread,
    table,
    warm,
    write_json,
)

OTHERS = 4
"""Requests that an engine has seen before the new ones that count."""


class Study:
    """One row of the report per engine; `make(seed, outputs)` gives a new request of the same kind for each seed."""

    def __init__(
        self, label: str, make: Callable[[int, int], Case], tokens: Tokens, options: argparse.Namespace
    ) -> None:
        self.label = label
        self.make = make
        self.tokens = tokens
        self.options = options
        self.result: dict[str, dict[str, Any]] = {name: {} for name in options.engines}
        self.new: dict[str, dict[str, list[int]]] = {}
        self.slow: dict[str, list[tuple[float, str]]] = {"new": [], "warm": []}

    def run(self) -> Study:
        """Measure; `result` and `slow` hold what came out."""
        self._new()
        self._warm()
        self._memory()
        return self

    def ahead(self, peer: str, figure: str) -> float:
        """How many times ahead of the peer we are; for a new grammar over the requests that both engines have run."""
        if figure == "new":
            both = self.new["dovetail"].keys() & self.new[peer].keys()
            ours, theirs = ([t for name in both for t in self.new[engine][name]] for engine in ("dovetail", peer))
            return float(np.mean(theirs) / np.mean(ours))
        name, _, part = figure.partition("/")
        mine, yours = self.result["dovetail"][name], self.result[peer][name]
        return float(yours[part] / mine[part]) if part else float(yours / mine)

    def _new(self) -> None:
        # One output per request; which of the three it is goes round.
        cases = [self.make(seed, 3) for seed in range(1, OTHERS + self.options.sets + 1)]
        cases = [Case(c.name, c.request, [c.outputs[i % 3]]) for i, c in enumerate(cases)]
        seen: dict[str, list[list[First]]] = {name: [[] for _ in cases] for name in self.result}
        sizes: dict[str, list[int]] = {name: [] for name in self.result}
        for turn in range(self.options.rounds):
            progress(f"{self.label}: {len(cases)} new grammars, round {turn + 1}")
            engines = [fresh(name, self.tokens) for name in self.result]
            for i, case in enumerate(cases):
                for engine in engines:
                    if self._runs(engine, i, turn):
                        grammar, times = first(engine, case, 5 if engine.name == "xgrammar" else 1)
                        seen[engine.name][i].append(times)
                        sizes[engine.name].append(engine.grammar_bytes(grammar))
        for name, by_case in seen.items():
            self._summarize_new(name, cases, by_case)
            if any(sizes[name]):
                self.result[name]["memory_kb"] = float(np.mean(sizes[name])) / 1000

    def _runs(self, engine: Engine, index: int, turn: int) -> bool:
        # XGrammar computes its masks ahead, for seconds per grammar, and keeps nothing between grammars: it needs no
        # others before, and fewer requests tell as much.
        if engine.name != "xgrammar":
            return True
        sets = min(self.options.xgrammar_sets, self.options.sets)
        return turn == 0 and index >= OTHERS and (index - OTHERS) * sets % self.options.sets < sets

    def _summarize_new(self, name: str, cases: Sequence[Case], by_case: list[list[First]]) -> None:
        counted = [(c, fastest_first(runs)) for c, runs in zip(cases[OTHERS:], by_case[OTHERS:], strict=True) if runs]
        result = self.result[name]
        result["compile_ms"] = float(np.median([f.compile for _, f in counted])) / 1e6
        result["compile_max_ms"] = max(f.compile for _, f in counted) / 1e6
        result["first_mask_ms"] = float(np.median([f.first_mask for _, f in counted])) / 1e6
        self.new[name] = {case.name: times.walk.masks for case, times in counted}
        result["new_us"] = spread(t for masks in self.new[name].values() for t in masks)
        result["new_requests"] = len(counted)
        if by_case[0]:  # no grammar was there before this one
            result["very_first_us"] = spread(fastest_first(by_case[0]).walk.masks)
        if name == "dovetail":
            for case, times in counted:
                self._note("new", case, [times.walk])

    def _warm(self) -> None:
        case = self.make(0, self.options.outputs)
        compiled: dict[str, tuple[Engine, Any]] = {}
        for name, result in self.result.items():
            progress(f"{case.name}: {name} compiles, then the same request again")
            engine = fresh(name, self.tokens)
            compiled[name] = engine, engine.compile_again(case.request)
            result["again_us"] = again(engine, case, 5 if name == "llguidance" else 31) / 1000
        steps = sum(map(len, case.outputs))
        progress(f"{case.name}: {steps} steps, {self.options.warm_rounds} rounds, engines in turn")
        for name, walks in warm(compiled, case, self.options.warm_rounds).items():
            self.result[name]["warm_us"] = spread(t for w in walks for t in w.masks)
            self.result[name]["accept_us"] = spread(t for w in walks for t in w.accepts)
            self.result[name]["warm_steps"] = steps
            if name == "dovetail":
                self._note("warm", case, walks)

    def _memory(self) -> None:
        count = self.options.sets
        cases = [self.make(1000 + seed, 1) for seed in range(OTHERS + count)]
        for name, result in self.result.items():
            if name == "xgrammar":
                continue  # it tells the size of each grammar, and compiling more of them would take minutes
            progress(f"{self.label}: {name}, memory of {count} grammars")
            engine = fresh(name, self.tokens)
            others = keep(engine, cases[:OTHERS])
            counted, resident = engine.cache_bytes(), resident_bytes()
            kept = keep(engine, cases[OTHERS:])
            result["resident_kb"] = max(0, resident_bytes() - resident) / count / 1000
            if counted:
                result["memory_kb"] = (engine.cache_bytes() - counted) / count / 1000
            del others, kept

    def _note(self, kind: str, case: Case, walks: Sequence[Walk]) -> None:
        texts = self.tokens.texts
        for ids, times in zip(case.outputs, walks, strict=True):
            for step in np.argsort(times.masks)[::-1][: self.options.slowest]:
                before = b"".join(texts[i] for i in ids[max(0, step - 12) : step])[-48:].decode("utf-8", "replace")
                what = f"{kind:4} {case.name}, step {step}: after ...{before!r} then {texts[ids[step]]!r}"
                self.slow[kind].append((times.masks[step] / 1000, what))


@functools.cache
def _shared(name: str, tokens: Tokens) -> Engine:
    return ENGINES[name](tokens)


def fresh(name: str, tokens: Tokens) -> Engine:
    """An engine that has seen no grammar; the peers remember none, so that one of each is enough."""
    return Dovetail(tokens) if name == "dovetail" else _shared(name, tokens)


def report(studies: Sequence[Study], options: argparse.Namespace) -> None:
    """Print the table and the slowest steps, and write the JSON file."""
    header = ["request, engine", "compile ms", "again us", "first mask ms", "warm p50 us", "mean", "p99", "max"]
    header += ["new p50 us", "mean", "p99", "max", "accept p50 us", "mean", "kB/grammar", "resident kB"]
    rows: list[list[object]] = []
    for study in studies:
        for name, r in study.result.items():
            row: list[object] = [f"{study.label}, {name}", r["compile_ms"], r["again_us"], r["first_mask_ms"]]
            row += [*r["warm_us"].values(), *r["new_us"].values(), r["accept_us"]["p50"], r["accept_us"]["mean"]]
            rows.append([*row, r.get("memory_kb"), r.get("resident_kb")])
    print(table(header, rows))
    for study in studies:
        for steps in study.slow.values():
            for us, what in sorted(steps, reverse=True)[: options.slowest]:
                print(f"{us:9.1f} us  {what}")
    write_json(options.json, {"studies": {study.label: study.result for study in studies}})


def add_options(parser: argparse.ArgumentParser) -> None:
    """The options that all side-by-side programs have."""
    add = parser.add_argument
    add("--engines", type=_engines, default="dovetail,llguidance,xgrammar", help="which to run (%(default)s)")
    add("--sets", type=int, default=24, help="how many new requests count, after a few others (%(default)s)")
    add("--rounds", type=int, default=5, help="how often they are repeated with fresh engines (%(default)s)")
    add("--xgrammar-sets", type=int, default=6, help="how many of them XGrammar compiles, once (%(default)s)")
    add("--outputs", type=int, default=9, help="outputs that are walked warm (%(default)s)")
    add("--warm-rounds", type=int, default=15, help="how often they are walked (%(default)s)")
    add("--slowest", type=int, default=0, metavar="N", help="list Dovetail's N slowest steps, new and warm")
    add("--quick", action="store_true", help="the smallest run that shows everything; its figures are rough")
    add("--json", type=Path, metavar="OUT", help="write the figures there as well")


def apply_quick(options: argparse.Namespace) -> None:
    """What --quick stands for."""
    if options.quick:
        options.sets, options.rounds, options.xgrammar_sets = 2, 2, 1
        options.outputs, options.warm_rounds = 3, 2


def _engines(names: str) -> list[str]:
    chosen = names.split(",")
    if unknown := [name for name in chosen if name not in ENGINES]:
        raise argparse.ArgumentTypeError(f"no engine is called {unknown[0]!r}; there are {', '.join(ENGINES)}")
    return chosen
