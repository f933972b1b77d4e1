"""The command line: every contender on both halves, or with `--only` and `--half` a part of it."""

import argparse
import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any

from benchmarks.embedded.contenders import NAMES, contender, memory_mb
from benchmarks.embedded.judging import Case, judge, load

TARGETS = {"direct": 0.8, "out_of_scope": 0.8}
"""For the embedded model on the held-out half: fully right, and no call."""


async def measure(name: str, cases: Sequence[Case]) -> dict[str, Any]:
    ask = contender(name)
    begun = time.perf_counter()
    await ask("Hello")
    first = time.perf_counter() - begun
    answers = []
    for case in cases:
        begun = time.perf_counter()
        calls = await ask(case.request)
        seconds = time.perf_counter() - begun
        answers.append((case, calls, seconds))
    halves = sorted({case.half for case in cases})
    times = sorted(taken for _, _, taken in answers)
    return {
        "contender": name,
        "first_answer_seconds": round(first, 2),
        "median_seconds": round(times[len(times) // 2], 3),
        "memory_mb": round(memory_mb()),
        "halves": {half: figures([answer for answer in answers if answer[0].half == half]) for half in halves},
        "wrong": [
            {"id": case.id, "half": case.half, "request": case.request, "calls": [_shown(call) for call in calls]}
            for case, calls, _ in answers
            if not (judge(case, calls).arguments if case.kind != "out_of_scope" else not calls)
        ],
    }


def figures(answers: Sequence[tuple[Case, Any, float]]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for kind in ("direct", "indirect", "multi", "out_of_scope"):
        group = [(case, calls) for case, calls, _ in answers if case.kind == kind]
        if kind == "out_of_scope":
            made[kind] = {"requests": len(group), "abstained": _share([not calls for _, calls in group])}
            continue
        verdicts = [judge(case, calls) for case, calls in group]
        made[kind] = {
            "requests": len(group),
            "right_tool": _share([verdict.tool for verdict in verdicts]),
            "fully_right": _share([verdict.arguments for verdict in verdicts]),
            "no_call": _share([not calls for _, calls in group]),
        }
    return made


def met(results: Sequence[dict[str, Any]]) -> bool | None:
    """Whether the targets are met; None where they were not measured."""
    for result in results:
        if result["contender"] == "embedded" and "held_out" in result["halves"]:
            half = result["halves"]["held_out"]
            right, abstained = half["direct"]["fully_right"], half["out_of_scope"]["abstained"]
            return bool(right >= TARGETS["direct"] and abstained >= TARGETS["out_of_scope"])
    return None


def text(results: Sequence[dict[str, Any]]) -> str:
    lines = ["contender  half      direct: tool / fully right / no call   indirect   two calls   abstention"]
    for result in results:
        for half, by_kind in result["halves"].items():
            direct, indirect = by_kind["direct"], by_kind["indirect"]
            multi, outside = by_kind["multi"], by_kind["out_of_scope"]
            lines.append(
                f"{result['contender']:<10} {half:<9} {direct['right_tool']:>11.0%} / {direct['fully_right']:.0%}"
                f" / {direct['no_call']:.0%} {indirect['fully_right']:>18.0%} {multi['fully_right']:>11.0%}"
                f" {outside['abstained']:>12.0%}"
            )
        lines.append(
            f"{'':<10} first answer {result['first_answer_seconds']} s, then {result['median_seconds']} s each "
            f"(median), {result['memory_mb']} MB"
        )
    verdict = met(results)
    if verdict is not None:
        lines.append(f"embedded, held out: at least 80 % fully right and 80 % abstention: {'yes' if verdict else 'NO'}")
    return "\n".join(lines)


def _share(values: Sequence[bool]) -> float:
    return round(sum(values) / len(values), 3) if values else 0.0


def _shown(call: Any) -> dict[str, Any]:
    return {"tool": call.tool_name, "arguments": call.arguments, "confidence": call.confidence}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.embedded", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, metavar="NAME")
    parser.add_argument("--half", choices=("tuning", "held_out"), help="only this half of the requests")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the summary")
    chosen = parser.parse_args()
    cases = [case for case in load() if chosen.half in (None, case.half)]
    results = [asyncio.run(measure(name, cases)) for name in chosen.only]
    verdict = met(results)
    print(json.dumps({"results": results, "passed": verdict}, indent=1) if chosen.json else text(results))
    return 1 if verdict is False else 0


if __name__ == "__main__":
    raise SystemExit(main())
