"""What a door to the chat service needs, put together: the app, its agents, the tasks, and the tools over them.

Knows nothing of HTTP. Everything here works without a language model, except a chat.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel, Field

from journeyman.agent.agent import Agent
from journeyman.app.chains import CHAIN
from journeyman.app.journeyman import Journeyman
from journeyman.app.owners import dead_owners
from journeyman.app.runner import ALIVE_SECONDS
from journeyman.core.calls import CallRow, speaks_for_tool
from journeyman.core.errors import ConfigurationError, JourneymanError
from journeyman.core.policy import RateLimit, RiskLevel
from journeyman.core.protocols import Embedder, Model
from journeyman.core.specification import ToolSpecification
from journeyman.execution.checks import grade
from journeyman.retrieval.embedders import default_embedder
from journeyman.retrieval.search import HybridIndex
from journeyman.stores.store import SqlStore, open_store
from journeyman.toolkits.github import GITHUB_API, GitHub, github_tools, refreshing_tools
from journeyman.toolkits.tasks import TaskService, task_tools
from journeyman.tools.library import ToolLibrary

if TYPE_CHECKING:
    from journeyman.app.configuration import Configuration
    from journeyman.toolkits.slack import Pace

ASSISTANT = "assistant"
"""The agent that answers when none is named: the same at every door, so that each can resume the runs of another."""
INSTRUCTION = (
    "You are a careful assistant who keeps the user's tasks. Use your tools where they help, and never invent what a "
    "tool could tell you. When a tool says that a name fits several tasks, ask the user which one is meant and name "
    "them. When a call fails, read why, and either correct it or say what could not be done. Answer briefly."
)
PLAIN_INSTRUCTION = (
    "You are a careful assistant. Use your tools where they help, and never invent what a tool could tell you. "
    "When a call fails, read why, and either correct it or say what could not be done. Answer briefly, in plain text."
)
STARTERS = (
    "What is due this week?",
    "Remind me to water the plants on Friday",
    "Which tasks are the most important ones?",
)
"""What one could say to the assistant."""
MOST_CALLS = 10_000
"""How many calls the health of tools is worked out from."""
BUCKETS = 24


class ToolHealth(BaseModel):
    """How a tool has fared lately."""

    tool: str
    calls: int
    success_rate: float
    p50_ms: float
    p95_ms: float
    history: list[tuple[int, int]] = Field(description="Calls and failures in equal spans of time, oldest first.")


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

    async def warm_up(self) -> None:
        """Let the model that answers get ready, if it needs to; one that cannot says so when it is asked."""
        with suppress(JourneymanError):
            warm_up = getattr(self.app.model_for(self.default_agent), "warm_up", None)
            if warm_up is not None:
                await warm_up(self.app.library.specifications())

    def risk_of(self, tool_name: str) -> RiskLevel:
        """What a tool is graded as before its arguments are known."""
        return grade(self.app.library[tool_name].specification, {}, self.app.policy)

    async def schema_version(self) -> int:
        """Which version of the schema the store has; raises where it cannot be reached."""
        return await self.store.schema_version()

    async def workers(self) -> int | None:
        """How many processes carry out runs for this service; None where it does so itself."""
        if self.app.runner.queue is None:
            return None
        seen = await self.store.programs.executing(silent_seconds=ALIVE_SECONDS)
        return len(seen) - len(dead_owners(seen))

    def tools_of(self, agent: Agent) -> list[ToolSpecification]:
        """What an agent can call: those it names, and where it has all, the library's."""
        others = self.app.library.specifications() if agent.all_tools else ()
        return list({tool.name: tool for tool in (*others, *agent.tools)}.values())

    def no_model(self, agent: Agent) -> str | None:
        """Why nobody could answer in this agent's name here; None when somebody can."""
        try:
            self.app.model_for(agent)
        except ConfigurationError as error:
            return str(error)
        return None

    async def health(self, *, seconds: float) -> list[ToolHealth]:
        """Every tool that ran in this time, by name. What was refused before it ran is not held against it."""
        since = self.app.clock.time() - seconds
        calls: dict[str, list[CallRow]] = {}
        for row in await self.store.calls.list(since=since, limit=MOST_CALLS):
            if speaks_for_tool(row.status, attempts=row.attempts) is not None:
                calls.setdefault(row.tool_name, []).append(row)
        return [_health(name, rows, since=since, seconds=seconds) for name, rows in sorted(calls.items())]


def _health(name: str, rows: Sequence[CallRow], *, since: float, seconds: float) -> ToolHealth:
    durations = sorted(row.duration_ms for row in rows)
    history = [[0, 0] for _ in range(BUCKETS)]
    failures = 0
    for row in rows:
        failed = not speaks_for_tool(row.status, attempts=row.attempts)
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
        history=[(calls, failed) for calls, failed in history],
    )


@asynccontextmanager
async def open_service(
    *,
    store: str = "sqlite:///journeyman.db",
    library: ToolLibrary | None = None,
    agents: Iterable[Agent] = (),
    workers: bool = False,
    github_url: str | None = None,
    embedder: Embedder | None = None,
    database: SqlStore | None = None,
    configuration: Configuration | None = None,
    **options: Any,
) -> AsyncIterator[Service]:
    """A service over a store. It takes up every run that an earlier process has left unfinished.

    Without a ``library`` its tools are those over tasks, attachments and GitHub; without ``agents`` it has one
    assistant with all its tools. Search is by meaning where an embedder is given or installed.
    ``database`` is the store behind the URL where somebody has made it already; it is opened and closed here.
    A ``configuration`` brings the tools and the rules where none are given, and is followed.
    Further options are those of a ``Journeyman``.
    """
    database = database or open_store(store, queued=workers)
    tasks = task_service(database, embedder=embedder)
    if library is None and options.get("split") is None and configuration is None:
        library = task_library(database, tasks=tasks, github_url=github_url or GITHUB_API)
    app = Journeyman(library=library, store=database, workers=workers, configuration=configuration, **options)
    named: dict[str, Agent] = {}
    for agent in agents:
        if agent.name in named or agent.name == CHAIN:
            raise ConfigurationError(f"agents need names of their own, {agent.name!r} is taken")
        named[agent.name] = agent
    if not named:
        named[ASSISTANT] = assistant(app.library, follows=configuration is not None)

    def bind_all() -> None:
        for agent in named.values():
            for tools in (app.library, *(app.split.arms.values() if app.split is not None else ())):
                tools.bind(agent)

    if configuration is None:
        bind_all()
    async with app:
        bind_all()  # now the tools of servers are there, too
        await app.resume()
        yield Service(app=app, store=database, tasks=tasks, agents=named)


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


def assistant(library: ToolLibrary, *, follows: bool = False, told: str | None = None) -> Agent:
    """The agent that answers when none is named, with all tools of a library. One that ``follows`` has whatever tools
    there are at each step: those of a configuration file come and go."""
    told = told or (INSTRUCTION if "create_task" in library else PLAIN_INSTRUCTION)
    tools = () if follows else tuple(library.specifications())
    return Agent(name=ASSISTANT, instruction=told, all_tools=follows, tools=tools)


def model_name(app: Journeyman, agent: Agent) -> str:
    """What the model that answers for an agent calls itself. Raises ConfigurationError where there is none."""
    return str(getattr(app.model_for(agent), "name", None) or agent.model_settings.name)


def starters(agent: Agent, tools: Iterable[ToolSpecification] = ()) -> tuple[str, ...]:
    """What one could say to an agent to begin: in the words of its tools' examples, one of each."""
    if agent.name == ASSISTANT and agent.instruction == INSTRUCTION:
        return STARTERS
    if said := [tool.requests[0] for tool in tools if tool.requests]:
        return tuple(said[: len(STARTERS)])
    return ("What can you do for me?", "Which tools do you have, and when do you use them?")


def local_library(folder: Path) -> ToolLibrary:
    """Tools that look around in a folder, calculate and keep notes."""
    from journeyman.toolkits.local import LocalTools

    return ToolLibrary(LocalTools(folder, notes=folder / "journeyman-notes").tools())


def research_library(store: SqlStore, folder: Path) -> ToolLibrary:
    """The researcher's tools over the web, the files of a folder and the memory in a store."""
    from journeyman.memory.manager import MemoryManager
    from journeyman.toolkits.research import ResearchTools

    memory = MemoryManager(store.memories, store.conversations)
    return ToolLibrary(ResearchTools(memory=memory, root=folder).tools())


def slack_pace(store: SqlStore, limits: Mapping[str, RateLimit] | None = None) -> Pace:
    """Slack's own limits, shared by all processes on a store; ``limits`` are others for single methods."""
    from journeyman.toolkits.slack import METHODS, Pace

    return Pace(store.limiter, limits={**METHODS, **(limits or {})})


def slack_library(*, model: str | None = None, base_url: str | None = None, pace: Pace | None = None) -> ToolLibrary:
    """Tools over Slack's conversations; ``model`` is asked for summaries, or else whatever model is found here.

    ``pace`` keeps to Slack's limits: see ``slack_pace``.
    """
    from journeyman.models.resolve import model_from_name
    from journeyman.toolkits.slack import SLACK_API, SlackTools

    kept: list[Model] = []  # one in this process takes long to load

    def found() -> Model | None:
        if kept:
            return kept[0]
        try:
            one = model_from_name(model or "auto")
        except ConfigurationError:
            return None
        if hasattr(one, "rank"):
            return None  # the embedded model chooses tools, and writes no prose
        if not hasattr(one, "aclose"):
            kept.append(one)
        return one

    return ToolLibrary(SlackTools(model=found, base_url=base_url or SLACK_API, pace=pace).tools())


def hello_library() -> ToolLibrary:
    """The tool of the Hello World agent."""
    from journeyman.toolkits.hello import say_hello

    return ToolLibrary([say_hello])


@contextmanager
def ending_signals(end: Callable[[int], object]) -> Iterator[None]:
    """Have SIGINT and SIGTERM call it. Only the main thread hears them; elsewhere whoever runs the loop ends it."""
    loop = asyncio.get_running_loop()
    with ExitStack() as handled:
        for number in (signal.SIGINT, signal.SIGTERM):
            with suppress(ValueError, NotImplementedError, RuntimeError):
                loop.add_signal_handler(number, end, number)
                handled.callback(loop.remove_signal_handler, number)
        yield
