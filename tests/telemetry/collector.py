"""A collector on the loopback interface that takes OTLP over HTTP, as a real one does, and remembers what came."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True)
class Arrived:
    """A span, and when it came."""

    name: str
    trace_id: str
    span_id: str
    parent_id: str
    attributes: dict[str, Any]
    ended: float
    at: float


@dataclass
class Collector:
    """What has come so far."""

    url: str = ""
    spans: list[Arrived] = field(default_factory=list)
    metrics: set[str] = field(default_factory=set)
    raw: list[bytes] = field(default_factory=list)

    def named(self, name: str) -> list[Arrived]:
        return [span for span in self.spans if span.name == name]

    def take(self, path: str, body: bytes) -> None:
        self.raw.append(body)
        now = time.time()
        if path == "/v1/traces":
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                for scope in resource.scope_spans:
                    self.spans += [_span(span, now) for span in scope.spans]
        elif path == "/v1/metrics":
            for measured in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                for instruments in measured.scope_metrics:
                    self.metrics |= {metric.name for metric in instruments.metrics}


def _span(span: Any, now: float) -> Arrived:
    attributes = {item.key: getattr(item.value, item.value.WhichOneof("value")) for item in span.attributes}
    return Arrived(
        name=span.name,
        trace_id=span.trace_id.hex(),
        span_id=span.span_id.hex(),
        parent_id=span.parent_span_id.hex(),
        attributes=attributes,
        ended=span.end_time_unix_nano / 1e9,
        at=now,
    )


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.take(self.path, gzip.decompress(body) if self.headers["Content-Encoding"] == "gzip" else body)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    collector.url = f"http://127.0.0.1:{server.server_port}"
    serving = threading.Thread(target=server.serve_forever, daemon=True)
    serving.start()
    try:
        yield collector
    finally:
        server.shutdown()
        serving.join()
        server.server_close()
