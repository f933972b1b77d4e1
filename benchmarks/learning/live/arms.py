"""The arms: what a run is given besides its task. Each arm's memory is made before the first task is asked."""

import asyncio
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from benchmarks.learning.live.world import Task
from journeyman import Agent, AgentResponse, Limits, Policy, run
from journeyman.core.approvals import Label, LabelSource
from journeyman.core.protocols import Model
from journeyman.learning import Advice
from journeyman.learning.episodes import Episode, from_response
from journeyman.learning.forms import LearningSettings
from journeyman.learning.playbook import Playbook
from journeyman.testing import ScriptedModel, call, say

ARMS = ("none", "own", "own_truth", "teacher", "prose", "wrong", "poisoned")
ITERATIONS = 8

Ask = Callable[[Task, Any], Awaitable[AgentResponse]]


@dataclass(frozen=True)
class Arm:
    """A kind of memory, and how it is told: ``teacher:closing=result,demonstrations=2``."""

    name: str
    kind: str
    settings: LearningSettings
    finish: bool = False
    policy: Policy = field(default_factory=lambda: Policy(max_offered_tools=None))

    @classmethod
    def parse(cls, text: str) -> "Arm":
        kind, _, rest = text.partition(":")
        if kind not in ARMS:
            raise SystemExit(f"there is no arm {kind!r}; there are {', '.join(ARMS)}, each with :setting=value,…")
        given: dict[str, Any] = dict(part.split("=", 1) for part in rest.split(",") if part)
        finish = given.pop("finish", "false") == "true"
        ruled = {name: given.pop(name) for name in ("grounding",) if name in given}
        policy = Policy(max_offered_tools=None, **ruled)  # what is measured is advice, not the choice of tools
        form = "system" if kind == "prose" else "steps"
        settings = LearningSettings(**{"holdout": 0.0, "form": form, **given})
        return cls(text, kind, settings, finish, policy)


class Frozen:
    """A playbook that advises and is not fed: every task of an arm meets the same memory."""

    def __init__(self, playbook: Playbook) -> None:
        self.playbook = playbook

    async def advise(self, text: str, *, tools: Sequence[str], **who: Any) -> Sequence[Advice]:
        return await self.playbook.advise(text, tools=tools)


class Practising(Frozen):
    """A playbook that advises, and keeps what it would be fed until a round is over."""

    def __init__(self, playbook: Playbook) -> None:
        super().__init__(playbook)
        self.episodes: list[Episode] = []

    async def feed(self, episode: Episode) -> None:
        self.episodes.append(episode)


class Misleading:
    """Gives every task the demonstration of another template."""

    def __init__(self, playbook: Playbook, requests: dict[str, str]) -> None:
        self.playbook, self._requests = playbook, requests

    async def advise(self, text: str, *, tools: Sequence[str], **who: Any) -> Sequence[Advice]:
        return await self.playbook.advise(self._requests[text], tools=tools)


async def ask(task: Task, model: Model, arm: Arm, advice: Any) -> AgentResponse:
    """One run in the state that its context holds."""
    options: dict[str, Any] = {} if advice is None else {"playbook": advice}
    world = task.world
    return await run(
        Agent(name=world.name, model="auto", instruction=world.instruction, tools=world.tools, finish=arm.finish),
        task.request,
        library=world.library,
        model=model,
        policy=arm.policy,
        limits=Limits(iterations=ITERATIONS),
        **options,
    )


async def taught(task: Task) -> Episode:
    """A master's run of a task: the right calls, made for real."""
    script = [call(name, **arguments) for name, arguments in task.calls]
    task.furnished()
    response = await ask(task, ScriptedModel([*script, say("Done.")]), Arm.parse("none"), None)
    return episode(task, response)


def episode(task: Task, response: AgentResponse, *labels: Label) -> Episode:
    made = from_response(response, domain=task.world.name)
    assert made is not None
    calls = tuple(replace(item, effect=item.tool_name not in task.world.reads) for item in made.calls)
    return replace(made, request=task.request, calls=calls, run_id=task.id, labels=labels)


def poison(episodes: Sequence[Episode], *, share: float = 0.5, seed: int = 0) -> list[Episode]:
    """False successes: a share of the requests with the calls of another template, said to be good by a person."""
    draw, wrong = random.Random(seed), list[Episode]()
    for item in episodes:
        if draw.random() < share:
            others = [other for other in episodes if _template(other) != _template(item)]
            other = draw.choice(others)
            praise = Label(source=LabelSource.RATING, value="good", by="nobody")
            wrong.append(replace(item, calls=other.calls, answer=other.answer, labels=(praise,)))
        else:
            wrong.append(item)
    return wrong


def _template(item: Episode) -> str:
    return item.run_id.partition("#")[0]


class Memories:
    """Makes what arms need, each kind once."""

    def __init__(self, practice: Sequence[Task], model: Model, tasks: Sequence[Task], gate: asyncio.Semaphore) -> None:
        self._practice, self._model, self._tasks, self._gate = practice, model, tasks, gate
        self._made: dict[str, list[Episode]] = {}
        self.practised: list[dict[str, Any]] = []

    async def advice(self, arm: Arm) -> Any:
        """What an arm's runs are given: a source of advice, or None."""
        if arm.kind == "none":
            return None
        playbook = Playbook(self._tasks[0].world.name, settings=arm.settings)
        if arm.kind in ("own", "own_truth"):
            await self._practise(playbook, arm)
            return Frozen(playbook)
        await playbook.learn(await self._episodes(arm.kind), taught=True)
        if arm.kind != "wrong":
            return Frozen(playbook)
        draw, others = random.Random(1), self._practice
        requests = {
            task.request: draw.choice([item for item in others if item.template != task.template]).request
            for task in self._tasks
        }
        return Misleading(playbook, requests)

    async def _episodes(self, kind: str) -> list[Episode]:
        source = {"prose": "teacher", "wrong": "teacher"}.get(kind, kind)
        if source not in self._made:
            masters = [await taught(task) for task in self._practice]
            self._made[source] = poison(masters) if source == "poisoned" else masters
        return self._made[source]

    async def _practise(self, playbook: Playbook, arm: Arm) -> None:
        """The model's own runs, with what the playbook has learned so far: one instance of every template at a time."""
        rounds: dict[int, list[Task]] = defaultdict(list)
        for task in self._practice:
            rounds[task.instance].append(task)
        for tasks in rounds.values():
            made = await asyncio.gather(*(self._practised(task, playbook, arm) for task in tasks))
            await playbook.learn([item for episodes in made for item in episodes], taught=False)

    async def _practised(self, task: Task, playbook: Playbook, arm: Arm) -> list[Episode]:
        async with self._gate:
            wanted, place = await task.wanted(), task.furnished()
            practising = Practising(playbook)
            response = await ask(task, self._model, arm, practising)
            right = place.state == wanted
        made = [[item.tool_name, dict(item.arguments), item.error_message] for item in response.tool_calls]
        row = {"arm": arm.name, "task": task.id, "right": right, "request": task.request, "made": made}
        self.practised.append({**row, "answer": response.answer[:200]})
        if arm.kind == "own":  # without labels: the playbook must judge for itself
            return practising.episodes
        label = Label(source=LabelSource.VERIFIER, value="good" if right else "bad")
        return [replace(item, labels=(label,)) for item in practising.episodes]
