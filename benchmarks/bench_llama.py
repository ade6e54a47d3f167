"""What does a mask cost on a real model? Tokens per second beside llama.cpp without one.

    python benchmarks/bench_llama.py                       smollm2, at one and at eight requests
    python benchmarks/bench_llama.py --model FILE --rows 1 another model, other numbers of requests
    python benchmarks/bench_llama.py --quick               one short round

Three ways to generate the same number of tokens take turns, round after round, so that whatever else the machine does
meets all of them: llama.cpp driven by its own sampler, which knows no format; Dovetail without a format; Dovetail under
a JSON Schema. All of them draw at temperature 0.7, from the same prompts. Reported are the tokens per second of each
way in its median round, and the median over rounds of the share of the first way's speed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import llama_cpp

from dovetail.models import Sampling, load
from dovetail.models.llama import LlamaModel, model_params
from dovetail.models.locate import locate

TEMPERATURE = 0.7
CELLS = 4096
# An answer that goes on for longer than any round.
ORDERS = {
    "type": "array",
    "minItems": 100,
    "items": {
        "type": "object",
        "properties": {
            "customer": {"type": "string", "maxLength": 40},
            "city": {"type": "string", "maxLength": 40},
            "quantity": {"type": "integer"},
            "priority": {"enum": ["low", "normal", "high"]},
        },
        "required": ["customer", "city", "quantity", "priority"],
        "additionalProperties": False,
    },
}


class Plain:
    """llama.cpp through llama-cpp-python's own functions: one batch for all rows, its sampler for each."""

    def __init__(self, path: Path, rows: int, threads: int) -> None:
        self._model = llama_cpp.llama_model_load_from_file(str(path).encode(), model_params())
        params = llama_cpp.llama_context_default_params()
        params.n_ctx, params.n_batch, params.n_seq_max, params.kv_unified = CELLS, 512, rows, True
        params.n_threads = params.n_threads_batch = threads
        self._context = llama_cpp.llama_init_from_model(self._model, params)
        self._batch = llama_cpp.llama_batch_init(512, 0, 1)

    def generate(self, prompts: Sequence[list[int]], count: int) -> int:
        """How many tokens it made: `count` for each prompt, wherever the model would have stopped."""
        llama_cpp.llama_memory_clear(llama_cpp.llama_get_memory(self._context), True)
        samplers = [self._sampler(row) for row in range(len(prompts))]
        tokens = []
        for row, prompt in enumerate(prompts):
            self._decode([(token, place, row) for place, token in enumerate(prompt)], last_only=True)
            tokens.append(llama_cpp.llama_sampler_sample(samplers[row], self._context, len(prompt) - 1))
        for step in range(count - 1):
            self._decode([(token, len(prompts[row]) + step, row) for row, token in enumerate(tokens)], last_only=False)
            tokens = [
                llama_cpp.llama_sampler_sample(sampler, self._context, row) for row, sampler in enumerate(samplers)
            ]
        for sampler in samplers:
            llama_cpp.llama_sampler_free(sampler)
        return count * len(prompts)

    def _sampler(self, seed: int) -> Any:
        chain = llama_cpp.llama_sampler_chain_init(llama_cpp.llama_sampler_chain_default_params())
        llama_cpp.llama_sampler_chain_add(chain, llama_cpp.llama_sampler_init_temp(TEMPERATURE))
        llama_cpp.llama_sampler_chain_add(chain, llama_cpp.llama_sampler_init_dist(seed))
        return chain

    def _decode(self, rows: list[tuple[int, int, int]], last_only: bool) -> None:
        batch = self._batch
        batch.n_tokens = len(rows)
        for place, (token, position, sequence) in enumerate(rows):
            batch.token[place], batch.pos[place], batch.n_seq_id[place] = token, position, 1
            batch.seq_id[place][0] = sequence
            batch.logits[place] = not last_only or place == len(rows) - 1
        if llama_cpp.llama_decode(self._context, batch):
            raise AssertionError("llama.cpp fails")


def ours(model: LlamaModel, prompts: Sequence[list[int]], count: int, constraint: Any) -> int:
    """How many tokens Dovetail made."""

    async def one(row: int, prompt: list[int]) -> int:
        sampling = Sampling(temperature=TEMPERATURE, seed=row, max_tokens=count)
        return len([step async for step in model.generate(prompt, constraint, sampling)])

    async def together() -> int:
        return sum(await asyncio.gather(*(one(row, prompt) for row, prompt in enumerate(prompts))))

    return asyncio.run(together())


def main() -> None:
    """Measure and report."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="smollm2")
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", metavar="FILE", help="write the report there, too")
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.rounds, arguments.tokens, arguments.rows = 1, 16, [2]
    model = load(arguments.model)
    assert isinstance(model, LlamaModel)
    report = {
        "model": model.name,
        "llama-cpp-python": version("llama-cpp-python"),
        "python": platform.python_version(),
        "rows": {rows: measure(model, arguments, rows) for rows in arguments.rows},
    }
    model.close()
    if arguments.json:
        Path(arguments.json).write_text(json.dumps(report, indent=2))
    print(f"{model.name}, tokens per second, {arguments.tokens} tokens for each request, {arguments.rounds} rounds")
    for rows, figures in report["rows"].items():
        print(f"  {rows} requests")
        for name, (speed, share) in figures.items():
            print(f"    {name:26}{speed:8.1f}   {share:6.1%}")


def measure(model: LlamaModel, arguments: argparse.Namespace, rows: int) -> dict[str, tuple[float, float]]:
    """The speed of each way, and its share of the first way's."""
    plain = Plain(locate(arguments.model).path, rows, model.threads)
    questions = [f"Write {7 + row} orders of a shop as JSON." for row in range(rows)]
    prompts = [model.encode(model.render([{"role": "user", "content": question}]).text) for question in questions]
    count, format = arguments.tokens, {"type": "json_schema", "json_schema": ORDERS}
    ways: dict[str, Callable[[], int]] = {
        "llama.cpp alone": lambda: plain.generate(prompts, count),
        "Dovetail without a format": lambda: ours(model, prompts, count, None),
        "Dovetail, a JSON Schema": lambda: ours(model, prompts, count, format),
    }
    speeds: dict[str, list[float]] = {name: [] for name in ways}
    for round in range(arguments.rounds + 1):
        for name, way in ways.items():
            start = time.perf_counter()
            made = way()
            if round:  # the first one warms all of them up
                speeds[name].append(made / (time.perf_counter() - start))
    alone = speeds["llama.cpp alone"]
    shares = {name: [a / b for a, b in zip(own, alone, strict=True)] for name, own in speeds.items()}
    return {name: (statistics.median(own), statistics.median(shares[name])) for name, own in speeds.items()}


if __name__ == "__main__":
    main()
