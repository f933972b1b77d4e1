"""openai-agents over its chat-completions model; tracing is off, the turn limit is lifted."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI

from benchmarks.overhead.measure import Run, main
from benchmarks.overhead.scenarios import Workload
from benchmarks.overhead.toolbox import Function


@asynccontextmanager
async def prepare(base_url: str, functions: list[Function], workload: Workload) -> AsyncIterator[Run]:
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=base_url, api_key="none")
    agent = Agent(
        name="bench",
        instructions="You are a bench.",
        model=OpenAIChatCompletionsModel("scripted", client),
        tools=[function_tool(function) for function in functions],
    )

    async def run(prompt: str) -> object:
        return (await Runner.run(agent, prompt, max_turns=workload.turns + 10)).final_output

    yield run


if __name__ == "__main__":
    main(prepare)
