"""Gaps told from served requests, beside BM25 and an embedder; small talk; the time to the first report."""

import argparse
import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.gaps import corpus, embedded
from benchmarks.gaps.corpus import Case
from benchmarks.gaps.scoring import Scores, auroc, bm25, embedding, gaps_of, interval
from benchmarks.gaps.vectors import RememberedVectors
from journeyman.choosing.gaps import NEEDED, fitting, serving, sureness

SAMPLE = 100
MOST_ALARMS = 2
FIRST_SECONDS = 3.0
PROCESSES = 3
PORTFOLIO = "Retrieve my stock portfolio performance for Q3 2024"
FIRST = f"""
import asyncio, time
from benchmarks.gaps.toolbox import TOOLS
from journeyman import ToolLibrary
from journeyman.choosing.gaps import ToolGapDetector
from journeyman.retrieval.embedders import default_embedder
detector = ToolGapDetector(ToolLibrary(TOOLS), embedder=default_embedder())
report = asyncio.run(detector.detect({PORTFOLIO!r}))
print(time.process_time(), report.missing_tools[0] if report else "", sep="|")
"""


async def scores(cases: Sequence[Case], embedder: RememberedVectors) -> dict[str, Scores]:
    found: dict[str, list[float]] = {"bm25": [], "embedding": [], "journeyman": [], "journeyman, words alone": []}
    for case in cases:
        found["bm25"].append(bm25(case))
        found["embedding"].append(await embedding(case, embedder))
        for name, chosen in (("journeyman", embedder), ("journeyman, words alone", None)):
            found[name].append(-max((await serving(case.request, case.tools, chosen)).values()))
    return {name: np.array(values) for name, values in found.items()}


def rates(cases: Sequence[Case], fits: Scores, needed: float) -> dict[str, float]:
    """What share of gaps is reported, and of served requests, at the threshold of the product."""
    reported, gaps = -fits < needed, gaps_of(cases)
    return {"gaps_reported": float(reported[gaps].mean()), "false_alarms": float(reported[~gaps].mean())}


async def with_the_model(cases: tuple[Case, ...], fits: dict[str, Scores]) -> dict[str, Any]:
    chosen = embedded.sample(cases, SAMPLE)
    places, gaps = {case.id: number for number, case in enumerate(cases)}, gaps_of(chosen)
    sure = await embedded.confidences(chosen)
    own = np.array([fits["journeyman"][places[case.id]] for case in chosen])
    said = np.array([sure[case.id] for case in chosen])
    both = own - np.array([sureness(value) for value in said])
    report = {"journeyman": own, "the model's confidence": -said, "journeyman with it": both}
    return {
        "cases": len(chosen),
        **{name: {"auroc": auroc(values, gaps), "interval": interval(values, gaps)} for name, values in report.items()},
    }


async def alarms(embedder: RememberedVectors) -> dict[str, Any]:
    """Lines of small talk that would be reported: whatever the tools, since something seems to be asked for."""
    report = {}
    for kind in corpus.TALK:
        lines = corpus.talk(kind)
        wrong = [line for line in lines if not (await fitting(line, (), embedder=embedder)).passing]
        report[kind] = {"lines": len(lines), "alarms": wrong}
    return report


def first_report() -> dict[str, Any]:
    """Fresh processes, one after another: interpreter, imports, weights, tools and the report."""
    walls, times, missing = [], [], ""
    for _ in range(PROCESSES):
        began = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", FIRST], check=True, stdout=subprocess.PIPE, text=True)
        walls.append(time.perf_counter() - began)
        cpu, missing = done.stdout.strip().split("|")
        times.append(float(cpu))
    return {"wall": min(walls), "cpu": min(times), "processes": PROCESSES, "missing": missing}


async def measure(*, model: bool) -> dict[str, Any]:
    embedder = RememberedVectors()
    report: dict[str, Any] = {"halves": {}}
    for half in ("tune", "held_out"):
        cases = tuple(case for case in corpus.load() if case.half == half)
        gaps, fits = gaps_of(cases), await scores(cases, embedder)
        report["halves"][half] = {
            "cases": len(cases),
            "gaps": int(gaps.sum()),
            "auroc": {name: auroc(values, gaps) for name, values in fits.items()},
            "interval": {name: interval(values, gaps) for name, values in fits.items()},
            "better_by": {name: interval(fits["journeyman"], gaps, than=fits[name]) for name in ("bm25", "embedding")},
            "at_the_threshold": {
                "journeyman": rates(cases, fits["journeyman"], NEEDED),
                "journeyman, words alone": rates(cases, fits["journeyman, words alone"], NEEDED),
            },
        }
        if half == "held_out" and model:
            report["embedded"] = await with_the_model(cases, fits)
    embedder.save()
    report["small_talk"] = await alarms(embedder)
    report["first_report"] = first_report()
    report["verdicts"] = verdicts(report)
    return report


def verdicts(report: dict[str, Any]) -> dict[str, bool]:
    held, first = report["halves"]["held_out"], report["first_report"]
    found = {
        "better than BM25 and the embedder on the held-out half": all(low > 0 for low, _ in held["better_by"].values()),
        f"at most {MOST_ALARMS} alarms on 100 lines of small talk": len(report["small_talk"]["written"]["alarms"])
        <= MOST_ALARMS,
        f"the first report in a fresh process within {FIRST_SECONDS:g} s": first["wall"] < FIRST_SECONDS
        and bool(first["missing"]),
    }
    if "embedded" in report:
        ours = report["embedded"]
        found["better still with the embedded model"] = (
            ours["journeyman with it"]["auroc"] > ours["journeyman"]["auroc"]
        )
    return found


def text(report: dict[str, Any]) -> str:
    lines = []
    for half, found in report["halves"].items():
        lines.append(f"{half}: {found['cases']} requests, {found['gaps']} of them gaps")
        for name, value in found["auroc"].items():
            low, high = found["interval"][name]
            lines.append(f"  {name:24} AUROC {value:.3f} ({low:.3f} to {high:.3f})")
        for name, (low, high) in found["better_by"].items():
            lines.append(f"  better than {name} by {low:.3f} to {high:.3f}")
        for name, rate in found["at_the_threshold"].items():
            told = f"{rate['gaps_reported']:.0%} of gaps, {rate['false_alarms']:.0%} of served requests"
            lines.append(f"  {name} reports {told}")
    if "embedded" in report:
        found = dict(report["embedded"])
        lines.append(f"with the embedded model, {found.pop('cases')} requests of the held-out half")
        for name, values in found.items():
            low, high = values["interval"]
            lines.append(f"  {name:24} AUROC {values['auroc']:.3f} ({low:.3f} to {high:.3f})")
    for kind, found in report["small_talk"].items():
        lines.append(f"small talk, {kind}: {len(found['alarms'])} alarms on {found['lines']} lines")
        lines += [f"  {line}" for line in found["alarms"]]
    first = report["first_report"]
    lines.append(
        f"first report, best of {first['processes']} fresh processes: {first['wall']:.2f} s with the interpreter "
        f"({first['cpu']:.2f} s CPU), missing: {first['missing']!r}"
    )
    lines += [f"{'pass' if passed else 'FAIL'}  {name}" for name, passed in report["verdicts"].items()]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gaps", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the tables")
    parser.add_argument("--no-model", action="store_true", help="leave the embedded model out, which takes minutes")
    chosen = parser.parse_args()
    report = asyncio.run(measure(model=not chosen.no_model))
    print(json.dumps(report, indent=1) if chosen.json else text(report))
    return 0 if all(report["verdicts"].values()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
