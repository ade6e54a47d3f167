"""Telemetry of a run: events, spans and counts, and nothing of the answer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import opentelemetry._logs as logs
import opentelemetry.metrics as metrics
import opentelemetry.trace as trace
import pytest
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from dovetail.agent.loop.null_parts import NoTelemetry
from dovetail.agent.protocols import Telemetry
from dovetail.agent.settings import Settings, TelemetrySettings
from dovetail.agent.telemetry import MAX_ATTRIBUTE, OpenTelemetry, telemetry_of
from dovetail.agent.types import REDACTED_ARGUMENTS, ToolCallEvent


@dataclass
class Collected:
    spans: InMemorySpanExporter
    logs: InMemoryLogRecordExporter
    metrics: InMemoryMetricReader

    def text(self) -> str:
        spans = "".join(span.to_json() for span in self.spans.get_finished_spans())
        records = "".join(f"{one.log_record.body}{one.log_record.attributes}" for one in self.logs.get_finished_logs())
        return spans + records + str(self.metrics.get_metrics_data())


@pytest.fixture
def collected(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collected]:
    """Everything that telemetry says, gathered by the SDK in place of the global providers."""
    found = Collected(InMemorySpanExporter(), InMemoryLogRecordExporter(), InMemoryMetricReader())
    tracers, loggers, meters = TracerProvider(), LoggerProvider(), MeterProvider([found.metrics])
    tracers.add_span_processor(SimpleSpanProcessor(found.spans))
    loggers.add_log_record_processor(SimpleLogRecordProcessor(found.logs))
    monkeypatch.setattr(trace, "get_tracer", tracers.get_tracer)
    monkeypatch.setattr(logs, "get_logger", loggers.get_logger)
    monkeypatch.setattr(metrics, "get_meter", meters.get_meter)
    yield found
    meters.shutdown()


def call(**more: Any) -> ToolCallEvent:
    return ToolCallEvent(
        **{"name": "read_file", "call_id": "c1", "arguments": {"a": 1}, "duration_ms": 5.0, "status": "ok"} | more
    )


def test_a_call_is_an_event_a_span_and_a_count(collected: Collected) -> None:
    telemetry: Telemetry = OpenTelemetry("S", "m")
    telemetry.tool_call(call(mcp_server="srv"))
    telemetry.tool_call(call(status="error", error="it broke", decision="allow"))
    telemetry.end("ok")
    first, second, end = (one.log_record for one in collected.logs.get_finished_logs())
    assert ("dovetail.tool_call", "dovetail.session_end") == (first.event_name, end.event_name)
    assert ("read_file", '{"a": 1}', "c1", "ok", True, "mcp", "srv") == tuple(
        first.attributes[key]
        for key in ("function_name", "function_args", "call_id", "status", "success", "tool_type", "mcp_server_name")
    )
    assert "it broke" == second.attributes["error"]
    tool, failed, run = collected.spans.get_finished_spans()
    assert ("tool read_file", "dovetail.run") == (tool.name, run.name)
    assert run.context.span_id == tool.parent.span_id == failed.parent.span_id
    assert 5_000_000 == tool.end_time - tool.start_time
    assert first.span_id == run.context.span_id
    points = collected.metrics.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics[0].data.data_points
    assert 2 == sum(point.value for point in points)


SECRET = "zanzibar-payload"


def test_nothing_of_the_answer_is_told(collected: Collected) -> None:
    telemetry = OpenTelemetry("S", "m")
    for status, error in (("ok", ""), ("invalid", f"params/k: {SECRET!r} is wrong"), ("denied", f"hook: {SECRET}")):
        telemetry.tool_call(call(name="structured_output", arguments=REDACTED_ARGUMENTS, status=status, error=error))
    telemetry.end("error", "structured_output_missing", "model did not produce structured output")
    text = collected.text()
    assert SECRET not in text
    assert "structured_output payload (see stdout result)" in text
    records = [one.log_record.attributes for one in collected.logs.get_finished_logs()][:3]
    assert [5.0] * 3 == [record["duration_ms"] for record in records]
    assert ["ok", "invalid", "denied"] == [record["status"] for record in records]


ENDINGS = [
    ("ok", "", "", trace.StatusCode.OK),
    ("error", "loop_detected", "again and again", trace.StatusCode.ERROR),
    ("cancelled", "", "", trace.StatusCode.ERROR),
]


@pytest.mark.parametrize(("outcome", "error_type", "message", "code"), ENDINGS)
def test_the_end_of_a_run_is_the_end_of_its_span(
    collected: Collected, outcome: Any, error_type: str, message: str, code: trace.StatusCode
) -> None:
    telemetry = OpenTelemetry("S", "m")
    telemetry.end(outcome, error_type, message)
    telemetry.end("ok")
    (span,) = collected.spans.get_finished_spans()
    assert (outcome, code) == (span.attributes["outcome"], span.status.status_code)
    assert ("S", "m") == (span.attributes["session.id"], span.attributes["gen_ai.request.model"])


def test_attributes_are_plain_and_bounded(collected: Collected) -> None:
    telemetry = OpenTelemetry("S", "m")
    telemetry.event("api_retry", {"reason": "x" * 100_000, "list": [1], "none": None, "flag": True})
    attributes = collected.logs.get_finished_logs()[0].log_record.attributes
    assert MAX_ATTRIBUTE == len(attributes["reason"])
    assert ("[1]", True) == (attributes["list"], attributes["flag"])
    assert "none" not in attributes


def test_settings_and_the_installation_decide_whether_anything_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(telemetry_of(Settings(), "S", "m"), OpenTelemetry)
    off = Settings(telemetry=TelemetrySettings(enabled=False))
    assert isinstance(telemetry_of(off, "S", "m"), NoTelemetry)
    monkeypatch.setitem(sys.modules, "opentelemetry.trace", None)
    assert isinstance(telemetry_of(Settings(), "S", "m"), NoTelemetry)
