"""Every task in every arm, interleaved, and what came out: paired differences with intervals by template."""

import asyncio
import random
import re
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.learning.live.arms import Arm, Memories, ask
from benchmarks.learning.live.world import Task
from journeyman.core.playbook import NEXT_STEP
from journeyman.core.protocols import Deltas, Model, ModelRequest, ModelResponse

RESAMPLES = 2_000
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"')
Row = dict[str, Any]


async def measure(
    model: Model,
    arms: Sequence[Arm],
    tasks: Sequence[Task],
    practice: Sequence[Task],
    *,
    split: str,
    concurrency: int,
    seed: int = 0,
    tell: Callable[[str], None] = lambda _: None,
) -> Row:
    """All rows and their summary."""
    gate = asyncio.Semaphore(concurrency)
    memories = Memories(practice, model, tasks, gate)
    begun = time.monotonic()
    advice = {arm.name: await memories.advice(arm) for arm in arms}
    tell(f"memories made in {time.monotonic() - begun:.0f} s")
    order = [(task, arm) for task in tasks for arm in arms]
    random.Random(seed).shuffle(order)
    done = 0

    async def one(task: Task, arm: Arm) -> Row:
        nonlocal done
        async with gate:
            row = await _one(model, task, arm, advice[arm.name])
        done += 1
        if done % 50 == 0:
            tell(f"{done} of {len(order)} runs, {time.monotonic() - begun:.0f} s")
        return row

    rows = await asyncio.gather(*(one(task, arm) for task, arm in order))
    rows = sorted(rows, key=lambda row: (row["arm"], row["task"]))
    right = [item["right"] for item in memories.practised]
    return {
        "split": split,
        "tasks": len(tasks),
        "templates": len({task.template for task in tasks}),
        "seconds": time.monotonic() - begun,
        "practice_success": statistics.fmean(right) if right else None,
        "practised": memories.practised,
        "summary": summary(rows, [arm.name for arm in arms]),
        "rows": rows,
    }


async def _one(model: Model, task: Task, arm: Arm, advice: Any) -> Row:
    wanted, place = await task.wanted(), task.furnished()
    before, heard = place.state, Hearing(model)
    row: Row = {"arm": arm.name, "task": task.id, "template": task.template}
    try:
        response = await ask(task, heard, arm, advice)
    except Exception as error:  # a model that fails is a run that failed
        return {**row, "right": False, "error": f"{type(error).__name__}: {error}"[:300], "iterations": 0, "calls": 0}
    codes = [item.error.code for item in response.tool_calls if item.error is not None]
    made = [[item.tool_name, dict(item.arguments), item.error_message] for item in response.tool_calls]
    return {
        **row,
        "right": place.state == wanted,
        "changed": place.state != before,
        "status": response.status.value,
        "iterations": response.total_iterations,
        "calls": len(response.tool_calls),
        "least_calls": len(task.calls),
        "request": task.request,
        "made": made,
        "hints": heard.hints,
        "tools": [item.tool_name for item in response.tool_calls],
        "errors": codes,
        "hint_words": sum(heard.says(value) for item in response.tool_calls for value in item.arguments.values()),
        "tokens": response.usage.total_tokens,
        "answer": response.answer[:200],
        "error": None if response.error is None else response.error.message[:300],
    }


class Hearing:
    """A model, and what its runs were told in hints beside values: words that are nobody's value."""

    def __init__(self, model: Model) -> None:
        self._model, self._told = model, set[str]()
        self.hints: list[str] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        said = [message.content for message in request.messages if message.name == NEXT_STEP]
        self.hints += said
        self._told |= {_QUOTED.sub(" ", text) for text in said}
        return await self._model.respond(request, deltas)

    def says(self, value: Any) -> bool:
        """Whether a value is made of a hint's own words."""
        return isinstance(value, str) and " " in value.strip() and any(value.strip() in text for text in self._told)


def summary(rows: Sequence[Row], arms: Sequence[str]) -> Row:
    """By arm: success, its difference from the first arm with an interval by template, and what it cost."""
    by_arm: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        by_arm[row["arm"]][row["task"]] = row
    base = by_arm[arms[0]]
    return {arm: _arm(by_arm[arm], base) for arm in arms}


def _arm(rows: dict[str, Row], base: dict[str, Row]) -> Row:
    pairs = [(rows[key]["right"] - base[key]["right"], rows[key]["template"]) for key in rows]
    both = [key for key in rows if rows[key]["right"] and base[key]["right"]]
    steps = [(rows[key]["iterations"] - base[key]["iterations"], rows[key]["template"]) for key in both]
    wasted = [
        (row["calls"] - row["least_calls"]) / row["calls"] for row in rows.values() if row["right"] and row["calls"]
    ]
    success = statistics.fmean(row["right"] for row in rows.values())
    return {
        "tasks": len(rows),
        "success": success,
        "headroom": 1 - statistics.fmean(row["right"] for row in base.values()),
        "difference": statistics.fmean(difference for difference, _ in pairs),
        "interval": interval(pairs),
        "won": sum(difference > 0 for difference, _ in pairs),
        "lost": sum(difference < 0 for difference, _ in pairs),
        "iterations": statistics.fmean(row["iterations"] for row in rows.values()),
        "both_solve": len(both),
        "iterations_both_solve": statistics.fmean(rows[key]["iterations"] for key in both) if both else None,
        "iterations_base_both_solve": statistics.fmean(base[key]["iterations"] for key in both) if both else None,
        "iterations_difference_interval": interval(steps),
        "wasted_calls_of_right_runs": statistics.fmean(wasted) if wasted else None,
        "without_calls": sum(not row["calls"] for row in rows.values()),
        "placeholders_refused": sum(row.get("errors", []).count("PLACEHOLDER_ARGUMENT") for row in rows.values()),
        "ungrounded_refused": sum(row.get("errors", []).count("UNGROUNDED_ARGUMENT") for row in rows.values()),
        "hint_words": sum(row.get("hint_words", 0) for row in rows.values()),
        "tokens": statistics.fmean(row.get("tokens", 0) for row in rows.values()),
        "failed": sum(row.get("status") == "failed" or "status" not in row for row in rows.values()),
    }


def interval(pairs: Sequence[tuple[float, str]], *, seed: int = 0) -> tuple[float, float] | None:
    """The 95 % interval of a mean, by drawing whole templates again and again."""
    clusters: dict[str, list[float]] = defaultdict(list)
    for value, name in pairs:
        clusters[name].append(value)
    groups = list(clusters.values())
    if len(groups) < 2:
        return None
    draw, means = random.Random(seed), list[float]()
    for _ in range(RESAMPLES):
        drawn = [value for group in draw.choices(groups, k=len(groups)) for value in group]
        means.append(statistics.fmean(drawn))
    means.sort()
    return means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]


def text(report: Row) -> str:
    lines = [
        f"{report['tasks']} tasks of {report['templates']} templates ({report['split']}), {report['seconds']:.0f} s",
        "| arm | success | difference | 95 % | won/lost | iterations (both solve) | no call | placeholders "
        "| hint as value | tokens |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for name, found in report["summary"].items():
        low, high = found["interval"] or (0.0, 0.0)
        steps = found["iterations_both_solve"]
        shown = (
            "–" if steps is None else f"{found['iterations_base_both_solve']:.2f} → {steps:.2f} ({found['both_solve']})"
        )
        lines.append(
            f"| {name} | {found['success']:.3f} | {found['difference']:+.3f} | {low:+.3f} … {high:+.3f} "
            f"| {found['won']}/{found['lost']} | {shown} | {found['without_calls']} | {found['placeholders_refused']} "
            f"| {found['hint_words']} | {found['tokens']:.0f} |"
        )
    lines.append(f"headroom of the first arm: {next(iter(report['summary'].values()))['headroom']:.3f}")
    return "\n".join(lines)
