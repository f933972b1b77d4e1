"""Listeners that turn a run's events into logs, spans and metrics: metadata only, unless content was asked for."""

from __future__ import annotations

import logging
import os
import sys


def logging_runs() -> bool:
    """Whether anything of a run that begins now would be logged."""
    return logging.getLogger("journeyman.run").isEnabledFor(logging.ERROR)


def tracing() -> bool:
    """Whether a tracer provider is configured. Without one, OpenTelemetry is not even imported."""
    if "opentelemetry.trace" not in sys.modules and "OTEL_PYTHON_TRACER_PROVIDER" not in os.environ:
        return False
    from opentelemetry import trace

    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)


def metering() -> bool:
    """The same for a meter provider."""
    if "opentelemetry.metrics" not in sys.modules and "OTEL_PYTHON_METER_PROVIDER" not in os.environ:
        return False
    from opentelemetry import metrics

    # The API has no public name for what stands there before one is configured.
    return type(metrics.get_meter_provider()).__name__ not in ("_ProxyMeterProvider", "NoOpMeterProvider")


def current_span() -> str | None:
    """The current span as the text in which it is handed to other processes; None where there is none."""
    if not tracing():
        return None
    from journeyman.telemetry.spans import current_parent

    return current_parent()
