"""What the benchmark prints: a table for people, one JSON document for programs."""

import os
import platform
from dataclasses import asdict
from statistics import median
from typing import Any

from benchmarks.overhead.scenarios import Scenario
from benchmarks.overhead.targets import Repetition, Verdict

Measured = dict[str, list[Repetition]]
"""Scenario's name → its repetitions."""

SHOWN = {
    "growth": {"cpu_ms_at_10": "CPU ms at step 10", "cpu_ms_at_200": "CPU ms at step 200"},
    "throughput": {"runs_per_second": "runs/s", "cpu_ms_per_step": "CPU ms a step"},
    "parallel_async": {"wall_ms_per_run": "wall ms a run"},
    "parallel_sync": {"wall_ms_per_run": "wall ms a run"},
    "hang": {"ended": "went to its end", "seconds": "seconds waited"},
}
USUALLY_SHOWN = {"cpu_ms_per_step": "CPU ms a step"}


def middle(repetitions: list[Repetition], contender: Any, workload: str, metric: str) -> float:
    return median(repetition[contender][workload][metric] for repetition in repetitions)


def table(scenarios: list[Scenario], measured: Measured, verdicts: list[Verdict]) -> str:
    lines = []
    for scenario in scenarios:
        repetitions = measured[scenario.name]
        lines += ["", f"{scenario.name}: {scenario.title}"]
        for workload in scenario.workloads:
            for metric, label in SHOWN.get(scenario.name, USUALLY_SHOWN).items():
                name = f"{label} [{workload}]" if len(scenario.workloads) > 1 else label
                cells = "".join(
                    f"  {contender} {middle(repetitions, contender, workload, metric):.3f}"
                    for contender in scenario.contenders
                    if contender in repetitions[0]
                )
                lines.append(f"  {name:24}{cells}")
        for verdict in verdicts:
            if verdict.scenario == scenario.name:
                spread = f"{min(verdict.ratios):.2f}–{max(verdict.ratios):.2f}"
                word = "pass" if verdict.passed else "FAIL"
                bound = f"target {verdict.side} {verdict.bound:g}"
                lines.append(f"  {word}  {verdict.says}: {verdict.median:.2f} ({spread}; {bound})")
    return "\n".join(lines[1:])


def document(scenarios: list[Scenario], measured: Measured, verdicts: list[Verdict]) -> dict[str, Any]:
    return {
        "machine": {
            "python": platform.python_version(),
            "system": platform.system(),
            "architecture": platform.machine(),
            "cores": os.cpu_count(),
        },
        "scenarios": {
            scenario.name: {
                "title": scenario.title,
                "workloads": {name: asdict(workload) for name, workload in scenario.workloads.items()},
                "repetitions": measured[scenario.name],
            }
            for scenario in scenarios
        },
        "targets": [asdict(verdict) for verdict in verdicts],
        "passed": all(verdict.passed for verdict in verdicts),
    }
