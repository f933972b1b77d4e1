"""Experiments: who is assigned where, what is measured, and when there is a winner."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from journeyman import Agent, AgentResponse, ConfigurationError, Limits, RunStatus, ToolLibrary, Usage, run, tool
from journeyman.core.runs import cost_of, list_prices
from journeyman.experiments import Experiment, Observation, Progress, Report, assign
from journeyman.experiments.report import Look, compare
from journeyman.experiments.statistics import alpha_at, holm, paired_p, unpaired_p
from journeyman.models import Price
from journeyman.testing import ScriptedModel, call, say
from tests.marking import daily

AGENT = Agent(name="tester", instruction="Test.")


def answered(text: str) -> AgentResponse:
    return AgentResponse(
        task_id="t", run_id="r", status=RunStatus.COMPLETED, answer=text, reasoning="Said so.", confidence=1.0
    )


def coin_experiment(chances: dict[str, float], *, seed: int, inputs: int = 200, **options: Any) -> Experiment:
    """Arms that succeed with a fixed probability, independently."""
    rng = random.Random(seed)

    async def runner(agent: Agent, task: object, *, chance: float) -> AgentResponse:
        return answered("yes" if rng.random() < chance else "no")

    return Experiment(
        AGENT,
        {arm: {"chance": chance} for arm, chance in chances.items()},
        [f"input {number}" for number in range(inputs)],
        score=lambda response, _: response.answer == "yes",
        runner=runner,
        seed=seed,
        **options,
    )


def coin_report(chances: dict[str, float], *, seed: int, size: int = 200) -> Report:
    """The same comparison without the runs, for when hundreds are needed."""
    rng = random.Random(seed)
    observations = [
        Observation(arm=arm, unit=str(unit), score=float(rng.random() < chance), status="completed")
        for unit in range(size)
        for arm, chance in chances.items()
    ]
    look = Look(experiment_id="e", name="n", paired=True, alpha=0.05, look=1, looks=1)
    return compare(observations, look, arms=list(chances), seed=seed)


async def test_two_libraries_of_one_agent_are_compared_by_running_both() -> None:
    def library(answer: str) -> ToolLibrary:
        @tool(read_only=True)
        def look_up(key: str) -> str:
            """Look something up. Use when asked for a key."""
            return answer

        return ToolLibrary([look_up])

    good, bad = library("right"), library("wrong")
    agent = Agent(name="a", instruction="Look it up.", tools=good.specifications())

    async def runner(agent: Agent, task: Any, *, library: ToolLibrary) -> AgentResponse:
        model = ScriptedModel([call("look_up", key="k"), lambda request: say(request.messages[-1].content)])
        return await run(agent, task, library=library, model=model)

    seen: list[Progress] = []
    experiment = Experiment(
        agent,
        {"a": bad, "b": good},
        [f"question {n}" for n in range(12)],
        score=lambda response, _: response.answer == "right",
        runner=runner,
        concurrency=4,
    )
    report = await experiment.run(seen.append)

    assert report.winner == "b"
    assert [item.done for item in seen] == list(range(1, 25))
    assert {arm.arm: arm.figures["calls"].mean for arm in report.arms} == {"a": 1.0, "b": 1.0}
    assert report.comparisons[0].difference == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("times", daily(40, nightly=200))
def test_equal_arms_rarely_have_a_winner_and_better_ones_usually_do(times: int) -> None:
    equal = [coin_report({"a": 0.6, "b": 0.6}, seed=seed).winner for seed in range(times)]
    different = [coin_report({"a": 0.6, "b": 0.75}, seed=seed).winner for seed in range(times)]

    assert sum(winner is not None for winner in equal) <= 0.075 * times
    assert different.count("b") >= 0.8 * times
    assert different.count("a") <= 0.01 * times


def test_no_winner_without_evidence() -> None:
    report = coin_report({"a": 0.5, "b": 0.6}, seed=3, size=8)
    assert report.winner is None
    assert "does not decide" in report.verdict


async def test_looking_early_costs_evidence_and_may_stop_the_experiment() -> None:
    report = await coin_experiment({"a": 0.05, "b": 0.95}, seed=1, looks=4).run()
    assert report.winner == "b"
    assert report.look < 4
    assert len(report.observations) < 400
    assert report.alpha < 0.05


def test_all_looks_together_spend_no_more_than_alpha() -> None:
    spent = [alpha_at(look, 5, alpha=0.05) for look in range(1, 6)]
    assert sum(spent) == pytest.approx(0.05)
    assert spent == sorted(spent)


async def test_a_run_that_breaks_counts_against_its_arm() -> None:
    async def runner(agent: Agent, task: object, *, breaks: bool) -> AgentResponse:
        if breaks:
            raise RuntimeError("out of order")
        return answered("yes")

    report = await Experiment(
        AGENT,
        {"a": {"breaks": True}, "b": {"breaks": False}},
        [str(n) for n in range(10)],
        score=lambda response, _: True,
        runner=runner,
    ).run()
    assert report.winner == "b"
    assert report.arms[0].failures == 10
    assert report.observations[0].error == "RuntimeError: out of order" or report.observations[1].error


async def test_runs_are_charged_by_the_price_of_their_model() -> None:
    async def runner(agent: Agent, task: object, *, model: str) -> AgentResponse:
        usage = Usage(input_tokens=1_000_000, output_tokens=100_000, requests=1)
        return answered("yes").model_copy(update={"model": model, "usage": usage})

    def experiment(**options: Any) -> Experiment:
        arms = {"small": {"model": "gpt-5-mini-2025-08-07"}, "own": {"model": "acme-7b"}}
        return Experiment(AGENT, arms, ["a", "b"], score=lambda *_: True, runner=runner, **options)

    report = await experiment().run()
    assert "cost" not in report.metrics
    assert "no price for acme-7b" in report.to_markdown()
    report = await experiment(prices={"acme-7b": Price(input=1, output=2)}).run()
    assert {arm.arm: round(arm.figures["cost"].mean, 6) for arm in report.arms} == {"small": 0.45, "own": 1.2}
    assert "no price" not in report.to_markdown()
    assert "<h2>Cost</h2>" in report.to_html()
    assert Report.model_validate_json(report.to_json()).metrics == report.metrics


@pytest.mark.parametrize(
    ("model", "cost"),
    [
        ("gpt-5", 11.25),
        ("openai:gpt-5-mini", 2.25),
        ("gpt-5-mini-2025-08-07", 2.25),
        ("gpt-50", None),
        ("embedded", 0),
        ("gguf:/models/x.gguf", 0),
        ("", None),
    ],
)
def test_a_model_is_found_in_the_price_list(model: str, cost: float | None) -> None:
    usage = Usage(input_tokens=1_000_000, output_tokens=1_000_000)
    found = cost_of(model, usage, list_prices())
    assert found == (None if cost is None else pytest.approx(cost))


async def test_the_report_says_why_runs_failed() -> None:
    async def runner(agent: Agent, task: object, *, limit: int) -> AgentResponse:
        if limit:
            return await run(agent, "x", model=ScriptedModel([call("look")] * 3), limits=Limits(iterations=limit))
        raise KeyError("<no> such | thing")

    arms = {"stops": {"limit": 1}, "breaks": {"limit": 0}}
    report = await Experiment(AGENT, arms, ["a", "b", "c"], score=lambda *_: True, runner=runner).run()
    [stops, breaks] = report.arms
    assert stops.reasons == {"LIMIT_REACHED: the run reached its limit of 1 iterations": 3}
    assert breaks.reasons == {"KeyError: '<no> such | thing'": 3}
    assert "stops: 3 failed: LIMIT_REACHED: the run reached its limit of 1 iterations" in report.to_markdown()
    assert "breaks: 3 failed: KeyError: &#x27;&lt;no&gt; such | thing&#x27;" in report.to_html()


async def test_sequential_execution_runs_one_arm_after_the_other() -> None:
    ran: list[str] = []

    async def runner(agent: Agent, task: object, *, arm: str) -> AgentResponse:
        ran.append(arm)
        return answered("x")

    def experiment(order: Any) -> Experiment:
        arms = {"a": {"arm": "a"}, "b": {"arm": "b"}}
        return Experiment(AGENT, arms, list("123456"), score=lambda *_: 1, runner=runner, order=order)

    await experiment("sequential").run()
    assert ran == ["a"] * 6 + ["b"] * 6
    ran.clear()
    await experiment("interleaved").run()
    assert Counter(ran) == {"a": 6, "b": 6}
    assert all(set(ran[n : n + 2]) == {"a", "b"} for n in range(0, 12, 2))


async def test_sticky_assignment_gives_each_unit_one_arm() -> None:
    experiment = coin_experiment(
        {"a": 0.2, "b": 0.9}, seed=2, inputs=120, assignment="sticky", unit=lambda given: str(given)[-1]
    )
    report = await experiment.run()
    arms_of_unit = {(item.unit, item.arm) for item in report.observations}
    assert len(arms_of_unit) == len({unit for unit, _ in arms_of_unit}) == 10
    assert not report.paired
    assert report.comparisons[0].pairs is None


@given(st.text(), st.sampled_from(["x", "y"]))
def test_a_unit_always_gets_the_same_arm(unit: str, experiment: str) -> None:
    assert assign(unit, ["a", "b", "c"], experiment=experiment) == assign(unit, ["a", "b", "c"], experiment=experiment)


def test_shares_are_kept_and_raising_a_share_moves_units_only_into_it() -> None:
    units = [f"user-{n}" for n in range(4_000)]
    before = {unit: assign(unit, {"new": 0.1, "old": 0.9}) for unit in units}
    after = {unit: assign(unit, {"new": 0.3, "old": 0.7}) for unit in units}
    assert 0.08 < sum(arm == "new" for arm in before.values()) / len(units) < 0.12
    assert all(after[unit] == "new" for unit in units if before[unit] == "new")
    assert assign("anybody", {"on": 0.0, "off": 1.0}) == "off"


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([(0.0, 1.0)] * 5 + [(1.0, 1.0)] * 5, 0.0625),
        ([(0.0, 1.0)] * 8 + [(1.0, 0.0)] * 2, 0.109375),
        ([(1.0, 1.0)] * 9, 1.0),
        ([(0.0, 1.0)] * 10, 0.001953125),
    ],
)
def test_paired_binary_scores_use_the_exact_test(pairs: list[tuple[float, float]], expected: float) -> None:
    assert paired_p(pairs, rng=random.Random(0)) == pytest.approx(expected)


def test_unpaired_binary_scores_use_fishers_exact_test() -> None:
    # The classic tea-tasting table: 3 of 4 right against 1 of 4.
    assert unpaired_p([1, 1, 1, 0], [1, 0, 0, 0], rng=random.Random(0)) == pytest.approx(0.4857142857)


def test_graded_scores_are_tested_by_permutation() -> None:
    rng = random.Random(5)
    pairs = [(x := rng.random() * 0.8, x + 0.1 + rng.random() * 0.05) for _ in range(40)]
    assert paired_p(pairs, rng=random.Random(0)) < 0.01
    assert unpaired_p([a for a, _ in pairs], [a for a, _ in pairs], rng=random.Random(0)) > 0.9


def test_several_comparisons_are_corrected() -> None:
    assert holm({"x": 0.01, "y": 0.04, "z": 0.03}) == pytest.approx({"x": 0.03, "z": 0.06, "y": 0.06})


async def test_the_report_reads_in_every_form(tmp_path: Path) -> None:
    report = await coin_experiment({"<a>": 0.3, "b & c": 0.9}, seed=4, inputs=40).run()
    assert Report.model_validate_json(report.to_json()) == report
    assert "| <a> |" in report.to_markdown()
    page = report.to_html(tmp_path / "report.html")
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page
    assert "&lt;a&gt;" in page
    assert "<a>" not in page
    assert page.count("<svg") == 6
    assert "http" not in page.replace("http-equiv", "")


async def test_progress_is_told_while_runs_are_under_way() -> None:
    ran: list[str] = []
    told: list[tuple[int, int]] = []

    async def runner(agent: Agent, task: str, **_: object) -> AgentResponse:
        ran.append(task)
        return answered("x")

    experiment = Experiment(AGENT, {"a": {}, "b": {}}, ["1", "2", "3"], score=lambda *_: 1, runner=runner)
    await experiment.run(lambda progress: told.append((progress.done, len(ran))))
    assert told == [(number, number) for number in range(1, 7)]


async def test_a_report_with_an_arm_that_nobody_got_can_be_read_back() -> None:
    report = await coin_experiment({"a": 1, "b": 1}, seed=1, inputs=1, assignment="sticky").run()
    assert 0 in [arm.observations for arm in report.arms]
    again = Report.model_validate_json(report.to_json())
    assert again.to_json() == report.to_json()
    assert again.to_html() == report.to_html()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"arms": {"a": ToolLibrary()}}, "at least two arms"),
        ({"inputs": []}, "needs inputs"),
        ({"looks": 0}, "looks"),
    ],
)
def test_an_experiment_that_cannot_work_is_refused(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {"arms": {"a": ToolLibrary(), "b": ToolLibrary()}, "inputs": ["x"], **change}
    arms, inputs = arguments.pop("arms"), arguments.pop("inputs")
    with pytest.raises(ConfigurationError, match=message):
        Experiment(AGENT, arms, inputs, score=lambda *_: 1, runner=run, **arguments)


def test_a_score_outside_its_range_is_refused() -> None:
    async def runner(agent: Agent, task: object, **_: object) -> AgentResponse:
        return answered("x")

    experiment = Experiment(AGENT, {"a": {}, "b": {}}, ["1"], score=lambda *_: 7, runner=runner)
    with pytest.raises(ConfigurationError, match="from 0 to 1"):
        asyncio.run(experiment.run())
