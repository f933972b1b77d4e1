"""Ten thousand of everything, written straight into a store: what an operator has after a year."""

from __future__ import annotations

import asyncio
import time
from functools import partial

from journeyman import RiskLevel, Tool, tool
from journeyman.app.service import Service
from journeyman.choosing import ToolGapReport
from journeyman.core.approvals import ApprovalStatus
from journeyman.core.data import moment
from journeyman.core.playbook import ToolCallingStrategy
from journeyman.core.policy import Principal
from journeyman.core.runs import RunStatus
from journeyman.core.storing import StoredExperiment
from journeyman.core.tasks import Task, TaskPriority, TaskStatus
from journeyman.experiments import Report
from journeyman.stores.connection import Connection
from journeyman.stores.conversations import touch_session
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


WORDS = (
    "Call {1} back about ticket {0}",
    "Send the invoice of order W-{0}",
    "اتصل بـ {1} بخصوص الطلب {0} قبل يوم الجمعة",
    "להתקשר אל {1} בנוגע להזמנה {0}",
    "Review https://example.com/" + "a-long-address-without-any-room-to-break-it/" * 4 + "{0}",
    "Donaudampfschifffahrt" * 6 + "{0}",
    "票据 {0} 的退款需要 {1} 在星期五之前确认",
)
"""What people call things: in every direction, and without a place to break."""


def words(number: int, said: tuple[str, ...] = WORDS) -> str:
    return said[number % len(said)].format(number, PEOPLE[number % len(PEOPLE)])


async def fill_lists(service: Service, many: int, *, whose: str = "local") -> None:
    """So many tasks, gaps and conversations; at most a thousand documents, and some hundreds of the rest."""
    now = time.time()
    store, app = service.store, service.app
    few = min(many, 300)
    for first in range(0, many, AT_ONCE):
        numbers = range(first, min(many, first + AT_ONCE))
        await asyncio.gather(*(store.tasks.add(_task(number, now - number * APART_SECONDS)) for number in numbers))
        texts = [(f"{words(number)}. Noted on day {number}.", {"topic": "orders"}, None) for number in numbers]
        if first < 1_000:  # each has a vector, which takes its time
            await app.memory.store_documents(texts, principal=Principal(whose))
        await store._database.write(partial(_talk, numbers=numbers, now=now, whose=whose))
        await asyncio.gather(
            *(store.gaps.add(_gap(number), now=now - number, principal_id=whose) for number in numbers)
        )
    for number in range(few):
        strategy = ToolCallingStrategy(id=f"strategy_{number}", content=words(number), tool_sequence=("look", "pay"))
        await app.playbooks[f"domain {number}"].put([strategy], reason="learned from 2 runs")
        found = report(number, few)
        kept = {
            "id": found.experiment_id,
            "name": found.name,
            "winner": found.winner,
            "report": found.model_dump_json(),
        }
        await store.experiments.add(StoredExperiment(**kept, created_at=now - number * APART_SECONDS))


def _task(number: int, at: float) -> Task:
    return Task(
        id=f"task_{number:05}",
        title=words(number)[:255],
        description="**Please** do it soon.",
        status=list(TaskStatus)[number % len(TaskStatus)],
        priority=list(TaskPriority)[number % len(TaskPriority)],
        eta=moment(at + 86_400) if number % 3 == 0 else None,
        tags=("work", "a-tag-of-some-length")[: number % 3],
        created_at=moment(at),
        updated_at=moment(at),
    )


def _gap(number: int) -> ToolGapReport:
    missing = f"{('book', 'cancel', 'translate', 'print')[number % 4]} {words(number % 97)[:120]}"
    return ToolGapReport(missing_tools=(missing,), attempted_task=words(number), existing_tools_checked=("weigh",))


def _talk(connection: Connection, *, numbers: range, now: float, whose: str) -> None:
    for number in numbers:
        at = now - 60 - number * APART_SECONDS
        touch_session(connection, f"s-{number:05}", principal_id=whose, now=at, said=words(number, REQUESTS + WORDS))


def report(number: int, of: int) -> Report:
    """What a comparison of two arms has found."""
    arms = [
        {
            "arm": arm,
            "units": 40,
            "observations": 40,
            "failures": number % 5,
            "figures": {"score": {"mean": score, "low": score - 0.1, "high": score + 0.1}},
        }
        for arm, score in (("old", 0.5), ("new", 0.9))
    ]
    compared = {"a": "old", "b": "new", "difference": 0.4, "low": 0.2, "high": 0.6, "p": 0.001, "p_corrected": 0.001}
    return Report.model_validate(
        {
            "experiment_id": f"exp_{number}",
            "name": words(number),
            "paired": True,
            "alpha": 0.05,
            "look": 1,
            "looks": of,
            "arms": arms,
            "comparisons": [{**compared, "pairs": 40}],
            "winner": "new" if number % 2 else None,
        }
    )


def tools(many: int) -> list[Tool[..., object]]:
    """So many tools of a service that somebody has connected."""

    def made(number: int) -> Tool[..., object]:
        def look(order_id: str, reason: str = "asked for") -> str:
            """Look at it."""
            return f"{order_id}: {reason}"

        risk = RiskLevel.IRREVERSIBLE if number % 5 == 0 else RiskLevel.REVERSIBLE
        described = f"{words(number)}. Use when somebody asks for exactly that, and for nothing else."
        return tool(
            look,
            name=f"{'a_service_with_a_name_of_some_length' if number % 7 == 0 else 'look'}_{number}",
            risk=risk,
            description=described,
            category="connected",
        )

    return [made(number) for number in range(many)]
