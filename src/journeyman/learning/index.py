"""Strategies found by the request, and which tool tends to follow which. In memory; the store keeps what counts.

Each principal's strategies, and everybody's, are domains of their own in one index: a search never touches another's.

What is found is ranked by similarity, times a lower confidence bound, times how well it follows the call before it.
Strategies with the same tool sequence vote together. Where the nearest is far away, or the votes are divided, the
answer is that there is none.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from journeyman.core.playbook import Lookup, PlaybookBullet, ToolCallingStrategy
from journeyman.core.protocols import Embedder
from journeyman.learning.abstraction import find_key
from journeyman.learning.evidence import lower_bound
from journeyman.retrieval.search import HybridIndex, terms

BASELINE = "baseline"
"""The observation that counts how runs without advice went."""
MOST_ALIKE = 2_000
"""Strategies of one sequence that are compared one by one; among more, those near to the request are searched."""
COMMON = 300
"""Strategies that may share a word before it finds none by itself."""
_SEPARATOR = "\x00"
START = ""
"""What stands before the first call of a conversation."""
SHARPNESS = 5.0
"""How much more a nearer neighbour's vote counts. Tuned, with what follows, on half of a corpus; see the benchmark."""
PRIOR = 0.15
"""How much it counts that the first tool tends to follow the call before."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A strategy near a request."""

    strategy: ToolCallingStrategy
    score: float
    """By words and by meaning together: 0 to 2."""
    similarity: float
    """The cosine; where there is no embedder, how many of both texts' words they share."""
    evidence: float = 0.0
    """The words' share and that similarity together: 0 to 2."""


class Transitions:
    """How often a tool follows another. A step is counted once for each success that showed it."""

    def __init__(self) -> None:
        self._after: dict[str, Counter[str]] = defaultdict(Counter)
        self._all: Counter[str] = Counter()

    def count(self, strategy: ToolCallingStrategy, times: int = 1) -> None:
        weight = times * max(1, strategy.helpful_count)
        before = [condition.removeprefix("after ") for condition in strategy.preconditions] or [START]
        steps = [(previous, strategy.tool_sequence[0]) for previous in before]
        for previous, name in [*steps, *pairwise(strategy.tool_sequence)]:
            self._after[previous][name] += weight
            self._all[name] += weight

    def probability(self, name: str, previous: str | None) -> float:
        """Of a tool after another one, smoothed by how often it is called at all."""
        total = self._all.total()
        overall = (self._all[name] + 1) / (total + len(self._all) + 1)
        followers = self._after.get(previous or START)
        if followers is None:
            return overall
        return (followers[name] + 2 * overall) / (followers.total() + 2)


class StrategyIndex:
    """All bullets of one playbook, by id and by request."""

    def __init__(self, *, embedder: Embedder | None = None) -> None:
        self._embeds = embedder is not None
        self._hybrid = HybridIndex(embedder=embedder, usual="sketched", common=COMMON)
        self._texts: dict[str, tuple[str, ...]] = {}
        self.bullets: dict[str, PlaybookBullet] = {}
        self.transitions = Transitions()
        self.by_run: dict[str, set[str]] = defaultdict(set)
        """By run: the bullets that were learned from it."""
        self._pitfalls: dict[str, dict[str, PlaybookBullet]] = defaultdict(dict)
        self._alike: dict[tuple[str | None, tuple[str, ...]], dict[str, None]] = defaultdict(dict)
        """By owner and sequence: ids of strategies."""

    def __len__(self) -> int:
        return len(self.bullets)

    @property
    def strategies(self) -> list[ToolCallingStrategy]:
        return [bullet for bullet in self.bullets.values() if isinstance(bullet, ToolCallingStrategy)]

    async def put(self, bullets: Iterable[PlaybookBullet]) -> None:
        """Add bullets, or replace those of ids that are there. Costs what is new."""
        fresh: dict[str, dict[str, str]] = defaultdict(dict)
        for bullet in bullets:
            before = self.bullets.get(bullet.id)
            self.bullets[bullet.id] = bullet
            for run_id in bullet.provenance:
                self.by_run[run_id].add(bullet.id)
            if not isinstance(bullet, ToolCallingStrategy):
                if bullet.section == "Pitfalls" and bullet.tool_name is not None:
                    self._pitfalls[bullet.tool_name][bullet.id] = bullet
                elif bullet.id != BASELINE:
                    fresh[_plain(bullet.principal_id)][bullet.id] = bullet.content
                continue
            if isinstance(before, ToolCallingStrategy):
                self.transitions.count(before, -1)
                self._forget_kind(before)
            self.transitions.count(bullet)
            self._alike[_kind(bullet)][bullet.id] = None
            texts = bullet.texts or (bullet.content,)
            known = self._texts.get(bullet.id, ())
            self._texts[bullet.id] = texts
            for number, text in enumerate(texts):
                if number >= len(known) or known[number] != text:
                    fresh[_owner(bullet.principal_id)][_place(bullet.id, number)] = text
        for owner, texts_of in fresh.items():
            await self._hybrid.put(texts_of, domain=owner)

    def remove(self, ids: Iterable[str]) -> None:
        for key in ids:
            bullet = self.bullets.pop(key, None)
            if bullet is None:
                continue
            for run_id in bullet.provenance:
                self.by_run.get(run_id, set()).discard(key)
            if bullet.tool_name is not None:
                self._pitfalls.get(bullet.tool_name, {}).pop(key, None)
            elif not isinstance(bullet, ToolCallingStrategy):
                self._hybrid.remove([key], domain=_plain(bullet.principal_id))
            if isinstance(bullet, ToolCallingStrategy):
                self.transitions.count(bullet, -1)
                self._forget_kind(bullet)
                places = [_place(key, number) for number in range(len(self._texts.pop(key, ())))]
                self._hybrid.remove(places, domain=_owner(bullet.principal_id))

    async def search(
        self,
        text: str,
        *,
        owners: Sequence[str | None] = (None,),
        k: int = 20,
        wanted: Callable[[ToolCallingStrategy], bool] = lambda _: True,
    ) -> list[Neighbour]:
        """The wanted strategies nearest to a request, each once, best first."""
        neighbours: dict[str, Neighbour] = {}
        key = find_key(text) or text
        asked = set(terms(key))
        for owner in dict.fromkeys(owners):
            for hit in await self._hybrid.search(key, k=4 * k, domain=_owner(owner)):
                bullet_id, _, number = hit.id.partition(_SEPARATOR)
                strategy = self.bullets.get(bullet_id)
                if not isinstance(strategy, ToolCallingStrategy) or not wanted(strategy):
                    continue
                similarity = hit.similarity or 0.0
                if not self._embeds:
                    similarity = _shared(asked, self._texts[bullet_id][int(number)])
                if strategy.id not in neighbours or neighbours[strategy.id].score < hit.score:
                    evidence = hit.score if self._embeds else hit.score + similarity
                    neighbours[strategy.id] = Neighbour(strategy, hit.score, similarity, evidence)
        return sorted(neighbours.values(), key=lambda near: -near.score)[:k]

    async def alike(
        self,
        text: str,
        sequence: tuple[str, ...],
        *,
        owner: str | None,
        wanted: Callable[[ToolCallingStrategy], bool],
    ) -> list[Neighbour]:
        """The wanted strategies with this very sequence, the nearest to a request first.

        Costs what there are of these, not what there is in all.
        """
        same = self._alike.get((owner, sequence), {})
        if len(same) > MOST_ALIKE:
            return await self.search(
                text, owners=(owner,), wanted=lambda other: other.tool_sequence == sequence and wanted(other)
            )
        there = [item for key in same if isinstance(item := self.bullets.get(key), ToolCallingStrategy)]
        there = [item for item in there if wanted(item)]
        if not there:
            return []
        key = find_key(text) or text
        near = await self._similarities(key, {item.id: self._texts[item.id] for item in there}, _owner(owner))
        neighbours = [Neighbour(item, near[item.id], near[item.id]) for item in there]
        return sorted(neighbours, key=lambda neighbour: -neighbour.similarity)

    async def _similarities(self, key: str, texts: Mapping[str, Sequence[str]], domain: str) -> dict[str, float]:
        """By strategy: how near the nearest of its texts is."""
        if not self._embeds:
            asked = set(terms(key))
            return {name: max(_shared(asked, text) for text in held) for name, held in texts.items()}
        places = {_place(name, number): name for name, held in texts.items() for number in range(len(held))}
        nearest = dict.fromkeys(texts, 0.0)
        for place, cosine in (await self._hybrid.similarities(key, list(places), domain=domain)).items():
            nearest[places[place]] = max(nearest[places[place]], cosine)
        return nearest

    def _forget_kind(self, strategy: ToolCallingStrategy) -> None:
        same = self._alike[_kind(strategy)]
        same.pop(strategy.id, None)
        if not same:
            del self._alike[_kind(strategy)]

    async def plain(
        self, text: str, *, owners: Sequence[str | None], most: int, least: float
    ) -> list[tuple[PlaybookBullet, float]]:
        """Bullets without a sequence or a tool that share words with a text or are at least so near, best first."""
        hits = [hit for owner in owners for hit in await self._hybrid.search(text, k=most, domain=_plain(owner))]
        near = [hit for hit in hits if hit.words or (hit.similarity or 0.0) >= least]
        near.sort(key=lambda hit: -hit.score)
        return [(self.bullets[hit.id], hit.words if hit.similarity is None else hit.similarity) for hit in near[:most]]

    def pitfalls(self, tools: Sequence[str], *, owners: Sequence[str | None], most: int) -> list[PlaybookBullet]:
        """What to beware of with these tools, those that helped most first."""
        helpful = [
            bullet
            for bullet in self._pitfalls_of(tools, owners)
            if bullet.helpful_count >= bullet.harmful_count and (bullet.lookup is None or bullet.lookup.found_by)
        ]
        return sorted(helpful, key=lambda bullet: bullet.harmful_count - bullet.helpful_count)[:most]

    def lookups(self, tools: Sequence[str], *, owners: Sequence[str | None]) -> list[Lookup]:
        """Which arguments of these tools must be looked up, and where."""
        return [bullet.lookup for bullet in self._pitfalls_of(tools, owners) if bullet.lookup is not None]

    def _pitfalls_of(self, tools: Sequence[str], owners: Sequence[str | None]) -> list[PlaybookBullet]:
        every = [bullet for tool in tools for bullet in self._pitfalls.get(tool, {}).values()]
        return [bullet for bullet in every if bullet.principal_id in owners]


def _shared(asked: set[str], text: str) -> float:
    held = set(terms(text))
    return len(asked & held) / len(asked | held) if asked else 0.0


def _place(bullet_id: str, number: int) -> str:
    return f"{bullet_id}{_SEPARATOR}{number}"


def _kind(strategy: ToolCallingStrategy) -> tuple[str | None, tuple[str, ...]]:
    return strategy.principal_id, strategy.tool_sequence


def _plain(principal_id: str | None) -> str:
    """The domain of bullets without a sequence: they take no place among the strategies that a search looks at."""
    return f"plain{_owner(principal_id)}"


def _owner(principal_id: str | None) -> str:
    return "" if principal_id is None else f"={principal_id}"


@dataclass(frozen=True, slots=True)
class Ranked:
    """A strategy with the share of the votes that its sequence has."""

    strategy: ToolCallingStrategy
    share: float
    near: Neighbour
    kin: tuple[ToolCallingStrategy, ...] = ()
    """All that were found with this sequence."""


def rank(
    neighbours: Sequence[Neighbour], transitions: Transitions | None = None, *, previous: str | None = None
) -> list[Ranked]:
    """One strategy for each sequence, the nearest of those that have it; best sequence first."""
    if not neighbours:
        return []
    highest = max(near.score for near in neighbours) or 1.0
    votes: dict[tuple[str, ...], float] = {}
    kin: dict[tuple[str, ...], list[ToolCallingStrategy]] = defaultdict(list)
    nearest: dict[tuple[str, ...], tuple[float, Neighbour]] = {}
    for near in neighbours:
        strategy = near.strategy
        bound = lower_bound(strategy.helpful_count, strategy.harmful_count)
        weight = (max(0.0, near.score) / highest) ** SHARPNESS * bound
        sequence = strategy.tool_sequence
        kin[sequence].append(strategy)
        votes[sequence] = votes.get(sequence, 0.0) + weight
        own = near.score * bound
        if sequence not in nearest or nearest[sequence][0] < own:
            nearest[sequence] = own, near
    if transitions is not None:
        for sequence in votes:
            votes[sequence] *= transitions.probability(sequence[0], previous) ** PRIOR
    total = sum(votes.values()) or 1.0
    ordered = sorted(votes, key=lambda sequence: -votes[sequence])
    return [
        Ranked(nearest[item][1].strategy, votes[item] / total, nearest[item][1], tuple(kin[item])) for item in ordered
    ]
