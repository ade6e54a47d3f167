"""How fast is streamed output read, beside Transformers, openai-harmony and vLLM, and does the cost stay flat?

    python benchmarks/bench_parse.py                       all studies, with a verdict on each promise
    python benchmarks/bench_parse.py --quick --json OUT    small outputs, and the figures as JSON

20 kB of reasoning, text and a call in chunks of four bytes. Each parser reads the same chunks and gives what is new in
each; openai-harmony reads tokens instead, as many as its encoding makes of the text, and its figure is per token. So is
that of "token ids": markers that are special tokens, text of four bytes a token, one token at a time as engines feed
them, and after each one the question whether the output stands in reasoning.
Parsers take turns and each counts with its fastest round. openai-harmony is left out where its vocabulary cannot be
loaded: it fetches it, or finds it under TIKTOKEN_ENCODINGS_BASE. vLLM's parsers, which are fed a token at a time too,
take part where vLLM is installed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai_harmony
from transformers.utils.chat_parsing import ResponseParser

from dovetail import dialects
from dovetail.dialects import Dialect
from dovetail.engine import Vocabulary
from dovetail.messages import Message, ToolCall

CHUNK = 4
WINDOW = 250
SIZES = (1_000, 100_000, 10_000_000)
PARAMETERS = {"type": "object", "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}}}
TOOLS = [{"type": "function", "function": {"name": "search", "parameters": PARAMETERS}}]
PROMISES = {"transformers": 3.0, "openai-harmony": 1.0, "vllm": 3.0}
VLLM_PARSERS = {  # of tools and of reasoning
    "qwen_3": ("hermes", "qwen3"),
    "deepseek_v3_1": ("deepseek_v31", "deepseek_v3"),
    "minimax": ("minimax_m2", "minimax_m2"),
}
PER_TOKEN = 1.0  # microseconds at most

Reader = Callable[[], int]  # reads everything, and says how many pieces it was fed


def message(size: int) -> Message:
    """Reasoning, text and arguments of about equal size."""
    words = "The answer is somewhere between 1 < 2 and the end of this sentence, perhaps. "
    text = words * (size // (3 * len(words)) + 1)
    return Message(text.strip(), text.strip(), (ToolCall.of("search", {"query": text, "limit": 5}),))


def chunks(text: str) -> list[str]:
    """The text in pieces of four bytes."""

    return [text[i : i + CHUNK] for i in range(0, len(text), CHUNK)]


def ours(dialect: Dialect, pieces: list[str]) -> Reader:
    """Our parser."""

    def read() -> int:
        parser = dialect.parser(TOOLS, prompt="")
        for piece in pieces:
            parser.feed(piece)
        assert parser.finish().tool_calls[0].complete
        return len(pieces)

    return read


def tokenized(dialect: Dialect, text: str) -> tuple[list[str], dict[str, int]]:
    """The text as tokens, special ones and pieces of four bytes, and the ids of all there are."""
    special = sorted(dialect.special_tokens)
    runs = re.split("(" + "|".join(map(re.escape, special)) + ")", text)
    pieces = [piece for run in runs for piece in ([run] if run in special else chunks(run))]
    return pieces, {piece: number for number, piece in enumerate(dict.fromkeys([*special, *pieces]))}


def by_id(dialect: Dialect, text: str) -> Reader:
    """Our parser, fed with token ids one by one and asked for its state."""
    pieces, known = tokenized(dialect, text)
    vocabulary = Vocabulary(
        [piece.encode() for piece in known], {token: known[token] for token in dialect.special_tokens}
    )
    tokens = [[known[piece]] for piece in pieces]

    def read() -> int:
        parser, inside = dialect.parser(TOOLS, prompt="", vocabulary=vocabulary, level="token"), 0
        for token in tokens:
            parser.feed(token)
            inside += bool(parser.in_reasoning)
        assert inside
        assert parser.finish().tool_calls[0].complete
        return len(tokens)

    return read


def transformers(dialect: Dialect, pieces: list[str]) -> Reader:
    """The parser of Transformers, with the response template of the dialect."""

    template = dialect.response_template()

    def read() -> int:
        parser = ResponseParser(template, prefix=dialect.turn.start)
        for piece in pieces:
            parser.feed(piece)
        assert parser.finalize()[0]["tool_calls"]
        return len(pieces)

    return read


class Tokenizer:
    """As much of a tokenizer as vLLM's parsers ask for."""

    def __init__(self, known: dict[str, int]) -> None:
        self.known = known
        self.pieces = list(known)  # their ids count from 0

    def get_vocab(self) -> dict[str, int]:
        """The ids of all tokens."""
        return self.known

    def encode(self, text: str, **_: Any) -> list[int]:
        """The ids of a text that is one token, or of its pieces."""
        return [self.known.get(piece, 0) for piece in ([text] if text in self.known else chunks(text))]

    def decode(self, ids: list[int], **_: Any) -> str:
        """The text of tokens."""
        return "".join(self.pieces[id] for id in ids)


def vllm(dialect: Dialect, text: str) -> Reader | None:
    """The parsers of vLLM, where it is installed."""
    if importlib.util.find_spec("vllm") is None:
        return None
    # By name, because it is measured where it is there, and nothing lacks where it is not.
    protocol = importlib.import_module("vllm.entrypoints.openai.chat_completion.protocol")
    manager = importlib.import_module("vllm.parser.parser_manager").ParserManager
    pieces, known = tokenized(dialect, text)
    parsers = manager.get_parser(*VLLM_PARSERS[dialect.name], enable_auto_tools=True)
    request = protocol.ChatCompletionRequest(model="", messages=[{"role": "user", "content": ""}], tools=TOOLS)

    def read() -> int:
        parser, called = parsers(Tokenizer(known), request.tools), False
        for number, piece in enumerate(pieces, 1):
            delta = parser.parse_delta(piece, [known[piece]], request, [], finished=number == len(pieces))
            called |= bool(delta and delta.tool_calls)
        assert called
        return len(pieces)

    return read


def harmony(text: str) -> Reader | None:
    """The parser of openai-harmony, where its vocabulary is at hand."""

    try:
        encoding = openai_harmony.load_harmony_encoding(openai_harmony.HarmonyEncodingName.HARMONY_GPT_OSS)
    except openai_harmony.HarmonyError as error:
        print(f"openai-harmony is left out: {error}")
        return None
    tokens = encoding.encode(text, allowed_special="all")

    def read() -> int:
        parser = openai_harmony.StreamableParser(encoding, role=openai_harmony.Role.ASSISTANT)
        for token in tokens:
            parser.process(token)
            _ = parser.last_content_delta
        assert parser.messages
        return len(tokens)

    return read


def fastest(readers: dict[str, Reader], rounds: int) -> dict[str, float]:
    """Microseconds per piece, of the fastest of several rounds."""
    best = dict.fromkeys(readers, float("inf"))
    for _ in range(rounds):
        for name, read in readers.items():
            start = time.perf_counter()
            pieces = read()
            best[name] = min(best[name], (time.perf_counter() - start) / pieces * 1e6)
    return best


def study(title: str, readers: dict[str, Reader], rounds: int) -> dict[str, float]:
    """Time the readers and print what they cost."""

    found = fastest(readers, rounds)
    print(f"\n{title}")
    for name, cost in found.items():
        ratio = cost / found["dovetail"]
        kept = cost <= PER_TOKEN if name == "token ids" else ratio >= PROMISES.get(name, 0.0)
        verdict = "      " if name == "dovetail" else "PASS  " if kept else "FAIL  "
        print(f"  {verdict}{name:16}{cost:8.2f} us per piece{ratio:8.1f} times dovetail")
    return found


def windows(dialect: Dialect, pieces: list[str]) -> list[float]:
    """Microseconds per chunk in each stretch of 250 chunks."""
    parser, found = dialect.parser(TOOLS, prompt=""), []
    for at in range(0, len(pieces) - WINDOW + 1, WINDOW):
        start = time.perf_counter()
        for piece in pieces[at : at + WINDOW]:
            parser.feed(piece)
        found.append((time.perf_counter() - start) / WINDOW * 1e6)
    assert parser.finish().tool_calls
    return found


def flatness(sizes: tuple[int, ...]) -> dict[str, float]:
    """Microseconds per chunk by the size of the output: the lower quartile, because a busy machine only adds time."""
    found = {}
    dialect = dialects.get("qwen_3")
    print("\nqwen_3, by the size of the output")
    for size in sizes:
        pieces = chunks(dialect.render(message(size)))
        times = [cost for _ in range(max(1, sizes[-1] // size)) for cost in windows(dialect, pieces)]
        found[str(size)] = statistics.quantiles(times, n=4)[0]
        print(f"        {size:>10} bytes{found[str(size)]:8.2f} us per chunk")
    flat = found[str(sizes[-1])] < 1.5 * found[str(sizes[0])]
    print(f"  {'PASS' if flat else 'FAIL'}  the cost per chunk does not grow with the output")
    return found


def main() -> None:
    """Run the studies and print them."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--quick", action="store_true", help="smaller outputs and fewer rounds")
    options.add_argument("--json", type=Path, help="also write the figures to this file")
    given = options.parse_args()
    size, rounds = (2_000, 1) if given.quick else (20_000, 9)
    print(f"{platform.processor() or platform.machine()}, Python {platform.python_version()}")
    figures: dict[str, Any] = {}
    for name in ("qwen_3", "deepseek_v3_1", "minimax"):
        dialect = dialects.get(name)
        text = dialect.render(message(size))
        pieces = chunks(text)
        readers = {"dovetail": ours(dialect, pieces), "token ids": by_id(dialect, text)}
        readers["transformers"] = transformers(dialect, pieces)
        if peer := vllm(dialect, text):
            readers["vllm"] = peer
        figures[name] = study(f"{name}, {size} bytes in chunks of {CHUNK}", readers, rounds)
    dialect = dialects.get("harmony")
    text = dialect.render(message(size))
    readers = {"dovetail": ours(dialect, chunks(text)), "token ids": by_id(dialect, text)}
    peer = harmony(text)
    if peer:
        readers["openai-harmony"] = peer
    figures["harmony"] = study(f"harmony, {size} bytes in chunks of {CHUNK} or tokens", readers, rounds)
    figures["flatness"] = flatness(SIZES[:2] if given.quick else SIZES)
    if given.json:
        given.json.write_text(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()
