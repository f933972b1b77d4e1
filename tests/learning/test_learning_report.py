"""The report of the learning benchmark: its tables, and its plots in files beside it."""

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from benchmarks.learning.__main__ import write
from benchmarks.learning.finding import FIGURES

METHODS = ("most frequent", "fusion + vote", "playbook")


def estimate(mean: float) -> dict[str, Any]:
    return {"mean": mean, "interval": [mean - 0.02, mean + 0.02]}


def figures() -> dict[str, Any]:
    rows: dict[str, Any] = {name: dict.fromkeys(FIGURES, estimate(0.1 + 0.2 * at)) for at, name in enumerate(METHODS)}
    rows["playbook"] = {**rows["playbook"], "against the fusion": dict.fromkeys(FIGURES, (0.01, 0.08))}
    return rows


def speed(strategies: int) -> dict[str, Any]:
    timed = {"p50_ms": 1.5, "p95_ms": 2.5, "cpu_ms": 1.4, "update_ms": 0.5, "numpy_ms": strategies / 8_000}
    return {"strategies": strategies, **timed, "ratio": 0.9, "found": 0.998}


def test_a_report_in_a_file_links_its_plots(tmp_path: Path) -> None:
    online = {f"{start}–{start + 49} conversations": {"seq@1": 0.4, "interval": (0.3, 0.5)} for start in (0, 50)}
    report = {
        "corpus": {"turns": 10, "ceiling": 0.9},
        "held out": figures(),
        "online": online,
        "speed": [speed(1_000), speed(10_000), speed(100_000)],
        "domains": [],
    }
    write(report, tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    linked = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", text)
    assert linked == ["report-online.svg", "report-retrieval.svg", "report-speed.svg"]
    assert "| 100,000 | 1.50 | 2.50 | 1.40 | 0.50 | 0.90 | 99.8% |" in text
    for name in linked:
        root = ElementTree.parse(tmp_path / name).getroot()
        places = [float(item.attrib["y"]) for item in root.iter("{http://www.w3.org/2000/svg}text")]
        assert places
        assert all(0 < y < 420 for y in places)


def test_what_was_not_measured_is_not_drawn(tmp_path: Path) -> None:
    write({"corpus": {"turns": 10, "ceiling": 0.9}}, tmp_path / "report.md")
    assert [file.name for file in tmp_path.iterdir()] == ["report.md"]
