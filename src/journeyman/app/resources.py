"""What runs share: the rules that hold, an executor for each library, where tools are found, the models that answer."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, TypeAlias, TypedDict
from weakref import WeakKeyDictionary

from journeyman.agent.run import NO_LIMITS
from journeyman.core.policy import Policy, Principal
from journeyman.core.protocols import Clock, Model, SystemClock, Witness
from journeyman.core.runs import Limits, TaskInput
from journeyman.core.specification import ToolSpecification
from journeyman.core.storing import Origin, RunOrder, checked_lease
from journeyman.execution.checks import LocalBreaker, LocalLimiter, ResultCache
from journeyman.execution.executor import Executor
from journeyman.execution.invoke import Invoker
from journeyman.execution.threads import default_pool
from journeyman.tools.library import ToolLibrary, searchable

if TYPE_CHECKING:
    from journeyman.agent.agent import Agent
    from journeyman.app.splits import Split
    from journeyman.stores.store import SqlStore

AUTO = "auto"
"""The model of an agent that names none."""
EMBEDDED = "embedded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What holds for runs where nobody says anything else."""

    policy: Policy
    limits: Limits = NO_LIMITS
    model: Callable[[], str] | None = None
    """The name of the model for agents that name none, looked up when it is used: it may hold a secret."""


class Executors:
    """By library, because two libraries may hold different tools under one name: rate limits, breakers, cached results.

    What was counted for a library goes with it. An agent's own library lives no longer than its agent, and another one
    may be made at the same address.
    """

    def __init__(
        self,
        clock: Clock,
        store: SqlStore | None = None,
        *,
        now: Callable[[Principal], Principal | None] | None = None,
    ) -> None:
        self.witness: Witness | None = None
        """Knows of calls that another process has begun; set before the first run."""
        self._clock = clock
        self._store = store
        self._now = now
        self._known: WeakKeyDictionary[ToolLibrary, Executor] = WeakKeyDictionary()

    def of(self, library: ToolLibrary) -> Executor:
        """What runs with this library share."""
        found = self._known.get(library)
        if found is None:
            found = self._known[library] = self._made()
        return found

    def _made(self) -> Executor:
        clock, store = self._clock, self._store
        made = Executor(
            clock=clock,
            invoker=Invoker(threads=default_pool()),
            limiter=LocalLimiter(clock=clock),
            breaker=LocalBreaker(clock=clock),
            cache=ResultCache(clock=clock),
            now=self._now,
        )
        if store is not None:
            from journeyman.stores.journal import retrying

            made.artifacts = retrying(store.artifacts, clock=clock)
            made.durable, made.witness = True, self.witness
            if store.shared_limits:  # one process counts for itself; several share what the store counts
                made.limiter = retrying(store.limiter, clock=clock)
                made.breaker = retrying(store.breaker, clock=clock)
        return made


in_process = Executors(SystemClock())
"""Of the direct runs of this process."""


@dataclass(slots=True, kw_only=True)
class Libraries:
    """Where the runs of an app find their tools."""

    given: ToolLibrary | None
    """None where none was given: agents then run with the tools they carry."""
    split: Split | None = None
    origin: Origin | None = None
    """How this program was told of its agents and its library; kept with the runs that it begins."""
    find: Callable[[RunOrder], ToolLibrary] | None = None
    """Finds the tools of a run that was begun with others than this program's. Raises where it cannot, or must not."""
    _opened: set[ToolLibrary] = field(default_factory=set)
    """Those that were found so, and opened here."""

    def own(self, agent: Agent, task: TaskInput) -> ToolLibrary:
        """The tools of a run that was begun here: in its arm of a split, in the app's library, or with its agent."""
        arm = self.split.library_of(task) if self.split is not None else None
        return next(library for library in (arm, self.given, agent.own_library) if library is not None)

    async def of(self, agent: Agent, order: RunOrder) -> ToolLibrary:
        """Where a run finds its tools: with what it was begun with, where that is not what this program has."""
        if self.find is None or not self.others(order):
            return self.own(agent, order.task)
        library = self.find(order)
        if library not in self._opened:
            await library.open()
            self._opened.add(library)
        return library

    def others(self, order: RunOrder) -> bool:
        """Whether a run was begun with another agent or library, by name, than this program was given."""
        return order.origin is not None and (self.origin is None or self.origin.code != order.origin.code)

    async def close(self) -> None:
        for library in self._opened:
            await library.close()
        self._opened.clear()


# --- how they are worked on


Kept: TypeAlias = float | Literal["runs"] | None
"""How long everything is kept; ``"runs"``: ended runs and traces for ``RUNS_KEPT_SECONDS``; None: all for ever."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerSettings:
    """How runs are worked on."""

    concurrency: int = 64
    """Runs worked on here at once."""
    principal_concurrency: int | None = None
    """Runs of one principal worked on at once, anywhere."""
    lease_seconds: float = 30.0
    poll_seconds: float = 1.0
    grace_seconds: float = 10.0
    """How long steps under way may take to finish when the app is closed."""
    retention_seconds: Kept = "runs"
    """How long anything is kept that ``store.purge`` forgets, and traces; None keeps it for ever.

    Unless it is set, ended runs and traces are kept for ``RUNS_KEPT_SECONDS`` and the rest for ever.
    """
    max_recoveries: int = 5
    """How many processes may die on a run, one after another and without progress, before it is left to a person."""

    def __post_init__(self) -> None:
        checked_lease(self.lease_seconds)


class Operation(TypedDict, total=False):
    """How runs are worked on; see ``RunnerSettings``."""

    concurrency: int
    principal_concurrency: int | None
    lease_seconds: float
    poll_seconds: float
    grace_seconds: float
    retention_seconds: Kept
    max_recoveries: int


# --- models


class Models:
    """The models of one app, kept open for its runs."""

    def __init__(self, given: Model | str | None) -> None:
        self.given = given
        self._open: dict[str, Model] = {}

    def for_agent(self, agent: Agent, rules: Rules, *, named: str | None = None) -> Model:
        """The app's model, or the one that a run was begun with, or the one the agent names."""
        if self.given is not None and not isinstance(self.given, str):
            return self.given
        name = self.given or named or agent.model
        if name == AUTO and rules.model is not None:
            name = rules.model()
        return self._named(name)

    def own(self, rules: Rules) -> Model | None:
        """The model that the app was given or its configuration names, if it can do more than call tools."""
        name = self.given if self.given is not None or rules.model is None else rules.model()
        if name is None or not isinstance(name, str):
            return name
        return None if name == EMBEDDED else self._named(name)

    def _named(self, name: str) -> Model:
        if name not in self._open:
            self._open[name] = model_named(name)
        return self._open[name]

    async def close(self) -> None:
        for model in self._open.values():
            await close_model(model)
        self._open.clear()


def model_named(name: str) -> Model:
    from journeyman.models.resolve import model_from_name

    return model_from_name(name, rank=nearest_tools)


_SHARED: dict[tuple[str | None, ...], Model] = {}
_MOST_SHARED = 32


def shared_model(name: str) -> Model:
    """The model of this name that every run of this process uses: its connections are kept between runs.

    Only those whose unused connections cost nothing; the others are made anew, and closed by whoever asked for them.
    """
    if name.partition(":")[0] not in ("openai", "ollama", "http", "https"):
        return model_named(name)
    key = (name, *map(os.environ.get, _DECISIVE))
    if (model := _SHARED.get(key)) is None:
        if len(_SHARED) >= _MOST_SHARED:
            _SHARED.clear()  # whoever uses one keeps it
        model = _SHARED[key] = model_named(name)
    return model


def is_shared(model: Model) -> bool:
    return any(model is shared for shared in _SHARED.values())


_DECISIVE = (
    *("OPENAI_BASE_URL", "OPENAI_API_KEY", "OLLAMA_HOST"),
    *("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"),
)
"""What of the environment such a model is made by."""


def nearest_tools(text: str, tools: Sequence[ToolSpecification], k: int) -> list[ToolSpecification]:
    """The tools that share most words with a text, then the others; for models that can weigh only a few."""
    from journeyman.retrieval.bm25 import BM25

    named = {tool.name: tool for tool in tools}
    ranked = BM25({name: searchable(tool) for name, tool in named.items()}).rank(text, k=k)
    return [named[name] for name in dict.fromkeys((*(name for name, _ in ranked), *named))][:k]


async def close_model(model: Model) -> None:
    close = getattr(model, "aclose", None)
    if close is not None:
        await close()
