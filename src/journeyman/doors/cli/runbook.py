"""``journeyman runs``: what runs there are, how one stands, and what a person does about it."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, cast

from rich.text import Text

from journeyman.app.durable import Journeyman
from journeyman.core.events import Fact
from journeyman.core.runs import AgentResponse, RunStatus
from journeyman.core.storing import RunRow
from journeyman.doors.cli import screen
from journeyman.doors.cli.faults import ExitCode, complain
from journeyman.doors.cli.options import WrongUsageError, json_value, seconds, user_name
from journeyman.doors.cli.standing import Need, holder, needs, next_steps, resume_command, row_of, worked_on
from journeyman.doors.cli.storage import desk, must_exist, store_at, workshop
from journeyman.doors.cli.trace import Trace

FACT_WIDTH = 300
RUN_STYLES = {
    RunStatus.COMPLETED: "green",
    RunStatus.FAILED: "red",
    RunStatus.LIMIT_REACHED: "yellow",
    RunStatus.CANCELLED: "dim",
    RunStatus.AWAITING_APPROVAL: "magenta",
    RunStatus.AWAITING_RESOLUTION: "bold red",
}


def list_runs(*, url: str, statuses: list[str], session: str | None, limit: int, as_json: bool) -> None:
    wanted = [_status(name) for name in statuses] or None

    async def found() -> list[tuple[RunRow, str]]:
        async with desk(url) as app:
            rows = await app.store.runs.list(statuses=wanted, session_id=session, limit=limit)
            return [(row, await _task(app, row.id)) for row in rows]

    rows = asyncio.run(found())
    if as_json:
        return screen.print_json([{**row.model_dump(mode="json"), "task": task} for row, task in rows])
    if not rows:
        complain("no runs" if wanted is None and session is None else "no such runs")
        return None
    table, now = screen.listing("run", "status", "begun", "task"), time.time()
    for row, task in rows:
        status = Text(row.status.value, style=RUN_STYLES.get(row.status, ""))
        table.add_row(row.id, status, f"{screen.span(now - row.created_at)} ago", screen.shortened(task, 200))
    screen.console().print(table)
    return None


def _status(name: str) -> RunStatus:
    try:
        return RunStatus(name)
    except ValueError:
        known = ", ".join(status.value for status in RunStatus)
        raise WrongUsageError(f"--status {name!r} is no status of a run; there are {known}") from None


async def _task(app: Journeyman, run_id: str) -> str:
    order = await app.store.runs.order(run_id)
    return "" if order is None else order.task.description


# --- one run


def show_run(run_id: str, *, url: str, events: bool, as_json: bool) -> None:
    async def found() -> tuple[RunRow, str, list[Need], list[Fact], AgentResponse | None, bool]:
        async with desk(url) as app:
            row = await row_of(app, run_id)
            needed = [] if row.status.ended else await needs(app, run_id, url=url)
            facts = list(await app.store.runs.facts(run_id))
            response = await (await app.handle(run_id)).so_far()
            return row, await _task(app, run_id), needed, facts, response, worked_on(app, row)

    row, task, needed, facts, response, busy = asyncio.run(found())
    idle = not row.status.ended and not busy
    resume = resume_command(url, row.id) if idle else None
    if as_json and events:
        return screen.print_json([fact.model_dump(mode="json") for fact in facts])
    if as_json:
        return screen.print_json(
            {
                "run": row.model_dump(mode="json"),
                "task": task,
                "needs": [{"what": need.what, "command": need.command} for need in needed],
                "resume": resume,
                "response": None if response is None else response.model_dump(mode="json"),
            }
        )
    if events:
        return _print_facts(facts)
    _print_run(row, task, facts, response, busy=busy)
    if resume is not None:
        for line in ("", *next_steps(needed), f"{'then' if needed else 'next'}: {resume}"):
            screen.show(screen.console(), line)
    return None


def _print_run(row: RunRow, task: str, facts: list[Fact], response: AgentResponse | None, *, busy: bool) -> None:
    console = screen.console()
    table = screen.facts()
    table.add_row("run", row.id)
    table.add_row("status", Text(row.status.value, style=RUN_STYLES.get(row.status, "")))
    table.add_row("task", screen.visible(task))
    table.add_row("agent", screen.visible(row.agent_name))
    if row.principal_id is not None:
        table.add_row("for", screen.visible(row.principal_id))
    if row.session_id is not None:
        table.add_row("session", screen.visible(row.session_id))
    table.add_row("begun", screen.moment(row.created_at))
    table.add_row("last seen", screen.moment(row.updated_at))
    if not row.status.ended:
        table.add_row("at work", holder(row) if busy else "nobody")
    console.print(table)
    console.print()
    trace = Trace(console, live=False, plans=False)
    for fact in facts:
        trace.show(fact)
    if response is None or not row.status.ended:
        return
    trace.sum_up(response)
    told = response.answer or ("" if response.error is None else response.error.message)
    screen.show(console, f"\n{screen.visible(told)}")


def _print_facts(facts: list[Fact]) -> None:
    console = screen.console()
    for fact in facts:
        content = fact.model_dump(mode="json", exclude={"run_id", "seq", "time", "type"}, exclude_defaults=True)
        head = f"{fact.seq:>4}  {screen.moment(fact.time)}  {fact.type:<18}  "
        screen.show(console, Text.assemble((head, "bold"), screen.shortened(content, FACT_WIDTH)))


def export_run(run_id: str, *, url: str, output: Path | None) -> None:
    """The whole run as one JSON object: where it stands, what was asked, every fact, what it amounts to."""

    async def found() -> dict[str, Any]:
        async with desk(url) as app:
            row = await row_of(app, run_id)
            order = await app.store.runs.order(run_id)
            response = await (await app.handle(run_id)).so_far()
            facts = await app.store.runs.facts(run_id)
            return {
                "run": row.model_dump(mode="json"),
                "order": None if order is None else order.model_dump(mode="json"),
                "facts": [fact.model_dump(mode="json") for fact in facts],
                "response": None if response is None else response.model_dump(mode="json"),
            }

    whole = asyncio.run(found())
    if output is None:
        return screen.print_json(whole)
    try:
        output.write_text(screen.json_text(whole) + "\n", encoding="utf-8")
    except OSError as error:
        raise WrongUsageError(f"--output {str(output)!r} cannot be written: {error.strerror}") from None
    return None


# --- what a person does about a run


def cancel_run(run_id: str, *, url: str) -> ExitCode:
    async def whole() -> tuple[RunRow, bool]:
        must_exist(url)
        async with workshop(store_at(url)) as app:
            if (row := await row_of(app, run_id)).status.ended:
                return row, True
            await app.cancel(run_id)
            return await row_of(app, run_id), False

    row, late = asyncio.run(whole())
    if late or (row.status.ended and row.status is not RunStatus.CANCELLED):
        complain(f"run {run_id!r} has ended already: {row.status.value}; nothing was changed")
        return ExitCode.FAILED
    if row.status.ended:
        screen.show(screen.console(), f"run {run_id} is cancelled")
        return ExitCode.DONE
    who = holder(row) if row.owner else "whoever takes it up"
    screen.show(screen.console(), f"run {run_id} is to be cancelled: {who} does so in a moment")
    return ExitCode.DONE


def resolve_call(run_id: str, call_id: str, action: str, *, url: str, result: str | None, by: str | None) -> None:
    if action not in ("rerun", "done", "skip"):
        raise WrongUsageError(f"a call is settled by rerun, done or skip, not by {action!r}")
    if result is not None and action != "done":
        raise WrongUsageError(f"--result says what a call has done; it does not go with {action!r}")
    value = None if result is None else json_value(result, option="--result")

    async def whole() -> None:
        must_exist(url)
        async with workshop(store_at(url)) as app:
            handle = await app.handle(run_id)
            await handle.resolve(call_id, cast("Any", action), result=value, by=by or user_name())

    asyncio.run(whole())
    screen.show(screen.console(), f"call {call_id} is settled: {action}; next: {resume_command(url, run_id)}")


def purge_runs(older_than: str, *, url: str) -> None:
    age = seconds(older_than, option="--older-than")

    async def whole() -> int:
        async with desk(url) as app:
            return await app.store.runs.purge(ended_before=app.clock.time() - age)

    gone = asyncio.run(whole())
    told = f"{screen.counted(gone, 'run')} forgotten; unfinished ones, conversations and the audit log stay"
    screen.show(screen.console(), told if gone else f"no run ended more than {older_than} ago")
