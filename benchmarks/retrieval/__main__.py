"""The command line: every contender in a process of its own, then the index's speed."""

import argparse
import asyncio
import json
import subprocess
import sys
from typing import Any

from benchmarks.bfcl import corpus as bfcl
from benchmarks.retrieval import contenders, finding, speed

DEFAULT = "minilm"


def contender(name: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.retrieval", "--contender", name]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def text(report: dict[str, Any]) -> str:
    lines = []
    for kind in finding.SETS:
        first = report["contenders"]["words"]["sets"][kind]
        lines.append(f"{kind}: {first['questions']} questions, {first['texts']} texts      recall @1  @3  @5  @10")
        for name, figures in report["contenders"].items():
            found = figures["sets"][kind]
            lines.append(f"  {name:10} with words {_row(found)}   indexed in {found['seconds_to_index']:.1f} s")
            if "meaning_alone" in found:
                lines.append(f"  {'':10} alone      {_row(found['meaning_alone'])}")
    lines.append("costs")
    lines += [
        f"  {name:10} {figures['megabytes_on_disk']:6.0f} MB on disk, {figures['megabytes_peak']:4} MB in memory, "
        f"{figures['milliseconds_of_cpu_per_question']:.2f} ms CPU a question"
        for name, figures in report["contenders"].items()
    ]
    lines += [
        f"{_verdict(row['passed'])}  {row['vectors']:>9,} vectors: index {row['index_ms']:.3f} ms, raw scan "
        f"{row['raw_scan_ms']:.3f} ms, ratio {row['ratio']:.2f} (target ≤ {row['target']})"
        for row in report["speed"]
    ]
    lines.append(f"{_verdict(report['default_beats_words'])}  the default finds more than words alone on every set")
    return "\n".join(lines)


def _row(recalls: dict[str, Any]) -> str:
    return "  ".join(f"{recalls[f'recall@{k}']:.3f}" for k in (1, 3, 5, 10))


def _verdict(passed: bool) -> str:
    return "pass" if passed else "FAIL"


def beats_words(figures: dict[str, Any]) -> bool:
    ours, words = figures[DEFAULT]["sets"], figures["words"]["sets"]
    return all(ours[kind][f"recall@{k}"] > words[kind][f"recall@{k}"] for kind in finding.SETS for k in (1, 5, 10))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.retrieval", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the tables")
    parser.add_argument("--contender", choices=contenders.PACKAGES, help="measure one contender only, as JSON")
    chosen = parser.parse_args()
    bfcl.install()
    if chosen.contender:
        print(json.dumps(asyncio.run(finding.measure(chosen.contender)), indent=1))
        return 0
    contenders.install()
    figures = {name: contender(name) for name in contenders.PACKAGES}
    rows = [speed.measure(size, searches) for size, searches in speed.SIZES.items()]
    report = {"contenders": figures, "speed": rows, "default_beats_words": beats_words(figures)}
    passed = report["default_beats_words"] and all(row["passed"] for row in rows)
    print(json.dumps({**report, "passed": passed}, indent=1) if chosen.json else text(report))
    return 0 if passed else 1


if __name__ == "__main__":
    raise SystemExit(main())
