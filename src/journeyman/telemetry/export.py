"""Where spans and metrics go: to an OTLP collector, by OpenTelemetry's own environment variables; to a text page."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

logger = logging.getLogger("journeyman.telemetry")

ENDPOINTS = (
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
)
SPANS_WAIT_MS = 1_000
"""How long spans are collected before they are sent, unless OTEL_BSP_SCHEDULE_DELAY says so."""
EXPORT_SECONDS = 3.0
"""How long sending is tried, unless OTEL_EXPORTER_OTLP_TIMEOUT says so: a program that ends waits for it."""
NEEDS = ("opentelemetry.sdk", "opentelemetry.exporter.otlp.proto.http")
PAGE_NEEDS = ("opentelemetry.sdk", "opentelemetry.exporter.prometheus", "prometheus_client")


def configure(environment: Mapping[str, str] | None = None) -> bool:
    """Send spans and metrics to the collector that the environment names; whether it names one.

    For programs that have configured nothing themselves. Needs the extra ``otel``; without it a warning says so.
    """
    given = os.environ if environment is None else environment
    wanted = any(given.get(name) for name in ENDPOINTS) and given.get("OTEL_SDK_DISABLED", "").lower() != "true"
    if not wanted:
        return False
    if not _installed(NEEDS):
        logger.warning("an OTLP endpoint is set, and nothing is sent to it: run pip install 'journeyman[otel]'")
        return False
    if given.get("OTEL_EXPORTER_OTLP_PROTOCOL", "http/protobuf") != "http/protobuf":
        logger.warning("OTEL_EXPORTER_OTLP_PROTOCOL: only 'http/protobuf' is spoken here; it is used")
    _send_spans(given)
    _send_metrics(given)
    return True


def _installed(modules: tuple[str, ...]) -> bool:
    try:
        return all(find_spec(name) is not None for name in modules)
    except ModuleNotFoundError:  # the package above it is not there
        return False


def _send_spans(given: Mapping[str, str]) -> None:
    from opentelemetry import trace

    from journeyman.telemetry import tracing

    if given.get("OTEL_TRACES_EXPORTER", "otlp") != "otlp" or tracing():
        return
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    provider = TracerProvider(resource=_resource(given))
    delay = None if "OTEL_BSP_SCHEDULE_DELAY" in given else SPANS_WAIT_MS  # None: the SDK reads it
    provider.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(timeout=_seconds(given, "TRACES")), schedule_delay_millis=delay)
    )
    trace.set_tracer_provider(provider)


def _send_metrics(given: Mapping[str, str]) -> None:
    from journeyman.telemetry import metering

    if given.get("OTEL_METRICS_EXPORTER", "otlp") != "otlp" or metering():
        return
    from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
    from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader

    readers: list[Any] = [PeriodicExportingMetricReader(OTLPMetricExporter(timeout=_seconds(given, "METRICS")))]
    if _installed(PAGE_NEEDS):
        readers.append(_page_reader())
    _meter(readers, given)


def _seconds(given: Mapping[str, str], kind: str) -> float | None:
    given_by = any(name in given for name in ("OTEL_EXPORTER_OTLP_TIMEOUT", f"OTEL_EXPORTER_OTLP_{kind}_TIMEOUT"))
    return None if given_by else EXPORT_SECONDS  # None: the exporter reads it


def _resource(given: Mapping[str, str]) -> Any:
    from opentelemetry.sdk.resources import Resource

    # OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES win: the SDK reads them itself.
    named = "OTEL_SERVICE_NAME" in given or "service.name=" in given.get("OTEL_RESOURCE_ATTRIBUTES", "")
    return Resource.create({} if named else {"service.name": "journeyman"})


def _meter(readers: list[Any], given: Mapping[str, str]) -> None:
    from opentelemetry import metrics
    from opentelemetry.sdk.metrics import MeterProvider

    metrics.set_meter_provider(MeterProvider(readers, resource=_resource(given)))


_page: Callable[[], str] | None = None


def _page_reader() -> Any:
    global _page
    exporter, client = import_module("opentelemetry.exporter.prometheus"), import_module("prometheus_client")

    def page() -> str:
        return str(client.generate_latest(client.REGISTRY).decode())

    _page = page
    return exporter.PrometheusMetricReader()


def prometheus_page() -> Callable[[], str] | None:
    """The page with this process's instruments, in Prometheus' text format; None where nothing can make it.

    Where no meter provider is configured it configures one, so it is called before the first run. A host that has
    configured its own sends the same instruments wherever it likes.
    """
    from journeyman.telemetry import metering

    if _page is None and _installed(PAGE_NEEDS) and not metering():
        _meter([_page_reader()], os.environ)
    return _page
