"""OpenTelemetry: a span for the run and one for each call, events as log records, counts and latencies.

Without an SDK that collects them, all of this is thrown away by the API package itself.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping
from typing import Any, Literal

from dovetail.agent.loop.null_parts import NoTelemetry
from dovetail.agent.protocols import Telemetry
from dovetail.agent.settings import Settings
from dovetail.agent.types import REDACTED_ARGUMENTS, ToolCallEvent
from dovetail.messages import to_json

NAME = "dovetail.agent"
MAX_ATTRIBUTE = 8192


class OpenTelemetry:
    """Tells OpenTelemetry about one run; what the terminal tool was given is never told."""

    def __init__(self, session_id: str, model: str, attributes: Mapping[str, Any] | None = None) -> None:
        import opentelemetry._logs as logs
        import opentelemetry.metrics as metrics
        import opentelemetry.trace as trace

        self._trace = trace
        self._logs = logs
        self._session_id = session_id
        self._tracer = trace.get_tracer(NAME)
        self._logger = logs.get_logger(NAME)
        meter = metrics.get_meter(NAME)
        self._calls = meter.create_counter("dovetail.tool.call.count", description="tool calls")
        self._latency = meter.create_histogram("dovetail.tool.call.latency", unit="ms", description="tool calls")
        more = {"session.id": session_id, "gen_ai.request.model": model, **(attributes or {})}
        self._span = self._tracer.start_span("dovetail.run", attributes=_plain(more))
        self._context = trace.set_span_in_context(self._span)
        self._ended = False

    def event(self, name: str, attributes: Mapping[str, Any]) -> None:
        """Something happened; it is told as a log record inside the run's span."""
        record = self._logs.LogRecord(
            timestamp=time.time_ns(),
            context=self._context,
            severity_number=self._logs.SeverityNumber.INFO,
            event_name=f"dovetail.{name}",
            body=f"dovetail.{name}",
            attributes=_plain({"session.id": self._session_id, **attributes}),
        )
        self._logger.emit(record)

    def tool_call(self, event: ToolCallEvent) -> None:
        """A call finished: an event, a span of its length, one more count."""
        # What went wrong with the terminal tool may quote what it was given.
        error = event.status if event.error and event.arguments == REDACTED_ARGUMENTS else event.error
        attributes = {
            "function_name": event.name,
            "function_args": to_json(dict(event.arguments)),
            "call_id": event.call_id,
            "duration_ms": event.duration_ms,
            "status": event.status,
            "success": event.status in ("ok", "skipped"),
            "decision": event.decision,
            "error": error,
            "tool_type": "mcp" if event.mcp_server else "native",
            "mcp_server_name": event.mcp_server,
        }
        self.event("tool_call", attributes)
        end = time.time_ns()
        start = end - int(event.duration_ms * 1e6)
        span = self._tracer.start_span(
            f"tool {event.name}", self._context, attributes=_plain(attributes), start_time=start
        )
        if error:
            span.set_status(self._trace.StatusCode.ERROR, error[:MAX_ATTRIBUTE])
        span.end(end)
        labels = {"function_name": event.name, "status": event.status, "decision": event.decision}
        self._calls.add(1, labels)
        self._latency.record(event.duration_ms, {"function_name": event.name})

    def end(self, outcome: Literal["ok", "error", "cancelled"], error_type: str = "", message: str = "") -> None:
        """The run is over; only the first end counts."""
        if self._ended:
            return
        self._ended = True
        self._span.set_attributes(_plain({"outcome": outcome, "error.type": error_type}))
        code = self._trace.StatusCode
        if outcome == "ok":
            self._span.set_status(code.OK)
        else:
            self._span.set_status(code.ERROR, message[:MAX_ATTRIBUTE])
        self.event("session_end", {"outcome": outcome, "error_type": error_type})
        self._span.end()


def telemetry_of(settings: Settings, session_id: str, model: str) -> Telemetry:
    """Telemetry as the settings want it; none where the API package is not installed, since nobody can collect it."""
    if settings.telemetry.enabled:
        with contextlib.suppress(ImportError):
            return OpenTelemetry(session_id, model)
    return NoTelemetry()


def _plain(attributes: Mapping[str, Any]) -> dict[str, str | bool | int | float]:
    """Attributes of the kinds that OpenTelemetry takes; what is empty is left out, what is long is cut."""
    plain: dict[str, str | bool | int | float] = {}
    for key, value in attributes.items():
        if value is None or value == "":
            continue
        if not isinstance(value, bool | int | float):
            value = (value if isinstance(value, str) else to_json(value))[:MAX_ATTRIBUTE]
        plain[key] = value
    return plain
