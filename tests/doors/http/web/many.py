"""Ten thousand runs with approvals, written straight into a store: what an operator has after a year."""

from __future__ import annotations

import asyncio
import time
from functools import partial

from journeyman.core.approvals import ApprovalStatus
from journeyman.core.runs import RunStatus
from journeyman.stores.connection import Connection
from journeyman.stores.store import SqlStore
from tests.stores.samples import order, question

PEOPLE = ("ada", "grace", "linus", "margaret")
REQUESTS = (
    "Refund order W-{0} to {1}, it arrived broken",
    "What is the status of order W-{0}?",
    "Delete the draft invoice {0} of {1}",
    "Remind {1} to call back about ticket {0} on Friday",
    "I have to buy stamps",
    "Summarise what {1} wrote about order W-{0} and send it to the warehouse",
)
ENDS = (
    (RunStatus.COMPLETED, "achieved"),
    (RunStatus.COMPLETED, "achieved"),
    (RunStatus.COMPLETED, "unknown"),
    (RunStatus.COMPLETED, "not"),
    (RunStatus.FAILED, "not"),
    (RunStatus.CANCELLED, "partly"),
    (RunStatus.LIMIT_REACHED, "partly"),
)
APART_SECONDS = 337.0
AT_ONCE = 500


async def fill(store: SqlStore, many: int) -> None:
    """So many ended runs, the newest a few minutes old; a tenth had an approval."""
    now = time.time()
    for first in range(0, many, AT_ONCE):
        numbers = range(first, min(many, first + AT_ONCE))
        await asyncio.gather(*(_begin(store, number, now - 300 - number * APART_SECONDS) for number in numbers))
        await store._database.write(partial(_end, numbers=numbers))


async def _begin(store: SqlStore, number: int, at: float) -> None:
    who = PEOPLE[number % len(PEOPLE)]
    words = REQUESTS[number % len(REQUESTS)].format(number, PEOPLE[(number + 1) % len(PEOPLE)])
    await store.runs.create(order(f"run_{number:05}", at=at, principal=who, description=words))
    if number % 10 == 0:
        asked = question(f"appr_{number:05}", run_id=f"run_{number:05}", principal=who, at=at, expires_at=at + 86_400)
        await store.approvals.ask(asked)
        decision = (ApprovalStatus.APPROVED, ApprovalStatus.DENIED, ApprovalStatus.EXPIRED)[number // 10 % 3]
        reason = "The customer has kept the goods" if decision is ApprovalStatus.DENIED else None
        await store.approvals.decide(f"appr_{number:05}", decision, by="margaret", reason=reason)


def _end(connection: Connection, *, numbers: range) -> None:
    for number in numbers:
        status, outcome = ENDS[number % len(ENDS)]
        took = 2.0 + number % 50
        connection.execute(
            "UPDATE runs SET status = ?, outcome = ?, model = 'gpt-4o-mini', input_tokens = ?, output_tokens = ?, "
            "ended_at = created_at + ?, updated_at = created_at + ? WHERE id = ?",
            *(status.value, outcome, 900 + number % 4000, 80 + number % 700, took, took, f"run_{number:05}"),
        )
