"""Starting the processes: the server for the length of the benchmark, a contender for each measurement."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from benchmarks.overhead.environments import ROOT, python_of
from benchmarks.overhead.scenarios import Contender, Workload

LONGEST_MEASUREMENT_SECONDS = 600

Figures = dict[str, dict[str, float]]
"""Workload's name → metric → figure."""


@contextmanager
def serving() -> Iterator[str]:
    """The scripted server's base address. It shares the floor's environment, which has what it needs."""
    command = [python_of("floor"), "-m", "benchmarks.overhead.server"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            port = process.stdout.readline().strip()
            if not port:
                raise SystemExit("the scripted server did not start; its error is printed above")
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.terminate()


def contend(contender: Contender, base_url: str, workloads: dict[str, Workload]) -> Figures:
    """Run one contender on the workloads in a process of its own."""
    fields: dict[str, Any] = {name: asdict(workload) for name, workload in workloads.items()}
    command = [python_of(contender), "-m", f"benchmarks.overhead.contenders.{contender}", base_url, json.dumps(fields)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=LONGEST_MEASUREMENT_SECONDS, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"{contender!r} failed on {list(workloads)}:\n{done.stderr[-3000:]}")
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures
