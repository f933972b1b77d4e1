"""The command line: everything but the live arms, as one Markdown report and one JSON document.

`python -m benchmarks.learning [--parts retrieval next …] [--tau FILE] [--json FILE] [--report FILE] [--million]`

Beside a report in a file stand its plots.
"""

import argparse
import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.learning import corpus, evidence, finding, plots, speed

PARTS = ("retrieval", "next", "merged", "tau", "online", "evidence", "speed")
Row = dict[str, Any]


async def measure(parts: list[str], tau: Path | None, *, shuffles: int, sizes: Sequence[int]) -> Row:
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
        report["speed"] = [await speed.measure(size) for size in sizes]
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
        heads = ("strategies", "p50 ms", "p95 ms", "CPU ms", "update, CPU ms", "index / numpy", "of 20 nearest found")
        lines += ["## Speed", f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
        for row in report["speed"]:
            names = ("p50_ms", "p95_ms", "cpu_ms", "update_ms", "ratio")
            cells = [f"{row[name]:.2f}" for name in names] + [f"{row['found']:.1%}"]
            lines.append(f"| {row['strategies']:,} | {' | '.join(cells)} |")
        for row in report["domains"]:
            what = f"{row['strategies']:,} in {row['domains']} domains"
            lines.append(f"| {what} | {row['p50_ms']:.2f} | {row['p95_ms']:.2f} | | | | |")
    return "\n".join(lines)


def write(report: Row, file: Path) -> None:
    """The report, with its plots in files of their own beside it."""
    links = []
    for name, (title, drawing) in plots.drawings(report).items():
        plot = file.with_name(f"{file.stem}-{name}.svg")
        plot.write_text(drawing, encoding="utf-8")
        links += [f"![{title}]({plot.name})", ""]
    file.write_text("\n".join([markdown(report), "", *links]).rstrip() + "\n", encoding="utf-8")


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
    parser.add_argument("--million", action="store_true", help="measure the speed of a million strategies, too")
    chosen = parser.parse_args()
    for file in filter(None, (chosen.json, chosen.report)):
        file.parent.mkdir(parents=True, exist_ok=True)  # before the work, not after it
    sizes = (*speed.SIZES, speed.MILLION) if chosen.million else speed.SIZES
    report = asyncio.run(measure(chosen.parts, chosen.tau, shuffles=chosen.shuffles, sizes=sizes))
    if chosen.json:
        chosen.json.write_text(json.dumps(report, indent=1), encoding="utf-8")
    if chosen.report:
        write(report, chosen.report)
    else:
        print(markdown(report), file=sys.stdout)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
