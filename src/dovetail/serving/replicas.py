"""The engines behind a server: their lines in /metrics, and whether one of them is up."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager

from dovetail.models.engines.pool import Pool
from dovetail.models.engines.replica import Replica
from dovetail.serving.metrics import Counter


@asynccontextmanager
async def watched(pools: Iterable[Pool]) -> AsyncGenerator[None, None]:
    """Ask all replicas again and again how they are, until the block ends."""
    async with AsyncExitStack() as stack:
        for pool in pools:
            await stack.enter_async_context(pool.watched())
        yield


def is_well(pools: Iterable[Pool]) -> bool:
    """Whether each pool has a replica that is up."""
    return all(any(replica.is_up for replica in pool.replicas) for pool in pools)


def lines(pools: Iterable[Pool]) -> Iterator[str]:
    """What a scrape reads of the replicas."""
    up = Counter("dovetail_replica_up", "Whether a replica answers.", "gauge")
    running = Counter("dovetail_replica_running", "Answers that a replica is writing.", "gauge")
    answers = Counter("dovetail_replica_answers_total", "Answers of a replica by how they ended.")
    waiting = Counter("dovetail_replicas_waiting", "Requests that wait for a place at a replica.", "gauge")
    retries = Counter("dovetail_replica_retries_total", "Requests that went on to another replica.")
    pools = list(pools)
    for pool in pools:
        for replica in pool.replicas:
            _count(replica, up, running, answers)
        waiting.add(pool.waiting)
        retries.add(pool.retries)
    for counter in (up, running, answers, waiting, retries) if pools else ():
        yield from counter.lines()


def _count(replica: Replica, up: Counter, running: Counter, answers: Counter) -> None:
    labels = {"replica": replica.name, "engine": replica.wire.kind}
    up.add(int(replica.is_up), **labels)
    running.add(replica.running, **labels)
    for outcome, count in replica.outcomes.items():
        answers.add(count, **labels, outcome=outcome)
