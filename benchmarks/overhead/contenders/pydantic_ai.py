"""pydantic-ai over its OpenAI chat model; instrumentation stays off, the request limit is lifted."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic_ai import Agent, UsageLimits
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

from benchmarks.overhead.measure import Run, main
from benchmarks.overhead.scenarios import Workload
from benchmarks.overhead.toolbox import Function


@asynccontextmanager
async def prepare(base_url: str, functions: list[Function], workload: Workload) -> AsyncIterator[Run]:
    model = OpenAIChatModel("scripted", provider=OpenAIProvider(base_url=base_url, api_key="none"))
    agent = Agent(model, instructions="You are a bench.", tools=functions)
    limits = UsageLimits(request_limit=workload.turns + 10)

    async def run(prompt: str) -> object:
        return (await agent.run(prompt, usage_limits=limits)).output

    yield run


if __name__ == "__main__":
    main(prepare)
