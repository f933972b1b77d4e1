"""Do rate limits hold over several worker processes on one PostgreSQL? Measured by what their tools were called.

``python -m benchmarks.rate_limits [--seconds 20] [--processes 2]``

Each process opens the same store by the same configuration file and lets runs call two tools of one category as fast as
they can. Tool, category and principal have limits of their own. Every call is written down with its time; then the most
that was called in any time span is compared with what the limits allow in it: the rate, and its calls at once.
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.postgres import postgres
from journeyman import Agent, Journeyman, Principal, ToolContext, tool
from journeyman.testing import ScriptedModel, call, say, together

LIMITS = {"tool": (3, 1.0), "category": (4, 1.0), "principal": (2, 1.0)}
"""Calls in so many seconds."""
DELAY = 1.0
"""How long after its turn, in seconds, a call may begin on a machine that has much to do. What is measured is when it
begins: calls that were let through one after another may begin together."""
WHO = ("ada", "bob", "eve")
CONFIGURATION = """\
version: 1
store: ${RATE_STORE}
runs: {lease: 10s}
policy: {wait: 20s}
limits: {calls_per_principal: 2/s, iterations: 1000}
categories: {shop: {rate_limit: 4/s}}
tools:
  quick: {import: "benchmarks.rate_limits:quick", rate_limit: 3/s}
  other: {import: "benchmarks.rate_limits:other"}
"""


def _note(name: str, context: ToolContext) -> None:
    who = context.principal.id if context.principal is not None else "-"
    line = f"{time.time():.6f} {name} {who} {os.getpid()}\n"
    file = os.open(os.environ["RATE_LOG"], os.O_WRONLY | os.O_APPEND)
    try:
        os.write(file, line.encode())
    finally:
        os.close(file)


@tool(risk="reversible", idempotent=True, category="shop", repeatable=True)
def quick(context: ToolContext) -> str:
    """Do something quickly. Use when asked."""
    _note("quick", context)
    return "done"


@tool(risk="reversible", idempotent=True, category="shop", repeatable=True)
def other(context: ToolContext) -> str:
    """Do something else. Use when asked."""
    _note("other", context)
    return "done"


def work(configuration: str, seconds: float, variables: dict[str, str]) -> None:
    """One process: runs of three principals that call without a pause."""
    os.environ.update(variables)
    asyncio.run(_work(configuration, seconds))


async def _work(configuration: str, seconds: float) -> None:
    turn = together(call("quick"), call("other"), call("quick"))
    model = ScriptedModel([*[turn] * 900, say("done")])
    async with Journeyman.from_config(configuration, model=model, grace_seconds=1, watch=False) as app:
        agent = Agent(name="worker", instruction="Work.", all_tools=True)
        handles = [await app.start(agent, "Work.", principal=Principal(who)) for who in WHO for _ in range(2)]
        await asyncio.sleep(seconds)
        for handle in handles:
            await handle.cancel()


def measure(url: str, folder: Path, *, processes: int, seconds: float) -> list[tuple[float, str, str, str]]:
    """Every call that was made: when, of which tool, for whom, in which process."""
    file, log = folder / "journeyman.yaml", folder / "calls"
    file.write_text(CONFIGURATION)
    log.touch()
    variables = {"RATE_STORE": url, "RATE_LOG": str(log)}
    context = multiprocessing.get_context("spawn")
    workers = [context.Process(target=work, args=(str(file), seconds, variables)) for _ in range(processes)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(seconds + 120)
    lines = [line.split() for line in log.read_text().splitlines()]
    return sorted((float(when), name, who, pid) for when, name, who, pid in lines)


def most_over(times: list[float], *, calls: int, seconds: float) -> float:
    """The most by which calls exceed what a limit allows, over all time spans: negative where there is room."""
    rate, capacity = calls / seconds, calls
    # For the span from call i to call j: j - i + 1 calls, of which capacity + rate × its length are allowed.
    best, worst = float("-inf"), float("-inf")
    for number, when in enumerate(times):
        best = max(best, rate * when - number)
        worst = max(worst, number + 1 - rate * when + best - capacity)
    return worst


def report(found: list[tuple[float, str, str, str]]) -> dict[str, Any]:
    """For each limit the rate after the burst, and by how many calls it was exceeded at most."""
    groups = {
        "tool": [when for when, name, _, _ in found if name == "quick"],
        "category": [when for when, *_ in found],
        "principal": [when for when, _, who, _ in found if who == "ada"],
    }
    made: dict[str, Any] = {"processes": len({pid for *_, pid in found}), "calls": len(found)}
    for name, times in groups.items():
        calls, seconds = LIMITS[name]
        later = [when for when in times if when > times[0] + (times[-1] - times[0]) / 3]  # the burst is over
        made[name] = {
            "limit": calls / seconds,
            "rate": (len(later) - 1) / (later[-1] - later[0]) if len(later) > 1 else 0.0,
            "over": (over := most_over(times, calls=calls, seconds=seconds)),
            "held": over <= 1 + DELAY * calls / seconds,
        }
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--processes", type=int, default=2)
    given = parser.parse_args()
    with postgres() as server, tempfile.TemporaryDirectory() as folder:
        found = report(measure(server.get_uri(), Path(folder), processes=given.processes, seconds=given.seconds))
    print(f"{found['calls']} calls by {found['processes']} processes in {given.seconds:g} s")
    print("limit        per second   measured   exceeded by at most")
    held = True
    for name in LIMITS:
        row = found[name]
        held = held and row["held"]
        print(f"{name:12} {row['limit']:10.1f} {row['rate']:10.2f} {max(row['over'], 0):10.2f} calls")
    print("the limits hold" if held else "A LIMIT WAS EXCEEDED")
    sys.exit(0 if held else 1)


if __name__ == "__main__":
    main()
