"""run_shell_command: bounded in time and output, and nothing that it started outlives it."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import subprocess
from collections import deque
from collections.abc import Collection, Mapping
from typing import Any

from dovetail.agent.environment import without_keys
from dovetail.agent.protocols import ToolContext
from dovetail.agent.sandbox import NoSandbox, Sandbox
from dovetail.agent.tools.base import Builtin, parameters, permitted, text, whole, why
from dovetail.agent.tools.processes import exited, running
from dovetail.agent.types import ToolError, ToolOutput
from dovetail.errors import DovetailError

MAX_TIMEOUT_MS = 600_000
_CHUNK = 1 << 16
_PLAIN_OUTPUT = {"DOVETAIL": "1", "PAGER": "cat", "GIT_PAGER": "cat", "TERM": "dumb"}
# Git takes no folder for a repository that only looks like one, with settings that name programs.
_GIT_SETTINGS = {"safe.bareRepository": "explicit", "core.fsmonitor": "false"}
# How long output may still come after the command itself has ended: from what it left in the background.
_TAIL_S = 0.2


class Capped:
    """Keeps the first fifth and the last four fifths of at most `limit` bytes."""

    def __init__(self, limit: int) -> None:
        self._head_left = limit // 5
        self._tail_limit = limit - limit // 5
        self._head: list[bytes] = []
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._dropped = 0

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes."""
        head, chunk = chunk[: self._head_left], chunk[self._head_left :]
        if head:
            self._head.append(head)
            self._head_left -= len(head)
        if chunk:
            self._tail.append(chunk)
            self._tail_size += len(chunk)
        while self._tail_size > self._tail_limit:
            excess = self._tail_size - self._tail_limit
            first = self._tail.popleft()
            if len(first) > excess:
                self._tail.appendleft(first[excess:])
            dropped = min(len(first), excess)
            self._tail_size -= dropped
            self._dropped += dropped

    def text(self) -> str:
        """What was kept, with a line where something is missing."""
        gap = f"\n[... {self._dropped} bytes left out ...]\n".encode() if self._dropped else b""
        return (b"".join(self._head) + gap + b"".join(self._tail)).decode("utf-8", "replace")


async def _shell(args: Mapping[str, Any], context: ToolContext, sandbox: Sandbox, keep: Collection[str]) -> ToolOutput:
    command = args["command"]
    if not command.strip() or "\0" in command:
        raise ToolError("the command is empty or holds a zero byte")
    folder = permitted(context, args.get("directory", "."))
    timeout_s = args["timeout"] / 1000 if "timeout" in args else context.limits.timeout_s
    output = Capped(context.limits.max_output_bytes)
    words = (shutil.which("bash") or "/bin/sh", "-c", command)
    confined = sandbox.confined(words, folder)
    try:
        launch = await asyncio.to_thread(confined.__enter__)  # it may look at many files
    except (DovetailError, OSError) as error:
        raise ToolError(f"the command cannot be put into the sandbox: {error}") from error
    try:
        started = running(
            *launch.words,
            cwd=folder,
            env=_environment(keep) | launch.variables,
            pass_fds=launch.descriptors,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        async with started as process:
            ended = await _follow(process, output, timeout_s, context.cancel)
    except OSError as error:
        raise ToolError(f"the command cannot be started: {why(error)}") from error
    finally:
        confined.__exit__(None, None, None)
    return _outcome(process.returncode or 0, output.text(), ended, timeout_s)


def _environment(keep: Collection[str]) -> dict[str, str]:
    environment = without_keys(keep=keep) | _PLAIN_OUTPUT
    given = environment.get("GIT_CONFIG_COUNT", "")
    first = int(given) if given.isdecimal() else 0
    for number, (key, value) in enumerate(_GIT_SETTINGS.items(), first):
        environment |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    return environment | {"GIT_CONFIG_COUNT": str(first + len(_GIT_SETTINGS))}


async def _follow(process: asyncio.subprocess.Process, output: Capped, timeout_s: float, cancel: asyncio.Event) -> str:
    """Collect output until the command ends, its time is up or the run is cancelled; says which it was."""
    reading = asyncio.ensure_future(_read(process, output))
    exiting = asyncio.ensure_future(exited(process))
    cancelling = asyncio.ensure_future(cancel.wait())
    try:
        done, _ = await asyncio.wait((exiting, cancelling), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        if exiting in done:
            await asyncio.wait((reading,), timeout=_TAIL_S)
        return "exit" if exiting in done else "cancelled" if cancelling in done else "timeout"
    finally:
        for task in (reading, exiting, cancelling):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


async def _read(process: asyncio.subprocess.Process, output: Capped) -> None:
    assert process.stdout is not None
    while chunk := await process.stdout.read(_CHUNK):
        output.feed(chunk)


def _outcome(code: int, output: str, ended: str, timeout_s: float) -> ToolOutput:
    body = output or "(no output)\n"
    body += "" if body.endswith("\n") else "\n"
    if ended == "timeout":
        return ToolOutput(f"{body}[stopped after {timeout_s:g} s]", is_error=True)
    if ended == "cancelled":
        return ToolOutput(f"{body}[cancelled]", is_error=True)
    status = f"exit code: {code}" if code >= 0 else f"ended by signal {signal.Signals(-code).name}"
    return ToolOutput(f"{body}[{status}]", display=output if output.strip() else f"[{status}]")


def shell_tool(sandbox: Sandbox | None = None, keep: Collection[str] = ()) -> Builtin:
    """The tool that runs commands in a sandbox, without the keys of providers but those that are to be kept."""
    used = sandbox or NoSandbox()

    async def run(args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        return await _shell(args, context, used, keep)

    return Builtin(
        "run_shell_command",
        "Runs a command with bash -c and returns its output (standard output and error together) and exit code. "
        f"It has no terminal and no standard input, and everything it starts is ended with it.{used.notice}",
        parameters(
            "command",
            command=text("the command line"),
            description=text("what it does, in a few words"),
            directory=text("the folder to run it in, the workspace by default"),
            timeout=whole("time limit in milliseconds", minimum=1, maximum=MAX_TIMEOUT_MS),
        ),
        run,
    )


SHELL = shell_tool()
