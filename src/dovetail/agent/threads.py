"""Work in threads that nobody has to wait for."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


async def in_daemon_thread(work: Callable[[], T]) -> T:
    """What `work` returns; a thread that never ends holds neither a caller that gives up nor the process."""
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(settled: Callable[[], None]) -> None:
        if not done.done():
            settled()

    def tell(settled: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(settle, settled)

    def run() -> None:
        try:
            result = context.run(work)
        except BaseException as error:
            failed = error if not isinstance(error, StopIteration) else RuntimeError("StopIteration")
            tell(lambda: done.set_exception(failed))
        else:
            tell(lambda: done.set_result(result))

    threading.Thread(target=run, daemon=True).start()
    return await done
