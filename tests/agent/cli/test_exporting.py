"""OpenTelemetry's own variables, against a collector over HTTP."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.agent.cli.conftest import Bench
from tests.agent.servers import Call, Reply

SO = Reply(Call("structured_output", {"summary": "top-secret"}, "so"))


class Collector(ThreadingHTTPServer):
    """Keeps what it is sent, by path; one that is not `answering` never says that it got it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.daemon_threads = True
        self.received: dict[str, bytes] = {}
        self.answering = True
        threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


class _Handler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.received[self.path] = self.server.received.get(self.path, b"") + body
        while not self.server.answering:
            time.sleep(0.05)
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture
def collector() -> Iterator[Collector]:
    server = Collector()
    yield server
    server.answering = True
    server.shutdown()
    server.server_close()


def test_telemetry_goes_where_the_variables_say(bench: Bench, collector: Collector) -> None:
    bench.env |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_EXPORTER_OTLP_COMPRESSION": "none"}
    finished = bench.run([Reply(Call("nothing", {})), SO])
    assert (0, "") == (finished.code, finished.stderr)
    assert {"/v1/traces", "/v1/metrics", "/v1/logs"} == set(collector.received)
    assert b"dovetail.run" in collector.received["/v1/traces"]
    assert b"dovetail.tool.call.count" in collector.received["/v1/metrics"]
    assert b"dovetail.tool_call" in collector.received["/v1/logs"]
    assert b"top-secret" not in b"".join(collector.received.values())


OFF = [{"OTEL_SDK_DISABLED": "true"}, {f"OTEL_{signal}_EXPORTER": "none" for signal in ("TRACES", "METRICS", "LOGS")}]


@pytest.mark.parametrize("off", OFF)
def test_it_can_be_switched_off(bench: Bench, collector: Collector, off: dict[str, str]) -> None:
    bench.env |= {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, **off}
    assert (0, {}) == (bench.run([SO]).code, collector.received)


def test_a_collector_that_hangs_does_not_hold_the_run(bench: Bench, collector: Collector) -> None:
    collector.answering = False
    bench.env["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url
    assert 0 == bench.run([SO]).code


def test_an_exporter_that_is_not_installed_is_told_and_the_console_is_stderr(bench: Bench) -> None:
    bench.env |= {"OTEL_TRACES_EXPORTER": "mystery,console"}
    finished = bench.run([SO], form="text")
    assert (0, '{"summary":"top-secret"}\n') == (finished.code, finished.stdout)
    assert "the exporter 'mystery' of OTEL_TRACES_EXPORTER is not installed" in finished.stderr
    assert '"name": "dovetail.run"' in finished.stderr
