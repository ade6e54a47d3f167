"""Processes that a tool or hook starts, and how they all end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import uuid
from collections.abc import AsyncIterator, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

# How long a group of processes may take to end by itself after SIGTERM.
GRACE_S = 1.0
_POLL_S = 0.005
# The environment variable that marks everything that a call started, wherever it went.
MARK = "DOVETAIL_CALL"


def marked(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment with a mark of its own."""
    return {**environment, MARK: uuid.uuid4().hex}


@asynccontextmanager
async def reaped(process: asyncio.subprocess.Process, mark: str = "") -> AsyncIterator[None]:
    """Whatever happens inside, the process and its group, started as a session of its own, are gone afterwards.

    With a mark, so are descendants that left the group, where /proc tells which they are.
    """
    try:
        yield
    finally:
        await _to_the_end(_end(process, mark))


async def exited(process: asyncio.subprocess.Process) -> int:
    """The exit code, as soon as there is one: Process.wait also waits for everyone who holds the pipes."""
    while process.returncode is None:
        await asyncio.sleep(_POLL_S)
    return process.returncode


async def _to_the_end(work: Coroutine[Any, Any, None]) -> None:
    """Wait for short work that a cancellation must not cut short."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled
    task.result()


async def _end(process: asyncio.subprocess.Process, mark: str) -> None:
    if process.returncode is None:
        _signal_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(exited(process), GRACE_S)
    # The leader is gone or will be now; others of its group, left behind by `&`, go with it.
    _signal_group(process.pid, signal.SIGKILL)
    for pid in _carriers(mark) if mark else ():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    await exited(process)
    transport = getattr(process, "_transport", None)  # pipes that a survivor holds open would keep the loop busy
    if transport is not None:
        transport.close()


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _carriers(mark: str) -> list[int]:
    """Processes with the mark in their environment; none where the system does not tell."""
    wanted = f"{MARK}={mark}".encode()
    found: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if wanted in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
    return found
