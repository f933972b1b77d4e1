"""What grounding costs: CPU of the same runs with and without it, in turn, in one process."""

import asyncio
import logging
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from benchmarks.overhead.contenders.journeyman import prepare
from benchmarks.overhead.processes import serving
from benchmarks.overhead.scenarios import Workload
from benchmarks.overhead.toolbox import toolbox
from journeyman import Agent, Limits, RiskLevel, ToolLibrary, run, tool
from journeyman.agent import run as loop
from journeyman.testing import ScriptedModel, call, say

ROUNDS = 60


@contextmanager
def without() -> Iterator[None]:
    """Runs that ask nobody where arguments came from, which users cannot have."""
    kept = vars(loop)["Ledger"]
    vars(loop)["Ledger"] = lambda *_, **__: None
    try:
        yield
    finally:
        vars(loop)["Ledger"] = kept


async def alternate(once: Callable[[], Awaitable[object]], *, rounds: int) -> tuple[float, float]:
    """CPU seconds of one go without and with grounding: medians over rounds of both, one right after the other."""
    spent: dict[bool, list[float]] = {False: [], True: []}
    for number in range(rounds + 2):
        for grounded in (number % 2 == 0, number % 2 == 1):
            begun = time.process_time()
            if grounded:
                await once()
            else:
                with without():
                    await once()
            if number > 1:  # the first are to warm up
                spent[grounded].append(time.process_time() - begun)
    return statistics.median(spent[False]), statistics.median(spent[True])


async def over_http(*, rounds: int) -> tuple[float, float]:
    """A step as `benchmarks.overhead` counts it: a model's answer over HTTP and the call of a small tool."""
    logging.basicConfig(level=logging.INFO, handlers=[logging.NullHandler()])
    workload = Workload(runs=1)
    with serving() as base_url:
        async with prepare(base_url, toolbox(count=workload.tools_offered), workload) as one:

            async def several() -> None:
                for _ in range(5):
                    await one(workload.script())

            return await alternate(several, rounds=rounds)


def orders(size: int) -> ToolLibrary:
    """One tool that gives a record of about so many characters."""

    @tool(risk=RiskLevel.REVERSIBLE, read_only=True)
    async def lookup_order(order_id: str, verbose: bool = False) -> dict[str, Any]:
        """Look up an order."""
        number = int(order_id.removeprefix("W-"))
        lines = [{"item_id": f"{number}{at:04}", "name": "kettle", "price": 12.5 + at} for at in range(size // 52)]
        return {"order_id": order_id, "next": f"W-{number + 1}", "status": "shipped", "lines": lines}

    return ToolLibrary([lookup_order])


async def scripted(*, steps: int, size: int, runs: int, rounds: int) -> tuple[float, float]:
    """Runs of many or large results, each with an identifier that the next call takes from it; without any network."""
    library = orders(size)
    agent = Agent(name="support", instruction="Help with orders.", tools=library.specifications())
    model = ScriptedModel([*(call("lookup_order", order_id=f"W-{1000 + step}") for step in range(steps)), say("done")])
    limits = Limits(iterations=None)

    async def several() -> None:
        for _ in range(runs):
            response = await run(agent, "Where is order W-1000?", library=library, model=model, limits=limits)
            assert response.total_iterations == steps + 1
            assert not any(record.ungrounded for record in response.tool_calls)

    return await alternate(several, rounds=rounds)


def ratios(*, rounds: int = ROUNDS) -> dict[str, float]:
    """CPU with grounding as a multiple of CPU without, by what the runs are like."""
    measured = {
        "a step over HTTP": asyncio.run(over_http(rounds=rounds)),
        "2 KB results": asyncio.run(scripted(steps=10, size=2_000, runs=3, rounds=rounds)),
        "16 KB results": asyncio.run(scripted(steps=10, size=16_000, runs=1, rounds=rounds)),
        "200 steps": asyncio.run(scripted(steps=200, size=200, runs=1, rounds=max(5, rounds // 6))),
    }
    return {name: on / off for name, (off, on) in measured.items()}
