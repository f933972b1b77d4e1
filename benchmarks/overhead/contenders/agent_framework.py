"""Microsoft's agent-framework over its OpenAI chat client; telemetry stays off, the limit of rounds is lifted."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agent_framework import Agent
from agent_framework.openai import OpenAIChatCompletionClient

from benchmarks.overhead.measure import Run, main
from benchmarks.overhead.scenarios import Workload
from benchmarks.overhead.toolbox import Function


@asynccontextmanager
async def prepare(base_url: str, functions: list[Function], workload: Workload) -> AsyncIterator[Run]:
    client = OpenAIChatCompletionClient(model="scripted", api_key="none", base_url=base_url)
    client.function_invocation_configuration["max_iterations"] = workload.turns + 10
    agent = Agent(client, "You are a bench.", tools=functions)

    async def run(prompt: str) -> object:
        return (await agent.run(prompt)).text

    yield run


if __name__ == "__main__":
    main(prepare)
