"""Tool calling side by side: how long do a request, its first mask, each mask and each token take?

The request is the one of a chat with tools: reasoning in <think>, then free text in which <tool_call> begins a call of
one of 1, 10 or 100 tools with JSON arguments. Dovetail and XGrammar get the same structural tag, llguidance the same
language in its own grammar. The outputs are tokenized by the vocabulary's own encoder, and each engine must allow each
of their tokens. One process, one thread, 131,072 tokens (Tekken); how times are taken stands in measure.py.

  python benchmarks/bench_tools.py                         everything; minutes, as XGrammar compiles for many seconds
  python benchmarks/bench_tools.py --quick                 one tool, few rounds: to see that it runs
  python benchmarks/bench_tools.py --tools 10 --engines dovetail --slowest 20
                                                           seconds: where Dovetail itself spends its time

columns
  compile      a request that is new to a warm process, up to a matcher, Python included; median over requests
  again        an equal request after it (XGrammar with its cache on, llguidance has none)
  first mask   compile and the first mask
  warm         masks of a grammar that was walked before
  new          masks of a grammar that comes after others
  accept       taking a token, warm
  kB/grammar   as the engine counts: Dovetail what its caches grow by, XGrammar the size of a grammar
  resident     what the process grows by

The last lines say PASS or FAIL for each promise about speed that the run can decide.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import tool_sets
from engines import STOP, Tokens, load_tokens
from measure import Case, quiet, verdict
from study import Study, add_options, apply_quick, report

PROMISES: tuple[tuple[str, str, dict[str, float]], ...] = (
    ("warm mask p50", "warm_us/p50", {"xgrammar": 3, "llguidance": 8}),
    ("warm mask mean", "warm_us/mean", {"xgrammar": 15, "llguidance": 100}),
    ("warm mask p99", "warm_us/p99", {"xgrammar": 50, "llguidance": 50}),
    ("mask mean of a new grammar after others", "new", {"xgrammar": 5, "llguidance": 5}),
    ("first compile", "compile_ms", {"xgrammar": 500, "llguidance": 3}),
    ("warm accept p50", "accept_us/p50", {"xgrammar": 1, "llguidance": 1}),
    ("warm accept mean", "accept_us/mean", {"xgrammar": 1, "llguidance": 1}),
)
"""With 10 tools: how many times ahead of which peer a figure must be."""


def maker(tokens: Tokens, tools: int) -> Callable[[int, int], Case]:
    """Requests with that many tools; each seed has its own."""

    def make(seed: int, outputs: int) -> Case:
        declared = tool_sets.tool_set(tools, seed)
        ids = [[*tokens.encode(text), STOP] for text in tool_sets.outputs(declared, outputs, seed)]
        return Case(f"{tools} tools, set {seed}", tool_sets.request(declared), ids)

    return make


def promises(studies: dict[int, Study]) -> list[str]:
    """PASS or FAIL for each promise that these sizes and engines can decide."""
    ten = studies.get(10)
    if not ten or "dovetail" not in ten.result:
        return []
    ours, lines = ten.result["dovetail"], []
    for what, figure, least in PROMISES:
        for peer, factor in least.items():
            if peer in ten.result:
                ratio = ten.ahead(peer, figure)
                lines.append(verdict(f"{what}, {factor} x ahead of {peer}", ratio >= factor, f"{ratio:.1f} x"))
    lines.append(verdict("the same tools again in under 50 us", ours["again_us"] < 50, f"{ours['again_us']:.1f} us"))
    held = f"{ours['memory_kb']:.0f} kB; the process grows by {ours['resident_kb']:.0f} kB"
    lines.append(verdict("memory per grammar at most 150 kB", ours["memory_kb"] <= 150, held))
    if hundred := studies.get(100):
        ratio = hundred.result["dovetail"]["compile_ms"] / ours["compile_ms"]
        lines.append(verdict("100 tools compile in at most 10 times 10 tools", ratio <= 10, f"{ratio:.1f} times"))
    return lines


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tools", type=int, action="append", metavar="N", help="how many; may be repeated (1 10 100)")
    add_options(parser)
    options = parser.parse_args(arguments)
    apply_quick(options)
    tokens = load_tokens()
    studies: dict[int, Study] = {}
    with quiet():
        for count in options.tools or ([1] if options.quick else [1, 10, 100]):
            studies[count] = Study(f"{count:>3} tools", maker(tokens, count), tokens, options).run()
    report(list(studies.values()), options)
    for line in promises(studies):
        print(line)


if __name__ == "__main__":
    main()
