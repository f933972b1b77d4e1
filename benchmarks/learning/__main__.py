"""The command line: everything but the live arms, as one Markdown report and one JSON document.

`python -m benchmarks.learning [--parts retrieval next …] [--tau FILE] [--json FILE] [--report FILE]`
"""

import argparse
import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from benchmarks.learning import corpus, evidence, finding, speed

PARTS = ("retrieval", "next", "merged", "tau", "online", "evidence", "speed")
Row = dict[str, Any]


async def measure(parts: list[str], tau: Path | None, *, shuffles: int) -> Row:
    report: Row = {}
    turns = corpus.bfcl_turns()
    report["corpus"] = {"turns": len(turns), "ceiling": corpus.ceiling(turns)}
    if "retrieval" in parts:
        report["tuned on"] = await finding.retrieval(turns, held_out=False)
        report["held out"] = await finding.retrieval(turns, held_out=True)
    if "next" in parts:
        report["next tool, held out"] = await finding.next_tool(turns, held_out=True)
    if "merged" in parts:
        report["held out, merged, ten folds"] = await finding.merged(turns)
    if "tau" in parts and tau is not None:
        users = corpus.tau_turns(tau)
        report["tau retail"] = {"ceiling": corpus.ceiling(users), **await finding.retrieval(users, held_out=True)}
    if "online" in parts:
        report["online"] = await evidence.online(turns, shuffles=shuffles)
    if "evidence" in parts:
        report["capture"] = await evidence.capture()
        report["quarantine"] = await evidence.quarantine()
        report["half false successes"] = await evidence.false_successes(turns)
    if "speed" in parts:
        report["speed"] = [await speed.measure(size) for size in speed.SIZES]
        report["domains"] = [await speed.domains(10, 10_000), await speed.domains(100, 1_000)]
    return report


def markdown(report: Row) -> str:
    found = report["corpus"]
    lines = [
        f"BFCL base, {found['turns']} turns, one conversation left out at a time; ceiling {found['ceiling']:.3f}.",
        "",
    ]
    for title in ("tuned on", "held out", "tau retail"):
        if title in report:
            lines += [f"## Retrieval: {title}", *_retrieval(report[title]), ""]
    if "held out, merged, ten folds" in report:
        merged = report["held out, merged, ten folds"]
        figures = ", ".join(f"{name} {merged[name]['mean']:.3f}" for name in finding.FIGURES)
        lines += [f"With merging, ten folds, {merged['strategies']:.0f} strategies: {figures}.", ""]
    if "next tool, held out" in report:
        following = report["next tool, held out"]
        lines += [
            f"## Next tool, {following['steps']} steps of the held-out half",
            "| way | right | 95 % |",
            "|---|---|---|",
        ]
        lines += [_line(name, following[name]) for name in ("Markov", "retrieval alone", "playbook")]
        for name in ("playbook against Markov", "playbook against retrieval alone"):
            low, high = following[name]
            lines.append(f"| {name} | | {low:+.3f} … {high:+.3f} |")
        lines.append("")
    if "online" in report:
        lines += ["## As memory grows", "| seen | seq@1 | 95 % | |", "|---|---|---|---|"]
        for name, row in report["online"].items():
            low, high = row["interval"]
            bar = "█" * round(40 * row["seq@1"])
            lines.append(f"| {name} | {row['seq@1']:.3f} | {low:.3f} … {high:.3f} | {bar} |")
        lines.append("")
    for name in ("capture", "quarantine", "half false successes"):
        if name in report:
            lines += [f"## {name.capitalize()}", f"```json\n{json.dumps(report[name], indent=1)}\n```", ""]
    if "speed" in report:
        lines += ["## Speed", "| strategies | p50 ms | p95 ms | CPU ms | update ms | index / numpy |", "|---" * 6 + "|"]
        for row in report["speed"]:
            names = ("p50_ms", "p95_ms", "cpu_ms", "update_ms", "ratio")
            lines.append(f"| {row['strategies']:,} | {' | '.join(f'{row[name]:.2f}' for name in names)} |")
        for row in report["domains"]:
            what = f"{row['strategies']:,} in {row['domains']} domains"
            lines.append(f"| {what} | {row['p50_ms']:.2f} | {row['p95_ms']:.2f} | | | |")
    return "\n".join(lines)


def _retrieval(figures: Row) -> list[str]:
    lines = [f"| method | {' | '.join(finding.FIGURES)} |", "|---" * (len(finding.FIGURES) + 1) + "|"]
    for name, row in figures.items():
        if name == "ceiling":
            continue
        cells = [
            f"{row[figure]['mean']:.3f} [{row[figure]['interval'][0]:.2f}, {row[figure]['interval'][1]:.2f}]"
            for figure in finding.FIGURES
        ]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    against = figures["playbook"]["against the fusion"]
    cells = [f"{against[figure][0]:+.3f} … {against[figure][1]:+.3f}" for figure in finding.FIGURES]
    return [*lines, f"| difference from the fusion, 95 % | {' | '.join(cells)} |"]


def _line(name: str, row: Row) -> str:
    return f"| {name} | {row['mean']:.3f} | {row['interval'][0]:.3f} … {row['interval'][1]:.3f} |"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.learning", description=__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--tau", type=Path, help="tau-bench's retail tasks as JSON Lines; left out without it")
    parser.add_argument("--shuffles", type=int, default=evidence.SHUFFLES, help="orders of the online stream")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--report", type=Path, metavar="FILE", help="write the report there instead of to stdout")
    chosen = parser.parse_args()
    report = asyncio.run(measure(chosen.parts, chosen.tau, shuffles=chosen.shuffles))
    if chosen.json:
        chosen.json.write_text(json.dumps(report, indent=1), encoding="utf-8")
    if chosen.report:
        chosen.report.write_text(markdown(report) + "\n", encoding="utf-8")
    else:
        print(markdown(report), file=sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
