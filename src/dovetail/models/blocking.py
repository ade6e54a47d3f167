"""Coroutines for callers that have no event loop, or are inside one that they block, as in a notebook.

All run on one loop in a thread of its own, so that a stream that was begun in one call goes on in the next.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator, Coroutine, Generator
from concurrent.futures import Future, wait
from typing import Any, TypeVar

T = TypeVar("T")

_lock = threading.Lock()
_loop: asyncio.AbstractEventLoop | None = None
_END: Any = object()


def run(coroutine: Coroutine[Any, Any, T]) -> T:
    """What the coroutine returns; an interrupted wait for it cancels it, and ends when it has ended."""
    loop = _running_loop()
    done: Future[T] = Future()
    tasks: list[asyncio.Task[T]] = []

    def begin() -> None:
        tasks.append(loop.create_task(coroutine))
        tasks[0].add_done_callback(settle)

    def settle(task: asyncio.Task[T]) -> None:
        if task.cancelled():
            done.set_exception(asyncio.CancelledError())
        elif error := task.exception():
            done.set_exception(error)
        else:
            done.set_result(task.result())

    loop.call_soon_threadsafe(begin)
    try:
        wait([done])
    except BaseException:
        loop.call_soon_threadsafe(lambda: tasks[0].cancel())
        wait([done])
        raise
    return done.result()


def iterate(stream: AsyncGenerator[T, None]) -> Generator[T, None, None]:
    """The items of a stream one by one; leaving early closes the stream."""
    try:
        while (item := run(_next(stream))) is not _END:
            yield item
    finally:
        run(_close(stream))


async def _next(stream: AsyncGenerator[T, None]) -> T:
    return await anext(stream, _END)


async def _close(stream: AsyncGenerator[Any, None]) -> None:
    await stream.aclose()


def _running_loop() -> asyncio.AbstractEventLoop:
    global _loop
    with _lock:
        if _loop is None:
            _loop = asyncio.new_event_loop()
            threading.Thread(target=_loop.run_forever, name="dovetail-loop", daemon=True).start()
        return _loop


def _forget() -> None:
    """A forked process has none of its parent's threads."""
    global _loop, _lock
    _loop, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)
