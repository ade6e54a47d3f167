"""Processes that a tool or hook starts, and how they all end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import uuid
from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any

from dovetail.agent.environment import PYTHON, without_keys

# How long a group of processes may take to end by itself after SIGTERM.
GRACE_S = 1.0
_POLL_S = 0.005
_MAX_SWEEPS = 200
_REAPER = Path(__file__).with_name("reaper.py")
# The environment variable that marks everything that a call started, wherever it went.
MARK = "DOVETAIL_CALL"
# The marks of all that may run now, for the end of the process itself.
_live: set[str] = set()


def new_mark() -> str:
    """A mark for what one call starts; should this process be killed, another one ends everything that carries it."""
    mark = f"{_run_mark(os.getpid())}.{uuid.uuid4().hex}"
    _live.add(mark)
    return mark


@cache
def _run_mark(_pid: int) -> str:
    """The beginning of all marks of this process, once its reaper runs."""
    mark = uuid.uuid4().hex
    if PYTHON and Path("/proc/self/environ").exists():
        _start_reaper(mark)
    return mark


def _start_reaper(mark: str) -> None:
    ours, theirs = os.pipe()  # the end that this process keeps is closed by nobody but its death
    nothing = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    try:
        os.posix_spawn(
            PYTHON,
            [PYTHON, "-I", "-S", str(_REAPER), f"{MARK}={mark}."],
            {"PATH": os.defpath},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, end, number) for end, number in ((ours, 0), (nothing, 1), (nothing, 2))
            ],
            setsid=True,
        )
    except OSError:  # without it the run works as well, and only a SIGKILL leaves something behind
        os.close(theirs)
    finally:
        os.close(ours)
        os.close(nothing)


@asynccontextmanager
async def running(
    *command: str, env: Mapping[str, str] | None = None, **options: Any
) -> AsyncIterator[asyncio.subprocess.Process]:
    """A process in a session of its own; whatever happens inside, everything that it started is gone afterwards.

    Also gone are descendants that left the session, where /proc tells which carry the mark in their environment.
    """
    mark = new_mark()
    start = asyncio.create_subprocess_exec(
        *command, env={**(without_keys() if env is None else env), MARK: mark}, start_new_session=True, **options
    )
    starting = asyncio.ensure_future(start)
    try:
        await to_the_end(starting)
        yield starting.result()
    finally:
        if starting.done() and not starting.cancelled() and starting.exception() is None:
            await to_the_end(asyncio.ensure_future(_end(starting.result(), mark)))
        _live.discard(mark)


async def exited(process: asyncio.subprocess.Process) -> int:
    """The exit code, as soon as there is one: Process.wait also waits for everyone who holds the pipes."""
    while process.returncode is None:
        await asyncio.sleep(_POLL_S)
    return process.returncode


async def to_the_end(task: asyncio.Future[Any]) -> None:
    """Wait for short work that a cancellation must not cut short, and only then be cancelled."""
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
    await kill_marked(mark)
    await exited(process)
    transport = getattr(process, "_transport", None)  # pipes that a survivor holds open would keep the loop busy
    if transport is not None:
        transport.close()


def _signal_group(group: int, number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


async def kill_marked(mark: str) -> None:
    """End every process that carries the mark, where the system tells which they are.

    One that forks or executes while we look can be missed, so the search ends only when it found nobody twice.
    """
    nobody = 0
    for _ in range(_MAX_SWEEPS):
        nobody = 0 if _kill({mark}) else nobody + 1
        if nobody == 2:
            _live.discard(mark)
            return
        await asyncio.sleep(_POLL_S)


def kill_everything() -> None:
    """End every process that was started here and may still run, without waiting: this one is about to end."""
    for _ in range(_MAX_SWEEPS):
        if not _live or not _kill(_live):
            return


def _kill(marks: Collection[str]) -> bool:
    """End the processes that carry one of the marks; whether there were any."""
    carriers = _carriers(marks)
    for pid in carriers:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)
    return bool(carriers)


def _carriers(marks: Collection[str]) -> list[int]:
    """Processes with one of the marks in their environment; none where the system does not tell."""
    wanted = {f"{MARK}={mark}".encode() for mark in marks}
    carriers: list[int] = []
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if not wanted.isdisjoint((folder / "environ").read_bytes().split(b"\0")):
                carriers.append(int(folder.name))
    return carriers
