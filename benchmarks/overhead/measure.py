"""The part of a contender's process that all share: warm up, run the workload, take the times, print them as JSON.

Needs only the standard library, for it runs in every contender's environment.
"""

import asyncio
import json
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from benchmarks.overhead.scenarios import HALF_WINDOW, Workload
from benchmarks.overhead.toolbox import Function, toolbox

Run = Callable[[str], Awaitable[object]]
Prepare = Callable[[str, list[Function], Workload], AbstractAsyncContextManager[Run]]
"""Gives, for the server's address, the tools and the workload, what runs one prompt and returns the answer."""

WARM_UP_RUNS = 3


async def batch(run: Run, workload: Workload) -> None:
    """Do all the runs, `at_once` at a time, and check that every one went to its scripted end."""
    remaining = iter(range(workload.runs))
    expected = f"done {workload.turns}"

    async def worker() -> None:
        for _ in remaining:
            answer = await run(workload.script())
            if answer != expected:
                raise SystemExit(f"the run ended with {answer!r} instead of {expected!r}: nothing measured")

    await asyncio.gather(*(worker() for _ in range(workload.at_once)))


def window_costs(marks: list[float], workload: Workload) -> dict[str, float]:
    """Mean CPU milliseconds of one turn around each window's middle, over all runs."""
    runs = [marks[start : start + workload.turns] for start in range(0, len(marks), workload.turns)]
    return {
        f"cpu_ms_at_{turn}": sum(run[turn + HALF_WINDOW] - run[turn - HALF_WINDOW] for run in runs)
        / (len(runs) * 2 * HALF_WINDOW)
        * 1000
        for turn in workload.windows
    }


async def come_back(run: Run, workload: Workload) -> dict[str, float]:
    """After how many seconds a run is back, and whether it went to its end; given up, it is not back."""
    began = time.perf_counter()
    try:
        answer = await asyncio.wait_for(run(workload.script()), workload.patience)
    except TimeoutError:
        return {"back": False, "ended": False, "seconds": time.perf_counter() - began}
    return {"back": True, "ended": answer == f"done {workload.turns}", "seconds": time.perf_counter() - began}


async def measure(prepare: Prepare, base_url: str, workload: Workload) -> dict[str, float]:
    marks: list[float] = []
    functions = toolbox(
        count=workload.tools_offered, marks=marks if workload.windows else None, hangs=workload.tool == "hang"
    )
    async with prepare(base_url, functions, workload) as run:
        if workload.patience is not None:
            return await come_back(run, workload)
        await batch(run, workload.with_runs(WARM_UP_RUNS))
        marks.clear()
        wall, cpu = time.perf_counter(), time.process_time()
        await batch(run, workload)
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    steps = workload.runs * workload.turns
    return {
        "cpu_seconds": cpu,
        "wall_seconds": wall,
        "runs": workload.runs,
        "steps": steps,
        "cpu_ms_per_step": cpu / steps * 1000,
        "wall_ms_per_run": wall / workload.runs * 1000,
        "runs_per_second": workload.runs / wall,
        **window_costs(marks, workload),
    }


def main(prepare: Prepare) -> None:
    """`python -m benchmarks.overhead.contenders.NAME BASE_URL WORKLOADS`, where WORKLOADS is JSON, by name."""
    base_url, workloads = sys.argv[1], json.loads(sys.argv[2])

    async def every() -> dict[str, Any]:
        return {name: await measure(prepare, base_url, Workload(**fields)) for name, fields in workloads.items()}

    print(json.dumps(asyncio.run(every())))
