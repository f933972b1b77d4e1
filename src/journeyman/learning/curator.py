"""What lessons change in a playbook: counters, new strategies, merges, states. Small changes, each explained."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TypeVar

from journeyman.core.approvals import LabelSource
from journeyman.core.data import new_id
from journeyman.core.playbook import RECENT, Lookup, PlaybookBullet, StrategyState, ToolCallingStrategy
from journeyman.learning.alignment import merged
from journeyman.learning.evidence import judged, lower_bound, only_failed
from journeyman.learning.examples import asks_to_read
from journeyman.learning.forms import LearningSettings, prose
from journeyman.learning.index import BASELINE, StrategyIndex
from journeyman.learning.reflector import Lesson
from journeyman.retrieval.embedders import default_embedder

TAUGHT = "taught"
"""The tag of what was learned from runs that somebody chose: of a stronger model, or of a person."""
MOST_PHRASINGS = 5
MOST_RUNS = 20
"""Runs that a strategy names as its origin."""
B = TypeVar("B", bound=PlaybookBullet)
_SURE = (LabelSource.RATING, LabelSource.VERIFIER)


class Curator:
    """Decides what lessons change. It changes the index as it goes, so that the next lesson sees it.

    A program can have one of its own, without a playbook: ``bullets`` are what its lessons came to.
    """

    def __init__(
        self, index: StrategyIndex | None = None, settings: LearningSettings | None = None, *, domain: str = "general"
    ) -> None:
        self._index = StrategyIndex(embedder=default_embedder()) if index is None else index
        self._settings = settings or LearningSettings()
        self._domain = domain
        self.changed: dict[str, PlaybookBullet] = {}
        self.before: dict[str, PlaybookBullet | None] = {}
        """What changed bullets were, for when the change cannot be written."""
        self.removed: list[str] = []

    @property
    def bullets(self) -> list[PlaybookBullet]:
        """All that there is now."""
        return list(self._index.bullets.values())

    async def merge(self, bullets: Iterable[PlaybookBullet]) -> list[PlaybookBullet]:
        """Add bullets of either format and merge those that say the same; returns all that there are then."""
        await self.put(bullets)
        await self.tidy(now=time.time())
        return self.bullets

    async def take_in(self, *lessons: Lesson, now: float | None = None, taught: bool = False) -> None:
        """Lessons: each is credit for what the run was given, and what it did itself."""
        moment = datetime.fromtimestamp(time.time() if now is None else now, UTC)
        for lesson in lessons:
            await self._take_in(lesson, moment, taught=taught)

    async def beware(self, *lessons: Lesson, now: float) -> None:
        """Keep the pitfalls of lessons, and nothing else of them."""
        for pitfall in (pitfall for lesson in lessons for pitfall in lesson.pitfalls):
            await self._count_pitfall(pitfall, datetime.fromtimestamp(now, UTC))

    async def _take_in(self, lesson: Lesson, moment: datetime, *, taught: bool) -> None:
        counted = await self._credit(lesson, moment)
        for pitfall in lesson.pitfalls:
            await self._count_pitfall(pitfall, moment)
        if lesson.abstracted is None or not lesson.sequence:
            return
        target = await self._same(lesson)
        if target is None:
            await self._put(self._created(lesson, moment, taught=taught))
            return
        more = self._noted(target, lesson, moment, taught=taught)
        if target.id not in counted:
            more = self._counted(more, lesson.good, self._source(lesson), moment)
        await self._put(more)

    async def _credit(self, lesson: Lesson, moment: datetime) -> set[str]:
        """Count the outcome for every strategy that the run was given, or would have been given."""
        good, counted = lesson.good, set[str]()
        given = [advice for advice in lesson.episode.advice if advice.strategy_id is not None]
        if not any(advice.turns or advice.effective for advice in given if not advice.holdout):
            await self._count_baseline(good, moment)
        for advice in given:
            bullet = self._index.bullets.get(advice.strategy_id or "")
            if bullet is None:
                continue
            if not isinstance(bullet, ToolCallingStrategy):
                if not advice.holdout and bullet.lookup is None:  # where a value stands does not depend on outcomes
                    await self._put(_tallied(bullet, good, moment))
                continue
            if advice.holdout:
                field = "holdout_helpful" if good else "holdout_harmful"
                await self._put(self._judged(_updated(bullet, moment, **{field: getattr(bullet, field) + 1})))
                continue
            counted.add(bullet.id)
            used = bullet.model_copy(update={"recent": (*bullet.recent, good)[-RECENT:]})
            await self._put(self._counted(used, good, self._source(lesson), moment))
        return counted

    async def _same(self, lesson: Lesson) -> ToolCallingStrategy | None:
        """The strategy that says the same: an equal sequence, for a similar request, of the same owner."""
        assert lesson.abstracted is not None
        neighbours = await self._index.alike(
            lesson.abstracted.key,
            lesson.sequence,
            owner=self._owner(lesson),
            wanted=lambda other: other.state is not StrategyState.RETIRED,
        )
        near = [item for item in neighbours if item.similarity >= self._settings.similar]
        return max(near, key=lambda item: item.similarity).strategy if near else None

    def _owner(self, lesson: Lesson) -> str | None:
        """Whose a strategy is. One that changes something stays its teacher's, until somebody else vouches for it; and
        always where only a read was asked for: nobody's runs have another's read turned into a change."""
        principal_id = lesson.episode.principal_id
        changing = [call.tool_name for call in lesson.episode.used if call.effect]
        own = bool(changing) and (not _vouched(lesson) or asks_to_read(lesson.episode.request, changing))
        return principal_id if own or not self._settings.shared else None

    def _source(self, lesson: Lesson) -> LabelSource:
        """On whose word a lesson rests. What somebody says of their own run activates nothing for others."""
        own = self._owner(lesson) is not None or lesson.episode.principal_id is None
        return lesson.label.source if own or _vouched(lesson) else LabelSource.JUDGE

    def _created(self, lesson: Lesson, moment: datetime, *, taught: bool) -> ToolCallingStrategy:
        assert lesson.abstracted is not None
        episode, shown = lesson.episode, lesson.abstracted.demonstration
        good = lesson.good
        made = ToolCallingStrategy(
            id=new_id("strategy"),
            content=prose(lesson.abstracted.key, shown, lesson.sequence),
            helpful_count=int(good),
            harmful_count=int(not good),
            tags=(TAUGHT,) if taught else (),
            created_at=moment,
            last_updated=moment,
            domain=self._domain,
            principal_id=self._owner(lesson),
            provenance=(episode.run_id,) if episode.run_id else (),
            tool_sequence=lesson.sequence,
            avg_iterations=float(episode.iterations),
            example_task=lesson.abstracted.key,
            sub_goal=lesson.abstracted.key,
            demonstration=shown,
            preconditions=(f"after {episode.previous}",) if episode.previous else (),
            label_sources={self._source(lesson): 1},
            models=(episode.model,) if episode.model else (),
        )
        return self._judged(made)

    def _noted(
        self, target: ToolCallingStrategy, lesson: Lesson, moment: datetime, *, taught: bool
    ) -> ToolCallingStrategy:
        """A strategy with what another run of the same kind adds to it, but for the counters."""
        assert lesson.abstracted is not None
        episode, shown = lesson.episode, lesson.abstracted
        changes: dict[str, Any] = {"version": target.version + 1, "last_updated": moment}
        if shown.key not in target.texts and len(target.phrasings) < MOST_PHRASINGS:
            changes["phrasings"] = (*target.phrasings, shown.key)
        if episode.run_id and episode.run_id not in target.provenance:
            changes["provenance"] = (*target.provenance, episode.run_id)[-MOST_RUNS:]
        if episode.model and episode.model not in target.models:
            changes["models"] = (*target.models, episode.model)
        if taught and TAUGHT not in target.tags:
            changes["tags"] = (*target.tags, TAUGHT)
        condition = f"after {episode.previous}"
        if episode.previous and condition not in target.preconditions and len(target.preconditions) < MOST_PHRASINGS:
            changes["preconditions"] = (*target.preconditions, condition)
        if lesson.good:
            count, known, new = target.helpful_count, target.demonstration, shown.demonstration
            changes["avg_iterations"] = (target.avg_iterations * count + episode.iterations) / (count + 1)
            if known is not None and not _shows_better(target, lesson, taught=taught):
                changes["demonstration"] = merged(known, new)
            else:
                changes["demonstration"] = better = new if known is None else merged(new, known)
                changes["content"] = prose(shown.key, better, target.tool_sequence)
        return target.model_copy(update=changes)

    def _counted(
        self, strategy: ToolCallingStrategy, good: bool, source: LabelSource, moment: datetime
    ) -> ToolCallingStrategy:
        sources = {**strategy.label_sources, source: strategy.label_sources.get(source, 0) + 1}
        return self._judged(_updated(_tallied(strategy, good, moment), moment, label_sources=sources))

    def _judged(self, strategy: ToolCallingStrategy) -> ToolCallingStrategy:
        sure = TAUGHT in strategy.tags or any(strategy.label_sources.get(source) for source in _SURE)
        needed = 1 if sure else self._settings.needed
        state, why = judged(strategy, baseline=self.baseline, needed=needed)
        changes: dict[str, Any] = {"state": state, "state_reason": why}
        if strategy.section != "Observations":
            changes["section"] = "Pitfalls" if only_failed(strategy, self._settings.needed) else "Strategies"
        return strategy.model_copy(update=changes)

    @property
    def baseline(self) -> float | None:
        """How often runs without advice succeed; None while too few have been seen."""
        counted = self._index.bullets.get(BASELINE)
        if counted is None or counted.helpful_count + counted.harmful_count < 5:
            return None
        return counted.helpful_count / (counted.helpful_count + counted.harmful_count)

    async def _count_baseline(self, good: bool, moment: datetime) -> None:
        counted = self._index.bullets.get(BASELINE) or PlaybookBullet(
            id=BASELINE,
            content="How runs without advice went.",
            section="Observations",
            domain=self._domain,
            created_at=moment,
        )
        await self._put(_tallied(counted, good, moment))

    async def _count_pitfall(self, pitfall: PlaybookBullet, moment: datetime) -> None:
        owner = None if self._settings.shared else pitfall.principal_id
        known = self._index.bullets.get(pitfall.id)
        if known is None:
            await self._put(pitfall.model_copy(update={"domain": self._domain, "principal_id": owner}))
        else:
            changes: dict[str, Any] = {"provenance": _both(known.provenance, pitfall.provenance)[-MOST_RUNS:]}
            if pitfall.lookup is not None and _says_more(pitfall.lookup, known.lookup):
                changes |= {"lookup": pitfall.lookup, "content": pitfall.content}
            await self._put(_tallied(known, True, moment).model_copy(update=changes))

    # --- looking after the whole

    async def relabel(self, run_id: str, good: bool, source: LabelSource, *, now: float) -> int:
        """A later and better label of a run that was learned from; returns how many strategies it changed."""
        moment, relabelled = datetime.fromtimestamp(now, UTC), 0
        for key in sorted(self._index.by_run.get(run_id, ())):
            strategy = self._index.bullets.get(key)
            if not isinstance(strategy, ToolCallingStrategy):
                continue
            before = "harmful_count" if good else "helpful_count"  # it was taken for the opposite
            corrected = strategy.model_copy(update={before: max(0, getattr(strategy, before) - 1)})
            await self._put(self._counted(corrected, good, source, moment))
            relabelled += 1
        return relabelled

    async def set_state(self, strategy_id: str, state: StrategyState, reason: str, *, now: float) -> bool:
        """A person's word on a strategy. Whether there is one of that id."""
        strategy = self._index.bullets.get(strategy_id)
        if not isinstance(strategy, ToolCallingStrategy):
            return False
        recent = () if state in (StrategyState.ACTIVE, StrategyState.SHADOW) else strategy.recent
        moment = datetime.fromtimestamp(now, UTC)
        await self._put(_updated(strategy, moment, state=state, state_reason=reason, recent=recent))
        return True

    async def tidy(self, *, now: float) -> None:
        """Merge what says the same, and retire what has the least evidence where there is too much."""
        moment = datetime.fromtimestamp(now, UTC)
        for strategy in sorted(self._index.strategies, key=lambda item: item.created_at):
            if strategy.id not in self._index.bullets or strategy.state is StrategyState.RETIRED:
                continue
            for near in await self._doubles(strategy):
                strategy = self._judged(_merged(strategy, near, moment))
                await self._put(strategy)
                await self._remove(near.id)
        for bullet in [item for item in self.bullets if not isinstance(item, ToolCallingStrategy)]:
            if bullet.id in self._index.bullets and bullet.tool_name is None and bullet.id != BASELINE:
                await self._merge_plain(self._index.bullets[bullet.id], moment)
        living = [item for item in self._index.strategies if item.state is not StrategyState.RETIRED]
        if len(living) > self._settings.capacity:
            living.sort(key=lambda item: (lower_bound(item.helpful_count, item.harmful_count), item.last_updated))
            for item in living[: len(living) - self._settings.capacity]:
                why = "made room: it had the least evidence"
                await self.set_state(item.id, StrategyState.RETIRED, why, now=now)

    async def _doubles(self, strategy: ToolCallingStrategy) -> list[ToolCallingStrategy]:
        neighbours = await self._index.alike(
            strategy.texts[0] if strategy.texts else strategy.content,
            strategy.tool_sequence,
            owner=strategy.principal_id,
            wanted=lambda other: other.id != strategy.id and other.state is strategy.state,
        )
        return [near.strategy for near in neighbours if near.similarity >= self._settings.similar]

    async def _merge_plain(self, bullet: PlaybookBullet, moment: datetime) -> None:
        """Count what other bullets without a sequence say in nearly the same words for this one."""
        least = self._settings.similar
        near = await self._index.plain(bullet.content, owners=[bullet.principal_id], most=MOST_RUNS, least=least)
        for other, similarity in near:
            if other.id == bullet.id or other.section != bullet.section or similarity < least:
                continue
            counts = {name: getattr(bullet, name) + getattr(other, name) for name in ("helpful_count", "harmful_count")}
            bullet = _updated(bullet, moment, **counts, tags=_both(bullet.tags, other.tags))
            await self._put(bullet)
            await self._remove(other.id)

    async def put(self, bullets: Iterable[PlaybookBullet]) -> None:
        """Add bullets as they are, or replace those of the same ids."""
        for bullet in bullets:
            await self._put(bullet)

    async def restore(self, wanted: Mapping[str, PlaybookBullet]) -> None:
        """Make the index hold exactly these bullets."""
        for key in [key for key in self._index.bullets if key not in wanted]:
            await self._remove(key)
        await self.put(bullet for key, bullet in wanted.items() if self._index.bullets.get(key) != bullet)

    async def _put(self, bullet: PlaybookBullet) -> None:
        self.before.setdefault(bullet.id, self._index.bullets.get(bullet.id))
        self.changed[bullet.id] = bullet
        await self._index.put([bullet])

    async def _remove(self, key: str) -> None:
        self.before.setdefault(key, self._index.bullets.get(key))
        self.changed.pop(key, None)
        self.removed.append(key)
        self._index.remove([key])

    async def undo(self) -> None:
        """Put the index back to what it was: the change could not be written."""
        self._index.remove([key for key, bullet in self.before.items() if bullet is None])
        await self._index.put([bullet for bullet in self.before.values() if bullet is not None])
        self.changed.clear()
        self.before.clear()
        self.removed.clear()


def _updated(bullet: B, moment: datetime, **changes: Any) -> B:
    """The next version of a bullet."""
    return bullet.model_copy(update={**changes, "version": bullet.version + 1, "last_updated": moment})


def _tallied(bullet: B, good: bool, moment: datetime) -> B:
    field = "helpful_count" if good else "harmful_count"
    return _updated(bullet, moment, **{field: getattr(bullet, field) + 1})


def _both(one: tuple[str, ...], other: tuple[str, ...]) -> tuple[str, ...]:
    """What stands in either, once, in order."""
    return tuple(dict.fromkeys((*one, *other)))


def _says_more(lookup: Lookup, known: Lookup | None) -> bool:
    """Whether a run showed more exactly than those before where a value is found."""

    def told(item: Lookup) -> tuple[bool, bool, int]:
        return bool(item.found_by), bool(item.field), len(item.allowed)

    return known is None or told(lookup) > told(known)


def _shows_better(target: ToolCallingStrategy, lesson: Lesson, *, taught: bool) -> bool:
    """Whether the new demonstration replaces the old one: from a better teacher, or the first, one that shows that a
    call is made for each row, or a shorter one."""
    assert lesson.abstracted is not None
    if target.demonstration is None:
        return True
    if taught != (TAUGHT in target.tags):
        return taught
    new, old = (
        (all("each" not in call.places.values() for call in shown.calls), len(shown.calls))
        for shown in (lesson.abstracted.demonstration, target.demonstration)
    )
    return new < old


def _merged(kept: ToolCallingStrategy, other: ToolCallingStrategy, moment: datetime) -> ToolCallingStrategy:
    helpful = kept.helpful_count + other.helpful_count
    iterations = kept.avg_iterations * kept.helpful_count + other.avg_iterations * other.helpful_count
    phrasings = [text for text in _both(kept.texts[1:], other.texts) if text not in kept.texts[:1]]
    return _updated(
        kept,
        moment,
        helpful_count=helpful,
        harmful_count=kept.harmful_count + other.harmful_count,
        holdout_helpful=kept.holdout_helpful + other.holdout_helpful,
        holdout_harmful=kept.holdout_harmful + other.holdout_harmful,
        recent=(*kept.recent, *other.recent)[-RECENT:],
        label_sources=dict(Counter(kept.label_sources) + Counter(other.label_sources)),
        phrasings=tuple(phrasings[:MOST_PHRASINGS]),
        provenance=_both(kept.provenance, other.provenance)[-MOST_RUNS:],
        models=_both(kept.models, other.models),
        tags=_both(kept.tags, other.tags),
        preconditions=_both(kept.preconditions, other.preconditions)[:MOST_PHRASINGS],
        avg_iterations=iterations / helpful if helpful else kept.avg_iterations,
    )


def _vouched(lesson: Lesson) -> bool:
    """Whether somebody else than the run's principal says how it went: another person, or a verifier."""
    label, principal_id = lesson.label, lesson.episode.principal_id
    if label.source is LabelSource.VERIFIER or principal_id is None:
        return True
    return label.source is LabelSource.RATING and label.by is not None and label.by != principal_id
