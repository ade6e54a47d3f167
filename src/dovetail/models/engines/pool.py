"""Replicas of one model: which is asked, who waits, and which are well."""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

import httpx2

from dovetail.errors import ExportError, ModelError
from dovetail.models.engines.failures import BusyError, RefusedError, ReplicaError
from dovetail.models.engines.replica import Address, Replica
from dovetail.models.engines.wire import Ask, Chunk, Tokens, tokens_of

# Functions that write one constraint in the languages that an engine knows, most wanted first.
Spellings = Sequence[Callable[[], Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """How many answers one replica writes at a time, and how long it may take; further requests wait for a place."""

    max_running: int = 256
    connect_s: float = 5.0
    silence_s: float = 300.0  # between two pieces of an answer
    check_every_s: float = 2.0
    check_s: float = 10.0


class Pool:
    """Replicas that serve the same model."""

    def __init__(self, addresses: Iterable[Address], limits: PoolLimits | None = None, key: str = "") -> None:
        self.replicas = [Replica(address) for address in dict.fromkeys(addresses)]
        if not self.replicas:
            raise ModelError("there is no engine", "--engine", "name at least one")
        self.limits = limits or PoolLimits()
        self.retries = 0
        self._headers = {"authorization": f"Bearer {key}"} if key else {}
        self._waiting: deque[asyncio.Future[None]] = deque()
        # A client belongs to the loop that made it: a server has one, scripts may have several.
        self._clients: WeakKeyDictionary[asyncio.AbstractEventLoop, httpx2.AsyncClient] = WeakKeyDictionary()
        self._blocking = httpx2.Client(
            headers=self._headers, timeout=httpx2.Timeout(self.limits.check_s, connect=self.limits.connect_s)
        )

    @property
    def kinds(self) -> list[str]:
        """The kinds of engines among the replicas."""
        return sorted({replica.wire.kind for replica in self.replicas})

    @property
    def waiting(self) -> int:
        """How many requests wait for a place."""
        return len(self._waiting)

    async def chunks(self, ask: Ask, spellings: Mapping[str, Spellings]) -> AsyncGenerator[Chunk, None]:
        """One answer, from the replica that has least to do; from another one if that fails before it says anything.

        `spellings` has for each kind of engine the constraint.
        """
        tried: set[Replica] = set()
        problem = ReplicaError("no replica answers")
        while (replica := await self._acquire(tried)) is not None:
            tried.add(replica)
            outcome = "left"
            begun = False
            try:
                async with aclosing(self._spelled(replica, ask, spellings.get(replica.wire.kind, ()))) as chunks:
                    async for chunk in chunks:
                        begun = True
                        yield chunk
                outcome = "ended"
                return
            except RefusedError as error:
                outcome = "refused"
                raise ModelError(f"the engine refuses this: {error}", "", "change the request") from None
            except BusyError as error:
                outcome, problem = "busy", error
            except ReplicaError as error:
                outcome, problem = "failed", error
                replica.failed(error.__cause__ or error)
                if begun:
                    raise
            finally:
                replica.outcomes[outcome] += 1
                self._release(replica)
            self.retries += 1
        raise problem

    async def _spelled(self, replica: Replica, ask: Ask, spellings: Spellings) -> AsyncGenerator[Chunk, None]:
        """One answer; where the engine refuses a spelling of the constraint, the next one is tried."""
        refused: RefusedError | None = None
        begun = False
        for spell in spellings or (dict,):
            try:
                constraint = await asyncio.to_thread(spell)
            except ExportError:
                continue  # there is no such spelling of this constraint
            try:
                async with aclosing(replica.chunks(self._client(), replica.wire.body(ask, constraint))) as chunks:
                    async for chunk in chunks:
                        begun = True
                        yield chunk
                return
            except RefusedError as error:
                if begun:
                    raise ReplicaError(str(error)) from None
                refused = refused or error
        raise refused or RefusedError("its language has no word for what is asked")

    def tokens(self, text: str) -> Tokens:
        """The tokens of a text, from the first replica that tells."""
        problem = "no replica answers"
        order = sorted(self.replicas, key=lambda replica: (not replica.is_up, replica.running, random.random()))
        for replica in order:
            try:
                reply = self._blocking.post(replica.address.url + "/tokenize", json=replica.wire.text(text))
                if reply.status_code == 200:
                    return tokens_of(reply.json())
                problem = f"/tokenize of {replica.name} answers with status {reply.status_code}"
            except (httpx2.TransportError, ValueError) as error:
                problem = f"{replica.name}: {error or type(error).__name__}"
                replica.failed(error)
        raise ReplicaError(problem)

    @asynccontextmanager
    async def watched(self) -> AsyncGenerator[None, None]:
        """Ask the replicas again and again how they are, until the block ends."""
        task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            if client := self._clients.pop(asyncio.get_running_loop(), None):
                await client.aclose()

    async def check(self) -> None:
        """Ask all replicas once how they are."""
        await asyncio.gather(*map(self._check, self.replicas))

    def close(self) -> None:
        """Close the connections."""
        self._blocking.close()
        for loop, client in list(self._clients.items()):
            if loop.is_running():
                asyncio.run_coroutine_threadsafe(client.aclose(), loop)
        self._clients.clear()

    async def _watch(self) -> None:
        while True:
            await self.check()
            await asyncio.sleep(self.limits.check_every_s)

    async def _check(self, replica: Replica) -> None:
        try:
            reply = await self._client().get(f"{replica.address.url}/health", timeout=self.limits.check_s)
            is_well = reply.status_code == 200
        except (httpx2.TransportError, httpx2.InvalidURL):
            is_well = False
        if is_well:
            replica.answered()
        else:
            replica.failed()

    def _client(self) -> httpx2.AsyncClient:
        loop = asyncio.get_running_loop()
        if loop not in self._clients:
            timeout = httpx2.Timeout(self.limits.silence_s, connect=self.limits.connect_s)
            unlimited = httpx2.Limits(max_connections=None, max_keepalive_connections=64)
            self._clients[loop] = httpx2.AsyncClient(headers=self._headers, timeout=timeout, limits=unlimited)
        return self._clients[loop]

    async def _acquire(self, tried: set[Replica]) -> Replica | None:
        """The replica with least to do of those that were not tried; None once all were."""
        while left := [replica for replica in self.replicas if replica not in tried]:
            up = [replica for replica in left if replica.is_up] or left
            free = [replica for replica in up if replica.running < self.limits.max_running]
            if free:
                # By lot among equals: other gateways choose, too.
                chosen = min(free, key=lambda replica: (replica.running, random.random()))
                chosen.running += 1
                return chosen
            await self._place()
        return None

    async def _place(self) -> None:
        """Wait until a replica has a place again."""
        waiter = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            else:
                self._wake()  # it was this one's turn: pass it on
            raise

    def _release(self, replica: Replica) -> None:
        replica.running -= 1
        self._wake()

    def _wake(self) -> None:
        if self._waiting:
            waiter = self._waiting.popleft()
            waiter.get_loop().call_soon_threadsafe(_resolve, waiter)


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
