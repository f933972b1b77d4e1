"""The command line: finding among 10,000 documents, by titles on two harder sets, then 100,000 on both databases."""

import argparse
import asyncio
import json
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.memory import finding, hard, scale
from benchmarks.postgres import postgres

RECALL = 0.9
SEARCH_MS = 500
HISTORY_MS = 100
LARGE_CPU_MS = 80
"""Of a search among 100,000 documents, where all of it is done in this process."""
HARD_RECALL = 0.8
PARTS = ("finding", *hard.KINDS, "sqlite", "postgresql")


def measured(parts: list[str], documents: int, held_out: bool) -> dict[str, Any]:
    report: dict[str, Any] = {}
    if "finding" in parts:
        report["finding"] = asyncio.run(finding.measure())
    for kind in hard.KINDS:
        if kind in parts:
            report[kind] = asyncio.run(finding.measure_hard(kind, held_out=held_out))
    if "sqlite" in parts:
        with tempfile.TemporaryDirectory() as folder:
            report["sqlite"] = asyncio.run(scale.measure(f"sqlite:///{Path(folder) / 'memory.db'}", documents))
    if "postgresql" in parts:
        with postgres() as server:
            report["postgresql"] = asyncio.run(scale.measure(server.get_uri(), documents))
    return report


def verdicts(report: dict[str, Any]) -> list[tuple[bool, str]]:
    found = []
    if (small := report.get("finding")) is not None:
        titles = small["titles"]
        found = [
            (titles["recall@3"] >= RECALL, f"the right one in the first 3: {titles['recall@3']} (target ≥ {RECALL})"),
            (titles["p95_ms"] < SEARCH_MS, f"top 10 of 10,000: p95 {titles['p95_ms']} ms (target < {SEARCH_MS})"),
            (small["history_ms"] < HISTORY_MS, f"1,000 messages: {small['history_ms']} ms (target < {HISTORY_MS})"),
        ]
    for kind in hard.KINDS:
        if (row := report.get(kind)) is not None:
            found.append(
                (
                    row["recall@3"] >= HARD_RECALL,
                    f"{kind}: in the first 3 of 1,000: {row['recall@3']}, words alone {row['words@3']} "
                    f"(target ≥ {HARD_RECALL}); p95 {row['p95_ms']} ms",
                )
            )
    for name in ("sqlite", "postgresql"):
        if (large := report.get(name)) is not None:
            again = large["embedded_at_start"]
            found.append((again == 0, f"{name}: texts embedded again at start: {again} (target 0)"))
    if (large := report.get("sqlite")) is not None:
        spent = large["search"]["cpu_ms"]
        found.append((spent <= LARGE_CPU_MS, f"sqlite: CPU of a search: {spent} ms (target ≤ {LARGE_CPU_MS})"))
    return found


def text(report: dict[str, Any]) -> str:
    lines = []
    if (small := report.get("finding")) is not None:
        lines.append(f"{small['documents']:,} documents, stored in {small['seconds_to_store']} s")
        lines += [
            f"  {kind:7} {row['queries']:4} queries   recall @1 {row['recall@1']:.3f}  @3 {row['recall@3']:.3f}  "
            f"@10 {row['recall@10']:.3f}   top 10: p50 {row['p50_ms']} ms, p95 {row['p95_ms']} ms"
            for kind, row in ((kind, small[kind]) for kind in ("titles", "notes"))
        ]
    for name in ("sqlite", "postgresql"):
        if (large := report.get(name)) is not None:
            lines.append(
                f"{name}: {large['documents']:,} documents, stored in {large['seconds_to_store']} s; first search of a "
                f"process {large['first_search_ms']} ms"
            )
            rows = {"search": large["search"], "ten at once": large["ten_at_once"], **large["raw"]}
            lines += [
                f"  {kind:12} p50 {row['p50_ms']} ms, p95 {row['p95_ms']} ms"
                for kind, row in rows.items()
                if isinstance(row, dict)
            ]
    lines += [f"{'pass' if passed else 'FAIL'}  {said}" for passed, said in verdicts(report)]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.memory", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the tables")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="some parts")
    parser.add_argument("--documents", type=int, default=100_000, help="how many on each database")
    parser.add_argument("--held-out", action="store_true", help="of titles: the half that nothing was tuned on")
    chosen = parser.parse_args()
    report = measured(list(chosen.only), chosen.documents, chosen.held_out)
    passed = all(good for good, _ in verdicts(report))
    print(json.dumps({**report, "passed": passed}, indent=1) if chosen.json else text(report))
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
