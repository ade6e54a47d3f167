"""Properties of whole runs: random schemas, random models, and what must hold whatever they do."""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import opentelemetry._logs as logs
import opentelemetry.metrics as metrics
import opentelemetry.trace as trace
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from dovetail.agent.contract import make_contract
from dovetail.agent.exit_reasons import KINDS
from dovetail.agent.loop import Limits
from dovetail.agent.loop.null_parts import NoHooks
from dovetail.agent.protocols import ToolContext
from dovetail.agent.recording import Sessions
from dovetail.agent.telemetry import OpenTelemetry
from dovetail.agent.types import HookDecision, Request, ToolOutput, ToolUse
from tests.agent.scripted import ScriptedProvider, make_run, results, uses
from tests.agent.servers import Call, Reply, Say, Think

SECRETS = st.integers(0, 10**9).map(lambda number: f"secret-{number}-value")


class Collected:
    """Everything that telemetry and logs say."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
        self._spans, self._records = InMemorySpanExporter(), InMemoryLogRecordExporter()
        self._reader, self._caplog = InMemoryMetricReader(), caplog
        tracers, loggers, meters = TracerProvider(), LoggerProvider(), MeterProvider([self._reader])
        tracers.add_span_processor(SimpleSpanProcessor(self._spans))
        loggers.add_log_record_processor(SimpleLogRecordProcessor(self._records))
        monkeypatch.setattr(trace, "get_tracer", tracers.get_tracer)
        monkeypatch.setattr(logs, "get_logger", loggers.get_logger)
        monkeypatch.setattr(metrics, "get_meter", meters.get_meter)
        self._meters = meters

    def text(self) -> str:
        spans = "".join(span.to_json() for span in self._spans.get_finished_spans())
        records = "".join(
            f"{one.log_record.body}{one.log_record.attributes}" for one in self._records.get_finished_logs()
        )
        return spans + records + str(self._reader.get_metrics_data()) + self._caplog.text

    def clear(self) -> None:
        self._spans.clear()
        self._records.clear()
        self._caplog.clear()


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Iterator[Collected]:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.INFO, "asyncio")
    found = Collected(monkeypatch, caplog)
    yield found
    found._meters.shutdown()


class Side:
    name = "side"
    description = "does something"
    parameters: Mapping[str, Any] = {"type": "object"}
    read_only = False
    mcp_server = ""

    async def run(self, args: Mapping[str, Any], context: ToolContext) -> ToolOutput:
        await asyncio.sleep(0)
        if args.get("fail"):
            raise RuntimeError("it broke")
        return ToolOutput("done")


class Moods(NoHooks):
    """Hooks that block now and then, and quote what they saw."""

    def __init__(self, moods: list[int]) -> None:
        self._moods = moods

    def _decide(self, use: ToolUse, args: Mapping[str, Any]) -> HookDecision:
        mood = self._moods.pop() if self._moods else 0
        return HookDecision(blocked=mood == 1, reason=f"I saw {json.dumps(dict(args))}", context="noted" * (mood == 2))

    async def pre(self, use: ToolUse, args: Mapping[str, Any]) -> HookDecision:
        return self._decide(use, args)

    async def post(self, use: ToolUse, args: Mapping[str, Any], output: ToolOutput) -> HookDecision:
        return self._decide(use, args)


LEAVES: Any = st.sampled_from([{"type": "string"}, {"type": "integer"}, {"type": "boolean"}, {"enum": ["a", 1]}, {}])
PROPERTIES: Any = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.builds(lambda s: {"type": "array", "items": s, "maxItems": 2}, inner),
        st.builds(lambda s, t: {"anyOf": [s, t]}, inner, inner),
        st.builds(lambda s: {"type": "object", "properties": {"k": s}, "additionalProperties": False}, inner),
    ),
    max_leaves=4,
)
SCHEMAS: Any = st.builds(
    lambda properties, required, closed: {
        "type": "object",
        "properties": properties,
        "required": sorted(properties)[:required],
        **({"additionalProperties": False} if closed else {}),
    },
    st.dictionaries(st.sampled_from("abc"), PROPERTIES, max_size=3),
    st.integers(0, 3),
    st.booleans(),
)
VALUES: Any = st.recursive(
    SECRETS | st.sampled_from(["3", "true", 1, True, None, "a"]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abck"), inner, max_size=2),
    max_leaves=3,
)
ARGUMENTS: Any = st.dictionaries(st.sampled_from("abcd"), VALUES, max_size=4)
IDS: Any = st.sampled_from(["", "", "", "one", "two"])
BLOCKS: Any = st.one_of(
    st.builds(Say, st.sampled_from(["words", "more words", ""])),
    st.builds(Think, st.just("hm")),
    st.builds(lambda args, id: Call("structured_output", args, id), ARGUMENTS, IDS),
    st.builds(lambda text: Call("structured_output", text), SECRETS.map(lambda secret: f'{{"a": "{secret}')),
    st.builds(lambda fail, id: Call("side", {"fail": fail}, id), st.booleans(), IDS),
    st.just(Call("unknown", {})),
)
REPLIES: Any = st.builds(
    lambda blocks, fault: Reply(*blocks, **fault),
    st.lists(BLOCKS, max_size=4),
    st.sampled_from([{}, {}, {}, {}, {"cut_after": 1}, {"error_after": 2}, {"status": 500}, {"finish": "length"}])
    | SECRETS.map(lambda secret: {"status": 400, "message": f"you sent {secret}"}),
)


def secrets_in(value: Any) -> set[str]:
    """The payload values of a call that nobody may keep."""
    text = value if isinstance(value, str) else json.dumps(value)
    return {word for word in text.replace("\\", '"').split('"') if word.startswith("secret-")}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow], max_examples=100)
@given(schema=SCHEMAS, replies=st.lists(REPLIES, min_size=1, max_size=6), moods=st.lists(st.integers(0, 4), max_size=6))
def test_whatever_the_model_does(
    collected: Collected, schema: dict[str, Any], replies: list[Reply], moods: list[int]
) -> None:
    """Scenarios 83, 109, 112 and 118 for any model: one result, an answer that fits, no payload where it may not be."""
    collected.clear()
    contract = make_contract(schema)

    def script(request: Request, serial: int) -> Reply:
        return replies[serial] if serial < len(replies) else Reply("no more")

    provider = ScriptedProvider(script)
    with tempfile.TemporaryDirectory() as folder:
        recorder = Sessions(Path("/"), Path(folder)).new(redacts=True)
        telemetry = OpenTelemetry(recorder.session_id, "m")
        limits = Limits(max_turns=8, max_structured_retries=3)
        parts = {"recorder": recorder, "telemetry": telemetry, "hooks": Moods(list(moods))}
        run = make_run(provider, contract, [Side()], limits, **parts)
        ending = asyncio.run(run.execute())
        recorder.close()
        transcript = recorder.path.read_text()
    result = run.messages[-1]
    assert ["result"] == [message["type"] for message in run.messages if message["type"] == "result"]
    assert (ending.kind.exit_code == 0) == (not result["is_error"]) == ("structured_result" in result)
    assert result["termination_reason"] in KINDS
    if not result["is_error"]:
        assert json.loads(result["result"]) == result["structured_result"]
        for validator in (jsonschema.Draft7Validator, jsonschema.Draft202012Validator):
            validator(schema).validate(json.loads(result["result"]))
    assert uses(run) == list(results(run))
    kept = transcript + collected.text() + json.dumps(result["permission_denials"])
    sent = [block for reply in replies for block in reply.blocks if isinstance(block, Call)]
    for call in sent:
        assert not {secret for secret in secrets_in(call.arguments) if secret in kept}
    quoted = [reply.message.removeprefix("you sent ") for reply in replies if reply.status == 400]
    assert not [secret for secret in quoted if secret in transcript + collected.text()]
    for line in transcript.splitlines():
        json.loads(line)


def test_telemetry_tells_of_the_terminal_call_without_its_payload(collected: Collected) -> None:
    """Scenarios 112 and 118."""
    provider = ScriptedProvider([Reply(Call("structured_output", {"a": "secret-1-value"}, "so"))])
    run = make_run(provider, make_contract({}), [Side()], telemetry=OpenTelemetry("S", "m"))
    assert "structured_output" == asyncio.run(run.execute()).reason
    told = collected.text()
    for words in (
        "structured_output payload (see stdout result)",
        "duration_ms",
        "'decision': 'allow'",
        "'status': 'ok'",
    ):
        assert words in told
    assert "secret-1-value" not in told
