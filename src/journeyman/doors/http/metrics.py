"""Numbers about the service in Prometheus' text format. Names and counts only."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

BOUNDS = (0.005, 0.025, 0.1, 0.5, 2.5, 10.0)


class Metrics:
    """What this process has counted since it began."""

    def __init__(self) -> None:
        self.streams = 0
        """Event streams that are open."""
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: dict[str, list[int]] = defaultdict(lambda: [0] * (len(BOUNDS) + 1))
        self._sums: dict[str, float] = defaultdict(float)

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        self._requests[method, route, status] += 1
        place = next((number for number, bound in enumerate(BOUNDS) if seconds <= bound), len(BOUNDS))
        self._seconds[route][place] += 1
        self._sums[route] += seconds

    @contextmanager
    def stream(self) -> Iterator[None]:
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1

    def text(self, *, gauges: Mapping[str, float], tools: Iterable[tuple[str, int, int]]) -> str:
        lines = ["# TYPE journeyman_http_requests_total counter"]
        for (method, route, status), count in sorted(self._requests.items()):
            labels = f'method="{_quoted(method)}",route="{_quoted(route)}",status="{status}"'
            lines.append(f"journeyman_http_requests_total{{{labels}}} {count}")
        lines.append("# TYPE journeyman_http_request_seconds histogram")
        for route, counts in sorted(self._seconds.items()):
            total = 0
            for bound, count in zip((*map(str, BOUNDS), "+Inf"), counts, strict=True):
                total += count
                lines.append(f'journeyman_http_request_seconds_bucket{{route="{_quoted(route)}",le="{bound}"}} {total}')
            lines.append(f'journeyman_http_request_seconds_sum{{route="{_quoted(route)}"}} {self._sums[route]:.6f}')
            lines.append(f'journeyman_http_request_seconds_count{{route="{_quoted(route)}"}} {total}')
        lines.append("# TYPE journeyman_tool_calls_total counter")
        for name, successes, failures in tools:
            for outcome, count in (("success", successes), ("failure", failures)):
                lines.append(f'journeyman_tool_calls_total{{tool="{_quoted(name)}",outcome="{outcome}"}} {count}')
        for name, value in {"event_streams": float(self.streams), **gauges}.items():
            lines += [f"# TYPE journeyman_{name} gauge", f"journeyman_{name} {value:g}"]
        return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
