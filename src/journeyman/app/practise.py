"""Practice: requests that were asked before, tried again where nothing can be broken, for a playbook to learn from.

Tools that change something are called only in a sandbox that the caller names. Without one a request is tried with the
tools that only read, and of that only pitfalls are kept: where a value is looked up, what a tool allows. Half of what
serves a request is no strategy for it. What one round taught, the next is told.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

from journeyman.agent.agent import Agent
from journeyman.app.direct import RunOptions, run
from journeyman.core.approvals import Approve, LabelSource
from journeyman.core.data import Entity
from journeyman.core.errors import ConfigurationError
from journeyman.core.playbook import Advice
from journeyman.learning.episodes import Episode
from journeyman.learning.playbook import Playbook
from journeyman.tools.library import ToolLibrary


class Practice(Entity):
    """What came of it."""

    requests: int = 0
    rounds: int = 0
    good: tuple[int, ...] = ()
    """By round: how many runs were good, as far as their calls say; none where there were only tools that read."""
    version: int = 0
    """Of the playbook afterwards."""
    sandbox: bool = False


class _Practising:
    """A playbook that advises every run, and keeps back what it would be fed until a round is over."""

    def __init__(self, playbook: Playbook) -> None:
        self._playbook = playbook
        self.episodes: list[Episode] = []

    async def advise(self, text: str, *, tools: Sequence[str], run_id: str = "", **who: Any) -> Sequence[Advice]:
        return await self._playbook.advise(text, tools=tools, **who)  # nobody's run is held out of practice

    async def feed(self, episode: Episode) -> None:
        # In a sandbox nobody was asked: that a call was let through is no word of a person's.
        calls = tuple(replace(call, decided=None) for call in episode.calls)
        labels = tuple(label for label in episode.labels if label.source is not LabelSource.DECISION)
        episode = replace(episode, domain=self._playbook.domain, calls=calls, labels=labels, verdict=None)
        self.episodes.append(episode)


async def practise(
    book: Playbook,
    agent: Agent,
    requests: Sequence[str],
    *,
    sandbox: ToolLibrary | None = None,
    rounds: int = 2,
    concurrency: int = 4,
    **options: Unpack[RunOptions],
) -> Practice:
    """Let an agent try requests and learn from how it went, round by round; it ends early where nothing new is learned.

    ``sandbox`` holds the agent's tools over something that may be changed. Other options as for ``run``.
    """
    library = options.pop("library", None) or agent.own_library
    async with library:
        reading = [item.name for item in library if item.specification.read_only]
    if sandbox is not None:
        if missing := [item.name for item in agent.tools if item.name not in sandbox]:
            raise ConfigurationError(f"the sandbox lacks tools of the agent: {', '.join(missing)}")
        options["approver"] = lambda _: Approve()
        options["library"] = sandbox
    else:
        kept = tuple(item for item in agent.tools if item.name in reading)
        if not kept:
            raise ConfigurationError("no tool of the agent is declared to only read: name a sandbox to practise in")
        agent = agent.model_copy(update={"tools": kept})
        options["library"] = library.only(item.name for item in kept)
    turns, good = asyncio.Semaphore(concurrency), list[int]()

    async def one(request: str) -> Sequence[Episode]:
        practising = _Practising(book)
        async with turns:
            given: RunOptions = {**options, "playbook": practising}
            await run(agent, request, **given)
        return practising.episodes

    for _ in range(rounds):
        await book.bullets()
        before = book.version
        episodes = [item for made in await asyncio.gather(*map(one, requests)) for item in made]
        good.append(await book.take_in_practice(episodes, whole=sandbox is not None))
        if book.version == before:
            break
    return Practice(
        requests=len(requests),
        rounds=len(good),
        good=tuple(good),
        version=book.version,
        sandbox=sandbox is not None,
    )
