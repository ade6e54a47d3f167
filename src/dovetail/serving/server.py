"""Servers on a port: in the foreground until a signal, or in a thread beside a program."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from starlette.applications import Starlette

from dovetail.errors import InputError

_BACKLOG = 2048


def listen(host: str, port: int) -> socket.socket:
    """A socket that takes connections; port 0 takes any that is free."""
    try:
        return socket.create_server((host, port), backlog=_BACKLOG)
    except OSError as error:
        problem = f"cannot listen on {host}:{port}: {error.strerror or error}"
        raise InputError(problem, "", "choose another --host or --port") from error


def serve(app: Starlette, listener: socket.socket, shutdown_s: int = 10) -> None:
    """Serve until SIGINT or SIGTERM; answers that are being written then have `shutdown_s` seconds to end."""
    uvicorn.Server(_config(app, shutdown_s)).run(sockets=[listener])


@contextmanager
def in_background(app: Starlette, host: str = "127.0.0.1", port: int = 0, shutdown_s: int = 5) -> Iterator[str]:
    """The URL of a server that runs in a thread until the block ends; port 0 takes any that is free."""
    with listen(host, port) as listener:
        server = _Background(_config(app, shutdown_s))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        server.up.wait()
        try:
            yield f"http://{host}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


class _Background(uvicorn.Server):
    """A server that tells when it is up."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()


def _config(app: Starlette, shutdown_s: int) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        access_log=False,  # ours has the time that it took, and no query
        log_config=None,
        backlog=_BACKLOG,
        timeout_graceful_shutdown=shutdown_s,
        server_header=False,
        ws="none",
    )
