"""The overhead benchmark's command line: measure, print, and exit with 1 when a target is missed."""

import argparse
import json
import random
import sys

from benchmarks.overhead.processes import contend, serving
from benchmarks.overhead.report import Measured, document, table
from benchmarks.overhead.scenarios import EVERYONE, PEER_SHARE, PEERS, SCENARIOS, Contender, Scenario
from benchmarks.overhead.targets import Repetition, judge

REPETITIONS = 5
QUICK_REPETITIONS = 3
QUICK_SHARE = 3


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.overhead", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    parser.add_argument(
        "--quick", action="store_true", help="fewer repetitions of fewer runs: an impression, no verdict"
    )
    names = [scenario.name for scenario in SCENARIOS]
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="SCENARIO", help=", ".join(names))
    parser.add_argument(
        "--contenders", nargs="+", choices=EVERYONE, default=EVERYONE, metavar="NAME", help=", ".join(EVERYONE)
    )
    parser.add_argument("--repetitions", type=int, metavar="N", help=f"instead of {REPETITIONS}")
    return parser.parse_args()


def one_repetition(scenario: Scenario, base_url: str, contenders: list[Contender], *, quick: bool) -> Repetition:
    """Everyone once, in an order of its own, so that nobody always runs on the warm or the busy machine."""
    measured: Repetition = {}
    for contender in random.sample(contenders, len(contenders)):
        share = (PEER_SHARE if contender in PEERS else 1) * (QUICK_SHARE if quick else 1)
        workloads = {
            name: workload if scenario.once else workload.with_runs(max(workload.runs // share, 3))
            for name, workload in scenario.workloads.items()
        }
        measured[contender] = contend(contender, base_url, workloads)
    return measured


def main() -> int:
    chosen = options()
    scenarios = [scenario for scenario in SCENARIOS if scenario.name in chosen.only]
    measured: Measured = {scenario.name: [] for scenario in scenarios}
    with serving() as base_url:
        for number in range(chosen.repetitions or (QUICK_REPETITIONS if chosen.quick else REPETITIONS)):
            for scenario in scenarios:
                if scenario.once and number:
                    continue
                print(f"repetition {number + 1}: {scenario.name}", file=sys.stderr)
                contenders = [name for name in scenario.contenders if name in chosen.contenders]
                measured[scenario.name].append(one_repetition(scenario, base_url, contenders, quick=chosen.quick))
    verdicts = [verdict for name, repetitions in measured.items() for verdict in judge(name, repetitions)]
    if chosen.json:
        print(json.dumps(document(scenarios, measured, verdicts), indent=1))
    else:
        print(table(scenarios, measured, verdicts))
    return 0 if all(verdict.passed for verdict in verdicts) else 1


if __name__ == "__main__":
    raise SystemExit(main())
