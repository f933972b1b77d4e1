"""``python -m benchmarks.overhead.compared FILE.json``: what ``--json`` has printed, as the README's table and plot."""

import json
import re
import sys
from html import escape
from math import log10
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
PLOT = ROOT / "docs" / "assets" / "overhead.svg"
NAMES = {
    "floor": ("hand-written aiohttp loop", ""),
    "journeyman": ("**Journeyman**", ""),
    "agent_framework": ("agent-framework", "agent-framework-core"),
    "langgraph": ("LangGraph", "langgraph"),
    "openai_agents": ("openai-agents", "openai-agents"),
    "pydantic_ai": ("pydantic-ai", "pydantic-ai-slim"),
}
HANG = "a tool hangs"
COLUMNS = (
    ("CPU ms a step", "sequential", "steps", "cpu_ms_per_step"),
    ("at step 10", "growth", "long", "cpu_ms_at_10"),
    ("at step 200", "growth", "long", "cpu_ms_at_200"),
    ("100 runs at once, runs/s", "throughput", "runs", "runs_per_second"),
    ("200 tools, CPU ms a step", "tools", "200", "cpu_ms_per_step"),
    (HANG, "hang", "run", "seconds"),
)


def version(contender: str) -> str:
    name = NAMES[contender][1]
    file = Path(__file__).with_name(f"requirements-{contender.replace('_', '-')}.txt")
    found = re.search(rf"^{name}==([\w.]+)", file.read_text(), re.MULTILINE) if name else None
    return f" {found[1]}" if found else ""


def figures(document: dict[str, Any]) -> dict[str, list[float | None]]:
    """By contender: the median of each column; None where it took no part."""
    made: dict[str, list[float | None]] = {}
    for contender in NAMES:
        made[contender] = []
        for _, scenario, workload, metric in COLUMNS:
            rows = document["scenarios"][scenario]
            name = workload if workload in rows["workloads"] else next(iter(rows["workloads"]))
            taken = [one[contender][name][metric] for one in rows["repetitions"] if contender in one]
            made[contender].append(median(taken) if taken else None)
    return made


def plot(rows: dict[str, list[float | None]]) -> str:
    """CPU of a step as bars, on a scale of powers of ten."""
    least = 0.1
    parts = []
    for at, (contender, (first, *_)) in enumerate(rows.items()):
        assert first is not None
        y, width = 40 + 30 * at, 380 * log10(first / least) / log10(100)
        colour = "#0b6bcb" if contender == "journeyman" else "#94a3b8"
        label = escape(NAMES[contender][0].strip("*") + version(contender))
        parts.append(f'<text x="212" y="{y + 14}" text-anchor="end">{label}</text>')
        parts.append(f'<rect x="220" y="{y}" width="{width:.0f}" height="20" rx="3" fill="{colour}"/>')
        parts.append(f'<text x="{226 + width:.0f}" y="{y + 14}">{first:.2f}</text>')
    height = 56 + 30 * len(rows)
    title = "CPU of one step, ms (logarithmic)"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 {height}" role="img" aria-label="{title}" '
        f'font-family="system-ui, sans-serif" font-size="13"><rect width="680" height="{height}" fill="#ffffff"/>'
        f'<text x="16" y="22" font-weight="600">{title}</text>{"".join(parts)}</svg>\n'
    )


def main() -> int:
    document = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    rows = figures(document)
    print("| " + " | ".join(["", *(name for name, *_ in COLUMNS)]) + " |")
    print("|" + "---|" * (len(COLUMNS) + 1))
    ended = {name: figures["run"]["ended"] for name, figures in document["scenarios"]["hang"]["repetitions"][0].items()}
    for contender, (*values, hung) in rows.items():
        cells = ["–" if value is None else f"{value:,.0f}" if value >= 100 else f"{value:.2g}" for value in values]
        waited = f"{hung or 0:.0f} s"
        cells.append(f"goes on after {waited}" if ended[contender] else f"no answer in {waited}")
        print("| " + " | ".join([NAMES[contender][0] + version(contender), *cells]) + " |")
    PLOT.write_text(plot(rows), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
