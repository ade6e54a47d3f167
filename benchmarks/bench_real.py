"""What do masks do to the answers of a real model? Sixty everyday tasks, SmolLM2-135M, greedy.

    python benchmarks/bench_real.py                  all tasks, every way
    python benchmarks/bench_real.py --quick          ten tasks
    python benchmarks/bench_real.py --json OUT       each answer of each way, too; --results OUT for the figures alone
    python benchmarks/bench_real.py --ways llama     those whose names hold one of these words

The same prompts go to the model alone and under each engine's masks, through llama.cpp and through Transformers: within
a backend all engines meet the same logits, so that what differs is theirs. Each answer may have 96 tokens. Reported are
the answers that are valid under their schema and ended by themselves or were led to their end, the answers with odd
spellings (needless escapes, exponents, -0, heaps of white space), the tokens of an answer, the answers that are right,
the tokens per second after the prompt was read, and of how many tokens the mask took away the model's first choice.
Needs the extras dev and dev-models; runs on one core.
"""

from __future__ import annotations

import argparse
import asyncio
import ctypes
import json
import os
import platform
import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import jsonschema_rs
import llama_cpp
import numpy as np
import torch
from real_tasks import TASKS, Schema, Task
from transformers import AutoTokenizer

from dovetail.models import Model, Sampling, plan_turn
from dovetail.models.llama import LlamaModel
from dovetail.models.locate import locate
from dovetail.models.smollm2 import as_transformers
from dovetail.models.transformers import TransformersModel

MAX_TOKENS = 96
QUICK = 10
SYSTEM = "You are a careful assistant. You answer with one JSON object and nothing else."


@dataclass(frozen=True)
class Said:
    """One answer: its tokens, whether it came to an end, the seconds after its prompt, and how many tokens the mask
    took away."""

    text: str
    tokens: int
    ended: bool
    seconds: float
    taken: int


@dataclass(frozen=True)
class Answer:
    """What an answer is worth."""

    task: str
    text: str
    valid: bool
    ended: bool
    odd: bool
    right: bool
    tokens: int
    seconds: float
    taken: int


Chooser = Callable[[Any], int]  # from logits to a token
Mask = Callable[[Schema], tuple[Chooser, Callable[[int], None]]]  # of a schema: a chooser, and what it hears


class Loop:
    """Greedy decoding over the rows of a backend: one request at a time, with what chooses the token left open."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self._rows = model._batcher._rows
        self._stops = set(model.vocabulary.stop_token_ids)

    def speak(self, prompt: str, choose: Chooser, hear: Callable[[int], None]) -> Said:
        """An answer of at most MAX_TOKENS tokens."""
        ids, rows = self.model.encode(prompt), self._rows
        rows.begin()
        row = rows.new_row(ids)
        logits = rows.read(row, ids[row.length :])
        rows.join(row)
        data, taken, count, ended = b"", 0, 0, False
        started = time.perf_counter()
        while count < MAX_TOKENS and not ended:
            token = choose(logits)
            taken += token != int(logits.argmax())
            count += 1
            ended = token in self._stops
            if not ended:
                hear(token)
                data += self.model.vocabulary.token_bytes(token)
                if count < MAX_TOKENS:
                    logits = rows.step([token])[0]
        seconds = time.perf_counter() - started
        rows.leave({0})
        rows.clear()
        return Said(data.decode("utf-8", "replace"), count, ended, seconds, taken)


class Dovetail:
    """This library as it is used: its model, its turn, its way to the end of an answer."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._firsts: list[int] = []
        rows = model._batcher._rows
        self._read, self._step = rows.read, rows.step

    def answer(self, messages: list[dict[str, str]], schema: Schema) -> Said:
        """The answer to a chat under a schema."""
        return asyncio.run(self._answer(messages, schema))

    async def _answer(self, messages: list[dict[str, str]], schema: Schema) -> Said:
        rows = self._model._batcher._rows
        rows.read = lambda row, tokens: self._noted(self._read(row, tokens))
        rows.step = lambda tokens: self._noted(self._step(tokens))
        self._firsts.clear()
        answer = {"type": "json_schema", "json_schema": schema}
        turn = plan_turn(self._model, messages, response_format=answer, reasoning="disabled")
        said, finish, started, data = [], None, 0.0, b""
        async for step in turn.steps(Sampling(0.0, max_tokens=MAX_TOKENS)):
            started = started or time.perf_counter()
            said.append(step.token)
            data += step.data
            finish = step.finish
        seconds = time.perf_counter() - started
        del rows.read, rows.step
        firsts = self._firsts[-len(said) :] if len(self._firsts) == len(said) else self._firsts[: len(said)]
        taken = sum(first != token for first, token in zip(firsts, said, strict=False))
        return Said(data.decode("utf-8", "replace"), len(said), finish == "stop", seconds, taken)

    def _noted(self, logits: Any) -> Any:
        self._firsts.append(int(logits.reshape(-1).argmax()))
        return logits


def alone(_: Schema) -> tuple[Chooser, Callable[[int], None]]:
    """The model without a mask."""
    return lambda logits: int(logits.argmax()), lambda _: None


class XGrammar:
    """XGrammar's masks, with its defaults."""

    def __init__(self, tokenizer: Any, model: Model) -> None:
        import xgrammar

        stops = list(model.vocabulary.stop_token_ids)
        info = xgrammar.TokenizerInfo.from_huggingface(
            tokenizer, vocab_size=model.vocabulary.size, stop_token_ids=stops
        )
        self._compiler = xgrammar.GrammarCompiler(info)
        self._matcher = xgrammar.GrammarMatcher
        self._mask = xgrammar.allocate_token_bitmask(1, model.vocabulary.size)

    def __call__(self, schema: Schema) -> tuple[Chooser, Callable[[int], None]]:
        """What chooses tokens under a schema, and what hears them."""
        matcher = self._matcher(self._compiler.compile_json_schema(json.dumps(schema)))

        def choose(logits: Any) -> int:
            matcher.fill_next_token_bitmask(self._mask)
            return _first_allowed(self._mask.numpy()[0], logits)

        return choose, matcher.accept_token


class LLGuidance:
    """llguidance's masks, with its defaults."""

    def __init__(self, tokenizer: Any, model: Model) -> None:
        import llguidance
        import llguidance.hf
        import llguidance.numpy

        self._module = llguidance
        self._tokenizer = llguidance.hf.from_tokenizer(tokenizer, model.vocabulary.size)
        self._mask = llguidance.numpy.allocate_token_bitmask(1, model.vocabulary.size)

    def __call__(self, schema: Schema) -> tuple[Chooser, Callable[[int], None]]:
        """What chooses tokens under a schema, and what hears them."""
        module = self._module
        matcher = module.LLMatcher(self._tokenizer, module.LLMatcher.grammar_from_json_schema(json.dumps(schema)))

        def choose(logits: Any) -> int:
            module.numpy.fill_next_token_bitmask(matcher, self._mask)
            return _first_allowed(self._mask[0], logits)

        return choose, lambda token: matcher.consume_token(token)


class LlamaGrammar:
    """llama.cpp's own grammar: its sampler looks at the first choice alone, and at all tokens where that is refused."""

    def __init__(self, model: Any) -> None:
        self._vocabulary = llama_cpp.llama_model_get_vocab(model._model)
        kind = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
        self._all, self._one = np.zeros(model.vocabulary.size, kind), np.zeros(1, kind)
        self._all["id"] = np.arange(model.vocabulary.size)

    def __call__(self, schema: Schema) -> tuple[Chooser, Callable[[int], None]]:
        """What chooses tokens under a schema, and what hears them."""
        from llama_cpp.llama_grammar import LlamaGrammar as Own

        text = Own.from_json_schema(json.dumps(schema), verbose=False)._grammar
        sampler = llama_cpp.llama_sampler_init_grammar(self._vocabulary, text.encode(), b"root")

        def choose(logits: Any) -> int:
            first = int(logits.argmax())
            self._one["id"], self._one["logit"] = first, logits[first]
            self._apply(sampler, self._one)
            if self._one["logit"][0] > -np.inf:
                return first
            self._all["logit"] = logits
            self._apply(sampler, self._all)
            return int(self._all["logit"].argmax())

        return choose, lambda token: llama_cpp.llama_sampler_accept(sampler, token)

    @staticmethod
    def _apply(sampler: Any, candidates: Any) -> None:
        data = candidates.ctypes.data_as(ctypes.POINTER(llama_cpp.llama_token_data))
        array = llama_cpp.llama_token_data_array(data=data, size=len(candidates), selected=-1, sorted=False)
        llama_cpp.llama_sampler_apply(sampler, ctypes.byref(array))


def _first_allowed(mask: Any, logits: Any) -> int:
    """The likeliest token that a mask leaves."""
    scores = np.asarray(logits)
    bits = np.unpackbits(mask.view(np.uint8), bitorder="little", count=len(scores))
    return int(np.where(bits, scores, -np.inf).argmax())


def question(task: Task) -> list[dict[str, str]]:
    """The chat that asks for a task, with what its schema wants in words."""
    shapes = task.schema.get("anyOf", [task.schema])
    asked = f"{task.question}\n\nAnswer with JSON that has the keys {' or '.join(map(_keys, shapes))}."
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": asked}]


def _keys(schema: Schema) -> str:
    """The keys of an object as people tell them, with what each may be where that is not any text."""
    return ", ".join(f'"{key}"{_told(part)}' for key, part in schema["properties"].items())


def _told(schema: Schema) -> str:
    if "const" in schema:
        return f": {json.dumps(schema['const'])}"
    if "enum" in schema:
        return f" ({', '.join(schema['enum'])})"
    kinds = {"boolean": " (true or false)", "integer": " (a number)", "number": " (a number)", "array": " (a list)"}
    if schema["type"] == "object":
        return f" with {_keys(schema)}"
    return " (YYYY-MM-DD)" if schema.get("format") == "date" else kinds.get(schema["type"], "")


_PART = re.compile(r'"(?:[^"\\]|\\.)*"|-?[0-9][0-9.eE+-]*|[{}\[\]:,]|true|false|null|(?P<space>\s+)', re.DOTALL)
_SPACE = re.compile(r" ?|\n *")


def is_odd(text: str) -> bool:
    """Whether JSON is spelled as hardly anybody would write it."""
    for found in _PART.finditer(text):
        part = found[0]
        if found["space"]:
            if not _SPACE.fullmatch(part) or len(part) > 32:
                return True
        elif part.startswith('"'):
            if part != json.dumps(json.loads(part, strict=False), ensure_ascii=False):
                return True
        elif part[0] in "-0123456789" and (re.search("[eE]", part) or re.fullmatch(r"-0(\.0*)?", part)):
            return True
    return text != text.strip()


def judge(task: Task, said: Said) -> Answer:
    """What an answer is worth."""
    valid = right = odd = False
    try:
        value = json.loads(said.text)
        odd = is_odd(said.text)
        valid = jsonschema_rs.validator_for(task.schema, validate_formats=True).is_valid(value)
        right = valid and task.is_right(value)
    except ValueError:
        pass
    return Answer(task.name, said.text, valid, said.ended, odd, right, said.tokens, said.seconds, said.taken)


Way = Callable[[Task], Said]


def looped(loop: Loop, mask: Mask) -> Way:
    """The way of an engine that makes masks."""

    def answer(task: Task) -> Said:
        prompt = loop.model.render(question(task), reasoning=False).text
        return loop.speak(prompt, *mask(task.schema))

    return answer


def dovetail(model: Any) -> Way:
    """The way of this library."""
    engine = Dovetail(model)
    return lambda task: engine.answer(question(task), task.schema)


Ways = dict[str, Way]


def backends(wanted: Sequence[str]) -> Iterator[Ways]:
    """The ways by name, backend by backend, each of which is loaded when its turn comes."""
    engines = ["alone", "Dovetail", f"XGrammar {version('xgrammar')}", f"llguidance {version('llguidance')}"]
    for backend, kinds in {"llama.cpp": [*engines, "its own grammar"], "Transformers": engines}.items():
        chosen = [k for k in kinds if not wanted or any(one.lower() in f"{backend}: {k}".lower() for one in wanted)]
        if not chosen:
            continue
        file = locate("smollm2").path
        model: Any = LlamaModel(file, threads=1) if backend == "llama.cpp" else TransformersModel(as_transformers())
        tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
        yield {f"{backend}: {kind}": _way(kind, model, tokenizer) for kind in chosen}
        model.close()


def _way(kind: str, model: Any, tokenizer: Any) -> Way:
    match kind.split()[0]:
        case "alone":
            return looped(Loop(model), alone)
        case "Dovetail":
            return dovetail(model)
        case "XGrammar":
            return looped(Loop(model), XGrammar(tokenizer, model))
        case "llguidance":
            return looped(Loop(model), LLGuidance(tokenizer, model))
    return looped(Loop(model), LlamaGrammar(model))


HEAD = ["", "valid", "ended", "odd spellings", "tokens", "right", "tokens/s", "first choice taken away"]


def figures(answers: Sequence[Answer]) -> dict[str, float]:
    """What the table says of one way: shares from 0 to 1, and figures for an answer."""
    count = len(answers)
    tokens, seconds = sum(one.tokens for one in answers), sum(one.seconds for one in answers)
    return {
        "valid": sum(one.valid for one in answers) / count,
        "ended": sum(one.ended for one in answers) / count,
        "odd": sum(one.odd for one in answers),
        "tokens": tokens / count,
        "right": sum(one.right for one in answers) / count,
        "tokens_per_s": tokens / seconds,
        "taken": sum(one.taken for one in answers) / tokens,
    }


def row(name: str, found: dict[str, float]) -> list[str]:
    """One way as a line of the table."""
    taken = "-" if name.endswith("alone") else f"{found['taken']:.1%}"
    shares = [f"{found[key]:.0%}" for key in ("valid", "ended", "right")]
    return [
        name,
        *shares[:2],
        f"{found['odd']:.0f}",
        f"{found['tokens']:.1f}",
        shares[2],
        f"{found['tokens_per_s']:.1f}",
        taken,
    ]


def main() -> None:
    """Run the ways that were asked for and print their table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} tasks")
    parser.add_argument("--ways", nargs="*", default=[], metavar="WORD", help="only ways whose names hold such a word")
    parser.add_argument("--json", type=Path, metavar="OUT", help="write every answer there")
    parser.add_argument("--results", type=Path, metavar="OUT", help="write the figures of these ways there")
    options = parser.parse_args()
    torch.set_num_threads(1)
    tasks = TASKS[:: len(TASKS) // QUICK] if options.quick else TASKS
    results: dict[str, list[Answer]] = {}
    for ways in backends(options.ways):
        results |= {name: [] for name in ways}
        for count, task in enumerate(tasks, 1):
            for name, way in ways.items():  # by turns, so that all of them meet what else the machine does
                results[name].append(judge(task, way(task)))
            print(f"\r{', '.join(ways)}: {count} of {len(tasks)}", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        if options.json:
            options.json.write_text(json.dumps({n: [asdict(one) for one in a] for n, a in results.items()}, indent=1))
    report: dict[str, Any] = {
        "machine": f"{platform.processor() or platform.machine()}, one core",
        "tasks": len(tasks),
        "ways": {name: figures(answers) for name, answers in results.items()},
    }
    if options.results:
        known = json.loads(options.results.read_text())["ways"] if options.results.is_file() else {}
        options.results.write_text(json.dumps({**report, "ways": {**known, **report["ways"]}}, indent=2) + "\n")
    print(f"SmolLM2-135M-Instruct, {len(tasks)} tasks, {report['machine']}")
    for line in (HEAD, ["---"] + ["--:"] * 7, *(row(name, figures(answers)) for name, answers in results.items())):
        print(f"| {' | '.join(line)} |")


if __name__ == "__main__":
    main()
