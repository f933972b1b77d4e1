"""What doors need of the telemetry: where spans and metrics go, by the environment, and the page of metrics."""

from __future__ import annotations

from journeyman.telemetry.export import configure, prometheus_page
from journeyman.telemetry.logs import JsonFormatter

__all__ = ["JsonFormatter", "configure", "prometheus_page"]
