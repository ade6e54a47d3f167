"""Does reading a response keep up with Transformers, and does a chunk cost the same in a long one as in a short one?

Each shape of template reads an output of 20 kB: streamed in pieces like tokens, one `feed` each, and as a whole by
`parse_response`. Both parsers run in one process and take turns; a figure is the processor time of the fastest round,
and both give the same message. Then one region grows, up to 10 MB, and a chunk is timed at each size. The last lines
say PASS or FAIL for each promise.

  python benchmarks/bench_response_templates.py                          two minutes
  python benchmarks/bench_response_templates.py --quick                  one round, up to 100 kB: to see that it runs
"""

from __future__ import annotations

import argparse
import random
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from measure import progress, quiet, table, verdict, write_json
from transformers.utils import chat_parsing as peer

import dovetail as dt

SIZE = 20_000
FASTER = 3.0
FLAT = 1.5
"""How much dearer a chunk may be at the largest size than at 100 kB, on a machine that does other things too."""

_TOKEN = re.compile(r" ?\w+|[^\w\s]+|\s+")
_WORDS = """the parser reads one character at a time and moves on when it holds, so that nothing is read twice. Where
a < b it waits; a list has items: - one - two and `code`. Then comes the next one, with 42 numbers, and more""".split()


def _hermes(opening: str, closing: str, end: dict[str, str]) -> dict[str, Any]:
    call = {"repeats": True, "content": "json", "transform": {"type": "function", "function": "{content}"}}
    return {
        "defaults": {"role": "assistant"},
        "start_anchor": "<|im_start|>assistant\n",
        "fields": {
            "thinking": {"open": "<think>", "close": "</think>"},
            "tool_calls": {"open_pattern": opening, "close_pattern": closing, **call},
            "content": end,
        },
    }


_TAGS = {
    "tag_pattern": "<parameter=(?P<key>[^>\\n]+)>\\s*(?P<value>.*?)\\s*</parameter>",
    "value_parser": {"name": "json", "args": {"allow_non_json": True}},
}
_NAMED = {"type": "function", "function": {"name": "{name}", "arguments": "{content}"}}
LITERAL = _hermes("<tool_call>", "</tool_call>", {"close": "<|im_end|>"})
for _key in ("open", "close"):
    LITERAL["fields"]["tool_calls"][_key] = LITERAL["fields"]["tool_calls"].pop(f"{_key}_pattern")
TEMPLATES: dict[str, dict[str, Any]] = {
    "literal delimiters": LITERAL,
    "white space around": _hermes("\\s*<tool_call>", "</tool_call>\\s*", {"close_pattern": "\\s*<\\|im_end\\|>"}),
    "tags": {
        **LITERAL,
        "fields": {
            "thinking": {"open": "<think>", "close_pattern": "</think>\\s*"},
            "tool_calls": {
                "open_pattern": "<tool_call>\\s*<function=(?P<name>[^\\n>]+)>",
                "close_pattern": "</tool_call>\\s*",
                "repeats": True,
                "content": "xml-inline",
                "content_args": _TAGS,
                "transform": _NAMED,
            },
            "content": {"close_pattern": "<\\|im_end\\|>\\s*"},
        },
    },
    "channels": {
        "defaults": {"role": "assistant"},
        "start_anchor": "<|start|>assistant",
        "fields": {
            "thinking": {"open": "<|channel|>analysis<|message|>", "close": "<|end|>"},
            "content": {"open": "<|channel|>final<|message|>", "close": "<|end|>"},
            "tool_calls": {
                "open_pattern": "<\\|channel\\|>commentary to=functions\\.(?P<name>\\w+).*?<\\|message\\|>",
                "close": "<|call|>",
                "repeats": True,
                "content": "json",
                "transform": _NAMED,
            },
        },
    },
}


def prose(dice: random.Random, size: int) -> str:
    """About so many characters in paragraphs."""
    words: list[str] = []
    while size > 0:
        words.append(dice.choice(_WORDS) + ("\n\n" if dice.random() < 0.02 else " "))
        size -= len(words[-1])
    return "".join(words)


def output(name: str, size: int) -> str:
    """Reasoning, an answer and eight calls in the words of a template."""
    dice = random.Random(name)
    thought, answer, argument = prose(dice, size * 2 // 5), prose(dice, size * 2 // 5), prose(dice, size // 40).strip()
    quoted = argument.replace("\n", " ")
    match name:
        case "channels":
            call = f'<|channel|>commentary to=functions.f <|constrain|>json<|message|>{{"text": "{quoted}"}}<|call|>'
            start = f"<|channel|>analysis<|message|>{thought}<|end|><|start|>assistant"
            return f"{start}<|channel|>final<|message|>{answer}<|end|>{call * 8}"
        case "tags":
            call = f"<tool_call>\n<function=f>\n<parameter=text>\n{argument}\n</parameter>\n</function>\n</tool_call>\n"
        case _:
            call = f'<tool_call>{{"name": "f", "arguments": {{"text": "{quoted}"}}}}</tool_call>'
    return f"<think>{thought}</think>{answer}{call * 8}<|im_end|>"


def stream(parser: Any, chunks: Sequence[str]) -> Any:
    """The message of a streamed output."""
    for chunk in chunks:
        parser.feed(chunk)
    return parser.finalize()[0]


def fastest(jobs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Seconds of each job's fastest round, the jobs taking turns; all of them must give the same."""
    times = dict.fromkeys(jobs, float("inf"))
    for _ in range(rounds):
        results = []
        for name, job in jobs.items():
            start = time.process_time()
            results.append(job())
            times[name] = min(times[name], time.process_time() - start)
        if any(result != results[0] for result in results):
            raise AssertionError("the parsers do not read the same message")
    return times


def compare(name: str, rounds: int) -> dict[str, Any]:
    """Both parsers on one output."""
    template = TEMPLATES[name]
    text = output(name, SIZE)
    chunks = _TOKEN.findall(text)
    streamed = fastest(
        {
            "transformers": lambda: stream(peer.ResponseParser(template, prefix=""), chunks),
            "dovetail": lambda: stream(dt.ResponseParser(template, ""), chunks),
        },
        rounds,
    )
    whole = fastest(
        {
            "transformers": lambda: [peer.parse_response(text, template, prefix="") for _ in range(20)],
            "dovetail": lambda: [dt.parse_response(text, template, prefix="") for _ in range(20)],
        },
        rounds,
    )
    return {
        "chunk_us": {engine: spent / len(chunks) * 1e6 for engine, spent in streamed.items()},
        "whole_us": {engine: spent / 20 * 1e6 for engine, spent in whole.items()},
        "streaming": streamed["transformers"] / streamed["dovetail"],
        "whole": whole["transformers"] / whole["dovetail"],
    }


def growth(make: Callable[[], Any], sizes: Sequence[int], window: int) -> dict[str, float]:
    """Microseconds per chunk while a region grows, each over `window` characters before a size is reached."""
    chunks = _TOKEN.findall(prose(random.Random(0), window))
    size = sum(map(len, chunks))
    parser = make()
    parser.feed("<think>")
    fed, costs = 0, {}
    for wanted in sizes:
        while fed < wanted - size:
            step = min(wanted - size - fed, 1 << 16)
            parser.feed("x" * step)
            fed += step
        start = time.process_time()
        for chunk in chunks:
            parser.feed(chunk)
        costs[str(wanted)] = (time.process_time() - start) / len(chunks) * 1e6
        fed += size
    return costs


def main(arguments: Sequence[str] | None = None) -> None:
    """Run and print."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=15, help="times that each output is read (%(default)s)")
    options.add_argument("--quick", action="store_true", help="one round, up to 100 kB")
    options.add_argument("--json", type=Path, metavar="OUT", help="write the figures there as well")
    chosen = options.parse_args(arguments)
    sizes = [20_000, 100_000] if chosen.quick else [20_000, 100_000, 1_000_000, 10_000_000]
    with quiet():
        outputs = {}
        for name in TEMPLATES:
            progress(name)
            outputs[name] = compare(name, 1 if chosen.quick else chosen.rounds)
        progress("a growing region")
        repeats = [growth(lambda: dt.ResponseParser(LITERAL, ""), sizes, 10_000) for _ in range(3)]
        ours = {size: min(costs[size] for costs in repeats) for size in repeats[0]}
        theirs = growth(lambda: peer.ResponseParser(LITERAL, prefix=""), sizes, 2_000)
    columns = ["output", "chunk, us", "Transformers", "times faster", "whole, us", "Transformers", "times faster"]
    engines = ("dovetail", "transformers")
    rows = []
    for name, row in outputs.items():
        streamed, whole = ([row[figure][engine] for engine in engines] for figure in ("chunk_us", "whole_us"))
        rows.append([name, *streamed, row["streaming"], *whole, row["whole"]])
    print(table(columns, rows))
    print(
        table(
            ["us per chunk at", *(f"{size:,}" for size in sizes)],
            [["dovetail", *ours.values()], ["transformers", *theirs.values()]],
        )
    )
    slowest = min(row["streaming"] for row in outputs.values())
    print(
        verdict(f"streaming {SIZE:,} characters is {FASTER:g} times faster", slowest >= FASTER, f"{slowest:.1f} times")
    )
    slowest = min(row["whole"] for row in outputs.values())
    print(verdict("a whole text is read at least as fast", slowest >= 1, f"{slowest:.2f} times"))
    ratio = ours[str(sizes[-1])] / ours["100000"]
    print(verdict(f"a chunk at {sizes[-1]:,} costs what it costs at 100,000", ratio <= FLAT, f"{ratio:.2f} times"))
    write_json(chosen.json, {"outputs": outputs, "growth": {"dovetail": ours, "transformers": theirs}})


if __name__ == "__main__":
    main()
