"""Journeyman with its whole pipeline: validation, risk, in-memory journal, log lines at INFO into the void."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from benchmarks.overhead.measure import Run, main
from benchmarks.overhead.scenarios import Workload
from benchmarks.overhead.toolbox import Function
from journeyman import Agent, Limits, Policy, RiskLevel, ToolLibrary, tool
from journeyman import run as run_agent
from journeyman.models.openai import OpenAIModel


@asynccontextmanager
async def prepare(base_url: str, functions: list[Function], workload: Workload) -> AsyncIterator[Run]:
    library = ToolLibrary(tool(function, risk=RiskLevel.REVERSIBLE, read_only=True) for function in functions)
    agent = Agent(name="bench", instruction="You are a bench.", tools=library.specifications())
    limits = (
        Limits(iterations=None, history_messages=None) if workload.windows else Limits(iterations=workload.turns + 10)
    )
    policy = Policy(max_offered_tools=128)  # as many as providers take: what is measured is a long list
    model = OpenAIModel("scripted", base_url=base_url, api_key="none")

    async def run(prompt: str) -> object:
        done = await run_agent(agent, prompt, library=library, model=model, limits=limits, policy=policy)
        return done.answer

    yield run


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, handlers=[logging.NullHandler()])
    main(prepare)
