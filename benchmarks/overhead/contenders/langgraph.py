"""LangGraph's ReAct agent over LangChain's OpenAI chat model; tracing stays off, the recursion limit is lifted."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from inspect import iscoroutinefunction

from langchain.agents import create_agent
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI

from benchmarks.overhead.measure import Run, main
from benchmarks.overhead.scenarios import Workload
from benchmarks.overhead.toolbox import Function


@asynccontextmanager
async def prepare(base_url: str, functions: list[Function], workload: Workload) -> AsyncIterator[Run]:
    model = ChatOpenAI(model="scripted", base_url=base_url, api_key="none")
    tools = [
        StructuredTool.from_function(**{"coroutine" if iscoroutinefunction(item) else "func": item})
        for item in functions
    ]
    agent = create_agent(model, tools, system_prompt="You are a bench.")
    limit = {"recursion_limit": 4 * workload.turns + 20}

    async def run(prompt: str) -> object:
        return (await agent.ainvoke({"messages": [("user", prompt)]}, limit))["messages"][-1].content

    yield run


if __name__ == "__main__":
    main(prepare)
