"""Kill, go on, count: ``python -m benchmarks.crash``. Exit code 1 when anything was lost, doubled or misnamed."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.crash.disturbed import DisturbedCampaign, OnPostgres, OnSqlite
from benchmarks.crash.findings import Findings
from benchmarks.crash.postgres import PostgresCampaign
from benchmarks.crash.sqlite import SqliteCampaign
from benchmarks.postgres import postgres

KILLS = 60
QUICK_KILLS = 4
QUICK_EVERY = 11
ROUNDS = 5
"""How often each kind of disturbance is gone through."""
WORKERS_FACTS = 55
"""On PostgreSQL workers die at each of the first so many facts they write: a run has fewer."""


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.crash", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    parser.add_argument("--kills", type=int, metavar="N", help=f"random kills on each database (default {KILLS})")
    parser.add_argument("--quick", action="store_true", help="few kills at few boundaries: does it work at all?")
    parser.add_argument("--no-kills", action="store_true", help="only stops, outages, wrong clocks and namespaces")
    parser.add_argument("--no-disturbances", action="store_true", help="only kills")
    parser.add_argument("--only", choices=["sqlite", "postgresql"], help="one database instead of both")
    return parser.parse_args()


def on_sqlite(folder: Path, chosen: argparse.Namespace, *, every: int, kills: int, rounds: int) -> list[Findings]:
    found = []
    if not chosen.no_kills:
        found.append(SqliteCampaign(folder).run(every=every, kills=kills))
    if not chosen.no_disturbances:
        found.append(DisturbedCampaign(folder, OnSqlite(folder / "disturbed.db")).run(rounds=rounds))
    return found


def on_postgres(folder: Path, chosen: argparse.Namespace, *, every: int, kills: int, rounds: int) -> list[Findings]:
    found = []
    with postgres() as server:
        if not chosen.no_kills:
            campaign = PostgresCampaign(folder, server.get_uri())
            found.append(campaign.run(facts=WORKERS_FACTS, every=every, kills=kills))
    if not chosen.no_disturbances:
        with postgres() as server:
            found.append(DisturbedCampaign(folder, OnPostgres(server)).run(rounds=rounds))
    return found


def table(documents: list[dict[str, Any]]) -> str:
    lines = []
    for name in documents[0]:
        cells = "".join(f"{document[name]!s:>16}" for document in documents if not isinstance(document[name], dict))
        if cells:
            lines.append(f"{name.replace('_', ' '):32}{cells}")
    for document in documents:
        lines += [_counted(document, name) for name in ("killed_after", "disturbances") if document[name]]
    return "\n".join(lines)


def _counted(document: dict[str, Any], name: str) -> str:
    counts = ", ".join(f"{kind} {count}" for kind, count in document[name].items())
    return f"{document['database']}: {name.replace('_', ' ')} {counts}"


def main() -> int:
    chosen = options()
    kills = chosen.kills if chosen.kills is not None else QUICK_KILLS if chosen.quick else KILLS
    every = QUICK_EVERY if chosen.quick else 1
    rounds = 1 if chosen.quick else ROUNDS
    found: list[Findings] = []
    with tempfile.TemporaryDirectory(prefix="jm-crash-") as folder:
        if chosen.only != "postgresql":
            home = Path(folder, "sqlite")
            home.mkdir()
            found += on_sqlite(home, chosen, every=every, kills=kills, rounds=rounds)
        if chosen.only != "sqlite":
            home = Path(folder, "postgresql")
            home.mkdir()
            found += on_postgres(home, chosen, every=every, kills=kills, rounds=rounds)
    documents = [findings.document() for findings in found]
    if chosen.json:
        print(json.dumps({"kills": sum(findings.kills for findings in found), "databases": documents}, indent=1))
    else:
        print(table(documents))
    return 0 if all(findings.passed for findings in found) else 1


if __name__ == "__main__":
    sys.exit(main())
