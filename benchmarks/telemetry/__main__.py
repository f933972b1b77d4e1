"""CPU of a step without telemetry, with spans, and with spans and metrics sent to a collector on the loopback."""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from typing import Any

from journeyman import Agent, Journeyman, ToolLibrary, run, tool
from journeyman.testing import ScriptedModel, call, say
from tests.telemetry.collector import Collector, collecting

MODES = ("off", "spans", "spans and metrics")
STEPS = 10
RUNS = 40
ROUNDS = 5
ARRIVAL_SECONDS = 2.0
DEAREST = 2.5
"""By how many times the CPU of a step may grow with everything on. Spans are not free; off they are."""


@tool(read_only=True, repeatable=True)
def look(at: int) -> str:
    """Look at something."""
    return f"seen {at}"


AGENT = Agent(name="measured", instruction="Look.", tools=[look], max_iterations=STEPS + 1)
MODEL = ScriptedModel([*(call("look", at=number) for number in range(STEPS)), say("done")])


async def _runs(count: int, *, durable: bool) -> float:
    """Seconds of CPU a step."""
    library = ToolLibrary([look])
    if not durable:
        began = time.process_time()
        for _ in range(count):
            await run(AGENT, "go", library=library, model=MODEL)
        return (time.process_time() - began) / (count * (STEPS + 1))
    with tempfile.TemporaryDirectory() as folder:
        async with Journeyman(library=library, model=MODEL, store=f"sqlite:///{folder}/runs.db") as app:
            began = time.process_time()
            for _ in range(count):
                await (await app.start(AGENT, "go")).result()
            return (time.process_time() - began) / (count * (STEPS + 1))


def child(*, durable: bool) -> None:
    """In a process of its own, configured by its environment as a user's would be."""
    from journeyman.telemetry.export import configure

    configure()
    asyncio.run(_runs(5, durable=durable))
    print(asyncio.run(_runs(RUNS, durable=durable)))


def measured(mode: str, collector: Collector, *, durable: bool) -> float:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    if mode != "off":
        environment["OTEL_EXPORTER_OTLP_ENDPOINT"] = collector.url
        environment["OTEL_METRICS_EXPORTER"] = "otlp" if mode == "spans and metrics" else "none"
    command = [sys.executable, "-m", "benchmarks.telemetry", "--child", "durable" if durable else "direct"]
    done = subprocess.run(command, check=True, env=environment, stdout=subprocess.PIPE, text=True)
    return float(done.stdout)


def arrival(collector: Collector) -> float:
    """The longest time between the end of a call and the arrival of its span, under the load of the measurement."""
    return max(span.at - span.ended for span in collector.spans if span.name.startswith("execute_tool"))


def measure() -> dict[str, Any]:
    report: dict[str, Any] = {"cpu_ms_a_step": {}}
    with collecting() as collector:
        for durable in (False, True):
            rounds = [{mode: measured(mode, collector, durable=durable) for mode in MODES} for _ in range(ROUNDS)]
            kind = "durable" if durable else "direct"
            report["cpu_ms_a_step"][kind] = {
                mode: statistics.median(row[mode] for row in rounds) * 1_000 for mode in MODES
            }
            report.setdefault("times", {})[kind] = {
                mode: statistics.median(row[mode] / row["off"] for row in rounds) for mode in MODES[1:]
            }
        report["spans"] = len(collector.spans)
        report["arrival_seconds"] = arrival(collector)
    report["verdicts"] = {
        f"spans arrive within {ARRIVAL_SECONDS:g} s": report["arrival_seconds"] < ARRIVAL_SECONDS,
        f"a durable step with everything on costs ≤ {DEAREST:g} ×": max(report["times"]["durable"].values()) <= DEAREST,
    }
    return report


def text(report: dict[str, Any]) -> str:
    lines = []
    for kind, row in report["cpu_ms_a_step"].items():
        for mode, value in row.items():
            times = report["times"][kind].get(mode)
            lines.append(f"{kind:8} {mode:18} {value:.3f} ms CPU a step" + (f"  × {times:.2f}" if times else ""))
    lines.append(f"{report['spans']:,} spans arrived; a call's at most {report['arrival_seconds']:.2f} s after its end")
    lines += [f"{'pass' if passed else 'FAIL'}  {name}" for name, passed in report["verdicts"].items()]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.telemetry", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    parser.add_argument("--child", choices=("direct", "durable"), help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        child(durable=chosen.child == "durable")
        return 0
    report = measure()
    print(json.dumps(report, indent=1) if chosen.json else text(report))
    return 0 if all(report["verdicts"].values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
