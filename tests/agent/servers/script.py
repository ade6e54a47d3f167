"""What a scripted model says, independent of the protocol that carries it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal


@dataclass(frozen=True)
class Say:
    """Prose."""

    text: str


@dataclass(frozen=True)
class Think:
    """Reasoning; the signature goes to those who have one."""

    text: str
    signature: str = "c2lnbmVk"


@dataclass(frozen=True)
class Call:
    """A tool call; arguments that are a string are sent as they stand, valid JSON or not."""

    name: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str = ""

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments, ensure_ascii=False)

    @property
    def value(self) -> Any:
        return json.loads(self.text)


Block = Say | Think | Call
Finish = Literal["stop", "tool_use", "length", "refusal"]


class Reply:
    """One reply: blocks (a string is prose), why it ends, its usage, and what goes wrong on the way.

    Faults count events of the stream, whatever they carry: after so many of them the connection is cut, or garbage
    comes, or the protocol's own error event, or nothing for `stall_s`.
    """

    def __init__(
        self,
        *blocks: Block | str,
        finish: Finish | None = None,
        usage: tuple[int, int, int] = (11, 7, 3),  # input, output, cached
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        message: str = "",
        delay_s: float = 0.0,
        pace_s: float = 0.0,
        pieces: int = 3,
        cut_after: int | None = None,
        garbage_after: int | None = None,
        error_after: int | None = None,
        stall_after: int | None = None,
        stall_s: float = 30.0,
        call_deltas: Sequence[Sequence[Mapping[str, Any]]] = (),
    ) -> None:
        self.blocks: tuple[Block, ...] = tuple(Say(block) if isinstance(block, str) else block for block in blocks)
        calls = any(isinstance(block, Call) for block in self.blocks)
        self.finish: Finish = finish or ("tool_use" if calls else "stop")
        self.usage = usage
        self.status = status
        self.headers = dict(headers or {})
        self.message = message or f"a scripted {status}"
        self.delay_s = delay_s
        self.pace_s = pace_s
        self.pieces = pieces
        self.cut_after = cut_after
        self.garbage_after = garbage_after
        self.error_after = error_after
        self.stall_after = stall_after
        self.stall_s = stall_s
        # The pieces of calls as they stand on the wire, for servers that number them in their own way (openai only).
        self.call_deltas = call_deltas
        if call_deltas and finish is None:
            self.finish = "tool_use"

    def cut(self, text: str) -> Iterator[str]:
        """A text in about as many pieces as the reply wants."""
        size = max(1, -(-len(text) // self.pieces))
        return (text[at : at + size] for at in range(0, len(text), size))


def numbered(blocks: Iterable[Block], prefix: str) -> Iterator[tuple[int, Block]]:
    """Blocks with their places; calls without an id get one."""
    for index, block in enumerate(blocks):
        if isinstance(block, Call) and not block.id:
            block = Call(block.name, block.arguments, f"{prefix}{index}")
        yield index, block
