"""What do constraints cost inside vLLM, through its own backend classes: XGrammar, llguidance and Dovetail?

    vllm_backends.py MODEL [--quick] [--json FILE]

MODEL is a directory with a tokenizer. It runs where vLLM is installed (.ci/engines-env makes such an environment), and
needs no server. Every schema and tool set is new to the engine that gets it. A round compiles all of them with fresh
backends and walks one output of each, a mask before each token; a step counts with its fastest round, because what is
slower is the machine. Compiling counts in the first round alone, as the time on the clock or of the processor,
whichever is less: a busy machine makes the one longer, and threads of the engine's own the other. From the request to
the first mask is what a request waits for before the engine can begin with it.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import numpy as np

ROUNDS = 3
_WORDS = (
    "account amount branch city color count date email height invoice label level limit name note order owner price"
)


@dataclass(frozen=True)
class Asked:
    """A constraint as vLLM hands it to a backend, and an output that fits it."""

    kind: str
    spec: str
    output: str


@dataclass
class Times:
    """Nanoseconds of one engine on one workload."""

    compiles: list[int] = field(default_factory=list)
    first_masks: list[int] = field(default_factory=list)
    fills: list[list[int]] = field(default_factory=list)  # by round
    accepts: list[list[int]] = field(default_factory=list)


def schema_and_value(random: Random, fields: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """A closed object with names of its own, and a value that fits it."""
    properties: dict[str, Any] = {}
    value: dict[str, Any] = {}
    for number in range(fields):
        name = f"{random.choice(_WORDS.split())}_{random.randrange(10_000)}_{number}"
        match number % 5:
            case 0:
                properties[name] = {"type": "string", "maxLength": random.randrange(30, 90)}
                value[name] = f"the {random.choice(_WORDS.split())} of {random.choice(_WORDS.split())}"
            case 1:
                low = random.randrange(100)
                properties[name] = {"type": "integer", "minimum": low, "maximum": low + random.randrange(5, 9000)}
                value[name] = low + random.randrange(5)
            case 2:
                choices = [f"{word}{random.randrange(1000)}" for word in random.sample(_WORDS.split(), 4)]
                properties[name] = {"enum": choices}
                value[name] = random.choice(choices)
            case 3:
                properties[name] = {"type": "boolean"}
                value[name] = random.random() < 0.5
            case _:
                properties[name] = {"type": "array", "items": {"type": "string"}, "maxItems": random.randrange(3, 7)}
                value[name] = random.sample(_WORDS.split(), 2)
    made = {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}
    return made, value


def schemas(fields: int, count: int) -> list[Asked]:
    """New schemas with this many fields."""
    random = Random(fields)
    made = [schema_and_value(random, fields) for _ in range(count)]
    return [Asked("JSON", json.dumps(schema), json.dumps(value)) for schema, value in made]


def tool_sets(tools: int, count: int) -> list[Asked]:
    """New sets of tools in the shape of structural tags that all three backends know, and prose with a call."""
    random = Random(tools)
    asked = []
    for number in range(count):
        made = [schema_and_value(random, random.randrange(3, 9)) for _ in range(tools)]
        # Not between < and >, where llguidance looks for a special token of the vocabulary.
        begins = [f'[call]{{"name": "tool_{number}_{index}", "arguments": ' for index in range(tools)]
        structures = [
            {"begin": begin, "schema": schema, "end": "}[end]"} for begin, (schema, _) in zip(begins, made, strict=True)
        ]
        tag = {"type": "structural_tag", "structures": structures, "triggers": ["[call]"]}
        chosen = random.randrange(tools)
        output = f"Let me look that up. {begins[chosen]}{json.dumps(made[chosen][1])}}}[end]"
        asked.append(Asked("STRUCTURAL_TAG", json.dumps(tag), output))
    return asked


def backends(tokenizer: Any) -> dict[str, Callable[[], Any]]:
    """How each backend is made, by vLLM's own arguments."""
    from vllm.v1.structured_output.backend_guidance import GuidanceBackend
    from vllm.v1.structured_output.backend_xgrammar import XgrammarBackend

    from dovetail.integrations.vllm.backend import DovetailBackend

    outputs = SimpleNamespace(disable_any_whitespace=False, disable_additional_properties=False)
    config = SimpleNamespace(structured_outputs_config=outputs, speculative_config=None, model_config=None)
    classes = {"dovetail": DovetailBackend, "guidance": GuidanceBackend, "xgrammar": XgrammarBackend}

    def maker(made: Any) -> Callable[[], Any]:
        return lambda: made(config, tokenizer=tokenizer, vocab_size=len(tokenizer))

    return {name: maker(made) for name, made in classes.items()}


def run(make: Callable[[], Any], asked: Sequence[Asked], tokenizer: Any, rounds: int) -> Times:
    """One engine over one workload."""
    from vllm.v1.structured_output.backend_types import StructuredOutputOptions

    stop, clock = tokenizer.eos_token_id, time.perf_counter_ns
    outputs = [[*tokenizer.encode(each.output), stop] for each in asked]
    times = Times()
    for number in range(rounds):
        backend = make()
        mask = backend.allocate_token_bitmask(1)
        fills: list[int] = []
        accepts: list[int] = []
        for each, tokens in zip(asked, outputs, strict=True):
            start, spent = clock(), time.process_time_ns()
            grammar = backend.compile_grammar(StructuredOutputOptions[each.kind], each.spec, {stop})
            compiled = min(clock() - start, time.process_time_ns() - spent)
            for step, token in enumerate(tokens):
                start = clock()
                grammar.fill_bitmask(mask, 0)
                fills.append(clock() - start)
                if not step and not number:
                    times.compiles.append(compiled)
                    times.first_masks.append(compiled + fills[-1])
                if not int(mask[0, token >> 5]) >> (token & 31) & 1:
                    raise AssertionError(f"{type(backend).__name__} forbids {tokenizer.decode([token])!r}")
                start = clock()
                taken = grammar.accept_tokens("", [token])
                accepts.append(clock() - start)
                assert taken, each
        times.fills.append(fills)
        times.accepts.append(accepts)
    return times


def figures(times: Times) -> dict[str, float]:
    """What is reported of an engine."""
    fills = np.min(times.fills, axis=0) / 1e3
    accepts = np.min(times.accepts, axis=0) / 1e3
    return {
        "compile_ms": float(np.median(times.compiles)) / 1e6,
        "compile_max_ms": max(times.compiles) / 1e6,
        "first_mask_ms": float(np.median(times.first_masks)) / 1e6,
        "fill_p50_us": float(np.percentile(fills, 50)),
        "fill_p99_us": float(np.percentile(fills, 99)),
        "fill_mean_us": float(fills.mean()),
        "accept_us": float(accepts.mean()),
    }


def main() -> None:
    """Run all workloads and print a table for each."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("model", type=Path)
    options.add_argument("--quick", action="store_true", help="two of each, one round")
    options.add_argument("--json", type=Path)
    given = options.parse_args()
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(given.model)
    rounds = 1 if given.quick else ROUNDS
    few, many = (2, 2) if given.quick else (6, 20)
    workloads = {
        "small schemas": schemas(5, many),
        "40 fields": schemas(40, many),
        "10 tools": tool_sets(10, few),
    }
    written: dict[str, Any] = {}
    for title, asked in workloads.items():
        print(f"\n{title}")
        for name, make in backends(tokenizer).items():
            written.setdefault(title, {})[name] = row = figures(run(make, asked, tokenizer, rounds))
            print(f"  {name:9}", *(f"{key} {value:9.3f}" for key, value in row.items()), sep="  ")
    if given.json:
        given.json.write_text(json.dumps(written, indent=1))


if __name__ == "__main__":
    main()
