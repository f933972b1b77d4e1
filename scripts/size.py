"""Counts the files and lines of each room, and compares them with what is committed: the tree grows only by a decision.

``python -m scripts.size`` prints the table and fails where a room or the whole is larger than ``scripts/sizes.json``
says. ``--lower`` writes smaller figures. Larger ones are written by ``--decision PAGE``, which keeps beside them the
name of the page in ``docs/decisions`` that says why.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any, TypeAlias

PROJECT = Path(__file__).parents[1]
TOTAL, ROOT = "total", "(root)"

Sizes: TypeAlias = dict[str, list[int]]
"""By name: files, and of a room lines too."""


def measure(project: Path) -> Sizes:
    """Files and lines of each room, and of all of them."""
    package = project / "src" / "journeyman"
    files: Counter[str] = Counter()
    lines: Counter[str] = Counter()
    for path in [*package.rglob("*.py"), *package.rglob("*.pyi")]:
        parts = path.relative_to(package).parts
        count = len(path.read_bytes().splitlines())
        for name in (parts[0] if len(parts) > 1 else ROOT, TOTAL):
            files[name] += 1
            lines[name] += count
    return {name: [files[name], lines[name]] for name in sorted(files, key=lambda name: (name == TOTAL, name))}


def growth(now: Sizes, most: Sizes) -> list[str]:
    """What is larger than it may be. A room that has no figures yet counts in the total alone."""
    return [
        f"{name}: {limit} -> {count} {what}"
        for name, counts in now.items()
        for what, count, limit in zip(("files", "lines"), counts, most.get(name, counts), strict=False)
        if count > limit
    ]


def compare(table: str, now: Sizes, *, lower: bool, decision: str | None, project: Path = PROJECT) -> int:
    """Compare with the committed table, and write what may be written; the exit status."""
    committed = project / "scripts" / "sizes.json"
    kept: dict[str, Any] = json.loads(committed.read_text(encoding="utf-8"))
    most: Sizes = kept[table]
    grown = growth(now, most)
    if decision is not None:
        if not (project / "docs" / "decisions" / decision).is_file():
            print(f"docs/decisions/{decision} is not there: write the page that says why first", file=sys.stderr)
            return 1
        kept["raised"] += [f"{line} ({decision})" for line in grown]
        kept[table] = now
    elif grown:
        print(f"\nIn the table of {table} something grew:", *grown, sep="\n  ", file=sys.stderr)
        print(
            "Share or delete until it does not. Where it must grow, write a page in docs/decisions that says why, and"
            " give its name with --decision PAGE.",
            file=sys.stderr,
        )
        return 1
    else:
        smaller = {
            name: [min(pair) for pair in zip(counts, most.get(name, counts), strict=True)]
            for name, counts in now.items()
        }
        if smaller != most and not lower:
            print("Smaller than committed: --lower keeps it so.")
        kept[table] = smaller if lower else most
    committed.write_text(_text(kept), encoding="utf-8")
    return 0


def _text(kept: dict[str, Any]) -> str:
    """One line a room: what a change made larger is seen in its diff."""
    tables = [
        f'  "{table}": {{\n' + ",\n".join(f'    "{name}": {counts}' for name, counts in kept[table].items()) + "\n  }"
        for table in ("rooms", "walks")
    ]
    raised = json.dumps(kept["raised"], indent=2).replace("\n", "\n  ")
    return "{\n" + ",\n".join([*tables, f'  "raised": {raised}']) + "\n}\n"


def main(arguments: list[str] | None = None, project: Path = PROJECT) -> int:
    parser = argparse.ArgumentParser(description="Files and lines per room, and whether they grew.")
    parser.add_argument("--lower", action="store_true", help="write figures that are smaller than the committed ones")
    parser.add_argument("--decision", metavar="PAGE", help="write larger figures; the page in docs/decisions says why")
    options = parser.parse_args(arguments)
    now = measure(project)
    print(f"{'room':<14}{'files':>7}{'lines':>9}")
    for name, (files, lines) in now.items():
        print(f"{name:<14}{files:>7}{lines:>9,}")
    return compare("rooms", now, lower=options.lower, decision=options.decision, project=project)


if __name__ == "__main__":
    sys.exit(main())
