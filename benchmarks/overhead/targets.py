"""The targets: each a ratio of figures of one repetition, and the bound that the ratio's median must keep."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from statistics import median
from typing import Literal

from benchmarks.overhead.processes import Figures
from benchmarks.overhead.scenarios import PEERS, Contender

Repetition = dict[Contender, Figures]
"""What every contender of one scenario measured in one repetition."""


@dataclass(frozen=True, kw_only=True)
class Target:
    scenario: str
    says: str
    ratio: Callable[[Repetition], float]
    bound: float
    side: Literal["≤", "≥"] = "≤"
    needs: tuple[Contender, ...] = ("floor", "journeyman")


@dataclass(frozen=True, kw_only=True)
class Verdict:
    scenario: str
    says: str
    ratios: list[float]
    median: float
    side: str
    bound: float
    passed: bool


def beside_floor(metric: str, ours: Contender = "journeyman") -> Callable[[Repetition], float]:
    def ratio(measured: Repetition) -> float:
        (workload,) = measured[ours]
        return measured[ours][workload][metric] / measured["floor"][workload][metric]

    return ratio


def peer_beside_us(peer: Contender) -> Callable[[Repetition], float]:
    return lambda measured: (
        measured[peer]["steps"]["cpu_ms_per_step"] / measured["journeyman"]["steps"]["cpu_ms_per_step"]
    )


def within_us(over: str, under: str, metric: str) -> Callable[[Repetition], float]:
    return lambda measured: measured["journeyman"][over][metric] / measured["journeyman"][under][metric]


def growth_of_what_we_add(measured: Repetition) -> float:
    ours, floor = measured["journeyman"]["steps"], measured["floor"]["steps"]
    late = ours["cpu_ms_at_200"] - floor["cpu_ms_at_200"]
    early = ours["cpu_ms_at_10"] - floor["cpu_ms_at_10"]
    return late / early


TARGETS = (
    Target(
        scenario="sequential",
        says="CPU per step, ours / floor",
        ratio=beside_floor("cpu_ms_per_step"),
        bound=1.5,
    ),
    *(
        Target(
            scenario="sequential",
            says=f"CPU per step, {peer} / ours",
            ratio=peer_beside_us(peer),
            bound=12,
            side="≥",
            needs=(peer, "journeyman"),
        )
        for peer in PEERS
    ),
    Target(
        scenario="concurrent",
        says="CPU per step with 20 runs at once, ours / floor",
        ratio=beside_floor("cpu_ms_per_step"),
        bound=2.5,
    ),
    Target(
        scenario="durable",
        says="CPU per step with the SQLite journal, ours / floor",
        ratio=beside_floor("cpu_ms_per_step", "journeyman_sqlite"),
        bound=3.5,
        needs=("floor", "journeyman_sqlite"),
    ),
    Target(
        scenario="growth",
        says="what we add to the floor, step 200 / step 10",
        ratio=growth_of_what_we_add,
        bound=1.3,
    ),
    *(
        Target(
            scenario="tools",
            says=f"CPU per step, {many} tools / 10 tools",
            ratio=within_us(many, "10", "cpu_ms_per_step"),
            bound=bound,
            needs=("journeyman",),
        )
        for many, bound in (("200", 1.3), ("500", 1.6))
    ),
    Target(
        scenario="throughput",
        says="runs per second, ours / floor",
        ratio=beside_floor("runs_per_second"),
        bound=0.5,
        side="≥",
    ),
    *(
        Target(
            scenario=f"parallel_{kind}",
            says=f"wall time, ten {kind} tools / one",
            ratio=within_us("10", "1", "wall_ms_per_run"),
            bound=1.4,
            needs=("journeyman",),
        )
        for kind in ("async", "sync")
    ),
)


def judge(scenario: str, repetitions: list[Repetition]) -> Iterator[Verdict]:
    """The verdicts on one scenario, for the targets whose contenders took part."""
    for target in TARGETS:
        if target.scenario != scenario or not repetitions or not set(target.needs) <= repetitions[0].keys():
            continue
        ratios = [target.ratio(repetition) for repetition in repetitions]
        middle = median(ratios)
        yield Verdict(
            scenario=scenario,
            says=target.says,
            ratios=ratios,
            median=middle,
            side=target.side,
            bound=target.bound,
            passed=middle <= target.bound if target.side == "≤" else middle >= target.bound,
        )
