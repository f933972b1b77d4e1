"""A playbook: the strategies of one domain, found by request, given to runs as advice, and fed by how the runs went."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar

from journeyman.core.approvals import Label, LabelSource
from journeyman.core.data import LOG_FIELDS, digest, unchecked
from journeyman.core.errors import ConfigurationError, PlaybookConflictError
from journeyman.core.playbook import (
    METADATA,
    Advice,
    PlaybookBullet,
    PlaybookChange,
    PlaybookDiff,
    PlaybookState,
    PlaybookStore,
    PlaybookVersion,
    StrategyState,
    ToolCallingStrategy,
    playbook_diff,
)
from journeyman.core.policy import Principal
from journeyman.core.protocols import Embedder
from journeyman.core.runs import AgentResponse
from journeyman.core.storing import CursorBatch
from journeyman.learning.curator import Curator
from journeyman.learning.episodes import Episode, from_conversation, from_response
from journeyman.learning.evidence import only_failed
from journeyman.learning.examples import forms_alike
from journeyman.learning.forms import LearningSettings, as_advice, lookup_advice, warning_advice, worded_alike
from journeyman.learning.index import Ranked, StrategyIndex, rank
from journeyman.learning.reflector import Lesson, Reflector
from journeyman.retrieval.embedders import default_embedder

_Change = tuple[PlaybookVersion, dict[str, PlaybookBullet | None]]


class MemoryPlaybooks:
    """Playbooks that live as long as their process: every change in a list. For programs without a store."""

    def __init__(self) -> None:
        self._changes: dict[str, list[_Change]] = {}

    async def read(self, domain: str, *, after: int = 0) -> PlaybookState:
        return self._folded(domain, self._changes.get(domain, [])[after:])

    async def commit(
        self, changes: Sequence[PlaybookChange], *, now: float, batch: CursorBatch | None = None
    ) -> Mapping[str, int]:
        for change in changes:
            if (have := len(self._changes.get(change.domain, ()))) != change.expected:
                raise PlaybookConflictError(
                    f"playbook {change.domain!r} is at version {have}, not {change.expected}: read it again"
                )
        for change in changes:
            kept = self._changes.setdefault(change.domain, [])
            version = PlaybookVersion(
                version=len(kept) + 1,
                at=now,
                reason=change.reason,
                changed=len(change.bullets),
                removed=len(change.removed),
            )
            kept.append((version, {**{b.id: b for b in change.bullets}, **dict.fromkeys(change.removed)}))
        return {change.domain: change.expected + 1 for change in changes}

    async def at(self, domain: str, version: int) -> PlaybookState:
        kept = self._changes.get(domain, [])
        if not 0 <= version <= len(kept):
            raise ConfigurationError(f"playbook {domain!r} has no version {version}: it is at version {len(kept)}")
        return self._folded(domain, kept[:version], version)

    async def history(self, domain: str, *, limit: int = 50) -> Sequence[PlaybookVersion]:
        return [version for version, _ in reversed(self._changes.get(domain, []))][:limit]

    async def domains(self) -> Sequence[str]:
        return sorted(self._changes)

    def _folded(self, domain: str, changes: Sequence[_Change], version: int | None = None) -> PlaybookState:
        latest = {key: bullet for _, changed in changes for key, bullet in changed.items()}
        fields = {
            "version": len(self._changes.get(domain, ())) if version is None else version,
            "bullets": tuple(bullet for bullet in latest.values() if bullet is not None),
            "removed": tuple(key for key, bullet in latest.items() if bullet is None),
        }
        return unchecked(PlaybookState, fields)


logger = logging.getLogger("journeyman.learning")

MOST_TRIES = 50
"""How often a change is made again because somebody else was faster."""
MOST_POOLED = 40
"""Examples of strategies that make the same calls, from which values of a request are told."""
SCALE = 0.36
"""Of what speaks for the best sequence (words, meaning, forms of values, its lead): so much makes it comparable with
``LearningSettings.nearest``. Tuned on half of three worlds, in wordings that no strategy had served."""
UNKNOWN_FORMS = 0.5
"""Where a strategy has no example to compare with."""
SEVERAL = 3
"""Strategies that a model is given which can use several."""
AT_HAND = 25
"""Up to so many tools a run is told of their pitfalls, whatever it was asked. Of more, most are not for the request."""
REFRESH_SECONDS = 2.0
"""How old what is known of the store may be when a run asks for advice."""

Run: TypeAlias = "Episode | AgentResponse[Any] | Sequence[dict[str, Any]] | str"
"""What can be learned from: an episode, a response, OpenAI-style messages, or the id of a stored run."""
_DEFAULT: Any = object()
T = TypeVar("T")


class Playbook:
    """The strategies of one domain. ``run(…, playbook=playbook)`` uses and feeds it.

    Without a store it lives as long as its process. The embedder is the one that works offline, where its extra is
    installed; None searches by words alone. ``find_run`` looks stored runs up by their ids.
    """

    def __init__(
        self,
        domain: str = "general",
        *,
        store: PlaybookStore | None = None,
        settings: LearningSettings | None = None,
        embedder: Embedder | None = _DEFAULT,
        now: Callable[[], float] = time.time,
        find_run: Callable[[str], Awaitable[Episode | None]] | None = None,
    ) -> None:
        if not domain.strip():
            raise ConfigurationError("a playbook needs a domain: write Playbook('support')")
        self.domain = domain
        self.settings = settings or LearningSettings()
        self._store: PlaybookStore = MemoryPlaybooks() if store is None else store
        self._now = now
        self._find_run = find_run
        self._embedder = embedder
        self._index: StrategyIndex | None = None
        self._reflector = Reflector()
        self._lock = asyncio.Lock()
        self._read_at = 0.0
        self.version = 0
        """The version that this process has read."""

    # --- looking

    async def bullets(self) -> list[PlaybookBullet]:
        """Everything in it."""
        return list((await self._current(fresh=True)).bullets.values())

    async def strategies(self, *, state: StrategyState | None = None) -> list[ToolCallingStrategy]:
        """All strategies, those with the most evidence first; or only those in one state."""
        wanted = [item for item in (await self._current(fresh=True)).strategies if state in (None, item.state)]
        return sorted(wanted, key=lambda item: (-item.helpful_count, item.harmful_count, item.id))

    async def get(self, bullet_id: str) -> PlaybookBullet | None:
        return (await self._current(fresh=True)).bullets.get(bullet_id)

    async def retrieve(
        self,
        text: str,
        *,
        tools: Sequence[str] | None = None,
        k: int = 1,
        principal: Principal | None = None,
        previous: str | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> list[ToolCallingStrategy]:
        """Strategies for a request, best first; none where nothing is near, or the evidence is divided.

        Those come first that served a request of the same wording; what others say against them does not count then.

        Only those whose tools are all among ``tools``, and which are the principal's own or everybody's. ``where`` is
        compared with the index's metadata: ``domain`` and ``tool_count`` must be equal, ``success_rate`` at least that.
        """
        fits = _fitting(where or {})
        ranked = await self.ranked(text, tools=tools, principal=principal, previous=previous, wanted=fits)
        if not ranked:
            return []
        alike = [item for item in ranked if (same := worded_alike(item.strategy, text)) is not None and same.exact]
        if alike:
            others = [item for item in ranked if item not in alike]
            divided = alike[0].share < self.settings.agreement * sum(item.share for item in alike)
            return [] if divided else [item.strategy for item in (*alike, *others)[:k]]
        forms = {item.strategy.id: _forms_alike(item, text) for item in ranked}
        ranked.sort(key=lambda item: -item.share * (0.5 + forms[item.strategy.id]))
        best, evidence = ranked[0], [item.near.evidence for item in ranked]
        lead = evidence[0] - max(evidence[1:], default=0.0)
        near = SCALE * (evidence[0] + forms[best.strategy.id] + lead)
        divided = near < self.settings.nearest or best.share < self.settings.agreement
        return [] if divided else [item.strategy for item in ranked[:k]]

    async def ranked(
        self,
        text: str,
        *,
        tools: Sequence[str] | None = None,
        principal: Principal | None = None,
        previous: str | None = None,
        wanted: Callable[[ToolCallingStrategy], bool] = lambda _: True,
    ) -> list[Ranked]:
        """All sequences that speak for a request, with their share of the votes, however little that is."""
        index = await self._current()
        there = None if tools is None else set(tools)

        def offered(strategy: ToolCallingStrategy) -> bool:
            return (
                strategy.available and (there is None or there.issuperset(strategy.tool_sequence)) and wanted(strategy)
            )

        near = await index.search(text, owners=_owners(principal), k=self.settings.neighbours, wanted=offered)
        return rank(near, index.transitions, previous=previous)

    # --- advising

    async def advise(
        self,
        text: str,
        *,
        tools: Sequence[str],
        principal: Principal | None = None,
        previous: str | None = None,
        run_id: str = "",
    ) -> list[Advice]:
        """What a run is given. A share of all runs, chosen by their ids, is a holdout: noted, and not given."""
        settings = self.settings
        owners, spare = _owners(principal), settings.demonstrations is None
        most = SEVERAL if settings.demonstrations is None else settings.demonstrations
        strategies = await self.retrieve(text, tools=tools, k=most, principal=principal, previous=previous)
        strategies[:1] = [await self._pooled(strategy, text, owners) for strategy in strategies[:1]]
        lookups = () if self._index is None else self._index.lookups(tools, owners=owners)
        advice = [
            as_advice(strategy, settings, tools=tools, request=text, lookups=lookups) for strategy in strategies[:1]
        ]
        for strategy in strategies[1:]:
            # Of several the best alone says what to do next: two next steps would contradict each other.
            form = "system" if settings.form == "steps" else settings.form
            more = as_advice(strategy, settings.model_copy(update={"form": form}), tools=tools, request=text)
            advice.insert(0, more.model_copy(update={"spare": spare}))  # the best is last
        if self._index is not None:
            advice = [*await self._warnings(self._index, text, tools, owners), *advice]
        if settings.pitfalls and self._index is not None:
            near = list(dict.fromkeys(name for strategy in strategies for name in strategy.tool_sequence))
            if not near and len(tools) <= AT_HAND:
                near = list(tools)
            bullets = self._index.pitfalls(near, owners=owners, most=settings.pitfalls)
            plain = await self._index.plain(text, owners=owners, most=settings.pitfalls, least=settings.nearest)
            bullets += [bullet for bullet, _ in plain if bullet.helpful_count >= bullet.harmful_count]
            advice += [Advice(strategy_id=bullet.id, text=bullet.content) for bullet in bullets]
        if settings.lookups:
            advice = lookup_advice(lookups) + advice
        if advice and run_id and self.is_holdout(run_id):
            advice = [item.model_copy(update={"holdout": True}) for item in advice]
        return advice

    async def _pooled(self, best: ToolCallingStrategy, text: str, owners: Sequence[str | None]) -> ToolCallingStrategy:
        """A strategy with the examples of all others that make the same calls, the nearest to a request last."""
        shown, index = best.demonstration, self._index
        if shown is None or index is None:
            return best
        near = [
            item
            for owner in dict.fromkeys(owners)
            for item in await index.alike(text, best.tool_sequence, owner=owner, wanted=lambda other: other.available)
        ]
        calls = [call.tool_name for call in shown.calls]
        others = [item.strategy.demonstration for item in sorted(near, key=lambda item: item.similarity)]
        pool = [
            example
            for other in others
            if other is not None and [call.tool_name for call in other.calls] == calls
            for example in other.examples
        ]
        examples = {example.request: example for example in (pool or shown.examples)}
        kept = shown.model_copy(update={"examples": tuple(examples.values())[-MOST_POOLED:]})
        return best.model_copy(update={"demonstration": kept})

    async def _warnings(
        self, index: StrategyIndex, text: str, tools: Sequence[str], owners: Sequence[str | None]
    ) -> list[Advice]:
        """What has been tried for such a request and has only ever failed: the nearest of that."""

        def failed(strategy: ToolCallingStrategy) -> bool:
            there = strategy.state is StrategyState.SHADOW and set(strategy.tool_sequence) <= set(tools)
            return there and only_failed(strategy, self.settings.needed)

        near = await index.search(text, owners=owners, k=1, wanted=failed)
        return [warning_advice(item.strategy) for item in near if item.similarity >= self.settings.nearest]

    def is_holdout(self, run_id: str) -> bool:
        """Whether a run goes without advice. The same run gets the same answer in every process."""
        return int(digest("holdout", self.domain, run_id)[:8], 16) < self.settings.holdout * 2**32

    # --- learning

    async def feed(self, episode: Episode) -> None:
        """Learn from a run that has just ended."""
        await self.learn([episode], taught=False)

    async def learn(
        self,
        runs: Iterable[Run] | Run,
        *,
        request: str | None = None,
        taught: bool = True,
        labels: Sequence[Label] = (),
        own_values: bool = False,
    ) -> int:
        """Learn from runs that somebody chose: of this agent, of other agents, of stronger models, of people.

        Strategies from ``taught`` runs are offered at once, others when they have been seen to work. Returns from how
        many of the runs something was learned. ``labels`` are said of each of them; ``request`` is how people would
        ask for what they did, which a chain of calls does not say by itself. With ``own_values`` later runs are shown
        the values of these, where they are else made up.
        """
        chosen: list[Any] = [runs] if isinstance(runs, str | Episode | AgentResponse) else list(runs)
        if chosen and isinstance(chosen[0], Mapping):
            chosen = [chosen]  # the messages of one conversation
        episodes = [episode for item in chosen for episode in await self._episodes(item, labels)]
        if request is not None:
            episodes = [replace(episode, request=request) for episode in episodes]
        return await self.take_in(episodes, taught=taught, own_values=own_values)

    def alone(self) -> asyncio.Lock:
        """Held around ``draft`` and what becomes of it."""
        return self._lock

    async def draft(self, episodes: Sequence[Episode]) -> Draft:
        """What these episodes change, not yet written; called by whoever is ``alone`` with it."""
        lessons = self._lessons(episodes)
        curator = Curator(await self._refreshed(), self.settings, domain=self.domain)
        await curator.take_in(*lessons, now=self._now())
        change = self.change_of(curator, _learned(len(lessons))) if curator.changed else None
        return Draft(self, curator, change, len(lessons))

    async def take_in(self, episodes: Sequence[Episode], *, taught: bool = False, own_values: bool = False) -> int:
        lessons = self._lessons(episodes, own_values=own_values)
        if lessons:
            reason = _learned(len(lessons))
            await self._change(reason, lambda curator: curator.take_in(*lessons, now=self._now(), taught=taught))
        return len(lessons)

    async def take_in_practice(self, episodes: Sequence[Episode], *, whole: bool) -> int:
        """What practice taught; returns how many runs were good. Of runs that had not the ``whole`` set of tools only
        pitfalls are kept: how such a run ended says nothing of what it was given, or did."""
        lessons = self._lessons(episodes)
        if whole:
            await self.take_in(episodes)
            return sum(lesson.good for lesson in lessons)
        await self._change(_learned(len(lessons)), lambda curator: curator.beware(*lessons, now=self._now()))
        return 0

    def _lessons(self, episodes: Sequence[Episode], *, own_values: bool = False) -> list[Lesson]:
        """What episodes teach. One that cannot be read teaches nothing, and keeps nobody from learning of others."""
        lessons: list[Lesson] = []
        for episode in episodes:
            try:
                if (lesson := self._reflector.reflect(episode, own_values=own_values)) is not None:
                    lessons.append(lesson)
            except Exception:
                logger.exception("nothing was learned from a run", extra={LOG_FIELDS: {"run_id": episode.run_id}})
        return lessons

    async def _episodes(self, item: Run, labels: Sequence[Label]) -> list[Episode]:
        episodes: list[Episode | None]
        if isinstance(item, Episode):
            episodes = [item]
        elif isinstance(item, AgentResponse):
            episodes = [from_response(item, domain=self.domain)]
        elif not isinstance(item, str):
            episodes = [*from_conversation(item, domain=self.domain)]
        elif self._find_run is not None:
            episodes = [await self._find_run(item)]
        else:
            raise ConfigurationError(
                f"run {item!r} cannot be looked up: use the playbook of an app, app.playbooks[{self.domain!r}]"
            )
        return [replace(episode, labels=(*episode.labels, *labels)) for episode in episodes if episode is not None]

    async def rate(self, run_id: str, good: bool, *, source: LabelSource = LabelSource.RATING) -> int:
        """A later label of a run that was learned from; returns how many strategies it changed."""
        reason = f"run {run_id} was rated {'good' if good else 'bad'}"
        return await self._change(reason, lambda curator: curator.relabel(run_id, good, source, now=self._now()))

    async def set_state(
        self, strategy_id: str, state: StrategyState, *, reason: str = "", by: str | None = None
    ) -> None:
        """A person's word: activate, quarantine or retire a strategy. Raises ConfigurationError where there is none."""
        why = reason or f"{state.value} by {by or 'a person'}"
        change = f"{strategy_id}: {why}"
        if not await self._change(change, lambda curator: curator.set_state(strategy_id, state, why, now=self._now())):
            raise ConfigurationError(f"playbook {self.domain!r} has no strategy {strategy_id!r}")

    async def tidy(self) -> None:
        """Merge strategies that say the same, and retire what has the least evidence where there are too many."""
        await self._change("tidied", lambda curator: curator.tidy(now=self._now()))

    async def put(self, bullets: Sequence[PlaybookBullet], *, reason: str = "imported") -> None:
        """Add bullets as they are, or replace those of the same ids."""
        own = [bullet.model_copy(update={"domain": self.domain}) for bullet in bullets]
        await self._change(reason, lambda curator: curator.put(own), even_if_empty=True)

    # --- versions

    async def history(self, *, limit: int = 50) -> Sequence[PlaybookVersion]:
        """The latest changes, newest first."""
        return await self._store.history(self.domain, limit=limit)

    async def at(self, version: int) -> PlaybookState:
        """The whole playbook as it was at a version."""
        return await self._store.at(self.domain, version)

    async def diff(self, since: int, to: int | None = None) -> PlaybookDiff:
        """What changed from one version to another; to what it is now, if the other is left out."""
        after = await (self._store.read(self.domain) if to is None else self.at(to))
        return playbook_diff(self.domain, await self.at(since), after)

    async def rollback(self, to: int) -> int:
        """Make it what it was at a version, as a change of its own; returns the new version."""
        wanted = {bullet.id: bullet for bullet in (await self.at(to)).bullets}
        reason = f"rolled back to version {to}"
        await self._change(reason, lambda curator: curator.restore(wanted), even_if_empty=True)
        return self.version

    # --- the store

    async def _change(self, reason: str, work: Callable[[Curator], Awaitable[T]], *, even_if_empty: bool = False) -> T:
        """Make a change from what the playbook is now, and again where somebody else was faster."""
        async with self._lock:
            for _ in range(MOST_TRIES):
                curator = Curator(await self._refreshed(), self.settings, domain=self.domain)
                try:
                    made = await work(curator)
                    unchanged = not curator.changed and not curator.removed
                    if (unchanged and not even_if_empty) or await self._written(self.change_of(curator, reason)):
                        return made
                except BaseException:
                    await curator.undo()
                    raise
                await curator.undo()
        raise PlaybookConflictError(
            f"playbook {self.domain!r} was changed by others {MOST_TRIES} times in a row: try again later"
        )

    def change_of(self, curator: Curator, reason: str) -> PlaybookChange:
        fields = {
            "domain": self.domain,
            "expected": self.version,
            "bullets": tuple(curator.changed.values()),
            "removed": tuple(curator.removed),
            "reason": reason,
        }
        return unchecked(PlaybookChange, fields)

    async def _written(self, change: PlaybookChange) -> bool:
        try:
            versions = await self._store.commit([change], now=self._now())
        except PlaybookConflictError:
            return False
        self.version = versions[self.domain]
        return True

    async def _current(self, *, fresh: bool = False) -> StrategyIndex:
        """What is known of the store, brought up to date now and then."""
        if not fresh and self._index is not None and time.monotonic() - self._read_at < REFRESH_SECONDS:
            return self._index
        async with self._lock:
            return await self._refreshed()

    async def _refreshed(self) -> StrategyIndex:
        first = self._index is None
        if self._index is None:
            if self._embedder is _DEFAULT:
                self._embedder = default_embedder()
            self._index = StrategyIndex(embedder=self._embedder)
        state = await self._store.read(self.domain, after=self.version)
        if first or state.version != self.version:
            self._index.remove(state.removed)
            await self._index.put(state.bullets)
            self.version = state.version
            fields = {"domain": self.domain, "version": self.version, "bullets": len(self._index)}
            logger.debug("read the playbook", extra={LOG_FIELDS: fields})
        self._read_at = time.monotonic()
        return self._index


@dataclass(frozen=True, slots=True)
class Draft:
    """A change that is to be written together with others."""

    playbook: Playbook
    curator: Curator
    change: PlaybookChange | None
    lessons: int

    def accept(self, versions: Mapping[str, int]) -> None:
        """It was written."""
        self.playbook.version = versions[self.playbook.domain]

    async def undo(self) -> None:
        """It was not."""
        await self.curator.undo()


def _fitting(where: Mapping[str, Any]) -> Callable[[ToolCallingStrategy], bool]:
    """Whether a strategy's metadata are as wanted. Raises ConfigurationError for a name that no index keeps."""
    if unknown := [name for name in where if name not in METADATA]:
        raise ConfigurationError(f"where: unknown {', '.join(unknown)}; there are {', '.join(METADATA)}")

    def fits(strategy: ToolCallingStrategy) -> bool:
        kept = strategy.index_metadata
        same = all(kept[name] == value for name, value in where.items() if name != "success_rate")
        return same and kept["success_rate"] >= where.get("success_rate", 0.0)

    return fits


def _forms_alike(ranked: Ranked, text: str) -> float:
    held = (item.demonstration for item in ranked.kin)
    alike = forms_alike([example for shown in held if shown is not None for example in shown.examples], text)
    return UNKNOWN_FORMS if alike is None else alike


def _learned(count: int) -> str:
    return f"learned from {count} run{'' if count == 1 else 's'}"


def _owners(principal: Principal | None) -> tuple[str | None, ...]:
    return (None,) if principal is None else (principal.id, None)
