"""The command line as a process of its own, without paying for its imports each time.

One interpreter imports everything and then forks for each command line: the child gets its own standard streams,
environment and working directory and runs `dovetail` to the end of its interpreter, like a process that was started the
long way. `Warm.cold` starts one the long way.
"""

from __future__ import annotations

import array
import contextlib
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema_rs

from dovetail.agent.output import event_schema

ROOT = Path(__file__).resolve().parent.parent.parent
_ZYGOTE = "from tests.agent.warm import serve; serve()"
_EVENTS = jsonschema_rs.validator_for(event_schema())
_MAIN = "from dovetail.cli import main; main(prog_name='dovetail')"


@dataclass(frozen=True)
class Finished:
    """What a command line left behind."""

    code: int
    stdout: str
    stderr: str

    @property
    def messages(self) -> list[dict[str, Any]]:
        """The messages of json or stream-json output."""
        text = self.stdout.strip()
        whole = json.loads(text) if text.startswith("[") else [json.loads(line) for line in text.splitlines()]
        messages: list[dict[str, Any]] = whole
        for message in messages:
            if not _EVENTS.is_valid(message):
                raise AssertionError(f"no such event is documented: {message}")
        return messages

    @property
    def result(self) -> dict[str, Any]:
        """The one result, which is the last message."""
        messages = self.messages
        assert ["result"] == [message["type"] for message in messages if message["type"] == "result"]
        assert messages[-1]["type"] == "result"
        return messages[-1]

    def results(self) -> dict[str, dict[str, Any]]:
        """The tool results by the id of their call."""
        blocks = [
            block
            for message in self.messages
            if message["type"] == "user"
            for block in message["message"]["content"]
            if block["type"] == "tool_result"
        ]
        assert len({block["tool_use_id"] for block in blocks}) == len(blocks)
        return {block["tool_use_id"]: block for block in blocks}

    def uses(self) -> list[dict[str, Any]]:
        """The tool calls in their order."""
        return [
            block
            for message in self.messages
            if message["type"] == "assistant"
            for block in message["message"]["content"]
            if block["type"] == "tool_use"
        ]


class Running:
    """A command line that runs; its output goes to files, so that it never waits for a reader."""

    def __init__(self, pid: int, files: tuple[Any, Any], status: Any) -> None:
        self.pid = pid
        # Once it has ended: processor time with that of processes it has waited for, and how long it waited for one.
        self.cpu_s = self.waited_s = 0.0
        self._files = files
        self._status = status

    def send(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, number)

    def output(self) -> str:
        """What it has printed so far."""
        return Path(self._files[0].name).read_text()

    def wait_for(self, text: str, limit_s: float = 30.0) -> None:
        """Wait until it has printed this."""
        end = time.monotonic() + limit_s
        while text not in self.output():
            assert time.monotonic() < end, f"{text!r} did not come: {self.output()}"
            time.sleep(0.01)

    def wait_for_stderr(self, text: str, limit_s: float = 30.0) -> None:
        """Wait until it has said this on standard error."""
        end = time.monotonic() + limit_s
        while text not in (said := Path(self._files[1].name).read_text()):
            assert time.monotonic() < end, f"{text!r} was not said: {said}"
            time.sleep(0.01)

    def finish(self) -> Finished:
        code, self.cpu_s, self.waited_s = self._status()
        texts = [Path(file.name).read_text() for file in self._files]
        for file in self._files:
            file.close()
        return Finished(code, *texts)


class Warm:
    """Starts command lines; close it with `close`."""

    def __init__(self) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])}
        self._zygote = subprocess.Popen(
            [sys.executable, "-c", _ZYGOTE, str(theirs.fileno())], pass_fds=[theirs.fileno()], env=environment
        )
        theirs.close()
        self._socket = ours

    def start(
        self,
        *arguments: str,
        env: Mapping[str, str],
        cwd: Path,
        stdin: str | None = None,
        stdout: int | None = None,
        stdin_descriptor: int | None = None,
    ) -> Running:
        """Run `dovetail` with these arguments; stdin is empty unless it is given, as text or as a descriptor."""
        files = (tempfile.NamedTemporaryFile("w+"), tempfile.NamedTemporaryFile("w+"))  # noqa: SIM115
        given = tempfile.TemporaryFile("w+")  # noqa: SIM115
        given.write(stdin or "")
        given.seek(0)
        reads = given.fileno() if stdin_descriptor is None else stdin_descriptor
        streams = [reads, files[0].fileno() if stdout is None else stdout, files[1].fileno()]
        order = {"arguments": list(arguments), "env": dict(env), "cwd": str(cwd)}
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        descriptors = array.array("i", [*streams, theirs.fileno()])
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)]
        self._socket.sendmsg([json.dumps(order).encode()], ancillary)
        theirs.close()
        given.close()
        pid = int(ours.recv(64))

        def status() -> tuple[int, float, float]:
            code, cpu_s, waited = ours.recv(64).split()
            ours.close()
            return int(code), float(cpu_s), float(waited)

        return Running(pid, files, status)

    def run(self, *arguments: str, env: Mapping[str, str], cwd: Path, stdin: str | None = None) -> Finished:
        """Run to the end."""
        return self.start(*arguments, env=env, cwd=cwd, stdin=stdin).finish()

    def cold(self, *arguments: str, env: Mapping[str, str], cwd: Path, stdin: str | None = None) -> Finished:
        """Run to the end in an interpreter of its own."""
        done = subprocess.run(
            [sys.executable, "-c", _MAIN, *arguments],
            env={**env, "PYTHONPATH": str(ROOT / "src")},
            cwd=cwd,
            input=stdin or "",
            capture_output=True,
            text=True,
            check=False,
        )
        return Finished(done.returncode, done.stdout, done.stderr)

    def close(self) -> None:
        self._socket.close()
        self._zygote.wait(30)


def serve() -> None:
    """The zygote: import, then fork for each order; each child leaves this function and runs the command."""
    import mcp.client.streamable_http  # noqa: F401
    import openai
    import openai.resources.chat.completions

    import dovetail.agent.command
    import dovetail.cli.run
    import dovetail.models.speaker  # noqa: F401

    openai.AsyncOpenAI(api_key="none")  # the client imports its transport when the first one is made
    gc.freeze()  # children need not collect what all of them share
    orders = socket.socket(fileno=int(sys.argv[1]))
    children: dict[int, socket.socket] = {}
    orders.settimeout(0.01)
    while True:
        _reap(children)
        try:
            data, descriptors, _, _ = socket.recv_fds(orders, 1 << 20, 4)
        except TimeoutError:
            continue
        if not data:
            return
        pid = os.fork()
        if pid == 0:
            orders.close()
            _become(json.loads(data), descriptors)
            return
        reply = socket.socket(fileno=descriptors.pop())
        for descriptor in descriptors:
            os.close(descriptor)
        reply.send(str(pid).encode())
        children[pid] = reply


def _reap(children: dict[int, socket.socket]) -> None:
    for pid in list(children):
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT):
            waited = waited_s(pid)
            _, status, used = os.wait4(pid, 0)
            reply = children.pop(pid)
            cpu_s = used.ru_utime + used.ru_stime
            with contextlib.suppress(BrokenPipeError):
                reply.send(f"{os.waitstatus_to_exitcode(status)} {cpu_s:.3f} {waited:.3f}".encode())
            reply.close()


def waited_s(pid: int) -> float:
    """How long the process has been ready to run and waited for a processor, where the kernel tells it."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError):
        return 0.0


def _become(order: dict[str, Any], descriptors: list[int]) -> None:
    from dovetail.cli import main

    for number, descriptor in enumerate(descriptors[:3]):
        os.dup2(descriptor, number)
    for descriptor in descriptors:
        os.close(descriptor)
    sys.stdin, sys.stdout, sys.stderr = open(0), open(1, "w"), open(2, "w")  # noqa: SIM115
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["cwd"])
    main(order["arguments"], prog_name="dovetail")
