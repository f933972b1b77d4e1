"""What evidence does over time: how soon a pattern is captured, a bad strategy given up, and what false labels cost."""

import random
import statistics
from typing import Any

from benchmarks.learning.corpus import Turn, halves
from benchmarks.learning.finding import FIGURES, embedder, empty, episode, interval, learned, left_out, scored
from journeyman.core.approvals import Label, LabelSource
from journeyman.core.playbook import StrategyState
from journeyman.learning.episodes import Episode, EpisodeCall, seems_to_read
from journeyman.learning.forms import LearningSettings
from journeyman.learning.playbook import Playbook

Row = dict[str, Any]
SHUFFLES = 20


async def online(turns: list[Turn], *, shuffles: int = SHUFFLES) -> Row:
    """Figures as memory grows from nothing: every conversation is asked before it is learned, in many orders.

    Checked at sizes, on the held-out half; the interval is over the orders and the conversations.
    """
    by_group: dict[str, list[Turn]] = {}
    for turn in turns:
        by_group.setdefault(turn.group, []).append(turn)
    chosen = {turn.id for turn in halves(turns)[1]}
    buckets: dict[int, list[tuple[bool, str]]] = {}
    for shuffle in range(shuffles):
        order = list(by_group)
        random.Random(shuffle).shuffle(order)
        playbook = empty()
        for seen, group in enumerate(order):
            for turn in by_group[group]:
                if turn.id in chosen:
                    found = await playbook.ranked(turn.request, tools=sorted(turn.tools), previous=turn.previous)
                    right = bool(found) and found[0].strategy.tool_sequence == turn.sequence
                    buckets.setdefault(seen // 50 * 50, []).append((right, group))
            await playbook.learn([episode(turn) for turn in by_group[group]])
    return {
        f"{start}–{start + 49} conversations": {
            "seq@1": statistics.fmean(right for right, _ in found),
            "interval": interval(found),
        }
        for start, found in sorted(buckets.items())
    }


async def capture() -> Row:
    """After how many completions of a pattern it is offered, without anybody's label."""
    needed = []
    for size in (1, 2, 3, 4):
        playbook = Playbook("bench", settings=LearningSettings(holdout=0), embedder=embedder())
        tools = [f"tool_{number}" for number in range(size)]
        for count in range(1, 6):
            calls = tuple(EpisodeCall(name, {"text": "some words"}, "ok", effect=True) for name in tools)
            await playbook.feed(Episode(f"Please archive the notes of client {count}", calls, run_id=f"run-{count}"))
            if await playbook.retrieve("Please archive the notes of client 77", tools=tools):
                needed.append(count)
                break
    return {"completions": needed, "passed": len(needed) == 4 and max(needed) <= 3}


async def quarantine() -> Row:
    """After how many uses a strategy that turned bad is given up, by how good it was before; and false alarms."""
    rows = {}
    for before, rate in ((1, 0.0), (3, 0.0), (20, 0.0), (100, 0.0), (20, 0.1), (100, 0.2)):
        uses = [await _uses_until_given_up(before, rate, seed) for seed in range(20)]
        rows[f"{before} successes, then {rate:.0%} right"] = {
            "median uses": statistics.median(uses),
            "within 10": statistics.fmean(count <= 10 for count in uses),
        }
    alarms = [await _uses_until_given_up(20, 0.9, seed, most=60) <= 60 for seed in range(20)]
    sure = [name for name, row in rows.items() if name.endswith("then 0% right") and row["within 10"] < 1]
    return {**rows, "false alarms in 60 uses at 90 % right": statistics.fmean(alarms), "passed": not sure}


async def _uses_until_given_up(before: int, rate: float, seed: int, most: int = 40) -> int:
    draw = random.Random(seed)
    playbook = Playbook("bench", embedder=None, settings=LearningSettings(holdout=0))
    calls = (EpisodeCall("archive_notes", {"text": "some words"}, "ok", effect=True),)
    request, tools = "Please archive the notes of my client", ["archive_notes"]

    def ended(good: bool, number: int, advice: Any = ()) -> Episode:
        label = Label(source=LabelSource.VERIFIER, value="good" if good else "bad")
        return Episode(request, calls, run_id=f"run-{number}", labels=(label,), advice=tuple(advice))

    await playbook.learn([ended(True, number) for number in range(before)], taught=False)
    for use in range(1, most + 1):
        advice = await playbook.advise(request, tools=tools)
        if not advice:
            return use - 1
        await playbook.feed(ended(draw.random() < rate, before + use, advice))
    [strategy] = await playbook.strategies()
    return most if strategy.state is StrategyState.QUARANTINED else most + 1


async def false_successes(turns: list[Turn], *, share: float = 1.0, seed: int = 0) -> Row:
    """What it costs when half of what is learned is wrong: for a share of the turns, beside what is right, the tools of
    another turn are praised as well."""
    draw, chosen = random.Random(seed), {turn.id for turn in halves(turns)[1]}
    clean, dirty = await learned(turns), await learned(turns)
    wrong: list[Episode] = []
    for turn in turns:
        if draw.random() < share:
            other = draw.choice([item for item in turns if item.group != turn.group])
            calls = tuple(EpisodeCall(name, values, effect=not seems_to_read(name)) for name, values in other.calls)
            praise = Label(source=LabelSource.JUDGE, value="good")
            wrong.append(Episode(turn.request, calls, run_id=turn.id, previous=turn.previous, labels=(praise,)))
    before = dirty.version
    await dirty.learn(wrong)
    figures = {}
    for name, playbook in (("clean", clean), ("with false successes", dirty)):
        figures[name] = await _seq1(playbook, turns, chosen)
    await dirty.rollback(to=before)
    figures["rolled back"] = await _seq1(dirty, turns, chosen)
    loss = 1 - figures["with false successes"]["seq@1"] / figures["clean"]["seq@1"]
    return {
        **figures,
        "false": len(wrong) / (len(turns) + len(wrong)),
        "relative loss of seq@1": loss,
        "restored exactly": figures["rolled back"] == figures["clean"],
        "passed": loss < 0.15 and figures["rolled back"] == figures["clean"],
    }


async def _seq1(playbook: Playbook, turns: list[Turn], chosen: set[str]) -> dict[str, float]:
    async def look(at: int) -> list[tuple[str, ...]]:
        turn = turns[at]
        if turn.id not in chosen:
            return []
        found = await playbook.ranked(turn.request, tools=sorted(turn.tools), previous=turn.previous)
        return [item.strategy.tool_sequence for item in found]

    ranked = await left_out(playbook, turns, look)
    rows = [scored(turn, found) for turn, found in zip(turns, ranked, strict=True) if turn.id in chosen]
    return {name: statistics.fmean(float(row[name]) for row in rows) for name in FIGURES}
