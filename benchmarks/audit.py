"""Effects a second when many processes write to one PostgreSQL: ``python -m benchmarks.audit``.

Every effect has its row in the audit before it begins. Clients with a store each start calls with effects, one after
another, on a server whose commits take two milliseconds longer; once with chains of their own, once with the one head
of the log for all of them.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from unittest import mock

from benchmarks.postgres import postgres
from journeyman.core.data import new_id
from journeyman.core.events import CallStarted
from journeyman.core.runs import TaskInput
from journeyman.core.storing import RunOrder
from journeyman.stores.postgres import PostgresConnection
from journeyman.stores.store import open_store

CLIENTS, SECONDS, TARGET = 50, 5.0, 700.0
DELAY = "-c commit_delay=2000 -c commit_siblings=0"


async def client(url: str, until: float) -> int:
    """How many effects it has begun."""
    store = open_store(url)
    await store.open()
    run_id, count = new_id("run"), 0
    await store.runs.create(
        RunOrder(run_id=run_id, agent={"name": "a"}, task=TaskInput(description="x"), created_at=1.0)
    )
    epoch = await store.runs.claim(run_id, owner=run_id, lease_seconds=600)
    journal = store.runs.journal(run_id, epoch=epoch or 0)
    while time.monotonic() < until:
        count += 1
        started = CallStarted(
            call_id=f"call_{count}", execution_id=f"{run_id}.{count}", tool_name="pay", attempt=1, arguments={}
        )
        started.stamp(run_id, count, time.time())
        await journal.append(run_id, (started,), sync=True)
    await store.close()
    return count


async def measure(url: str, *, clients: int, seconds: float) -> float:
    first = open_store(url)
    await first.open()
    until = time.monotonic() + seconds
    begun = sum(await asyncio.gather(*(client(url, until) for _ in range(clients))))
    assert await first.audit.count(kind="call_started") >= begun
    await first.audit.verify()
    await first.close()
    return begun / seconds


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.audit", description=__doc__)
    parser.add_argument("--clients", type=int, default=CLIENTS, help=f"stores that write at once ({CLIENTS})")
    parser.add_argument("--seconds", type=float, default=SECONDS, help=f"of each measurement ({SECONDS:g})")
    chosen = parser.parse_args()
    with postgres() as server:
        uri = server.get_uri()
        url = f"{uri}{'&' if '?' in uri else '?'}options={DELAY.replace(' ', '%20').replace('=', '%3D')}&pool_size=2"
        rate = asyncio.run(measure(url, clients=chosen.clients, seconds=chosen.seconds))
        prepare = PostgresConnection.__init__

        def without(connection: PostgresConnection, conninfo: str) -> None:
            prepare(connection, conninfo)
            connection.audit_shard = None

        with mock.patch.object(PostgresConnection, "__init__", without):
            alone = asyncio.run(measure(url, clients=chosen.clients, seconds=chosen.seconds))
    print(f"one head for all: {alone:.0f} effects/s; chains of their own: {rate:.0f} ({rate / alone:.1f} x)")
    print(f"{'pass' if rate >= TARGET else 'FAIL'}  {chosen.clients} clients: {rate:.0f}/s (target ≥ {TARGET:g})")
    return 0 if rate >= TARGET else 1


if __name__ == "__main__":
    raise SystemExit(main())
