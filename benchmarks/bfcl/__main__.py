"""The replay's command line: everything, or with `--first N` the first N scenarios of each category."""

import argparse
import asyncio
import json
from dataclasses import asdict

from benchmarks.bfcl import corpus
from benchmarks.bfcl.replay import Outcome, replay

SHOWN = 20


def text(outcome: Outcome) -> str:
    refused = sum(map(len, outcome.refusals.values()))
    lines = [
        f"{outcome.tools} tools, no schema written by hand; {outcome.scenarios} scenarios, {outcome.calls} calls",
        f"{outcome.equal} results equal to the direct call's, {len(outcome.differences)} different, {refused} refused",
        f"{len(outcome.states)} scenarios end in different states",
        f"{outcome.direct_seconds:.2f} s direct, {outcome.governed_seconds:.2f} s through the executor",
    ]
    lines += [f"  refused {len(where)} ×  {call}\n    {reason}" for (call, reason), where in outcome.refusals.items()]
    for difference in outcome.differences[:SHOWN]:
        lines.append(f"  differs  {difference.scenario}  {difference.call}")
        lines += [f"    direct   {str(difference.direct)[:200]}", f"    governed {str(difference.governed)[:200]}"]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bfcl", description=__doc__)
    parser.add_argument("--first", type=int, metavar="N", help="only the first N scenarios of each category")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the summary")
    chosen = parser.parse_args()
    corpus.install()
    scenarios = [scenario for category in corpus.CATEGORIES for scenario in corpus.load([category])[: chosen.first]]
    outcome = asyncio.run(replay(scenarios))
    passed = not outcome.differences and not outcome.states
    if chosen.json:
        refusals = [
            {"call": call, "reason": why, "scenarios": where} for (call, why), where in outcome.refusals.items()
        ]
        print(json.dumps({**asdict(outcome), "refusals": refusals, "passed": passed}, indent=1))
    else:
        print(text(outcome))
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
