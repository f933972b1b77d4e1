"""The command line: every kind of tools, the embedded model beside the raw engine, both halves."""

import argparse
import asyncio
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

from benchmarks.embedded.contenders import NAMES, contender
from benchmarks.embedded.kinds import KINDS, Asked, load
from journeyman.core.runs import ToolCall

PROCESSES = 2
WORSE = 0.02
"""By how much a kind may be below the raw engine."""
ABSTAINED = 0.85


def answers(names: Sequence[str], cases: Sequence[Asked]) -> list[dict[str, Any]]:
    """How each contender answers requests that share an engine."""
    return asyncio.run(_answers(names, cases))


async def _answers(names: Sequence[str], cases: Sequence[Asked]) -> list[dict[str, Any]]:
    rows = []
    for name in names:
        ask = contender(name)
        for case in cases:
            calls = await ask(case.request, case.tools)
            rows.append(row(name, case, calls))
    return rows


def row(name: str, case: Asked, calls: Sequence[ToolCall]) -> dict[str, Any]:
    verdict = case.judge(calls)
    return {
        "contender": name,
        "kind": case.kind,
        "half": case.half,
        "id": case.id,
        "request": case.request,
        "outside": case.outside,
        "tool": verdict.tool,
        "right": verdict.arguments,
        "calls": [
            {"tool": call.tool_name, "arguments": call.arguments, "confidence": call.confidence} for call in calls
        ],
    }


def measure(names: Sequence[str], kinds: Sequence[str], half: str | None) -> list[dict[str, Any]]:
    units: list[list[Asked]] = []
    for kind in kinds:
        cases = [case for case in load(kind) if half in (None, case.half)]
        shared = all(case.tools == cases[0].tools for case in cases)
        units += [cases] if shared else [cases[start : start + 10] for start in range(0, len(cases), 10)]
    with ProcessPoolExecutor(PROCESSES) as pool:
        return [row for rows in pool.map(answers, [names] * len(units), units) for row in rows]


def table(rows: Sequence[dict[str, Any]], names: Sequence[str], kinds: Sequence[str]) -> list[dict[str, Any]]:
    """For each half and kind: right tool and fully right of what is in scope, abstained of what is not, all in all."""
    made = []
    for half in ("tuning", "held_out"):
        for kind in (*kinds, "all"):
            group = [row for row in rows if row["half"] == half and kind in (row["kind"], "all")]
            if not group:
                continue
            line: dict[str, Any] = {"half": half, "kind": kind}
            for name in names:
                own = [row for row in group if row["contender"] == name]
                inside, outside = [r for r in own if not r["outside"]], [r for r in own if r["outside"]]
                line["requests"] = len(own)
                line[name] = {
                    "tool": share([r["tool"] for r in inside]),
                    "right": share([r["right"] for r in inside]),
                    "abstained": share([r["right"] for r in outside]),
                    "all": share([r["right"] for r in own]),
                }
            made.append(line)
    return made


def share(values: Sequence[bool]) -> float | None:
    return round(sum(values) / len(values), 3) if values else None


def text(lines: Sequence[dict[str, Any]], names: Sequence[str]) -> str:
    head = f"{'half':<9} {'kind':<14} {'requests':>8}  " + "  ".join(
        f"{name + ': tool / right / abstained / all':<42}" for name in names
    )
    shown = [head + ("  difference" if {"embedded", "raw"} <= set(names) else "")]
    for line in lines:
        parts = []
        for name in names:
            figures = line[name]
            each = (figures[key] for key in ("tool", "right", "abstained", "all"))
            parts.append(f"{' / '.join('   –' if one is None else f'{one:4.0%}' for one in each):<42}")
        end = ""
        if {"embedded", "raw"} <= set(names):
            end = f"  {100 * (line['embedded']['all'] - line['raw']['all']):+.0f}"
        shown.append(f"{line['half']:<9} {line['kind']:<14} {line['requests']:>8}  {'  '.join(parts)}{end}")
    return "\n".join(shown)


def met(lines: Sequence[dict[str, Any]]) -> bool | None:
    """On held-out requests: no kind worse than the raw engine, better in total, and abstains; None if not measured."""
    held = [line for line in lines if line["half"] == "held_out" and {"embedded", "raw"} <= line.keys()]
    if not held:
        return None
    total = held[-1]
    return (
        all(line["embedded"]["all"] >= line["raw"]["all"] - WORSE for line in held)
        and total["embedded"]["all"] > total["raw"]["all"]
        and (total["embedded"]["abstained"] or 0) >= ABSTAINED
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.embedded", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=NAMES, default=["embedded", "raw"], metavar="NAME")
    parser.add_argument("--kind", nargs="+", choices=KINDS, default=KINDS, metavar="KIND")
    parser.add_argument("--half", choices=("tuning", "held_out"), help="only this half of the requests")
    parser.add_argument("--wrong", action="store_true", help="also list the wrong answers of the tuning half")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the summary")
    chosen = parser.parse_args()
    rows = measure(chosen.only, chosen.kind, chosen.half)
    lines = table(rows, chosen.only, chosen.kind)
    verdict = met(lines)
    if chosen.json:
        print(json.dumps({"table": lines, "passed": verdict}, indent=1))
    else:
        print(text(lines, chosen.only))
        if verdict is not None:
            print(f"held out: no kind worse than raw by over 2 points, better in total, 85 % abstained: {verdict}")
    if chosen.wrong:
        for each in rows:
            if each["half"] == "tuning" and not each["right"]:
                print(each["contender"], each["id"], repr(each["request"]), json.dumps(each["calls"]))
    return 1 if verdict is False else 0


if __name__ == "__main__":
    raise SystemExit(main())
