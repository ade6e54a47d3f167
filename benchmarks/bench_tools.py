"""Tool calling side by side: how long do a request, its first mask, each mask and each token take?

The request is the one of a chat with tools: reasoning in <think>, then free text in which <tool_call> begins a call of
one of 1, 10 or 100 tools with JSON arguments. Dovetail and XGrammar get the same structural tag, llguidance the same
language in its own grammar. The outputs are tokenised by the vocabulary's own encoder, and each engine must allow each
of their tokens. How times are taken stands in measure.py; one process, one thread, 131,072 tokens (Tekken).

  python benchmarks/bench_tools.py                         everything, some minutes: XGrammar compiles for seconds
  python benchmarks/bench_tools.py --quick                 one size, few rounds; to see that it runs
  python benchmarks/bench_tools.py --tools 10 --engines dovetail --slowest 20
                                                           where Dovetail itself spends its time

The last lines say PASS or FAIL for each promise about speed that the figures of this run can decide.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import tool_sets
from engines import ENGINES, STOP, Engine, Tokens, load_tokens
from measure import (
    Case,
    First,
    Walk,
    again,
    fastest_first,
    first,
    keep,
    progress,
    quiet,
    resident_bytes,
    spread,
    table,
    verdict,
    warm,
    write_json,
)

OTHERS = 4
"""Tool sets that an engine has seen before the new ones that count."""


def case_of(tokens: Tokens, tools: int, seed: int, outputs: int) -> Case:
    """The tool set of this seed with as many outputs."""
    declared = tool_sets.tool_set(tools, seed)
    written = tool_sets.outputs(declared, outputs, seed)
    ids = [[*tokens.encode(text), STOP] for text in written]
    return Case(f"{tools} tools, set {seed}", tool_sets.request(declared), ids)


class Size:
    """All figures for one number of tools."""

    def __init__(self, tokens: Tokens, tools: int, options: argparse.Namespace) -> None:
        self.tokens = tokens
        self.tools = tools
        self.options = options
        self.result: dict[str, dict[str, Any]] = {name: {} for name in options.engines}
        self.slow: list[tuple[float, str]] = []

    def run(self) -> None:
        """Measure; `result` and `slow` hold what came out."""
        self._new()
        self._warm()
        self._memory()

    def _new(self) -> None:
        sets = OTHERS + self.options.sets
        # A set has one output of one to three calls, as one request has.
        cases = [case_of(self.tokens, self.tools, seed, 3) for seed in range(1, sets + 1)]
        cases = [Case(c.name, c.request, [c.outputs[i % 3]]) for i, c in enumerate(cases)]
        seen: dict[str, list[list[First]]] = {name: [[] for _ in cases] for name in self.result}
        for turn in range(self.options.rounds):
            engines = [ENGINES[name](self.tokens) for name in self.result]
            for i, case in enumerate(cases):
                for engine in engines:
                    if self._runs(engine, i, turn):
                        progress(f"{case.name}, round {turn + 1}: {engine.name} compiles and walks a new grammar")
                        grammar, times = first(engine, case, 5 if engine.name == "xgrammar" else 1)
                        seen[engine.name][i].append(times)
                        if size := engine.grammar_bytes(grammar):
                            self.result[engine.name]["memory_kb"] = size / 1000
        for name, by_case in seen.items():
            self._summarise_new(name, cases, by_case)

    def _runs(self, engine: Engine, index: int, turn: int) -> bool:
        # XGrammar computes its masks ahead, for seconds per grammar, and keeps nothing between grammars: it needs no
        # others before, and fewer sets tell as much.
        if engine.name != "xgrammar":
            return True
        return turn == 0 and OTHERS <= index < OTHERS + self.options.xgrammar_sets

    def _summarise_new(self, name: str, cases: Sequence[Case], by_case: list[list[First]]) -> None:
        counted = [(c, fastest_first(runs)) for c, runs in zip(cases[OTHERS:], by_case[OTHERS:], strict=True) if runs]
        result = self.result[name]
        result["compile_ms"] = float(np.median([f.compile for _, f in counted])) / 1e6
        result["compile_max_ms"] = max(f.compile for _, f in counted) / 1e6
        result["first_mask_ms"] = float(np.median([f.first_mask for _, f in counted])) / 1e6
        result["new_us"] = spread(t for _, f in counted for t in f.walk.masks)
        result["sets"] = len(counted)
        if by_case[0]:  # no grammar was there before this one
            alone = fastest_first(by_case[0])
            result["very_first_us"] = spread(alone.walk.masks)
            result["very_first_compile_ms"] = alone.compile / 1e6
        if name == "dovetail":
            for case, times in counted:
                self._note("new", case, [times.walk])

    def _warm(self) -> None:
        case = case_of(self.tokens, self.tools, 0, self.options.outputs)
        compiled: dict[str, tuple[Engine, Any]] = {}
        for name, result in self.result.items():
            progress(f"{case.name}: {name} compiles, then the same tools again")
            engine = ENGINES[name](self.tokens)
            compiled[name] = engine, engine.compile_again(case.request)
            result["again_us"] = again(engine, case, 5 if name == "llguidance" else 31) / 1000
        progress(
            f"{case.name}: {sum(map(len, case.outputs))} steps, {self.options.warm_rounds} rounds, engines in turn"
        )
        for name, walks in warm(compiled, case, self.options.warm_rounds).items():
            self.result[name]["warm_us"] = spread(t for w in walks for t in w.masks)
            self.result[name]["accept_us"] = spread(t for w in walks for t in w.accepts)
            self.result[name]["warm_steps"] = sum(len(w.masks) for w in walks)
            if name == "dovetail":
                self._note("warm", case, walks)

    def _memory(self) -> None:
        count = self.options.sets
        cases = [case_of(self.tokens, self.tools, 1000 + seed, 1) for seed in range(count + OTHERS)]
        for name, result in self.result.items():
            if name == "xgrammar":
                continue  # it tells the size of each grammar, and compiling more of them would take minutes
            progress(f"{self.tools} tools: {name}, memory of {count} grammars")
            engine = ENGINES[name](self.tokens)
            others = keep(engine, cases[:OTHERS])
            held, resident = engine.cache_bytes(), resident_bytes()
            kept = keep(engine, cases[OTHERS:])
            result["resident_kb"] = max(0, resident_bytes() - resident) / count / 1000
            if held is not None:
                result["memory_kb"] = (engine.cache_bytes() - held) / count / 1000
            del others, kept

    def _note(self, kind: str, case: Case, walks: Sequence[Walk]) -> None:
        texts = self.tokens.texts
        for ids, times in zip(case.outputs, walks, strict=True):
            for step in np.argsort(times.masks)[::-1][: self.options.slowest]:
                before = b"".join(texts[i] for i in ids[max(0, step - 12) : step])[-48:].decode("utf-8", "replace")
                what = f"{kind:4} {case.name}, step {step}: after ...{before!r} then {texts[ids[step]]!r}"
                self.slow.append((times.masks[step] / 1000, what))


def report(sizes: Sequence[Size]) -> str:
    """The tables."""
    header = ["tools engine", "compile ms", "again us", "first mask ms", "warm p50 us", "mean", "p99", "max"]
    header += ["new p50 us", "mean", "p99", "max", "accept p50 us", "mean", "kB/grammar", "resident kB"]
    rows: list[list[object]] = []
    for size in sizes:
        for name, r in size.result.items():
            row: list[object] = [f"{size.tools:>5} {name}", r["compile_ms"], r["again_us"], r["first_mask_ms"]]
            row += [*r["warm_us"].values(), *r["new_us"].values(), r["accept_us"]["p50"], r["accept_us"]["mean"]]
            rows.append([*row, r.get("memory_kb") or None, r.get("resident_kb")])
    return table(header, rows)


def promises(sizes: Sequence[Size]) -> list[str]:
    """PASS or FAIL for what the issue asks of 10 tools, as far as the peers were run."""
    by_tools = {size.tools: size.result for size in sizes}
    lines = []
    if 10 in by_tools and "dovetail" in by_tools[10]:
        ours = by_tools[10]["dovetail"]
        for figure, key, least in (
            ("warm mask p50", ("warm_us", "p50"), {"xgrammar": 3, "llguidance": 8}),
            ("warm mask mean", ("warm_us", "mean"), {"xgrammar": 15, "llguidance": 100}),
            ("warm mask p99", ("warm_us", "p99"), {"xgrammar": 50, "llguidance": 50}),
            ("new grammar after others, mask mean", ("new_us", "mean"), {"xgrammar": 5, "llguidance": 5}),
            ("first compile", ("compile_ms",), {"llguidance": 3, "xgrammar": 500}),
            ("warm accept p50", ("accept_us", "p50"), {"xgrammar": 1, "llguidance": 1}),
            ("warm accept mean", ("accept_us", "mean"), {"xgrammar": 1, "llguidance": 1}),
        ):
            for peer, factor in least.items():
                if peer in by_tools[10]:
                    ratio = _at(by_tools[10][peer], key) / _at(ours, key)
                    lines.append(verdict(f"{figure}, {factor} x ahead of {peer}", ratio >= factor, f"{ratio:.1f} x"))
        lines.append(verdict("the same tools again under 50 us", ours["again_us"] < 50, f"{ours['again_us']:.1f} us"))
        held = f"{ours['memory_kb']:.0f} kB, the process grows by {ours['resident_kb']:.0f} kB"
        lines.append(verdict("memory per grammar at most 150 kB", ours["memory_kb"] <= 150, held))
    if {10, 100} <= by_tools.keys() and "dovetail" in by_tools[100]:
        ratio = by_tools[100]["dovetail"]["compile_ms"] / by_tools[10]["dovetail"]["compile_ms"]
        lines.append(verdict("100 tools compile in at most 10 times 10 tools", ratio <= 10, f"{ratio:.1f} times"))
    return lines


def _at(result: dict[str, Any], key: Sequence[str]) -> float:
    for part in key:
        result = result[part]
    return float(result)  # type: ignore[arg-type]


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """The options, with --quick applied."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--tools", type=int, action="append", metavar="N", help="how many tools; may be given again (1, 10 and 100)"
    )
    parser.add_argument(
        "--engines", default="dovetail,llguidance,xgrammar", help="which to run, by comma (%(default)s)"
    )
    parser.add_argument("--sets", type=int, default=24, help="new tool sets per size (%(default)s)")
    parser.add_argument(
        "--rounds", type=int, default=5, help="times that new sets are repeated with fresh engines (%(default)s)"
    )
    parser.add_argument(
        "--xgrammar-sets", type=int, default=3, help="new tool sets for XGrammar, which compiles for long (%(default)s)"
    )
    parser.add_argument("--outputs", type=int, default=9, help="outputs walked warm (%(default)s)")
    parser.add_argument("--warm-rounds", type=int, default=15, help="rounds of walking them (%(default)s)")
    parser.add_argument("--slowest", type=int, default=0, metavar="N", help="list Dovetail's N slowest steps")
    parser.add_argument("--quick", action="store_true", help="1 tool, 2 sets, 2 rounds")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write the figures there as well")
    options = parser.parse_args(arguments)
    options.engines = options.engines.split(",")
    if unknown := [name for name in options.engines if name not in ENGINES]:
        parser.error(f"no engine is called {unknown[0]!r}; there are {', '.join(ENGINES)}")
    if options.quick:
        options.tools = options.tools or [1]
        options.sets, options.rounds, options.xgrammar_sets = 2, 2, 1
        options.outputs, options.warm_rounds = 3, 2
    options.tools = options.tools or [1, 10, 100]
    return options


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and print."""
    options = parse(arguments)
    tokens = load_tokens()
    sizes = []
    with quiet():
        for count in options.tools:
            size = Size(tokens, count, options)
            size.run()
            sizes.append(size)
    print(report(sizes))
    for size in sizes:
        for us, what in sorted(size.slow, reverse=True)[: options.slowest]:
            print(f"{us:9.1f} us  {what}")
    for line in promises(sizes):
        print(line)
    write_json(options.json, {"tools": {str(size.tools): size.result for size in sizes}})


if __name__ == "__main__":
    main()
