"""Recorded runs of a store under today's tools, rules and models: ``app.replay``. Nothing of it has an effect."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from journeyman.agent.agent import Agent
from journeyman.app.assembly import close_model, model_named
from journeyman.app.direct import RunOptions, run
from journeyman.core.approvals import Decision
from journeyman.core.data import new_id
from journeyman.core.errors import ConfigurationError
from journeyman.core.events import CallFinished
from journeyman.core.playbook import StrategySource
from journeyman.core.policy import ANY_PRINCIPAL, Policy, PrincipalFilter
from journeyman.core.protocols import Model
from journeyman.core.runs import TaskInput
from journeyman.execution.recorder import MemoryJournal
from journeyman.learning.playbook import Playbook
from journeyman.replay.gate import replay_policy, replay_tools
from journeyman.replay.models import Mode, RememberingModel, replay_model
from journeyman.replay.recording import Recording, fork_of
from journeyman.replay.report import ReplayReport
from journeyman.replay.stage import Today
from journeyman.replay.written import Redaction
from journeyman.settings.values import seconds_of
from journeyman.tools.library import ToolLibrary

if TYPE_CHECKING:
    from journeyman.app.journeyman import Journeyman

RUNS_AT_ONCE = 200
"""Rows of a page; of the runs themselves one is held at a time."""


async def recorded(
    app: Journeyman, runs: Sequence[str], *, since: float | None, principal_id: PrincipalFilter = ANY_PRINCIPAL
) -> AsyncIterator[Recording]:
    """These runs, or those that began in the last ``since`` seconds, or all; the newest first."""
    kept = app.store.runs
    for run_id in runs:
        facts = await kept.facts(run_id)
        if not facts:
            raise ConfigurationError(f"there is no run {run_id!r} in this store, or it has not begun")
        yield Recording(run_id, facts)
    if runs:
        return
    begin = 0.0 if since is None else await app.store.now() - since
    after: str | None = None
    while page := await kept.list(after=after, limit=RUNS_AT_ONCE, principal_id=principal_id):
        for row in page:
            if row.created_at < begin:
                return
            if row.last_seq:
                yield Recording(row.id, await kept.facts(row.id))
        after = page[-1].id


async def recording_of(app: Journeyman, run_id: str) -> Recording:
    """One run with the whole of results that are kept apart from their records: the recording stands by itself."""
    handle = await app.handle(run_id)
    facts = list(await app.store.runs.facts(run_id))
    for at, fact in enumerate(facts):
        if isinstance(fact, CallFinished) and fact.record.artifact is not None:
            value = await handle.whole(fact.record)
            record = fact.record.model_copy(update={"result": value, "artifact": None})
            facts[at] = fact.model_copy(update={"record": record})
    return Recording(run_id, tuple(facts))


def today(app: Journeyman, policy: Policy | None = None, library: ToolLibrary | None = None) -> Today:
    """What holds in an app now, or with another policy or library in the place of its own."""
    configuration = app.configuration

    def rules(task: TaskInput, tools: ToolLibrary) -> tuple[ToolLibrary, Policy]:
        governed, holding = app._shared.in_environment(task, tools)
        return governed, holding.policy if policy is None else policy

    return Today(
        library=app.library if library is None else library,
        policy=app.policy if policy is None else policy,
        govern=(lambda tools: tools) if configuration is None else configuration.governing,
        rules=rules,
        artifacts=app.store.artifacts,
    )


class ForkOptions(TypedDict, total=False):
    """What ``app.fork`` takes besides the run and the step."""

    say: str | None
    """Said to the model before it goes on."""
    arguments: dict[str, Any] | None
    """Of the step's call, in the place of those the model gave."""
    result: Any
    """Of the step's call, in the place of what the tool returned."""
    call_id: str | None
    """Which of the step's calls, where it has several."""
    model: str | None
    """Goes on in the place of the parent's."""


async def fork(app: Journeyman, run_id: str, *, at: int, **options: Unpack[ForkOptions]) -> str:
    """Keep a run that goes on from a step of another one's past, and begin it. Returns its id."""
    order = await app.store.runs.order(run_id)
    if order is None:
        raise ConfigurationError(f"there is no run {run_id!r} in this store")
    model, fork_id = options.get("model"), new_id("run")
    app._shared.may_load(order, model=model is None)
    edit: dict[str, Any] = {name: value for name, value in options.items() if name != "model"}
    left = fork_of(Recording(run_id, await app.store.runs.facts(run_id)), fork_id, at=at, **edit)
    agent, origin = order.agent, order.origin
    if model is not None:
        agent = {**agent, "model": model}
        origin = None if origin is None else origin.model_copy(update={"model": model})
    own = {
        "run_id": fork_id,
        "agent": agent,
        "origin": origin,
        "task": order.task.model_copy(update={"session_id": None}),
        "fork": left,
        "created_at": app.clock.time(),
        "trace_parent": None,
    }
    order = order.model_copy(update=own)
    await app.store.runs.create(order)
    await app.runner.adopt(fork_id, order=order, priority=order.priority)
    return fork_id


def configured(library: ToolLibrary | None, policy: Policy | None, file: Path | None) -> Today:
    """The tools and rules that a test names, or those of a configuration file."""
    if file is None:
        return Today(library=ToolLibrary() if library is None else library, policy=policy or Policy())
    from journeyman.app.configuration import Configuration

    configuration = Configuration(file)
    tools = configuration.library if library is None else configuration.governing(library)
    return Today(library=tools, policy=policy or configuration.rules.policy, govern=configuration.governing)


async def really_recorded(agent: Agent, task: str, **options: Unpack[RunOptions]) -> Recording:
    """Run an agent, with effects, and return its recording without secrets."""
    options["journal"] = journal = MemoryJournal()
    await run(agent, task, **options)
    [run_id] = journal.runs()
    return Redaction().recording(Recording(run_id, await journal.read(run_id)))


class ReplayOptions(TypedDict, total=False):
    """What ``app.replay`` takes besides the runs."""

    since: float | str | None
    """Only runs that began since then, where none are named: seconds, or a duration such as ``7d``."""
    policy: Policy | None
    """In the place of the app's."""
    model: Model | str | None
    """Is asked where the recorded one was."""
    agent: Agent | None
    """In the place of the recorded one; its model is asked, unless another is named."""
    instruction: str | None
    """Of the agent, in the place of the recorded one; a ``model`` is to be named with it."""
    playbook: tuple[str, int] | StrategySource | None
    """Advises in the place of what runs were advised by: one of a program, or a domain of this store and its version; a
    ``model`` is to be named with it."""
    decision: Decision | None
    """What a person says to every question of a free replay, in the place of what was said then."""
    answers: Path | None
    """A file that keeps what the model says: a replay that was cut short goes on from there."""
    mode: Mode
    """``steps``: at every step, with the recorded past. ``free``: on its own, until it leaves the recording."""
    reads: Literal["recorded", "live"]
    """``live``: tools that only read are called where the recording does not hold their result."""
    library: ToolLibrary | None
    """Its tools are compared with the recorded calls, and their reads made again."""
    principal_id: PrincipalFilter
    """Whose runs, where none are named."""
    progress: Callable[[int], None] | None
    """Told how many runs are done."""


async def replay(app: Journeyman, runs: Sequence[str], **options: Unpack[ReplayOptions]) -> ReplayReport:
    whose, since = options.get("principal_id", ANY_PRINCIPAL), options.get("since")
    recordings = recorded(app, runs, since=seconds_of(since), principal_id=whose)
    model, library, progress = options.get("model"), options.get("library"), options.get("progress")
    held = today(app, options.get("policy"), library)
    held.agent, held.instruction = options.get("agent"), options.get("instruction")
    if held.agent is not None:
        own = [item for item in held.agent.own_tools if item.name not in held.library]
        held.library = ToolLibrary([*held.library, *own])
    held.playbook = await _playbook(app, options.get("playbook"))
    if library is not None:
        return await replay_tools(recordings, held, progress=progress)
    if model is None and held.agent is not None:
        model = app.model_for(held.agent)
    if model is None:
        if held.instruction is not None or held.playbook is not None:
            raise ConfigurationError("name a model: a recording names none that is asked")
        return await replay_policy(recordings, held, progress=progress)
    asked = model_named(model) if isinstance(model, str) else model
    answers, name = options.get("answers"), model if isinstance(model, str) else ""
    try:
        return await replay_model(
            recordings,
            held,
            asked if answers is None else RememberingModel(asked, answers, name=name),
            mode=options.get("mode", "steps"),
            live=options.get("reads") == "live",
            decision=options.get("decision"),
            progress=progress,
        )
    finally:
        if isinstance(model, str):
            await close_model(asked)


async def _playbook(app: Journeyman, named: tuple[str, int] | StrategySource | None) -> StrategySource | None:
    if not isinstance(named, tuple):
        return named
    domain, version = named
    state = await app.playbooks[domain].at(version)
    settings = app.playbooks.settings.model_copy(update={"holdout": 0.0})
    playbook = Playbook(domain, settings=settings)
    await playbook.put(state.bullets, reason=f"as it was in version {version}")
    return playbook
