"""What journalling one step costs, beside inserting the same rows by hand: ``python -m benchmarks.journal``.

A step is five facts (message, planned, started, finished, step), appended one by one as the loop does it. By hand the
same rows (call log, fence and, of a call with effects, the audit's row included) go in with sqlite3, in one batch a
step, in the same synchronous mode. Both make the JSON from the same facts. Each side writes to a file of its own; the
order changes with every repetition.
"""

from __future__ import annotations

import argparse
import asyncio
import hashlib
import hmac
import json
import os
import random
import sqlite3
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from journeyman.core.calls import CallStatus, ToolCallRecord
from journeyman.core.data import moment
from journeyman.core.events import CallFinished, CallsPlanned, CallStarted, Fact, MessageReceived, StepFinished
from journeyman.core.policy import RiskLevel
from journeyman.core.runs import TaskInput, ToolCall, Usage
from journeyman.core.storing import RunOrder
from journeyman.stores.store import open_store

TARGET = 3.0
REPETITIONS = 7
STEPS = {"effects": 200, "read_only": 1000}
RUN = "run_0192f3c2a1b4d6e8f0a1b2c3"
KEY = b"a key of the audit"


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one step, in milliseconds."""

    wall: float
    cpu: float


def facts_of(number: int) -> tuple[Fact, ...]:
    """A step such as models make them: a sentence, one call, a small result."""
    arguments = {"order_id": f"W-{number}", "amount": 12.5, "reason": "the parcel came back undelivered"}
    call = ToolCall(id=f"call_{number}", tool_name="refund_order", arguments=arguments)
    record = ToolCallRecord(
        execution_id=f"exec_{number}",
        call_id=call.id,
        tool_name=call.tool_name,
        arguments=arguments,
        status=CallStatus.SUCCESS,
        result={"order_id": f"W-{number}", "refunded": True, "balance": 87.5},
        start_time=moment(1_700_000_000.0),
        end_time=moment(1_700_000_000.2),
        attempts=1,
        risk=RiskLevel.REVERSIBLE,
        correlation_id=RUN,
    )
    facts: tuple[Fact, ...] = (
        MessageReceived(
            iteration=number,
            text="I will refund the order, since it came back.",
            calls=(call,),
            usage=Usage(input_tokens=900, output_tokens=40, requests=1),
            model="some-model",
        ),
        CallsPlanned(iteration=number, calls=(call,)),
        CallStarted(
            call_id=call.id,
            execution_id=record.execution_id,
            tool_name=call.tool_name,
            attempt=1,
            arguments=arguments,
        ),
        CallFinished(record=record),
        StepFinished(iteration=number, thought="I will refund the order.", duration_ms=203.0),
    )
    for seq, fact in enumerate(facts, start=number * 5 + 1):
        fact.stamp(RUN, seq, 1_700_000_000.0)
    return facts


class Stopwatch:
    """Wall time and the process's CPU time since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def cost(self, *, steps: int) -> Cost:
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        return Cost(wall * 1000 / steps, cpu * 1000 / steps)


async def prepared(path: Path) -> int:
    """A database with our schema and one run that is held; returns the epoch."""
    store = open_store(f"sqlite:///{path}")
    await store.open()
    order = RunOrder(run_id=RUN, agent={"name": "a"}, task=TaskInput(description="x"), created_at=1.0)
    await store.runs.create(order)
    epoch = await store.runs.claim(RUN, owner="o", lease_seconds=60)
    await store.close()
    assert epoch is not None
    return epoch


def through_journal(path: Path, epoch: int, kind: str, steps: list[tuple[Fact, ...]]) -> Cost:
    async def write() -> Cost:
        store = open_store(f"sqlite:///{path}")
        await store.open()
        journal = store.runs.journal(RUN, epoch=epoch)
        for fact in steps[0]:
            await journal.append(RUN, (fact,), sync=True)
        watch = Stopwatch()
        for step in steps[1:]:
            for fact in step:
                await journal.append(RUN, (fact,), sync=kind == "effects" and fact.type == "call_started")
        await store.flush()
        cost = watch.cost(steps=len(steps) - 1)
        await store.close()
        return cost

    return asyncio.run(write())


def by_hand(path: Path, epoch: int, kind: str, steps: list[tuple[Fact, ...]]) -> Cost:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute(f"PRAGMA synchronous = {'FULL' if kind == 'effects' else 'NORMAL'}")

    def insert(step: tuple[Fact, ...]) -> None:
        rows = [(RUN, fact.seq, fact.type, fact.model_dump_json()) for fact in step]
        finished = step[3]
        assert isinstance(finished, CallFinished)
        record = finished.record
        call = (record.execution_id, RUN, record.call_id, record.tool_name, "success", "reversible", 1, 0, None)
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(
            "UPDATE runs SET last_seq = ?, updated_at = ? WHERE id = ? AND epoch = ?",
            (step[-1].seq, step[-1].time, RUN, epoch),
        )
        connection.executemany("INSERT INTO facts VALUES (?, ?, ?, ?)", rows)
        connection.execute(
            "INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (*call, record.start_time.timestamp(), record.duration_ms),
        )
        if kind == "effects":
            audit(record)
        connection.execute("COMMIT")

    def audit(record: ToolCallRecord) -> None:
        seq, previous, mac = connection.execute("SELECT seq, hash, mac FROM audit_head WHERE id = 1").fetchone()
        details = json.dumps({"attempt": 1, "execution_id": record.execution_id, "tool": record.tool_name})
        row = (seq + 1, 1.0, "call_started", None, RUN, record.call_id, details, previous)
        digest = hashlib.sha256(json.dumps(row).encode()).hexdigest()
        mac = hmac.digest(KEY, f"{mac}\n{digest}".encode(), "sha256").hex()
        connection.execute(
            "INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, digest, None, "key", mac)
        )
        connection.execute("UPDATE audit_head SET seq = ?, hash = ?, mac = ? WHERE id = 1", (seq + 1, digest, mac))

    insert(steps[0])
    watch = Stopwatch()
    for step in steps[1:]:
        insert(step)
    cost = watch.cost(steps=len(steps) - 1)
    connection.close()
    return cost


def compare(kind: str, directory: Path) -> dict[str, Cost]:
    steps = [facts_of(number) for number in range(STEPS[kind] + 1)]
    costs: dict[str, Cost] = {}
    ways = {"journal": through_journal, "by_hand": by_hand}
    for name in random.sample(list(ways), len(ways)):
        path = directory / f"{kind}-{name}-{os.urandom(4).hex()}.db"
        epoch = asyncio.run(prepared(path))
        costs[name] = ways[name](path, epoch, kind, steps)
    return costs


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.journal", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of the table")
    chosen = parser.parse_args()
    figures, passed = {}, True
    # Not in the temporary directory, which may be in memory: there a sync costs nothing.
    place = Path(".bench")
    place.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=place) as directory:
        for kind in STEPS:
            repetitions = [compare(kind, Path(directory)) for _ in range(REPETITIONS)]
            figures[kind] = summary(repetitions)
            passed = passed and all(ratio <= TARGET for ratio in figures[kind]["ratio"].values())
    if chosen.json:
        print(json.dumps({**figures, "target": TARGET, "passed": passed}, indent=1))
        return 0 if passed else 1
    for kind, found in figures.items():
        for name in ("journal", "by_hand"):
            print(f"{kind:10} {name:8} wall {found[name]['wall']:7.3f} ms  CPU {found[name]['cpu']:7.3f} ms a step")
        for unit, ratio in found["ratio"].items():
            print(
                f"{'pass' if ratio <= TARGET else 'FAIL'}  {kind}: {unit} {ratio:.2f} x by hand (target ≤ {TARGET:g})"
            )
    return 0 if passed else 1


def summary(repetitions: list[dict[str, Cost]]) -> dict[str, dict[str, float]]:
    """Medians; of ratios, the median of the ratios within one repetition."""
    units = ("wall", "cpu")
    found = {
        name: {unit: median(asdict(costs[name])[unit] for costs in repetitions) for unit in units}
        for name in ("journal", "by_hand")
    }
    found["ratio"] = {
        unit: median(asdict(costs["journal"])[unit] / asdict(costs["by_hand"])[unit] for costs in repetitions)
        for unit in units
    }
    return found


if __name__ == "__main__":
    raise SystemExit(main())
