"""What goes wrong between us and a service: what may pass is tried again, what may not is told at once."""

from __future__ import annotations

import asyncio
import time
from email.utils import formatdate
from typing import Any

import pytest

from dovetail.agent.providers.retrying import Retries, retried, retry_after_s, status_error
from dovetail.agent.types import (
    AuthenticationError,
    Delta,
    Finish,
    ProviderError,
    ProviderOptions,
    Request,
    Restarted,
    TextDelta,
    UserTurn,
)
from tests.agent.providers.conftest import SERVICES, ask, connected, read
from tests.agent.servers import Call, Reply, Say, ScriptedServer, Think

HELLO = Request((UserTurn("hi"),))
LONG = (Think("Hm, let me see."), Say("One two three."), Call("look", {"city": "Rome"}))
OVER = Reply("All is well.")

PASSING = {
    "429": (Reply(status=429, headers={"retry-after": "0.02"}), "HTTP 429"),
    "429 without a pause": (Reply(status=429), "HTTP 429"),
    "408": (Reply(status=408), "HTTP 408"),
    "500": (Reply(status=500), "HTTP 500"),
    "503": (Reply(status=503, headers={"retry-after": formatdate(time.time() - 60, usegmt=True)}), "HTTP 503"),
    "529": (Reply(status=529), "HTTP 529"),
    "a stream that is cut at once": (Reply(*LONG, cut_after=0), "the connection broke"),
    "a stream that is cut on the way": (Reply(*LONG, cut_after=3), "the connection broke"),
    "a stream with garbage in it": (Reply(*LONG, garbage_after=3), "not JSON"),
    "a stream with an error in it": (Reply(*LONG, error_after=3), "fail|overloaded"),
}


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("fault", PASSING)
def test_what_may_pass_is_tried_again(fault: str, service: str) -> None:
    reply, words = PASSING[fault]
    said, restarts, received = ask(service, HELLO, reply, reply, OVER)
    assert ("All is well.", "stop", 3) == (said.turn.text, said.finish, len(received))
    assert [1, 2] == [restart.attempt for restart in restarts]
    assert any(word in restarts[0].reason for word in words.split("|"))


@pytest.mark.parametrize("service", SERVICES)
def test_there_is_an_end_to_trying(service: str) -> None:
    script = [Reply(status=500, message="no luck")] * 9
    with ScriptedServer(script) as server, pytest.raises(ProviderError, match="HTTP 500: no luck") as error:
        read(connected(server, service), HELLO)
    assert (500, True, 3) == (error.value.status, error.value.retryable, len(server.received))


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize(("status", "kind"), [(400, ProviderError), (401, AuthenticationError), (404, ProviderError)])
def test_what_does_not_pass_is_told_at_once(status: int, kind: type[Exception], service: str) -> None:
    script = [Reply(status=status, message="never"), OVER]
    with ScriptedServer(script) as server, pytest.raises(kind, match=f"HTTP {status}: never"):
        read(connected(server, service), HELLO)
    assert 1 == len(server.received)


@pytest.mark.parametrize("service", SERVICES)
def test_a_stalled_stream_times_out_and_a_slow_one_does_not(service: str) -> None:
    reply, restarts, _ = ask(service, HELLO, Reply(*LONG, stall_after=2), OVER, timeout_s=0.4)
    assert (["the model took too long to answer"], "stop") == ([r.reason for r in restarts], reply.finish)
    reply, restarts, _ = ask(service, HELLO, Reply("a b c d e f", pieces=6, pace_s=0.05, delay_s=0.1), timeout_s=2.0)
    assert ("a b c d e f", []) == (reply.turn.text, restarts)


@pytest.mark.parametrize("service", SERVICES)
def test_a_server_that_is_not_there_is_told(service: str) -> None:
    with ScriptedServer([]) as server:
        provider = connected(server, service, max_retries=1)
    with pytest.raises(ProviderError, match="the connection broke"):
        read(provider, HELLO)


@pytest.mark.parametrize("service", SERVICES)
def test_a_refusal_and_an_empty_reply_are_replies(service: str) -> None:
    assert "refusal" == ask(service, HELLO, Reply("I", finish="refusal"))[0].finish
    assert ("", "stop") == (ask(service, HELLO, Reply())[0].turn.text, ask(service, HELLO, Reply())[0].finish)


def test_malformed_arguments_are_delivered_as_they_were_written() -> None:
    for service in ("openai", "anthropic"):
        reply, _, _ = ask(service, HELLO, Reply(Call("look", '{"city": "Ro')))
        (use,) = reply.turn.tool_uses
        assert ('{"city": "Ro', None) == (use.arguments, use.value)


@pytest.mark.parametrize("service", SERVICES)
def test_without_a_key_nothing_is_sent(service: Any) -> None:
    from dovetail.agent.providers import configured, connect

    options = configured(ProviderOptions(service, "m"), {})
    assert "" == options.api_key
    with pytest.MonkeyPatch.context() as patch:
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "GOOGLE_API_KEY"):
            patch.delenv(name, raising=False)
        with pytest.raises(AuthenticationError, match="there is no key"):
            connect(options)


# The pauses themselves.

AFTER = [
    ({}, None),
    ({"retry-after": "3"}, 3.0),
    ({"retry-after": "0.5"}, 0.5),
    ({"retry-after-ms": "250", "retry-after": "3"}, 0.25),
    ({"retry-after": formatdate(1_000_030, usegmt=True)}, 30.0),
    ({"retry-after": formatdate(1_000_000 - 30, usegmt=True)}, 0.0),
    ({"retry-after": "soon"}, None),
    ({"retry-after": "-3"}, None),
    ({"retry-after": "nan"}, None),
    ({"retry-after": "1e99"}, None),
]


@pytest.mark.parametrize(("headers", "expected"), AFTER)
def test_the_pause_that_a_service_names_is_read(headers: dict[str, str], expected: float | None) -> None:
    assert expected == retry_after_s(headers, now=lambda: 1_000_000)


def test_pauses_grow_up_to_a_bound_and_a_named_one_is_obeyed() -> None:
    retries, error = Retries(40, 0.5, 8.0), status_error("busy", 503)
    pauses = [retries.pause_s(attempt, error) or 0 for attempt in range(1, 40)]
    assert all(low / 2 <= pause <= low for pause, low in zip(pauses, (0.5, 1, 2, 4, 8, 8), strict=False))
    assert max(pauses) <= 8
    assert 17 == retries.pause_s(1, status_error("busy", 429, {"retry-after": "17"}))
    assert retries.pause_s(1, status_error("busy", 429, {"retry-after": "100000"})) is None
    assert retries.pause_s(41, error) is None
    assert retries.pause_s(1, status_error("bad", 400)) is None


def test_a_restart_makes_void_what_was_said_before() -> None:
    tries = 0

    async def attempt() -> Any:
        nonlocal tries
        tries += 1
        yield TextDelta(f"try {tries}")
        if tries < 3:
            raise ProviderError("no", retryable=True)
        yield Finish("stop")

    async def collect() -> list[Delta]:
        return [delta async for delta in retried(attempt, Retries(5, 0.0))]

    kinds = [type(delta) for delta in asyncio.run(collect())]
    assert [TextDelta, Restarted, TextDelta, Restarted, TextDelta, Finish] == kinds
