"""A report as one HTML page: no script, no outside asset, light and dark, plots as inline SVG."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from journeyman.experiments.results import METRICS

if TYPE_CHECKING:
    from journeyman.experiments.report import ArmSummary, Comparison, Report

_STYLE = """
:root { color-scheme: light dark; --ink: #1c2430; --paper: #ffffff; --faint: #d5dae2; --mark: #2f6f9f; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ee; --paper: #14181f; --faint: #3a4250; --mark: #7db8e0; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
       max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { text-align: left; padding: .4rem .6rem; border-bottom: 1px solid var(--faint); }
.wide { overflow-x: auto; } .verdict { font-size: 1.2rem; font-weight: 600; }
svg { width: 100%; height: auto; } svg text { fill: var(--ink); font-size: 13px; }
svg .axis { stroke: var(--faint); } svg .bar { stroke: var(--mark); stroke-width: 3; } svg .dot { fill: var(--mark); }
"""


def page(report: Report) -> str:
    kind = "paired by input" if report.paired else "by sticky assignment"
    parts = [
        "<!doctype html><html lang=en><head><meta charset=utf-8>",
        "<meta name=viewport content='width=device-width, initial-scale=1'>",
        f"<title>{escape(report.name)}</title><style>{_STYLE}</style></head><body><main>",
        f"<h1>{escape(report.name)}</h1><p class=verdict>{escape(report.verdict)}</p>",
        f"<p>Compared {kind}; look {report.look} of {report.looks}; a difference counts below p = {report.alpha:.4f}.",
        " Bars are 95 % bootstrap intervals.</p>",
    ]
    for metric in METRICS:
        rows = [
            (arm.arm, arm.figures[metric].mean, arm.figures[metric].low, arm.figures[metric].high)
            for arm in report.arms
        ]
        parts += [f"<h2>{metric.capitalize()}</h2>", _plot(rows, f"{metric} by arm", from_zero=True)]
    parts += [
        "<h2>Differences in score</h2>",
        _plot(
            [(f"{c.b} − {c.a}", c.difference, c.low, c.high) for c in report.comparisons], "difference in score by pair"
        ),
    ]
    parts += [_comparison_table(report.comparisons), _arm_table(report.arms), "</main></body></html>"]
    return "".join(parts)


def _plot(rows: list[tuple[str, float, float, float]], label: str, *, from_zero: bool = False) -> str:
    """Dots with intervals, one row each, on a common axis; zero is always in view."""
    ends = [value for _, mean, low, high in rows for value in (mean, low, high) if value == value]
    lowest, highest = min([0.0, *ends]), max([0.0, *ends])
    if lowest == highest:
        highest = lowest + 1.0
    left, right, height = 180, 690, 34

    def x(value: float) -> float:
        return left + (value - lowest) / (highest - lowest) * (right - left)

    total = height * len(rows) + 30
    parts = [f"<svg viewBox='0 0 720 {total}' role=img aria-label='{escape(label, quote=True)}'>"]
    for tick in range(5):
        value = lowest + (highest - lowest) * tick / 4
        parts.append(f"<line class=axis x1={x(value):.1f} x2={x(value):.1f} y1=0 y2={total - 22} />")
        parts.append(f"<text x={x(value):.1f} y={total - 6} text-anchor=middle>{value:.3g}</text>")
    if not from_zero:
        parts.append(f"<line class=axis x1={x(0):.1f} x2={x(0):.1f} y1=0 y2={total - 22} stroke-width=2 />")
    for number, (name, mean, low, high) in enumerate(rows):
        y = height * number + 18
        parts.append(f"<text x={left - 12} y={y + 4} text-anchor=end>{escape(name[:24])}</text>")
        if low == low:
            parts.append(f"<line class=bar x1={x(low):.1f} x2={x(high):.1f} y1={y} y2={y} />")
        parts.append(f"<circle class=dot cx={x(mean):.1f} cy={y} r=6><title>{mean:.4g}</title></circle>")
    return "".join([*parts, "</svg>"])


def _comparison_table(comparisons: tuple[Comparison, ...]) -> str:
    rows = "".join(
        f"<tr><td>{escape(c.b)} against {escape(c.a)}</td><td>{c.difference:+.3f}</td>"
        f"<td>{c.low:+.3f} … {c.high:+.3f}</td><td>{c.p:.4f}</td><td>{c.p_corrected:.4f}</td></tr>"
        for c in comparisons
    )
    head = "<tr><th>comparison</th><th>difference</th><th>95 % interval</th><th>p</th><th>p corrected</th></tr>"
    return f"<div class=wide><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>"


def _arm_table(arms: tuple[ArmSummary, ...]) -> str:
    head = "".join(f"<th>{metric}</th>" for metric in METRICS)
    rows = "".join(
        f"<tr><td>{escape(arm.arm)}</td><td>{arm.units}</td><td>{arm.observations}</td><td>{arm.failures}</td>"
        + "".join(f"<td>{arm.figures[metric].mean:.4g}</td>" for metric in METRICS)
        + "</tr>"
        for arm in arms
    )
    return (
        f"<h2>Arms</h2><div class=wide><table><thead><tr><th>arm</th><th>units</th><th>runs</th><th>failed</th>{head}"
        f"</tr></thead><tbody>{rows}</tbody></table></div>"
    )
