"""Kill, go on, count: ``python -m benchmarks.crash``. Exit code 1 when anything was lost, doubled or misnamed."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.crash.findings import Findings
from benchmarks.crash.postgres import PostgresCampaign
from benchmarks.crash.sqlite import SqliteCampaign
from benchmarks.postgres import postgres

KILLS = 60
QUICK_KILLS = 4
QUICK_EVERY = 11
WORKERS_FACTS = 55
"""On PostgreSQL workers die at each of the first so many facts they write: a run has fewer."""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crash", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    parser.add_argument("--kills", type=int, metavar="N", help=f"random kills on each database (default {KILLS})")
    parser.add_argument("--quick", action="store_true", help="few kills at few boundaries: does it work at all?")
    parser.add_argument("--only", choices=["sqlite", "postgresql"], help="one database instead of both")
    return parser.parse_args()


def on_postgres(folder: Path, *, facts: int, every: int, kills: int) -> Findings:
    with postgres() as server:
        return PostgresCampaign(folder, server.get_uri()).run(facts=facts, every=every, kills=kills)


def table(documents: list[dict[str, Any]]) -> str:
    lines = []
    for name in documents[0]:
        cells = "".join(f"{document[name]!s:>16}" for document in documents if not isinstance(document[name], dict))
        if cells:
            lines.append(f"{name.replace('_', ' '):32}{cells}")
    for document in documents:
        killed = ", ".join(f"{kind} {count}" for kind, count in document["killed_after"].items())
        lines.append(f"{document['database']}: killed after {killed}")
    return "\n".join(lines)


def main() -> int:
    chosen = options()
    kills = chosen.kills if chosen.kills is not None else QUICK_KILLS if chosen.quick else KILLS
    every = QUICK_EVERY if chosen.quick else 1
    found: list[Findings] = []
    with tempfile.TemporaryDirectory(prefix="jm-crash-") as folder:
        if chosen.only != "postgresql":
            home = Path(folder, "sqlite")
            home.mkdir()
            found.append(SqliteCampaign(home).run(every=every, kills=kills))
        if chosen.only != "sqlite":
            home = Path(folder, "postgresql")
            home.mkdir()
            found.append(on_postgres(home, facts=WORKERS_FACTS, every=every, kills=kills))
    documents = [findings.document() for findings in found]
    if chosen.json:
        print(json.dumps({"kills": sum(findings.kills for findings in found), "databases": documents}, indent=1))
    else:
        print(table(documents))
    return 0 if all(findings.passed for findings in found) else 1


if __name__ == "__main__":
    sys.exit(main())
