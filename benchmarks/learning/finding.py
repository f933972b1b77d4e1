"""Which tools serve a request: found by the playbook, one group left out at a time, beside the baselines.

Everything that was tuned was tuned on one half of the groups; the other half is looked at once.
"""

import random
import statistics
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from benchmarks.learning.baselines import Baselines, Ranker, markov
from benchmarks.learning.corpus import Turn, halves
from journeyman.core.approvals import Label, LabelSource
from journeyman.core.protocols import Embedder
from journeyman.learning.episodes import Episode, EpisodeCall, seems_to_read
from journeyman.learning.evidence import lower_bound
from journeyman.learning.forms import LearningSettings
from journeyman.learning.index import SHARPNESS, START, Neighbour, Transitions
from journeyman.learning.playbook import Playbook
from journeyman.retrieval.embedders import CachedEmbedder, _named

RESAMPLES = 1_000
FIGURES = ("seq@1", "seq@3", "first tool", "recall@3")
Row = dict[str, Any]


def episode(turn: Turn, *, good: bool = True) -> Episode:
    """A turn as a run that somebody has rated."""
    calls = tuple(EpisodeCall(name, values, None, effect=not seems_to_read(name)) for name, values in turn.calls)
    label = Label(source=LabelSource.RATING, value="good" if good else "bad")
    return Episode(
        turn.request, calls, run_id=turn.id, iterations=len(calls) + 1, previous=turn.previous, labels=(label,)
    )


@cache
def embedder() -> Embedder:
    """The one that is there by default, with room for every text of a corpus."""
    return CachedEmbedder(_named("minilm"), kept=100_000)


def empty(*, similar: float = 1.0) -> Playbook:
    return Playbook("bench", settings=LearningSettings(similar=similar, holdout=0), embedder=embedder())


async def learned(turns: Sequence[Turn], *, similar: float = 1.0) -> Playbook:
    playbook = empty(similar=similar)
    await playbook.learn([episode(turn) for turn in turns])
    return playbook


async def left_out(playbook: Playbook, turns: Sequence[Turn], look: Callable[[int], Any]) -> list[Any]:
    """What ``look`` finds for each turn while nothing of its group is in the playbook."""
    index, found = await playbook._current(), dict[int, Any]()
    by_group: dict[str, list[int]] = defaultdict(list)
    for at, turn in enumerate(turns):
        by_group[turn.group].append(at)
    for places in by_group.values():
        gone = {key for at in places for key in index.by_run.get(turns[at].id, ())}
        kept = [index.bullets[key] for key in gone]
        index.remove(gone)
        for at in places:
            found[at] = await look(at)
        await index.put(kept)
    return [found[at] for at in range(len(turns))]


def scored(turn: Turn, ranked: Sequence[tuple[str, ...]]) -> Row:
    wanted = set(turn.sequence)
    named = {name for sequence in ranked[:3] for name in sequence}
    return {
        "group": turn.group,
        "seq@1": bool(ranked) and ranked[0] == turn.sequence,
        "seq@3": turn.sequence in ranked[:3],
        "first tool": bool(ranked) and ranked[0][0] == turn.sequence[0],
        "recall@3": len(wanted & named) / len(wanted),
    }


async def retrieval(turns: list[Turn], *, held_out: bool) -> Row:
    """Figures of ours and of every baseline over one half, with intervals."""
    chosen = {turn.id for turn in halves(turns)[1 if held_out else 0]}
    places = [at for at, turn in enumerate(turns) if turn.id in chosen]
    baselines = await Baselines.over(turns, embedder())
    rows = {name: _figures(turns, places, ranker) for name, ranker in baselines.rankers().items()}
    playbook = await learned(turns)

    async def look(at: int) -> list[tuple[str, ...]]:
        turn = turns[at]
        found = await playbook.ranked(turn.request, tools=sorted(turn.tools), previous=turn.previous)
        return [item.strategy.tool_sequence for item in found]

    ranked = await left_out(playbook, turns, look)
    rows["playbook"] = [scored(turns[at], ranked[at]) for at in places]
    report: Row = {name: _summary(found) for name, found in rows.items()}
    fusion, ours = rows["fusion + vote"], rows["playbook"]
    report["playbook"]["against the fusion"] = {
        name: interval([(a[name] - b[name], a["group"]) for a, b in zip(ours, fusion, strict=True)]) for name in FIGURES
    }
    return report


def _figures(turns: Sequence[Turn], places: Sequence[int], ranker: Ranker) -> list[Row]:
    return [scored(turns[at], ranker(at)) for at in places]


async def merged(turns: list[Turn], *, folds: int = 10) -> Row:
    """The same with merging as it is by default, a tenth of the groups left out at a time; the held-out half."""
    chosen = {turn.id for turn in halves(turns)[1]}
    groups = sorted({turn.group for turn in turns})
    rows, kept = list[Row](), list[int]()
    for fold in range(folds):
        out = set(groups[fold::folds])
        playbook = await learned([turn for turn in turns if turn.group not in out], similar=0.8)
        kept.append(len(await playbook.strategies()))
        for turn in turns:
            if turn.group in out and turn.id in chosen:
                found = await playbook.ranked(turn.request, tools=sorted(turn.tools), previous=turn.previous)
                rows.append(scored(turn, [item.strategy.tool_sequence for item in found]))
    return {**_summary(rows), "strategies": statistics.fmean(kept)}


def _followers(transitions: Transitions, previous: str | None) -> list[str]:
    """The tools that were called after this one, or at all; the most frequent first."""
    counted = transitions._after.get(previous or START) or transitions._all
    return [name for name, count in counted.most_common() if count > 0]


def _following(sequence: Sequence[str], done: Sequence[str]) -> tuple[str, float] | None:
    """What a sequence does after these steps, and how well they fit it; None where it says nothing."""
    count = len(done)
    if count < len(sequence) and tuple(sequence[:count]) == tuple(done):
        return sequence[count], 1.0
    if done and done[-1] in sequence[:-1]:
        return sequence[list(sequence).index(done[-1]) + 1], 0.3
    if not set(sequence) <= set(done):
        return next(name for name in sequence if name not in done), 0.15
    return None


async def next_tool(turns: list[Turn], *, held_out: bool, weight: float | None = None) -> Row:
    """The next tool after each step of each turn: by what follows what, by retrieval alone, and by both."""
    chosen = {turn.id for turn in halves(turns)[1 if held_out else 0]}
    playbook, follows = await learned(turns), markov(turns)
    ways = {"retrieval alone": 0.0, "playbook": weight}

    async def look(at: int) -> list[Row]:
        turn = turns[at]
        if turn.id not in chosen:
            return []
        index = await playbook._current()
        tools = sorted(turn.tools)
        near = await index.search(
            turn.request,
            k=playbook.settings.neighbours,
            wanted=lambda item: item.available and turn.tools.issuperset(item.tool_sequence),
        )
        rows = []
        for step, wanted in enumerate(turn.sequence):
            done = turn.sequence[:step]
            row: Row = {"group": turn.group, "Markov": (follows(at, done) or [""])[0] == wanted}
            for name, part in ways.items():
                given = {} if part is None else {"markov": part}
                ranked = next_tools(near, index.transitions, done=done, previous=turn.previous, tools=tools, **given)
                row[name] = bool(ranked) and ranked[0][0] == wanted
            rows.append(row)
        return rows

    rows = [row for rows in await left_out(playbook, turns, look) for row in rows]
    names = ("Markov", *ways)
    return {
        "steps": len(rows),
        **{name: _estimate([(row[name], row["group"]) for row in rows]) for name in names},
        "playbook against Markov": interval([(row["playbook"] - row["Markov"], row["group"]) for row in rows]),
        "playbook against retrieval alone": interval(
            [(row["playbook"] - row["retrieval alone"], row["group"]) for row in rows]
        ),
    }


def _summary(rows: Sequence[Row]) -> Row:
    return {name: _estimate([(float(row[name]), row["group"]) for row in rows]) for name in FIGURES}


def _estimate(pairs: Sequence[tuple[float, str]]) -> Row:
    return {"mean": statistics.fmean(value for value, _ in pairs), "interval": interval(pairs)}


def interval(pairs: Sequence[tuple[float, str]], *, seed: int = 0) -> tuple[float, float]:
    """The 95 % interval of a mean, by drawing whole groups again and again."""
    clusters: dict[str, list[float]] = defaultdict(list)
    for value, group in pairs:
        clusters[group].append(float(value))
    sums = [(sum(group), len(group)) for group in clusters.values()]
    draw, means = random.Random(seed), list[float]()
    for _ in range(RESAMPLES):
        drawn = draw.choices(sums, k=len(sums))
        means.append(sum(total for total, _ in drawn) / sum(count for _, count in drawn))
    means.sort()
    return means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]


# --- the next tool, which nothing but this benchmark asks for


def next_tools(
    neighbours: Sequence[Neighbour],
    transitions: Transitions,
    *,
    done: Sequence[str] = (),
    previous: str | None = None,
    tools: Sequence[str] | None = None,
    sharpness: float = SHARPNESS,
    markov: float = 0.4,
) -> list[tuple[str, float]]:
    """The tool to call after those that are done, by what similar requests did and by what follows what."""
    highest = max((near.score for near in neighbours), default=1.0) or 1.0
    votes: dict[str, float] = {}
    for near in neighbours:
        sequence = near.strategy.tool_sequence
        following = _following(sequence, done)
        if following is None:
            continue
        name, fit = following
        bound = lower_bound(near.strategy.helpful_count, near.strategy.harmful_count)
        votes[name] = votes.get(name, 0.0) + fit * bound * (max(0.0, near.score) / highest) ** sharpness
    total = sum(votes.values())
    last = done[-1] if done else previous
    names = dict.fromkeys([*votes, *_followers(transitions, last)])
    allowed = None if tools is None else set(tools)
    scores = {
        name: (1 - markov) * (votes.get(name, 0.0) / total if total else 0.0)
        + markov * transitions.probability(name, last)
        for name in names
        if allowed is None or name in allowed
    }
    return sorted(scores.items(), key=lambda item: -item[1])
