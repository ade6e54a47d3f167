"""A minute of 200 streams in front of three replicas, one of which is killed and started again."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from dovetail.models.engines import PoolLimits, connect
from dovetail.serving.models import engines
from tests.serving.asking import http_client, serving, wait_until
from tests.serving.engine_storm import disturbed_storm

STREAMS, SECONDS = 200, 60


class Replica:
    def __init__(self, kind: str) -> None:
        self.kind = kind
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        self.start()

    def start(self) -> None:
        command = [sys.executable, "-m", "tests.models.engines.fake", self.kind, str(self.port)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"up\n"

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def replicas() -> Iterator[list[Replica]]:
    made = [Replica(kind) for kind in ("vllm", "llama", "sglang")]
    yield made
    for replica in made:
        replica.kill()


@pytest.mark.slow
def test_streams_never_mix_and_none_is_lost_that_has_not_begun(replicas: list[Replica]) -> None:
    def disturb() -> None:
        time.sleep(SECONDS / 4)
        replicas[0].kill()
        time.sleep(SECONDS / 4)
        replicas[0].start()

    addresses = [f"{replica.kind}=http://127.0.0.1:{replica.port}" for replica in replicas]
    model = connect(addresses, dialect="qwen_3", name="m", limits=PoolLimits(check_every_s=0.5))
    with serving(engines(model)) as url:
        outcomes = disturbed_storm(url, STREAMS, SECONDS, disturb)
        up = f'dovetail_replica_up{{replica="http://127.0.0.1:{replicas[0].port}",engine="vllm"}} 1'
        wait_until(lambda: up in http_client(url).get("/metrics").text)
    assert set(outcomes) <= {"done", "broken"}, outcomes
    assert outcomes["done"] > STREAMS
    assert 0 < outcomes["broken"] <= STREAMS
