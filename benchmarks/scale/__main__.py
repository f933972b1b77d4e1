"""``python -m benchmarks.scale [--processes 1 4 10] [--seconds 10]``: measures, then simulates with what it measured.

Every process runs durable runs over one PostgreSQL, with a model that answers at once: each run asks twice and makes
one call with an effect. So the figures are the costs of a step, without a model's waiting.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from benchmarks.postgres import postgres
from benchmarks.scale.simulation import Costs, simulate
from benchmarks.scale.watching import Server

ROOT = Path(__file__).parents[2]
WORKERS = (10, 100, 1_000)
SHARDS = (1, 4, 16)


def measured(processes: int, seconds: float) -> dict[str, float]:
    """Steps a second of so many processes, and what they cost both sides."""
    with postgres() as database:
        server = Server(database)
        command = [sys.executable, "-m", "benchmarks.scale.worker", database.get_uri(), str(seconds)]
        subprocess.run([*command[:-1], "0"], cwd=ROOT, check=True, capture_output=True)  # makes the tables
        before = server.figures()
        running = [subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) for _ in range(processes)]
        connections, waiting = server.watch(seconds)
        done = [json.loads(process.communicate()[0].splitlines()[-1]) for process in running]
        after = server.figures()
    steps = sum(one["steps"] for one in done)
    spent = {name: after[name] - before[name] for name in before}
    return {
        "processes": processes,
        "steps/s": steps / seconds,
        "worker CPU ms/step": sum(one["cpu"] for one in done) * 1_000 / steps,
        "database CPU ms/step": spent["cpu"] * 1_000 / steps,
        "commits/step": spent["commits"] / steps,
        "WAL kB/step": spent["wal"] / 1_000 / steps,
        "connections": connections,
        "waiting for locks": waiting,
    }


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 4, 10])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--model-seconds", type=float, default=2.0, help="how long a model takes to answer (2)")
    parser.add_argument("--runs", type=int, default=50, help="runs that a worker has under way at once (50)")
    chosen = parser.parse_args()
    rows = [measured(count, chosen.seconds) for count in chosen.processes]
    print(" | ".join(rows[0]))
    for row in rows:
        print(" | ".join(f"{value:.2f}" if value % 1 else f"{value:.0f}" for value in row.values()))
    last = rows[-1]
    costs = Costs(
        worker_seconds=last["worker CPU ms/step"] / 1_000,
        database_seconds=last["database CPU ms/step"] / 1_000,
        commits=last["commits/step"],
        wal_bytes=last["WAL kB/step"] * 1_000,
        model_seconds=chosen.model_seconds,
    )
    print(f"\nsimulated: a model of {chosen.model_seconds:g} s, {chosen.runs} runs a worker, databases of 16 cores")
    print("workers | databases | steps/s | p50 s a step | p99 s | database busy | WAL MB/s each | commits/s each")
    for workers in WORKERS:
        for shards in SHARDS:
            found = simulate(costs, workers=workers, runs=chosen.runs, shards=shards)
            print(
                f"{workers} | {shards} | {found.rate:,.0f} | {found.median:.2f} | {found.slowest:.2f} | "
                f"{found.busy:.0%} | {found.wal / 1e6:.1f} | {found.commits:,.0f}"
            )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
