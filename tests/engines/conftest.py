"""Tests inside real engines: they run where vLLM is installed, which is the environment that .ci/engines-env makes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import pytest

collect_ignore_glob = [] if find_spec("vllm") else ["test_*.py"]

START_S = 600
MASKS = ["--scheduler-cls", "dovetail.integrations.vllm.Scheduler"]
PARSERS = ["--enable-auto-tool-choice", "--tool-call-parser", "dovetail", "--reasoning-parser", "dovetail"]


@dataclass
class Server:
    """A vLLM that serves the model under the name "m"."""

    url: str
    log: Path
    process: subprocess.Popen[bytes]

    @classmethod
    def start(cls, log: Path, *flags: str) -> Server:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [str(Path(sys.executable).parent / "vllm"), "serve", os.environ["DOVETAIL_ENGINE_MODEL"]]
        command += ["--served-model-name", "m", "--host", "127.0.0.1", "--port", str(port), "--max-model-len", "2048"]
        command += ["--enforce-eager", "--dtype", "float32", "--max-num-seqs", "32", *flags]
        small = {"VLLM_CPU_KVCACHE_SPACE": "1", "VLLM_CPU_OMP_THREADS_BIND": "nobind", "OMP_NUM_THREADS": "1"}
        with log.open("wb") as out:
            made = subprocess.Popen(
                command,
                stdout=out,
                stderr=out,
                env=os.environ | small,
                start_new_session=True,
                stdin=subprocess.DEVNULL,
            )
        server = cls(f"http://127.0.0.1:{port}", log, made)
        server.wait_until_it_answers()
        return server

    def wait_until_it_answers(self) -> None:
        import httpx

        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                if httpx.get(f"{self.url}/health", timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                time.sleep(0.5)
        self.stop()
        pytest.fail(f"vLLM did not start; the end of its log:\n{self.log.read_text(errors='replace')[-4000:]}")

    def stop(self) -> None:
        for how in (signal.SIGTERM, signal.SIGKILL):
            try:
                os.killpg(self.process.pid, how)
                self.process.wait(timeout=30)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    started = Server.start(tmp_path_factory.mktemp("vllm") / "log", *MASKS, *PARSERS)
    yield started
    started.stop()
