"""What grounding costs: CPU of the same scripted runs with and without it, in turn, in one process."""

import asyncio
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import journeyman.agent.run as loop
from journeyman import Agent, Limits, RiskLevel, ToolLibrary, run, tool
from journeyman.testing import ScriptedModel, call, say

ROUNDS, RUNS = 15, 20


def library(size: int) -> ToolLibrary:
    """One tool that gives a record of about so many characters."""

    @tool(risk=RiskLevel.REVERSIBLE, read_only=True, repeatable=True)
    def lookup_order(order_id: str, verbose: bool = False) -> dict[str, Any]:
        """Look up an order."""
        number = int(order_id.removeprefix("W-"))
        lines = [{"item_id": f"{number}{at:04}", "name": "kettle", "price": 12.5 + at} for at in range(size // 52)]
        return {"order_id": order_id, "next": f"W-{number + 1}", "status": "shipped", "lines": lines}

    return ToolLibrary([lookup_order])


@contextmanager
def without() -> Iterator[None]:
    """Runs that ask nobody where arguments came from."""
    kept = loop.Ledger
    loop.Ledger = lambda *_, **__: None  # type: ignore[assignment,misc]  # a run without grounding, which users cannot have
    try:
        yield
    finally:
        loop.Ledger = kept  # type: ignore[misc]


async def _runs(tools: ToolLibrary, steps: int, runs: int) -> float:
    agent = Agent(name="support", instruction="Help with orders.", tools=tools.specifications())
    turns = [call("lookup_order", order_id=f"W-{1000 + step}") for step in range(steps)]
    model = ScriptedModel([*turns, say("done")])
    begun = time.process_time()
    for _ in range(runs):
        response = await run(
            agent, "Where is order W-1000?", library=tools, model=model, limits=Limits(iterations=None)
        )
        assert response.total_iterations == steps + 1
    return time.process_time() - begun


def ratio(*, steps: int, size: int, rounds: int = ROUNDS, runs: int = RUNS) -> tuple[float, float]:
    """CPU with grounding as a multiple of CPU without (the median over rounds), and milliseconds a step with it."""

    async def every() -> tuple[float, float]:
        tools = library(size)
        await _runs(tools, steps, 2)
        ratios, spent = [], []
        for _ in range(rounds):
            with without():
                off = await _runs(tools, steps, runs)
            on = await _runs(tools, steps, runs)
            ratios.append(on / off)
            spent.append(on / runs / (steps + 1) * 1000)
        return statistics.median(ratios), statistics.median(spent)

    return asyncio.run(every())
