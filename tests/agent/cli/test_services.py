"""The same runs over the wire protocols of all three services, faults included."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.agent.cli.conftest import S1, Bench
from tests.agent.servers import Call, Reply, Say, ScriptedServer, Think
from tests.agent.servers.server import Protocol
from tests.agent.warm import Finished

SO = Reply(Think("hm"), Say("Here:"), Call("structured_output", {"summary": "Zürich ☂"}, "so"))
SERVICES: list[Protocol] = ["openai", "anthropic", "gemini"]
KEYS = {"openai": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY", "gemini": "GEMINI_API_KEY"}


def run(bench: Bench, service: Protocol, script: list[Reply], *flags: str) -> tuple[Finished, list[dict[str, Any]]]:
    bench.env[KEYS[service]] = "key"
    with ScriptedServer(script, key="key") as server:
        url = ("--provider", service, "--model", "scripted", "--base-url", server.base_url(service))
        finished = bench.command("-p", "x", *url, "--json-schema", json.dumps(S1), "-o", "json", *flags)
    return finished, [received.body for received in server.received]


@pytest.mark.parametrize("service", SERVICES)
def test_a_run_with_everything_in_it(bench: Bench, service: Protocol) -> None:
    """Tools, a bad call and its correction, cut and refused streams, reasoning, usage."""
    bench.write("a.txt", "alpha")
    reads = Call("read_file", {"file_path": "a.txt"}, "r1"), Call("glob", {"pattern": "*"}, "r2")
    bad = Call("write_file", {"file_path": "b", "content": ""}, "w"), Call("structured_output", {"summary": []}, "b")
    script = [
        Reply(Say("First I read."), *reads),
        Reply("cut off in the middle of its words", cut_after=1),
        Reply(*bad),
        Reply(status=429, headers={"retry-after": "0"}),
        Reply("in words"),
        Reply(status=500, headers={"retry-after": "0"}),
        SO,
    ]
    finished, bodies = run(bench, service, script, "-y")
    assert (0, {"summary": "Zürich ☂"}) == (finished.code, finished.result["structured_result"]), finished.stderr
    assert "alpha" in json.dumps(bodies[1])
    assert not (bench.workspace / "b").exists()
    assert 4 == finished.result["num_turns"]
    assert 3 <= [message.get("subtype") for message in finished.messages].count("api_retry")
    assert finished.result["usage"]["input_tokens"] >= 4 * 11
    assert sorted(use["id"] for use in finished.uses()) == sorted(finished.results())


@pytest.mark.parametrize("service", SERVICES)
def test_prose_is_answered_with_a_forced_call(bench: Bench, service: Protocol) -> None:
    finished, bodies = run(bench, service, [Reply("words"), Reply("words"), Reply("words")])
    assert (1, "structured_output_missing") == (finished.code, finished.result["termination_reason"])
    forced = json.dumps([body.get("tool_choice", body.get("toolConfig")) for body in bodies])
    assert forced.count("structured_output") == 1
