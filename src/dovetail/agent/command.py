"""`dovetail run` from its flags to its exit code: the parts are put together, the run runs, and its end is told."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

from dovetail.agent.contract import Contract, read_contract
from dovetail.agent.endings import CANCELLED, Ending, HaltError
from dovetail.agent.flags import Flags
from dovetail.agent.loop import Limits, Parts, Plan, Run
from dovetail.agent.loop.budget import parse_count, parse_duration
from dovetail.agent.mentions import expand_mentions
from dovetail.agent.output import Output, Sink
from dovetail.agent.output.writers import Format
from dovetail.agent.permissions import Rules, ToolFlags
from dovetail.agent.settings import Settings, load_settings, read_mcp_config
from dovetail.agent.types import STRUCTURED_OUTPUT, AuthenticationError, ProviderOptions, ToolLimits
from dovetail.errors import DovetailError, InputError

CLOSING_S = 5.0


async def execute(flags: Flags, prompt: str) -> int:
    """Do what the flags say, print it, and return the exit code."""
    interrupt = _Interrupt()
    sink = Sink(sys.stdout.buffer)
    form: Format = flags.output_format or "text"
    with interrupt.listening():
        async with AsyncExitStack() as stack:
            try:
                plan = _Assembly(flags, prompt)
                form = plan.form
                run = await plan.assemble(stack, sink)
                interrupt.run = run
                ending = await run.execute()
            except asyncio.CancelledError:
                ending = _stillborn(Ending("cancelled", CANCELLED), form, sink)
            except HaltError as halt:
                ending = _stillborn(Ending(halt.reason, halt.message), form, sink)
            except AuthenticationError as error:
                ending = _stillborn(Ending("authentication", error.problem), form, sink)
            except DovetailError as error:
                ending = _stillborn(Ending("configuration", str(error)), form, sink)
            interrupt.run = None
    _tell(ending, form)
    return ending.kind.exit_code


def warn(text: str) -> None:
    """Say something on stderr, which nobody parses."""
    print(text, file=sys.stderr, flush=True)  # noqa: T201


def _stillborn(ending: Ending, form: Format, sink: Sink) -> Ending:
    """A run that never began still has its one result."""
    Output(form, sink, str(uuid.uuid4()), "").result(ending, {})
    return ending


def _tell(ending: Ending, form: Format) -> None:
    if not ending.is_error:
        return
    if form == "json":
        error = {"type": ending.kind.error, "message": ending.message, "code": ending.kind.exit_code}
        warn(json.dumps({"error": error}, indent=2, ensure_ascii=False))
    else:
        warn(ending.message)


class _Interrupt:
    """SIGINT and SIGTERM: they end the run, or what leads up to it."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self._task = asyncio.current_task()
        self._arrived = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self._arrive)
        try:
            yield
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
                # What is left to do takes no time; a late signal must not spoil an end that is already told.
                signal.signal(number, signal.SIG_IGN)

    def _arrive(self) -> None:
        if self.run is not None:
            self.run.interrupt()
        elif not self._arrived and self._task is not None:
            self._task.cancel()
        self._arrived = True
