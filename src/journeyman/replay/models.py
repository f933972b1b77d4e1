"""Recorded runs with another model or instruction: step by step with the recorded past, or freely until it is left."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import Counter
from collections.abc import AsyncIterable, Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from journeyman.agent.run import Run
from journeyman.agent.turn import ModelPlanner
from journeyman.core.approvals import Decision
from journeyman.core.data import Entity, canonical_json, digest
from journeyman.core.errors import ConfigurationError, JourneymanError, ModelError
from journeyman.core.events import Fact
from journeyman.core.protocols import Deltas, Model, ModelRequest, ModelResponse
from journeyman.core.runs import ToolCall, Usage, cost_of, list_prices
from journeyman.replay.playing import diff, play
from journeyman.replay.recording import RecordedStep, Recording
from journeyman.replay.report import ReplayReport, Share, Tally
from journeyman.replay.stage import NOT_ASKED, Today

Mode: TypeAlias = Literal["steps", "free"]
CONCURRENCY = 4
"""Runs that are replayed at once, each with one question at a time."""


class RememberingModel:
    """Keeps what a model says in a file, by what it was asked: a replay that was cut short pays for nothing twice."""

    def __init__(self, model: Model, file: Path, *, name: str = "") -> None:
        self._model = model
        self._name = name
        self._file = file
        self._said: dict[str, str] = {}
        if file.exists():
            for line in file.read_text(encoding="utf-8").splitlines():
                with contextlib.suppress(ValueError, KeyError, TypeError):  # the last line may have been cut short
                    kept = json.loads(line)
                    self._said[kept["asked"]] = json.dumps(kept["said"])

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        parts = [*request.messages, *request.tools]
        asked = digest(self._name, canonical_json(request.output), *(item.model_dump_json() for item in parts))
        if (kept := self._said.get(asked)) is not None:
            return ModelResponse.model_validate_json(kept)
        response = await self._model.respond(request, deltas)
        line = json.dumps({"asked": asked, "said": response.model_dump(mode="json")})
        with self._file.open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")
        self._said[asked] = response.model_dump_json()
        return response


class Estimate(Entity):
    """What a replay will ask for, by what the recorded steps took."""

    runs: int
    questions: int
    tokens: int
    cost: float | None
    """US dollars; None where the model has no price."""


async def estimate(recordings: AsyncIterable[Recording], model: str) -> Estimate:
    """What asking this model at every recorded step will take, if it takes as many tokens as were recorded."""
    runs, questions, usage = 0, 0, Usage()
    async for recording in recordings:
        if not recording.is_chain:
            runs, questions, usage = runs + 1, questions + len(recording.steps), usage + recording.usage
    cost = cost_of(model, usage, list_prices())
    return Estimate(runs=runs, questions=questions, tokens=usage.total_tokens, cost=cost)


@dataclass
class _Outcome:
    counts: Counter[str] = field(default_factory=Counter)
    tally: Tally = field(default_factory=Tally)
    before: Usage = field(default_factory=Usage)
    now: Usage = field(default_factory=Usage)
    models: Counter[str] = field(default_factory=Counter)
    """By name: how often it was the recorded one."""
    answered_by: str = ""


async def replay_model(
    recordings: AsyncIterable[Recording],
    today: Today,
    model: Model,
    *,
    mode: Mode = "steps",
    live: bool = False,
    decision: Decision | None = None,
    progress: Callable[[int], None] | None = None,
) -> ReplayReport:
    """What a model does where another one was recorded. No tool runs, but reads in a free replay that is ``live``."""
    outcome = _Outcome()
    turns = asyncio.Semaphore(CONCURRENCY)
    running: set[asyncio.Task[None]] = set()

    async def one(recording: Recording) -> None:
        try:
            if mode == "steps":
                await _step_by_step(recording, today, model, outcome)
            else:
                await _freely(recording, today, model, outcome, live=live, decision=decision)
        except (JourneymanError, ValueError, LookupError) as error:
            outcome.counts["failed_runs"] += 1
            outcome.tally.add("failed", "", type(error).__name__, str(error), run_id=recording.run_id)
        finally:
            turns.release()
        outcome.counts["runs"] += 1
        if progress is not None:
            progress(outcome.counts["runs"])

    async for recording in recordings:
        if recording.is_chain:
            outcome.counts["chains"] += 1
            continue
        await turns.acquire()  # so that no more recordings are held than are worked on
        task = asyncio.ensure_future(one(recording))
        running.add(task)
        task.add_done_callback(running.discard)
    await asyncio.gather(*running)
    return _report(outcome, mode)


def seen(recording: Recording, today: Today, at: int) -> tuple[RecordedStep, ModelRequest]:
    """A step, and what the model was asked before it, as it would be asked today."""
    step = next((step for step in recording.steps if step.message.iteration == at), None)
    if step is None:
        raise ConfigurationError(f"run {recording.run_id!r} has no step {at}: it has {len(recording.steps)}")
    planner = ModelPlanner(NOT_ASKED)
    run = _before(today.stage(recording, planner=lambda: planner), recording.facts[: step.before])
    return step, planner.request(run)


def _before(run: Run, past: Sequence[Fact]) -> Run:
    for fact in past:
        run.state.apply(fact)
    run.offer.resume(run.state)
    run.refresh()
    return run


async def _step_by_step(recording: Recording, today: Today, model: Model, outcome: _Outcome) -> None:
    first: int | None = None
    for step in recording.steps:
        run = today.stage(recording, planner=lambda: ModelPlanner(model))
        past = await today.advised(recording, run)
        _before(run, past[: step.before + len(past) - len(recording.facts)])
        outcome.counts["steps"] += 1
        outcome.before += step.message.usage
        outcome.models[step.message.model] += 1
        where = {"run_id": recording.run_id, "call_id": f"step {step.message.iteration}"}
        try:
            said = await run.planner.plan(run)
        except ModelError as error:
            outcome.counts["failed"] += 1
            outcome.tally.add("failed", "", error.info.code, error.info.message, **where)
            continue
        if said is None:
            outcome.counts["failed"] += 1
            continue
        outcome.now += said.usage
        outcome.answered_by = said.model or outcome.answered_by
        change, tool, rule = _compared(step.message.calls, said.calls)
        outcome.counts[change] += 1
        if change != "same":
            first = first or step.message.iteration
            outcome.tally.add(change, tool, rule, rule, **where)
    outcome.counts["runs_that_agree"] += first is None


def _compared(before: tuple[ToolCall, ...], now: tuple[ToolCall, ...]) -> tuple[str, str, str]:
    """What is different, of which tool, and how. Words beside calls do not count; two answers in words agree."""
    names, others = ([call.tool_name for call in calls] for calls in (before, now))
    shown = ", ".join(others) or "an answer"
    if names != others:
        change = "other_calls" if names and others else "calls_instead" if others else "answers_instead"
        return change, ", ".join(names) or "(answer)", f"{shown} in its place"
    for call, other in zip(before, now, strict=True):
        if canonical_json(call.arguments) != canonical_json(other.arguments):
            differing = sorted(
                key
                for key in call.arguments.keys() | other.arguments.keys()
                if call.arguments.get(key) != other.arguments.get(key)
            )
            return "other_arguments", call.tool_name, f"other values of {', '.join(differing)}"
    return "same", "", ""


async def _freely(
    recording: Recording, today: Today, model: Model, outcome: _Outcome, *, live: bool, decision: Decision | None
) -> None:
    played = await play(recording, today, planner=lambda: ModelPlanner(model), live=live, decision=decision)
    again = played.again
    outcome.before += recording.usage
    outcome.now += again.usage
    outcome.answered_by = next((step.message.model for step in again.steps if step.message.model), outcome.answered_by)
    for step in recording.steps:
        outcome.models[step.message.model] += 1
    outcome.counts["steps"] += len(again.steps)
    outcome.counts["not_recorded"] += len(played.not_recorded)
    outcome.counts["left_the_recording"] += bool(played.not_recorded)
    apart = diff(recording, again)
    outcome.counts["runs_that_agree"] += all(item.what == "text" for item in apart.differences)
    for tool in played.not_recorded:
        rule = "the recording has no such call"
        outcome.tally.add("not_recorded", tool, rule, rule, run_id=recording.run_id)
    if apart.first is not None:
        [item, *_] = apart.differences
        rule = f"first at step {apart.first}: {item.what}"
        outcome.tally.add("parts", "", rule, rule, run_id=recording.run_id, call_id=f"step {apart.first}")


def _report(outcome: _Outcome, mode: Mode) -> ReplayReport:
    counts, runs = outcome.counts, outcome.counts["runs"]
    shares = {"runs_that_agree": Share.of(counts["runs_that_agree"], runs)}
    if mode == "steps":
        shares["steps_that_agree"] = Share.of(counts["same"], counts["steps"])
        verdict = f"At {counts['same']:,} of {counts['steps']:,} steps it does what was recorded."
    else:
        shares["runs_that_left_the_recording"] = Share.of(counts["left_the_recording"], runs)
        verdict = f"{counts['runs_that_agree']:,} of {runs:,} runs go as they were recorded."
    prices = list_prices()
    recorded = outcome.models.most_common(1)[0][0] if outcome.models else ""
    figures = {
        "runs": runs,
        "steps": counts["steps"],
        "recorded_tokens": outcome.before.total_tokens,
        "tokens_now": outcome.now.total_tokens,
        **{key: counts[key] for key in ("failed", "failed_runs", "not_recorded") if counts[key]},
    }
    notes = []
    for told, who, usage in (("Recorded", recorded, outcome.before), ("Now", outcome.answered_by, outcome.now)):
        cost = cost_of(who, usage, prices)
        notes.append(f"{told}: {who or 'unknown'}, " + ("no price is known." if cost is None else f"{cost:.4f} US$."))
    if counts["chains"]:
        notes.append(f"{counts['chains']:,} chains ask no model and were left out.")
    if mode == "free":
        notes.append(
            "What the recording does not hold was not run: such runs end there, and how they go on is unknown."
        )
    return ReplayReport(
        kind="model",
        name="Recorded runs with another model",
        verdict=verdict,
        counts=figures,
        shares=shares,
        findings=outcome.tally.findings(),
        notes=tuple(notes),
    )
