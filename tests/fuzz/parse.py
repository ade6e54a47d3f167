"""Random and damaged outputs through the parser of every dialect.

    python -m tests.fuzz.parse --outputs 1000000 --seed 0    so many outputs
    python -m tests.fuzz.parse --seconds 60                  as many as fit into that time
    python -m tests.fuzz.parse --round 17                    one round of outputs again, after a finding

A finding is an exception, a byte that no event has or that two have, a message that depends on how the output was cut
into chunks, a piece of a cut output that is no prefix of the whole, or an output that takes more than ten seconds.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from dovetail import dialects
from dovetail.dialects import Dialect
from dovetail.errors import DialectError
from dovetail.messages import Message, ToolCall
from dovetail.parsing import Event, StreamParser
from tests.fuzz.rounds import play_rounds

PER_ROUND = 100
WORDS = [
    "the ",
    "city",
    "Rome",
    "é",
    "猫",
    "🦊",
    '"',
    "\\",
    "\n",
    " ",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    "</",
    "5",
    "02134",
    "null",
    ": ",
]
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": name,
            "parameters": {
                "type": "object",
                "properties": {
                    "city": {"type": "string"},
                    "n": {"type": "integer"},
                    "flag": {"anyOf": [{"type": "boolean"}, {"type": "null"}]},
                    "list": {"type": "array", "items": {"$ref": "#/$defs/item"}},
                },
                "$defs": {"item": {"type": ["string", "number"]}},
            },
        },
    }
    for name in ("get_weather", "search", "f")
]


class Round:
    """Some outputs of one dialect after the other, each damaged in its own way."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.marks = {dialect.name: _marks(dialect) for dialect in DIALECTS}

    def play(self) -> None:
        for _ in range(PER_ROUND):
            dialect = self.random.choice(DIALECTS)
            self.check(dialect, self.damaged(dialect, self.output(dialect)))

    def text(self) -> str:
        return "".join(self.random.choices(WORDS, k=self.random.randrange(8)))

    def value(self, depth: int = 0) -> Any:
        r = self.random
        kinds = [self.text, lambda: r.randrange(-99, 99), lambda: r.choice([True, None, 1.5])]
        if depth < 3:
            kinds += [lambda: [self.value(depth + 1) for _ in range(r.randrange(3))], lambda: self.object(depth + 1)]
        return r.choice(kinds)()

    def object(self, depth: int) -> dict[str, Any]:
        keys = self.random.sample(["city", "n", "flag", "list", "x"], self.random.randrange(4))
        return {key: self.value(depth) for key in keys}

    def output(self, dialect: Dialect) -> bytes:
        r = self.random
        if r.random() < 0.1:
            return r.randbytes(r.randrange(40))
        names = ["get_weather", "search", "f", "unknown"]
        calls = tuple(ToolCall.of(r.choice(names), self.object(0)) for _ in range(r.choice([0, 1, 1, 2, 5])))
        message = Message(self.text(), self.text() if dialect.reasoning else "", calls if dialect.calls else ())
        try:
            return dialect.render(message).encode()
        except DialectError:
            return self.text().encode()

    def damaged(self, dialect: Dialect, output: bytes) -> bytes:
        r = self.random
        for _ in range(r.choice([0, 1, 1, 2, 4])):
            at = r.randrange(len(output) + 1)
            end = min(len(output), at + r.choice([1, 1, 3, 20]))
            match r.randrange(6):
                case 0:
                    output = output[:at] + output[end:]
                case 1:
                    output = output[:at] + output[at:end] * 2 + output[end:]
                case 2:
                    output = output[:at] + r.choice(self.marks[dialect.name]) + output[at:]
                case 3:
                    output = output[:at] + r.choice(WORDS).encode() + output[end:]
                case 4:
                    output = output[:at] + r.randbytes(r.randrange(1, 4)) + output[end:]
                case 5:
                    output = output[:at] + self.output(dialect)[: r.randrange(1, 60)]
        return output

    def check(self, dialect: Dialect, output: bytes) -> None:
        r = self.random
        options: dict[str, Any] = {"tools": r.choice([TOOLS, TOOLS, None]), "prompt": r.choice([None, ""])}
        if dialect.turn.opened:
            options["prompt"] = ""  # without one the message begins in the prompt, before the output
        options["inline_reasoning"] = r.random() < 0.1
        reason = r.choice(["stop", "length"])
        try:
            whole = self.read(dialect.parser(**options), [output], reason)
            size = r.choice([1, 1, 2, 3, 7])
            source = self.as_text(output)
            chunks = [source[i : i + size] for i in range(0, len(source), size)]
            other = self.read(dialect.parser(**options), chunks, reason)
            assert whole == other, f"chunks of {size}: {other} and not {whole}"
            cut = r.randrange(len(output) + 1)
            # What was told while the output came stays true; what a close makes of its end is for that end alone.
            early = dialect.parser(**options)
            early.feed(output[:cut])
            assert_prefix(early.message, whole, cut)
        except BaseException:
            print(f"{dialect.name} {options['prompt']!r} {options['tools'] is None} {reason} {output!r}")
            raise

    def as_text(self, output: bytes) -> bytes | str:
        """Text where the output is some, half of the time: it takes other ways through the parser."""
        try:
            return output.decode() if self.random.random() < 0.5 else output
        except UnicodeDecodeError:
            return output

    def read(self, parser: StreamParser, chunks: Sequence[bytes | str], reason: Any) -> Message:
        events: list[Event] = []
        for chunk in chunks:
            events += parser.feed(chunk)
        events += parser.close(reason)
        at = 0
        for event in events:
            assert event.start == at <= event.end, f"{event} does not start at {at}"
            at = event.end
        size = sum(len(chunk.encode() if isinstance(chunk, str) else chunk) for chunk in chunks)
        assert at == size, "bytes are missing at the end"
        return parser.message


def assert_prefix(part: Message, whole: Message, cut: int) -> None:
    assert whole.content.startswith(part.content), f"content cut at {cut}"
    assert whole.reasoning.startswith(part.reasoning), f"reasoning cut at {cut}"
    assert len(part.tool_calls) <= len(whole.tool_calls), f"calls cut at {cut}"
    for short, call in zip(part.tool_calls, whole.tool_calls, strict=False):
        assert call.name == short.name, f"name cut at {cut}"
        assert call.arguments.startswith(short.arguments), f"arguments cut at {cut}"


def _marks(dialect: Dialect) -> list[bytes]:
    """What a dialect writes around its text, whole and in halves."""
    rendered = dialect.render(Message("", "", (ToolCall.of("f", {"city": "x"}),))) if dialect.calls else ""
    parts = [rendered[i:j] for i in range(0, len(rendered), 7) for j in (i + 5, i + 30)]
    turn, reasoning = dialect.turn, dialect.reasoning
    parts += [
        turn.end,
        turn.between,
        turn.closing,
        *dialect.content.begins,
        *dialect.content.ends,
        *dialect.special_tokens,
    ]
    parts += [reasoning.start, reasoning.end] if reasoning else []
    return [part.encode() for part in parts if part]


DIALECTS = [dialects.get(name) for name in dialects.names()]


def main() -> None:
    rounds = play_rounds(__doc__, lambda seed: Round(seed).play(), PER_ROUND)
    print(f"{rounds * PER_ROUND} outputs, no finding")


if __name__ == "__main__":
    main()
