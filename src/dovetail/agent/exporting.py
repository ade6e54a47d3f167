"""OpenTelemetry's own variables (OTEL_...), for a process in which nobody else has set up its SDK."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any

from dovetail.agent.threads import in_daemon_thread
from dovetail.extras import install

_SIGNALS = ("TRACES", "METRICS", "LOGS")
_OTLP = {"grpc": "otlp_proto_grpc", "http/protobuf": "otlp_proto_http"}


def export(warn: Callable[[str], None], environ: Mapping[str, str] = os.environ) -> Callable[[], None]:
    """Send telemetry where the variables say; what is returned brings out what is still held back."""
    wanted = {signal: names for signal in _SIGNALS if (names := _exporters(signal, environ))}
    if not wanted or environ.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return lambda: None
    closings: list[Callable[[], None]] = []
    try:
        for signal, names in wanted.items():
            made = [exporter for name in names if (exporter := _loaded(signal, name, environ, warn)) is not None]
            closings += _provide(signal, made) if made else []
    except ImportError:
        warn(f"Warning: OTEL variables are set, but the SDK is not installed: {install('telemetry')}")

    def close() -> None:
        for closing in closings:
            with contextlib.suppress(Exception):  # nobody is left to care
                closing()

    return close


async def close_in_time(close: Callable[[], None]) -> None:
    """Bring telemetry out, in a thread that holds nobody."""
    await in_daemon_thread(close)


def _exporters(signal: str, environ: Mapping[str, str]) -> list[str]:
    """The names of the exporters of a signal; with an address of a collector, that is the one of its protocol."""
    named = environ.get(f"OTEL_{signal}_EXPORTER", "").strip()
    endpoint = environ.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT") or environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    names = named or ("otlp" if endpoint else "")
    return [name for name in map(str.strip, names.split(",")) if name not in ("", "none")]


def _loaded(signal: str, name: str, environ: Mapping[str, str], warn: Callable[[str], None]) -> Any:
    """An exporter by the name under which its package registers it; None where there is no such package."""
    general = environ.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf")
    protocol = environ.get(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL", general)
    registered = _OTLP.get(protocol, "otlp_proto_http") if name == "otlp" else name
    entry = next(iter(entry_points(group=f"opentelemetry_{signal.lower()}_exporter", name=registered)), None)
    if entry is None:
        warn(f"Warning: the exporter {name!r} of OTEL_{signal}_EXPORTER is not installed: {install('telemetry')}")
        return None
    # Standard output belongs to the answer.
    return entry.load()(out=sys.stderr) if name == "console" else entry.load()()


def _provide(signal: str, exporters: list[Any]) -> Iterator[Callable[[], None]]:
    """Make the exporters those of the process, unless somebody was here before; yields how they are closed."""
    from opentelemetry.sdk.resources import Resource

    resource = Resource.create({} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "dovetail"})
    match signal:
        case "TRACES":
            import opentelemetry.trace as trace
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor

            if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
                tracers = TracerProvider(resource=resource, shutdown_on_exit=False)
                for exporter in exporters:
                    tracers.add_span_processor(BatchSpanProcessor(exporter))
                trace.set_tracer_provider(tracers)
                yield tracers.shutdown
        case "METRICS":
            import opentelemetry.metrics as metrics
            from opentelemetry.sdk.metrics import MeterProvider
            from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

            if not isinstance(metrics.get_meter_provider(), MeterProvider):
                readers = [PeriodicExportingMetricReader(exporter) for exporter in exporters]
                meters = MeterProvider(readers, resource=resource, shutdown_on_exit=False)
                metrics.set_meter_provider(meters)
                yield meters.shutdown
        case _:
            import opentelemetry._logs as logs
            from opentelemetry.sdk._logs import LoggerProvider
            from opentelemetry.sdk._logs.export import BatchLogRecordProcessor

            if not isinstance(logs.get_logger_provider(), LoggerProvider):
                loggers = LoggerProvider(resource=resource, shutdown_on_exit=False)
                for exporter in exporters:
                    loggers.add_log_record_processor(BatchLogRecordProcessor(exporter))
                logs.set_logger_provider(loggers)
                yield loggers.shutdown
