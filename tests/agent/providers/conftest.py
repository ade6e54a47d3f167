"""Providers of every kind: the three services behind scripted servers, and a tiny model of random weights."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dovetail.agent.loop.reply import Reply as Read
from dovetail.agent.loop.reply import read_reply
from dovetail.agent.protocols import Provider
from dovetail.agent.providers import connect
from dovetail.agent.providers.local import LocalProvider
from dovetail.agent.types import ProviderOptions, Request, Restarted
from tests.agent.servers import Reply, ScriptedServer

SERVICES = ("openai", "anthropic", "gemini")


def connected(server: ScriptedServer, service: Any, **options: Any) -> Provider:
    """A provider that talks to the server."""
    given: dict[str, Any] = {
        "model": "m",
        "timeout_s": 5.0,
        "max_retries": 2,
        "extra": {"backoff_s": 0.01},
        "api_key": "k",
    }
    return connect(ProviderOptions(name=service, base_url=server.base_url(service), **{**given, **options}))


def read(provider: Provider, request: Request, close: bool = True) -> tuple[Read, list[Restarted]]:
    """One reply as the loop of a run reads it, and the attempts that failed before."""

    async def once() -> tuple[Read, list[Restarted]]:
        restarts: list[Restarted] = []
        try:
            return await read_reply(provider, request, lambda _: None, set(), restarts.append), restarts
        finally:
            if close:
                await provider.close()

    return asyncio.run(once())


def ask(service: str, request: Request, *script: Reply, **options: Any) -> tuple[Read, list[Restarted], list[Any]]:
    """A reply of a scripted service, the attempts that failed, and the requests that the server got."""
    with ScriptedServer(list(script)) as server:
        reply, restarts = read(connected(server, service, **options), request)
    return reply, restarts, server.received


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a Transformers model of random weights."""
    from dovetail.models import tiny

    return tiny.make(tmp_path_factory.mktemp("models") / "tiny", "qwen_3")


@pytest.fixture(scope="session")
def local(tiny_model: Path) -> Iterator[LocalProvider]:
    """A provider with that model."""
    from dovetail.agent.providers.local import local_provider

    provider = local_provider(ProviderOptions("local", str(tiny_model), seed=5))
    yield provider
    asyncio.run(provider.close())
