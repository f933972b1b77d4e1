"""The assistant that answers when no agent is named, and its tools over tasks: the same at every door.

So a run that one door has begun can be taken up at another.
"""

from __future__ import annotations

from journeyman.agent.agent import Agent
from journeyman.core.protocols import Embedder
from journeyman.retrieval.embedders import default_embedder
from journeyman.retrieval.search import HybridIndex
from journeyman.stores.store import SqlStore
from journeyman.toolkits.github import GITHUB_API, GitHub, github_tools, refreshing_tools
from journeyman.toolkits.tasks import TaskService, task_tools
from journeyman.tools.library import ToolLibrary

ASSISTANT = "assistant"
INSTRUCTION = (
    "You are a careful assistant who keeps the user's tasks. Use your tools where they help, and never invent what a "
    "tool could tell you. When a tool says that a name fits several tasks, ask the user which one is meant and name "
    "them. When a call fails, read why, and either correct it or say what could not be done. Answer briefly."
)


def task_service(store: SqlStore, *, embedder: Embedder | None = None) -> TaskService:
    """Tasks kept in a store; found by meaning where an embedder is given or installed."""
    return TaskService(store.tasks, index=HybridIndex(embedder=embedder or default_embedder()))


def task_library(
    store: SqlStore, *, tasks: TaskService | None = None, github_url: str | None = GITHUB_API
) -> ToolLibrary:
    """The tools over tasks, attachments and GitHub; without its address, those that stay on this machine.

    The store need not be open before one of them is called.
    """
    service = tasks or task_service(store)
    tools = task_tools(service)
    if github_url is not None:
        github = GitHub(base_url=github_url)
        tools += [*refreshing_tools(service, store.tasks, github), *github_tools(github)]
    return ToolLibrary(tools)


def task_assistant(library: ToolLibrary) -> Agent:
    """An agent with all tools of a library, told to keep tasks."""
    return Agent(name=ASSISTANT, instruction=INSTRUCTION, tools=tuple(library.specifications()))
