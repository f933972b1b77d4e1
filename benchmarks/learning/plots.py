"""The report's plots, written as SVG by hand: a curve with its interval, bars with whiskers, lines by size."""

import math
from collections.abc import Callable, Iterable, Sequence
from html import escape
from typing import Any

Row = dict[str, Any]
WIDTH, HEIGHT = 760, 420
LEFT, RIGHT, TOP, BOTTOM = 76, 176, 64, 62
INK, QUIET, GRID = "#1f2933", "#52606d", "#e4e7eb"
COLOURS = ("#0b6bcb", "#c2410c", "#0f766e", "#64748b", "#7c3aed")
"""Told apart by colour-blind people, and on paper by their order."""
FIRST, LAST = LEFT, WIDTH - RIGHT
BASE = HEIGHT - BOTTOM

Scale = Callable[[float], float]


def drawings(report: Row) -> dict[str, tuple[str, str]]:
    """What there is to draw of a report: by the file's ending name, the title and the picture."""
    made: dict[str, tuple[str, str]] = {}
    if "online" in report:
        made["online"] = "Right at the first guess, as memory grows", curve(report["online"])
    if "held out" in report:
        made["retrieval"] = "Same tools at the first guess, by method", bars(report["held out"])
    if "speed" in report:
        made["speed"] = "Milliseconds by the number of strategies", sizes(report["speed"])
    return made


def curve(online: Row) -> str:
    """The learning curve of the stream: a line through the buckets, in the band of their intervals."""
    rows = list(online.items())
    ends = [min(1.0, max(row["interval"][1] for _, row in rows) * 1.15), 0.0]
    across, up = linear(0, len(rows) - 1 or 1, FIRST + 34, LAST - 10), linear(ends[1], ends[0], BASE, TOP)
    high = [(across(at), up(row["interval"][1])) for at, (_, row) in enumerate(rows)]
    low = [(across(at), up(row["interval"][0])) for at, (_, row) in enumerate(rows)]
    middle = [(across(at), up(row["seq@1"])) for at, (_, row) in enumerate(rows)]
    parts = [*levels(up, ticks(ends[0]), "{:.1f}")]
    parts.append(f'<polygon points="{points([*high, *reversed(low)])}" fill="{COLOURS[0]}" opacity="0.16"/>')
    parts.append(line(middle, COLOURS[0]))
    for at, (name, row) in enumerate(rows):
        x, y = middle[at]
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{COLOURS[0]}"/>')
        parts.append(text(x, y - 12, f"{row['seq@1']:.2f}", size=12, anchor="middle"))
        parts.append(text(x, BASE + 20, name.split(" ")[0], size=12, anchor="middle", colour=QUIET))
    parts.append(text((FIRST + LAST) / 2, BASE + 44, "conversations seen before", anchor="middle", colour=QUIET))
    parts.append(text(LAST + 16, middle[-1][1] + 4, "playbook", colour=COLOURS[0], weight=600))
    parts.append(text(LAST + 16, middle[-1][1] + 22, "band: 95 % interval", size=12, colour=QUIET))
    return picture(
        "Right at the first guess, as memory grows", "share of turns whose whole tool sequence is named", parts
    )


def bars(methods: Row) -> str:
    """One bar for each method, the playbook's in colour, with the interval as a whisker."""
    rows = [(name, row["seq@1"]) for name, row in methods.items() if name != "ceiling"]
    left = LEFT + 128
    most = min(1.0, max(row["interval"][1] for _, row in rows) * 1.08)
    across = linear(0, most, left, WIDTH - 40)
    step = (BASE - TOP) / len(rows)
    parts = [*stems(across, ticks(most), "{:.1f}")]
    for at, (name, row) in enumerate(rows):
        y, ours = TOP + at * step, name == "playbook"
        thick, middle = step * 0.56, y + step / 2
        colour = COLOURS[0] if ours else "#9aa5b1"
        wide = across(row["mean"]) - left
        parts.append(
            f'<rect x="{left}" y="{middle - thick / 2:.1f}" width="{wide:.1f}" height="{thick:.1f}" fill="{colour}"/>'
        )
        low, high = (across(end) for end in row["interval"])
        whisker = f"M{low:.1f} {middle - 5:.1f}v10M{high:.1f} {middle - 5:.1f}v10M{low:.1f} {middle:.1f}H{high:.1f}"
        parts.append(f'<path d="{whisker}" stroke="{INK}" stroke-width="1.5"/>')
        parts.append(text(left - 10, middle + 4, name, anchor="end", weight=600 if ours else 400))
        inside = f"{row['mean']:.2f}"
        if wide > 60:
            parts.append(text(left + 8, middle + 4, inside, size=12, colour="#ffffff" if ours else INK))
        else:
            parts.append(text(high + 8, middle + 4, inside, size=12))
    return picture(
        "Same tools at the first guess, by method", "held-out half of BFCL's turns; whiskers: 95 % intervals", parts
    )


def sizes(rows: Sequence[Row]) -> str:
    """Retrieval, its tail, an update and a plain scan against the number of strategies, both scales logarithmic."""
    named = {
        "p95_ms": "retrieval, p95",
        "p50_ms": "retrieval, p50",
        "cpu_ms": "retrieval, CPU",
        "numpy_ms": "numpy scan, CPU",
        "update_ms": "update, CPU",
    }
    values = [row[name] for row in rows for name in named] + [10.0]
    low, high = (10.0 ** floor(math.log10(end)) for floor, end in ((math.floor, min(values)), (math.ceil, max(values))))
    across = logarithmic(rows[0]["strategies"], rows[-1]["strategies"], FIRST, LAST)
    up = logarithmic(low, high, BASE, TOP)
    decades = [10.0**power for power in range(round(math.log10(low)), round(math.log10(high)) + 1)]
    parts = [*levels(up, decades, "{:g} ms")]
    target = up(10.0)
    parts.append(f'<path d="M{FIRST} {target:.1f}H{LAST}" stroke="{INK}" stroke-dasharray="5 4"/>')
    parts.append(text(FIRST + 6, target - 6, "target: 10 ms", size=12, colour=QUIET))
    taken: list[float] = []
    for (name, label), colour in sorted(
        zip(named.items(), COLOURS, strict=True), key=lambda item: -rows[-1][item[0][0]]
    ):
        marks = [(across(row["strategies"]), up(row[name])) for row in rows]
        parts.append(line(marks, colour))
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.5" fill="{colour}"/>' for x, y in marks]
        y = marks[-1][1] + 4
        while any(abs(y - other) < 17 for other in taken):
            y += 1
        taken.append(y)
        parts.append(text(LAST + 12, y, f"{label} {rows[-1][name]:.2g}", colour=colour, weight=600, size=12))
    for row in rows:
        parts.append(text(across(row["strategies"]), BASE + 20, f"{row['strategies']:,}", size=12, anchor="middle"))
    parts.append(text((FIRST + LAST) / 2, BASE + 44, "strategies in one domain", anchor="middle", colour=QUIET))
    return picture(
        "What retrieval and an update cost", "milliseconds, the query's embedding apart; both scales logarithmic", parts
    )


# --- what they are drawn with


def linear(first: float, last: float, begin: float, end: float) -> Scale:
    return lambda value: begin + (value - first) / (last - first) * (end - begin)


def logarithmic(first: float, last: float, begin: float, end: float) -> Scale:
    inner = linear(math.log10(first), math.log10(last) if last > first else math.log10(first) + 1, begin, end)
    return lambda value: inner(math.log10(value))


def ticks(most: float, *, step: float = 0.1) -> list[float]:
    return [number * step for number in range(int(most / step + 1e-9) + 1)]


def levels(up: Scale, values: Iterable[float], form: str) -> Iterable[str]:
    for value in values:
        y = up(value)
        yield f'<path d="M{FIRST} {y:.1f}H{LAST}" stroke="{GRID}"/>'
        yield text(FIRST - 10, y + 4, form.format(value), size=12, anchor="end", colour=QUIET)


def stems(across: Scale, values: Iterable[float], form: str) -> Iterable[str]:
    for value in values:
        x = across(value)
        yield f'<path d="M{x:.1f} {TOP}V{BASE}" stroke="{GRID}"/>'
        yield text(x, BASE + 20, form.format(value), size=12, anchor="middle", colour=QUIET)


def line(marks: Sequence[tuple[float, float]], colour: str) -> str:
    return (
        f'<polyline points="{points(marks)}" fill="none" stroke="{colour}" stroke-width="2.5" stroke-linejoin="round"/>'
    )


def points(marks: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in marks)


def text(
    x: float, y: float, words: str, *, size: int = 13, anchor: str = "start", colour: str = INK, weight: int = 400
) -> str:
    style = f'font-size="{size}" font-weight="{weight}" fill="{colour}" text-anchor="{anchor}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{escape(words)}</text>'


def picture(title: str, about: str, parts: Iterable[str]) -> str:
    """A whole SVG file: white, so that it can be read on pages of any colour."""
    box = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {box} font-family="system-ui, sans-serif">'
    return "\n".join(
        [
            head,
            f"<title>{escape(title)}</title>",
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
            text(24, 28, title, size=16, weight=600),
            text(24, 47, about, size=12, colour=QUIET),
            *parts,
            "</svg>\n",
        ]
    )
