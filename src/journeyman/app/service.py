"""What a door to the chat service needs, put together: the app, its agents, the tasks, and the tools over them.

Knows nothing of HTTP. Everything here works without a language model, except a chat.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from journeyman.agent.agent import Agent
from journeyman.app.chains import CHAIN
from journeyman.app.journeyman import Journeyman
from journeyman.app.splits import Split
from journeyman.core.calls import CallRow
from journeyman.core.errors import ConfigurationError
from journeyman.core.experiments import ExperimentStore, StoredExperiment
from journeyman.core.policy import Policy
from journeyman.core.protocols import Embedder, Model
from journeyman.core.risk import RiskLevel
from journeyman.execution.risk import grade
from journeyman.experiments import Report
from journeyman.retrieval.embedders import default_embedder
from journeyman.retrieval.search import HybridIndex
from journeyman.stores.store import SqlStore, open_store
from journeyman.toolkits.github import GITHUB_API, GitHub, github_tools, refreshing_tools
from journeyman.toolkits.tasks import TaskService, task_tools
from journeyman.tools.library import ToolLibrary

ASSISTANT = "assistant"
"""The agent that answers when none is named: the same at every door, so that each can resume the runs of another."""
INSTRUCTION = (
    "You are a careful assistant who keeps the user's tasks. Use your tools where they help, and never invent what a "
    "tool could tell you. When a tool says that a name fits several tasks, ask the user which one is meant and name "
    "them. When a call fails, read why, and either correct it or say what could not be done. Answer briefly."
)
MOST_CALLS = 10_000
"""How many calls the health of tools is worked out from."""
BUCKETS = 24


@dataclass(frozen=True, slots=True)
class ToolHealth:
    """How a tool has fared lately."""

    tool: str
    calls: int
    success_rate: float
    p50_ms: float
    p95_ms: float
    history: tuple[tuple[int, int], ...]
    """Calls and failures in equal spans of time, oldest first."""


@dataclass(frozen=True, slots=True)
class Service:
    """The parts of a running service."""

    app: Journeyman
    store: SqlStore
    tasks: TaskService
    agents: Mapping[str, Agent]
    """By name; the first is the one that answers when none is named."""

    @property
    def default_agent(self) -> Agent:
        return next(iter(self.agents.values()))

    def risk_of(self, tool_name: str) -> RiskLevel:
        """What a tool is graded as before its arguments are known."""
        return grade(self.app.library[tool_name].specification, {}, self.app.policy)

    def no_model(self, agent: Agent) -> str | None:
        """Why nobody could answer in this agent's name here; None when somebody can."""
        try:
            self.app.model_for(agent)
        except ConfigurationError as error:
            return str(error)
        return None

    async def health(self, *, seconds: float) -> list[ToolHealth]:
        """Every tool that was called in this time, by name."""
        since = self.app.clock.time() - seconds
        calls: dict[str, list[CallRow]] = {}
        for row in await self.store.calls.list(since=since, limit=MOST_CALLS):
            calls.setdefault(row.tool_name, []).append(row)
        return [_health(name, rows, since=since, seconds=seconds) for name, rows in sorted(calls.items())]


def _health(name: str, rows: Sequence[CallRow], *, since: float, seconds: float) -> ToolHealth:
    durations = sorted(row.duration_ms for row in rows)
    history = [[0, 0] for _ in range(BUCKETS)]
    failures = 0
    for row in rows:
        failed = row.status != "success"
        failures += failed
        place = history[min(BUCKETS - 1, max(0, int((row.started_at - since) / seconds * BUCKETS)))]
        place[0] += 1
        place[1] += failed
    return ToolHealth(
        tool=name,
        calls=len(rows),
        success_rate=1 - failures / len(rows),
        p50_ms=durations[len(durations) // 2],
        p95_ms=durations[min(len(durations) - 1, int(len(durations) * 0.95))],
        history=tuple((calls, failed) for calls, failed in history),
    )


@asynccontextmanager
async def open_service(
    *,
    store: str = "sqlite:///journeyman.db",
    library: ToolLibrary | None = None,
    agents: Iterable[Agent] = (),
    model: Model | str | None = None,
    policy: Policy | None = None,
    split: Split | None = None,
    workers: bool = False,
    github_url: str | None = None,
    embedder: Embedder | None = None,
    database: SqlStore | None = None,
    poll_seconds: float = 1.0,
) -> AsyncIterator[Service]:
    """A service over a store. It takes up every run that an earlier process has left unfinished.

    Without a ``library`` its tools are those over tasks, attachments and GitHub; without ``agents`` it has one
    assistant with all its tools. Search is by meaning where an embedder is given or installed.
    ``database`` is the store behind the URL where somebody has made it already; it is opened and closed here.
    """
    database = database or open_store(store)
    tasks = task_service(database, embedder=embedder)
    if library is None and split is None:
        library = task_library(database, tasks=tasks, github_url=github_url or GITHUB_API)
    app = Journeyman(
        library=library,
        store=store if workers else database,
        model=model,
        policy=policy,
        split=split,
        workers=workers,
        poll_seconds=poll_seconds,
    )
    named = _by_name(agents, app.library)
    for agent in named.values():
        for tools in (app.library, *(split.arms.values() if split is not None else ())):
            tools.bind(agent)
    if workers:
        await database.open()
    try:
        async with app:
            await app.resume()
            yield Service(app=app, store=database, tasks=tasks, agents=named)
    finally:
        if workers:
            await database.close()


def _by_name(agents: Iterable[Agent], library: ToolLibrary) -> dict[str, Agent]:
    named: dict[str, Agent] = {}
    for agent in agents:
        if agent.name in named or agent.name == CHAIN:
            raise ConfigurationError(f"agents need names of their own, {agent.name!r} is taken")
        named[agent.name] = agent
    if not named:
        named[ASSISTANT] = task_assistant(library)
    return named


# --- agents and libraries that are there without being named


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


def local_library(folder: Path) -> ToolLibrary:
    """Tools that look around in a folder, calculate and keep notes."""
    from journeyman.toolkits.local import LocalTools

    return ToolLibrary(LocalTools(folder, notes=folder / "journeyman-notes").tools())


def hello_library() -> ToolLibrary:
    """The tool of the Hello World agent."""
    from journeyman.toolkits.hello import say_hello

    return ToolLibrary([say_hello])


# --- reports of experiments


async def keep(store: ExperimentStore, report: Report, *, now: float) -> None:
    """Put what an experiment found into a store."""
    await store.add(
        StoredExperiment(
            id=report.experiment_id,
            name=report.name,
            created_at=now,
            winner=report.winner,
            report=report.model_dump_json(),
        )
    )


async def kept(store: ExperimentStore, experiment_id: str) -> Report | None:
    """What an experiment found, from a store."""
    found = await store.get(experiment_id)
    return None if found is None else Report.model_validate_json(found.report)
