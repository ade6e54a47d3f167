"""What ends a run from outside: signals and the wall clock, first by asking and then by force.

The first cause asks the run to end, which tells its result and takes a moment. A second signal, or a run that is still
there when the moment is over, ends the process at once, with the result if standard output takes it.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from dovetail.agent.exit_reasons import CANCELLED, Ending, Reason
from dovetail.agent.loop import Run
from dovetail.agent.loop.budget import wall_time_message
from dovetail.agent.sandbox import close_sandboxes
from dovetail.agent.tools.processes import kill_everything

# How long a run may take to end once it is asked to; beyond it the process ends as it is.
GRACE_S = 1.0
# How long a reader of standard output may take for the result of a run that is ended by force.
_LAST_WORDS_S = 0.4
_SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Stop:
    """The end of one command from outside.

    `force` tells an ending, unless one was told already, and gives its exit code; `is_telling` says that one is just
    being told. `began` is when the command did, on the monotonic clock.
    """

    def __init__(self, force: Callable[[Ending], int], is_telling: Callable[[], bool], began: float) -> None:
        self._began = began
        self._force = force
        self._is_telling = is_telling
        self._run: Run | None = None
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        self._cause: Ending | None = None
        self._signals = 0
        self._code: int | None = None
        self._gone = threading.Event()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def cause(self) -> Ending:
        """How a command ends that was stopped before its run began."""
        return self._cause or Ending("cancelled", CANCELLED)

    @property
    def code(self) -> int:
        """The exit code of the result that was told."""
        return self._code or 0

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Listen to signals, and let in what the caller has held back."""
        for number in _SIGNALS:
            # The loop's own handler wakes the loop; the plain one also counts where the loop is busy.
            self._loop.add_signal_handler(number, self._asked, "cancelled", CANCELLED)
            signal.signal(number, self._arrived)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
        try:
            yield
        finally:
            # The run has told its end and closes at once: a late signal must not spoil that, not even while handlers
            # change.
            signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
            self._gone.set()
            if self._timer:
                self._timer.cancel()
            for number in _SIGNALS:
                self._loop.remove_signal_handler(number)
                signal.signal(number, lambda *_: None)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)

    def limit(self, seconds: float) -> None:
        """End the command this long after it began, whatever it does then; -1 is never."""
        if seconds > 0:
            message = wall_time_message(seconds)
            left = max(0.0, self._began + seconds - time.monotonic())
            self._timer = self._loop.call_later(left, self._asked, "wall_time", message)
            self._watch(left + GRACE_S, Ending("wall_time", message))

    def begin(self, run: Run) -> None:
        """From now on this run is what is stopped."""
        self._run = run
        if self._cause:
            run.abort(self._cause.reason, self._cause.message)

    def reported(self, code: int) -> None:
        """The result is out: a signal can only hasten the end now."""
        self._code = code

    async def let_go(self) -> None:
        """End the process here and now if a task or thread would hold it: the result is out."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_LAST_WORDS_S)
        closing = asyncio.ensure_future(self._loop.shutdown_default_executor())
        await asyncio.wait((closing, *tasks), timeout=_LAST_WORDS_S)
        if not closing.done() or not all(task.done() for task in tasks):
            self._exit(self.code)

    def _asked(self, reason: Reason, message: str) -> None:
        if self._code is not None:
            return
        ending = Ending(reason, message)
        if self._cause is None:
            self._cause = ending
            if self._run is None and self._task is not None:
                self._task.cancel()
        if self._run is not None:
            self._run.abort(reason, message)

    def _arrived(self, _number: int, _frame: FrameType | None) -> None:
        self._signals += 1
        ending = Ending("cancelled", CANCELLED)
        if self._signals == 1:
            self._watch(GRACE_S, ending)
        elif not self._is_telling():  # a result is not broken off; if nobody takes it, the moment of grace ends it
            self._watch(0.0, ending)  # in a thread: what the signal interrupts may be half of a message

    def _watch(self, seconds: float, ending: Ending) -> None:
        def wait() -> None:
            if not self._gone.wait(seconds):
                self._end(ending)

        threading.Thread(target=wait, daemon=True).start()

    def _end(self, ending: Ending) -> None:
        """End the process, from a signal or a thread: the loop may be stuck."""
        kill_everything()
        codes: list[int] = []
        if self._code is None:
            # In a thread, since whoever is interrupted may hold the locks of the streams.
            words = threading.Thread(target=lambda: codes.append(self._force(self._cause or ending)), daemon=True)
            words.start()
            words.join(_LAST_WORDS_S)
        code = self._code if self._code is not None else (codes or [(self._cause or ending).kind.exit_code])[0]
        self._exit(code)

    def _exit(self, code: int) -> None:
        kill_everything()
        for work in (_flush, close_sandboxes):
            thread = threading.Thread(target=work, daemon=True)
            thread.start()
            thread.join(_LAST_WORDS_S)
        os._exit(code)


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError, RuntimeError, AttributeError):
            stream.flush()
