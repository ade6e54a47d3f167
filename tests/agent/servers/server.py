"""The HTTP side: real sockets, chunked streams, faults."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import ModuleType
from typing import Any, Literal, Self

from tests.agent.servers import anthropic_wire, gemini_wire, openai_wire
from tests.agent.servers.script import Reply

Protocol = Literal["openai", "anthropic", "gemini"]
WIRES: dict[Protocol, ModuleType] = {"openai": openai_wire, "anthropic": anthropic_wire, "gemini": gemini_wire}
_SUFFIX: dict[Protocol, str] = {"openai": "/v1", "anthropic": "", "gemini": ""}


@dataclass(frozen=True)
class Received:
    """A request as it came, and when, in seconds of a monotonic clock."""

    protocol: Protocol
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float
    serial: int


Script = Sequence[Reply] | Callable[[Received], Reply]


class ScriptedServer:
    """Answers by a script; `received` holds the requests, `dropped` the serials of those whose clients went away."""

    def __init__(self, script: Script, *, key: str | None = None, checked: bool = True) -> None:
        self.script = script
        self.key = key
        self.checked = checked
        self.received: list[Received] = []
        self.dropped: list[int] = []
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._http = _Quiet(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._http.block_on_close = False
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def base_url(self, protocol: Protocol) -> str:
        """What a client of this protocol takes for its base URL."""
        return self.url + _SUFFIX[protocol]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closing.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def die(self) -> None:
        """Be gone from one moment to the next, with all connections."""
        self._closing.set()
        self._http.shutdown()
        self._http.server_close()

    def wait_for_drop(self, limit_s: float = 10.0) -> bool:
        """Whether some client goes away within the limit."""
        end = time.monotonic() + limit_s
        while not self.dropped and time.monotonic() < end:
            time.sleep(0.01)
        return bool(self.dropped)

    def _receive(self, protocol: Protocol, path: str, headers: dict[str, str], body: dict[str, Any]) -> Received:
        with self._lock:
            received = Received(protocol, path, headers, body, time.monotonic(), len(self.received))
            self.received.append(received)
            return received

    def _reply_to(self, received: Received) -> Reply:
        if self.key is not None and not _has_key(received.headers, self.key):
            return Reply(status=401, message="invalid key")
        if self.checked and (problem := WIRES[received.protocol].problem(received.body)):
            return Reply(status=400, message=problem)
        if callable(self.script):
            return self.script(received)
        if received.serial < len(self.script):
            return self.script[received.serial]
        return Reply(status=400, message=f"the script has no reply {received.serial}")


class _Quiet(ThreadingHTTPServer):
    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that go away are part of the tests."""


def _has_key(headers: dict[str, str], key: str) -> bool:
    """In a header of its own or as a bearer token: clients of one service do both, by their version."""
    given = (headers.get("authorization"), headers.get("x-api-key"), headers.get("x-goog-api-key"))
    return f"Bearer {key}" in given or key in given


def _handler(server: ScriptedServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def setup(self) -> None:
            super().setup()
            self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

        def do_POST(self) -> None:
            protocol = next((name for name, wire in WIRES.items() if wire.PATH.search(self.path)), None)
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
            if protocol is None:
                self._send_json(404, {"error": {"message": f"no such path: {self.path}", "code": 404}}, {})
                return
            headers = {name.lower(): value for name, value in self.headers.items()}
            received = server._receive(protocol, self.path, headers, body)
            reply, serial = server._reply_to(received), received.serial
            server._closing.wait(reply.delay_s)
            wire = WIRES[protocol]
            try:
                if reply.status != 200:
                    self._send_json(reply.status, wire.error_body(reply.status, reply.message), reply.headers)
                else:
                    self._stream(wire, reply, body, serial)
            except (BrokenPipeError, ConnectionResetError):
                server.dropped.append(serial)
                self.close_connection = True

        def _send_json(self, status: int, value: Any, headers: dict[str, str]) -> None:
            data = json.dumps(value).encode()
            self.send_response(status)
            for name, text in {"content-type": "application/json", **headers, "content-length": str(len(data))}.items():
                self.send_header(name, text)
            self.end_headers()
            self.wfile.write(data)

        def _stream(self, wire: ModuleType, reply: Reply, body: dict[str, Any], serial: int) -> None:
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("transfer-encoding", "chunked")
            for name, text in reply.headers.items():
                self.send_header(name, text)
            self.end_headers()
            for index, event in enumerate(wire.events(reply, body, serial)):
                if index == reply.cut_after:
                    self._cut()
                    return
                if index == reply.garbage_after:
                    self._chunk(wire.GARBAGE + "\n\n")
                if index == reply.error_after:
                    self._chunk(wire.error_event())
                    break
                if index == reply.stall_after:
                    self._stall(reply.stall_s)
                self._chunk(event)
                if reply.pace_s:
                    server._closing.wait(reply.pace_s)
            self.wfile.write(b"0\r\n\r\n")

        def _chunk(self, text: str) -> None:
            data = text.encode()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

        def _stall(self, limit_s: float) -> None:
            """Say nothing, but notice that the client has gone."""
            end = time.monotonic() + limit_s
            self.connection.settimeout(0.02)
            while time.monotonic() < end and not server._closing.is_set():
                try:
                    if self.connection.recv(1, socket.MSG_PEEK) == b"":
                        raise BrokenPipeError
                except TimeoutError:
                    continue
            self.connection.settimeout(None)

        def _cut(self) -> None:
            self.close_connection = True
            self.connection.shutdown(socket.SHUT_RDWR)

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: the tests read `received`."""

    return Handler
