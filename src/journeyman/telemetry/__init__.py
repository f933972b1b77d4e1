"""Listeners that turn a run's events into logs and spans. They carry metadata only, unless content was asked for."""

from __future__ import annotations

import os
import sys


def tracing() -> bool:
    """Whether a tracer provider is configured. Without one, OpenTelemetry is not even imported."""
    if "opentelemetry.trace" not in sys.modules and "OTEL_PYTHON_TRACER_PROVIDER" not in os.environ:
        return False
    from opentelemetry import trace

    return not isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
