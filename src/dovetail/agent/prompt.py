"""What a run is asked to do: what the user typed, and what was piped in, which is never searched for mentions."""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Callable
from dataclasses import dataclass
from typing import TextIO

from dovetail.agent.exit_reasons import HaltError
from dovetail.agent.flags import ConflictError, Flags
from dovetail.agent.threads import in_daemon_thread

MAX_PIPED_BYTES = 8 << 20
# How long standard input may stay open before the user is told what the run waits for.
PATIENCE_S = 3.0
_CHUNK = 1 << 16
_WAITING = "Waiting for standard input to end. Where there is nothing to pipe in, add: < /dev/null"
_TOO_LONG = (
    f"Standard input is longer than {MAX_PIPED_BYTES} bytes, which no model takes as a prompt. "
    "Put it into a file in the workspace, and say in the prompt what to look for in that file."
)


@dataclass(frozen=True, slots=True)
class Prompt:
    """The two parts of a prompt; `typed` may mention files as @path, `piped` is data."""

    typed: str
    piped: str = ""

    def with_typed(self, typed: str) -> str:
        """The whole text, with `typed` in place of what the user typed: data, a blank line, and the request."""
        return f"{self.piped}\n\n{typed}" if self.piped.strip() else typed


async def read_prompt(flags: Flags, stdin: TextIO | None, warn: Callable[[str], None]) -> Prompt:
    """The prompt of a command line; ConflictError where there is neither typed nor piped text."""
    typed = flags.prompt if flags.prompt is not None else " ".join(flags.query)
    typed = typed.encode("utf-8", "replace").decode()  # bytes of the command line that are no text cannot be sent
    piped = "" if stdin is None or stdin.isatty() else await _read_piped(stdin, warn)
    is_empty_schema = flags.json_schema is not None and not flags.json_schema.strip()
    if not (typed.strip() or piped.strip() or is_empty_schema):
        raise ConflictError("No input provided via stdin. Pass a prompt via -p, as a positional argument, or a pipe.")
    return Prompt(typed, piped)


async def _read_piped(stdin: TextIO, warn: Callable[[str], None]) -> str:
    """All of standard input; HaltError where it is too long to be a prompt, or cannot be read."""
    loop = asyncio.get_running_loop()
    notice = loop.call_later(PATIENCE_S, warn, _WAITING)
    try:
        data = await in_daemon_thread(lambda: _read_all(stdin))
    except OSError as error:
        raise HaltError("input_error", f"Standard input cannot be read: {error.strerror or error}.") from None
    finally:
        notice.cancel()
    if len(data) > MAX_PIPED_BYTES:
        raise HaltError("input_error", _TOO_LONG)
    return data.decode("utf-8", "replace")


def _read_all(stdin: TextIO) -> bytes:
    """The bytes of standard input, at most one chunk beyond the limit.

    The descriptor is read past the buffer of Python, whose lock would hold the interpreter at its end.
    """
    try:
        descriptor = stdin.fileno()
    except (OSError, ValueError):  # a stream in memory, under a test
        return stdin.buffer.read(MAX_PIPED_BYTES + 1)
    data = bytearray()
    while len(data) <= MAX_PIPED_BYTES:
        select.select([descriptor], [], [])  # the other end may have made the pipe non-blocking
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            continue
        if not chunk:
            break
        data += chunk
    return bytes(data)
