"""Grounding and the judge: false alarms, invented identifiers, precision and recall, and what a step pays for it.

BFCL is installed by the benchmark. The other workloads are files that it is told of; what is not there is left out.
"""

import argparse
import json
import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from benchmarks.grounding import cost
from benchmarks.grounding.measure import Alarms, Share, alarms, caught, judged
from benchmarks.grounding.workloads import Episode, Shop, bfcl, half, tau, workbench

MOST_FALSE, LEAST_CAUGHT, MOST_COST = 0.01, 0.80, 1.05
LEAST_PRECISION, LEAST_RECALL = 0.50, 0.95


@dataclass(frozen=True)
class Line:
    """One figure beside its target, on the half that no rule was made on, and on everything."""

    name: str
    figure: float
    whole: float
    target: str
    passed: bool
    details: str = ""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grounding", description=__doc__)
    files = {
        "workbench": "WorkBench runs with their calls, as JSON Lines",
        "tau": "tau retail's training tasks, as JSON Lines",
        "tau-data": "the folder with tau retail's users.json, orders.json and products.json",
    }
    for name, what in files.items():
        variable = f"JOURNEYMAN_{name.replace('-', '_').upper()}"
        given = os.environ.get(variable)
        default = None if given is None else Path(given)
        parser.add_argument(f"--{name}", type=Path, metavar="PATH", default=default, help=f"{what} (or {variable})")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    parser.add_argument("--quick", action="store_true", help="the cost in fewer rounds: an impression, no verdict")
    return parser.parse_args()


def false_alarms(name: str, episodes: list[Episode]) -> Line:
    rest, whole = alarms(half(episodes, tuned=False)), alarms(episodes)
    return Line(
        f"false alarms, {name}",
        rest.false.rate,
        whole.false.rate,
        f"≤ {MOST_FALSE:.0%}",
        rest.false.rate <= MOST_FALSE,
        _alarms(rest),
    )


def _alarms(found: Alarms) -> str:
    parts = [f"{found.false.part} of {found.calls} calls; flagged {found.flagged}"]
    if found.unsaid:
        parts.append(f"{found.unsaid} with an id that only a lookup tells which the ground truth leaves out")
    if found.failed:
        parts.append(f"{found.failed} that failed on account of it")
    if found.cut:
        parts.append(f"{found.cut} after a result that the data holds only in part")
    return "; ".join(parts)


def on_runs(runs: list[Episode]) -> list[Line]:
    rest = half(runs, tuned=False)
    found, whole = caught(rest), caught(runs)
    held_out, verdict = judged(rest), judged(runs)
    both = f"precision ≥ {LEAST_PRECISION}, recall ≥ {LEAST_RECALL} on all"
    passed = verdict.precision.rate >= LEAST_PRECISION and verdict.recall.rate >= LEAST_RECALL
    naive = f"naive (ended by itself) {verdict.naive.rate:.3f}"
    return [
        false_alarms("right WorkBench runs", [run for run in runs if run.right]),
        Line(
            "wrong runs that invented, flagged",
            found.rate,
            whole.rate,
            f"≥ {LEAST_CAUGHT:.0%}",
            found.rate >= LEAST_CAUGHT,
            _share(found),
        ),
        Line("judge, precision", held_out.precision.rate, verdict.precision.rate, both, passed, naive),
        Line("judge, recall", held_out.recall.rate, verdict.recall.rate, both, passed, _share(held_out.recall)),
    ]


def _share(share: Share) -> str:
    return f"{share.part} of {share.of}"


def costs(*, quick: bool) -> list[Line]:
    found = cost.ratios(rounds=15 if quick else cost.ROUNDS)
    judged_by = next(iter(found))
    return [
        Line(
            f"CPU with / without, {name}",
            ratio,
            ratio,
            f"≤ {MOST_COST} ×" if name == judged_by else "none: a step without network or model",
            ratio <= MOST_COST or name != judged_by,
        )
        for name, ratio in found.items()
    ]


def main() -> int:
    chosen = options()
    lines = [false_alarms("BFCL multi-turn", bfcl())]
    if chosen.tau and chosen.tau_data:
        lines.append(false_alarms("tau retail", tau(chosen.tau, Shop(chosen.tau_data))))
    if chosen.workbench:
        lines += on_runs(workbench(chosen.workbench))
    for name in ("tau", "tau_data", "workbench"):
        if getattr(chosen, name) is None:
            print(f"left out: no --{name.replace('_', '-')}", file=sys.stderr)
    lines += costs(quick=chosen.quick)
    if chosen.json:
        print(json.dumps([asdict(line) for line in lines], indent=1, ensure_ascii=False))
    else:
        print(f"{'':36} {'held out':>9} {'all':>7}   target")
        for line in lines:
            mark = "ok" if line.passed else "MISSED"
            print(f"{line.name:36} {line.figure:9.4f} {line.whole:7.4f}   {line.target}  {mark}  {line.details}")
    return 0 if all(line.passed for line in lines) else 1


if __name__ == "__main__":
    raise SystemExit(main())
