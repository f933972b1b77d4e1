"""Journeyman with durable runs: the same pipeline through the app, every fact in a SQLite file."""

import logging
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from benchmarks.overhead.measure import Run, main
from benchmarks.overhead.scenarios import Workload
from benchmarks.overhead.toolbox import Function
from journeyman import Agent, Journeyman, Limits, Policy, RiskLevel, ToolLibrary, tool
from journeyman.models.openai import OpenAIModel


@asynccontextmanager
async def prepare(base_url: str, functions: list[Function], workload: Workload) -> AsyncIterator[Run]:
    library = ToolLibrary(tool(function, risk=RiskLevel.REVERSIBLE, read_only=True) for function in functions)
    agent = Agent(name="bench", instruction="You are a bench.", tools=library.specifications())
    limits = Limits(iterations=workload.turns + 10)
    policy = Policy(max_offered_tools=128)  # as many as providers take: what is measured is a long list
    model = OpenAIModel("scripted", base_url=base_url, api_key="none")
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'bench.db'}"
        async with Journeyman(library=library, model=model, store=url, policy=policy) as app:

            async def run(prompt: str) -> object:
                handle = await app.start(agent, prompt, limits=limits)
                return (await handle.result()).answer

            yield run


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, handlers=[logging.NullHandler()])
    main(prepare)
