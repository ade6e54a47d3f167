"""One server of a model: how it is, what it does, and one stream of it."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import httpx2

from dovetail.errors import ModelError
from dovetail.models.engines.failures import BusyError, RefusedError, ReplicaError
from dovetail.models.engines.wire import REFUSALS, WIRES, Chunk, Wire, wrong

log = logging.getLogger("dovetail.engines")

MAX_EVENT = 4 << 20  # bytes
_BACKOFF_S = (1.0, 2.0, 4.0, 8.0)
_BUSY = (429, 503)


class Address(NamedTuple):
    """An engine as it is written on the command line: `vllm=http://host:8000`."""

    kind: str
    url: str

    @classmethod
    def read(cls, text: str) -> Address:
        """The address in a text; ModelError where it is none."""
        kind, _, url = text.partition("=")
        parts = urlsplit(url)
        if kind not in WIRES or parts.scheme not in ("http", "https") or not parts.hostname:
            fix = f"write one of {', '.join(f'{known}=http://HOST:PORT' for known in WIRES)}"
            raise ModelError(f"{text!r} is no address of an engine", "--engine", fix)
        return cls(kind, url.rstrip("/").removesuffix("/v1"))

    @property
    def name(self) -> str:
        """The address for logs and metrics, without a password that it may have."""
        parts = urlsplit(self.url)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


class Replica:
    """A server and what is known of it: `running` streams, and whether it `is_up`."""

    def __init__(self, address: Address) -> None:
        self.address = address
        self.name = address.name
        self.wire: Wire = WIRES[address.kind]
        self.running = 0
        self.outcomes: dict[str, int] = dict.fromkeys(("ended", "failed", "busy", "refused", "left"), 0)
        self._failures = 0  # in a row
        self._down_until = 0.0

    @property
    def is_up(self) -> bool:
        """Whether it is asked before others that failed; one that failed is tried again after a while."""
        return time.monotonic() >= self._down_until

    def failed(self, why: BaseException | None = None) -> None:
        """It did not answer: leave it alone for a while, longer each time."""
        if not self._failures:
            # No more than that: the words of an engine may quote the request.
            log.warning("%s does not answer: %s", self.name, type(why).__name__ if why else "it is not well")
        self._down_until = time.monotonic() + _BACKOFF_S[min(self._failures, len(_BACKOFF_S) - 1)]
        self._failures += 1

    def answered(self) -> None:
        """It did answer."""
        if self._failures:
            log.warning("%s answers again", self.name)
        self._failures, self._down_until = 0, 0.0

    async def chunks(self, client: httpx2.AsyncClient, body: dict[str, Any]) -> AsyncGenerator[Chunk, None]:
        """One answer; the last chunk, and no other, has a finish. Closing the generator ends it in the engine, too."""
        try:
            async with client.stream("POST", self.address.url + self.wire.path, json=body) as response:
                if response.status_code != 200:
                    raise _refusal(response.status_code, await response.aread())
                self.answered()
                async for event in _events(response.aiter_bytes()):
                    chunk = self._read(event)
                    if chunk is None:
                        continue
                    yield chunk
                    if chunk.finish is not None:
                        return
        except (httpx2.TransportError, httpx2.InvalidURL) as error:
            raise ReplicaError(f"{self.name}: {error or type(error).__name__}") from error
        raise ReplicaError(f"{self.name}: the answer has no end")

    def _read(self, event: Any) -> Chunk | None:
        if (error := wrong(event)) is not None:
            raise error
        try:
            return self.wire.read(event)
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise ReplicaError(f"an event is not what {self.wire.kind} sends: {error!r}") from None


def _refusal(status: int, body: bytes) -> ReplicaError | RefusedError:
    """The error of an answer with this status."""
    try:
        reported = wrong(json.loads(body))
    except (ValueError, RecursionError):
        reported = None
    words = str(reported or f"status {status}")
    if status in _BUSY:
        return BusyError(words)
    return RefusedError(words) if status in REFUSALS else ReplicaError(f"status {status}: {words}")


async def _events(pieces: AsyncIterator[bytes]) -> AsyncGenerator[Any, None]:
    """The JSON values of a stream of events; lines end at line feeds only, because texts hold other separators."""
    held = b""
    async for piece in pieces:
        *lines, held = (held + piece).split(b"\n")
        for line in lines:
            name, _, data = line.partition(b":")
            data = data.strip()
            if name not in (b"data", b"error") or not data:
                continue
            if data == b"[DONE]":
                return
            try:
                value = json.loads(data)
            except (ValueError, RecursionError):
                raise ReplicaError("an event of the stream is not JSON") from None
            yield {"error": value} if name == b"error" else value
        if len(held) > MAX_EVENT:
            raise ReplicaError(f"an event of the stream has more than {MAX_EVENT} bytes")
