"""Runs that outlive their process: ``journeyman run --durable`` and ``journeyman runs resume``."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout

from rich.console import Console

from journeyman.app import Agent
from journeyman.app.durable import Handle, Journeyman
from journeyman.core.errors import BindingError, JourneymanError
from journeyman.core.runs import AgentResponse, RunStatus
from journeyman.core.storing import RunRow
from journeyman.doors.cli import screen
from journeyman.doors.cli.asking import Asker, asker
from journeyman.doors.cli.faults import ExitCode, complain, exit_code
from journeyman.doors.cli.following import follow
from journeyman.doors.cli.loading import library_name, load_agent, load_library
from journeyman.doors.cli.running import conclude, principal
from journeyman.doors.cli.standing import (
    UNFINISHED,
    holder,
    in_front_of,
    needs,
    next_steps,
    resume_command,
    row_of,
    worked_on,
)
from journeyman.doors.cli.storage import command, must_exist, store_at, workshop
from journeyman.doors.cli.trace import Trace

OTHER_TOOLS = "name the tools the run began with: --library MODULE[:NAME]"


# --- starting


def run_durably(
    task: str,
    *,
    url: str,
    session: str | None,
    agent: str | None,
    library: str | None,
    model: str | None,
    permissions: list[str],
    yes: bool,
    as_json: bool,
    live: bool,
) -> ExitCode:
    """Keep a run in the store, carry it out here, and print what came out or what it waits for."""
    store = store_at(url)
    who, tools = load_agent(agent, library, store=store)
    who = with_model(who, model)
    given_by = principal(permissions)
    console = screen.console(stderr=True)
    trace = Trace(console, live=live)
    again = library_name(agent, library)

    async def whole() -> ExitCode:
        async with workshop(store, library=tools) as app:
            app.model_for(who)  # a run that cannot be carried out here is not even kept
            handle = await app.start(who, task, principal=given_by, session_id=session)
            row = await row_of(app, handle.run_id)
            if (earlier := await in_front_of(app, row)) is not None:
                return _kept_behind(row, earlier, url=url, library=again)
            return await see_through(
                app, handle, console, trace, ask=asker(console, trace, yes=yes), url=url, library=again, as_json=as_json
            )

    return asyncio.run(whole())


def with_model(agent: Agent, model: str | None) -> Agent:
    """The agent with another model, which is kept with its runs: whoever takes one up asks the same model."""
    return agent if model is None else Agent.model_validate({**agent.model_dump(), "model": model})


def _kept_behind(row: RunRow, earlier: RunRow, *, url: str, library: str | None) -> ExitCode:
    complain(
        f"run {row.id} waits for an earlier one of its session, {earlier.id}, which is {earlier.status.value}",
        f"see to that one first: {command(url, f'runs show {earlier.id}')}",
        f"then: {resume_command(url, row.id, library=library)}",
    )
    return ExitCode.WAITING


# --- taking up


def resume(
    run_id: str | None,
    *,
    url: str,
    library: str | None,
    model: str | None,
    yes: bool,
    as_json: bool,
    live: bool,
) -> ExitCode:
    """Take up one run, or every unfinished one that nobody works on, and follow it to its end or to a person."""
    must_exist(url)
    store = store_at(url)
    tools = load_library(library, store=store)

    async def whole() -> ExitCode:
        async with workshop(store, library=tools, model=model) as app:
            if run_id is not None:
                return await _resume_one(app, run_id, url=url, library=library, yes=yes, as_json=as_json, live=live)
            return await _resume_all(app, url=url, library=library, yes=yes, as_json=as_json)

    try:
        return asyncio.run(whole())
    except BindingError as error:
        complain(str(error), OTHER_TOOLS)
        return ExitCode.FAILED


async def _resume_one(
    app: Journeyman, run_id: str, *, url: str, library: str | None, yes: bool, as_json: bool, live: bool
) -> ExitCode:
    row = await row_of(app, run_id)
    if (earlier := await in_front_of(app, row)) is not None:
        return _kept_behind(row, earlier, url=url, library=library)
    console = screen.console(stderr=True)
    trace = Trace(console, live=live)
    if worked_on(app, row):
        screen.show(console, f"{holder(row)} works on it; followed from here", indent=2)
    [handle] = await app.resume(run_id)
    return await see_through(
        app,
        handle,
        console,
        trace,
        ask=asker(console, trace, yes=yes),
        url=url,
        library=library,
        as_json=as_json,
        seen=row.last_seq,
    )


async def _resume_all(app: Journeyman, *, url: str, library: str | None, yes: bool, as_json: bool) -> ExitCode:
    console = screen.console(stderr=True)
    rows = await _unfinished(app)
    free = [row for row in rows if not worked_on(app, row)]
    for row in rows:
        if worked_on(app, row):
            screen.show(console, f"{row.id}: {holder(row)} works on it; left alone", indent=2)
    # Runs of one session go one after another, whatever else goes on beside them.
    chains: dict[str, list[RunRow]] = {}
    for row in sorted(free, key=lambda row: (row.created_at, row.id)):
        chains.setdefault(row.session_id or row.id, []).append(row)
    if free:
        await app.resume(*(row.id for row in free))
    with redirect_stdout(sys.stderr):
        ends = await asyncio.gather(*(_resume_chain(app, chain, console, yes=yes) for chain in chains.values()))
    found = [end for chain in ends for end in chain]
    if as_json:
        screen.print_json([response.model_dump(mode="json") for _, response in found if response is not None])
    for row, response in found:
        status = RunStatus.FAILED if response is None else response.status
        if not as_json:
            print(f"{row.id}  {status.value}  {screen.shortened('' if response is None else response.answer, 100)}")
        if status.waiting:
            await _tell(app, row.id, url=url, library=library)
    if not found:
        complain("no run to take up", f"all there are: {command(url, 'runs list')}")
    codes = {ExitCode.FAILED if response is None else exit_code(response.status) for _, response in found}
    return next((code for code in (ExitCode.FAILED, ExitCode.WAITING) if code in codes), ExitCode.DONE)


async def _unfinished(app: Journeyman) -> list[RunRow]:
    found: list[RunRow] = []
    while batch := await app.store.runs.list(statuses=UNFINISHED, limit=500, offset=len(found)):
        found += batch
    return found


async def _resume_chain(
    app: Journeyman, rows: Sequence[RunRow], console: Console, *, yes: bool
) -> list[tuple[RunRow, AgentResponse | None]]:
    """The runs of one session, as far as they get; None for one that cannot go on here."""
    ends: list[tuple[RunRow, AgentResponse | None]] = []
    for row in rows:
        trace = Trace(console, live=False, name=row.id)
        # Nobody can answer questions of several runs at once.
        ask = asker(console, trace, yes=True) if yes else None
        handle = await app.handle(row.id)
        try:
            await follow(app, handle, trace, ask=ask, seen=row.last_seq)
            response = await handle.result()
        except JourneymanError as error:
            complain(f"{row.id}: {error}", OTHER_TOOLS if isinstance(error, BindingError) else None)
            ends.append((row, None))
            break
        ends.append((row, response))
        if not response.status.ended:
            break
    return ends


# --- seeing it through


async def see_through(
    app: Journeyman,
    handle: Handle,
    console: Console,
    trace: Trace,
    *,
    ask: Asker | None,
    url: str,
    library: str | None,
    as_json: bool,
    seen: int = 0,
) -> ExitCode:
    """One run, to its end or to a person, with everything a person is told about it."""
    try:
        with redirect_stdout(sys.stderr), trace:
            await follow(app, handle, trace, ask=ask, seen=seen)
            response = await handle.result()
            if response.status.ended:
                trace.sum_up(response)
    except asyncio.CancelledError:
        complain(
            "left; the step under way is finished first, Ctrl-C again ends at once. The run is kept:",
            resume_command(url, handle.run_id, library=library),
            command(url, f"runs cancel {handle.run_id}"),
        )
        raise
    code = conclude(response, console, as_json=as_json)
    if response.status.waiting:
        await _tell(app, handle.run_id, url=url, library=library)
    return code


async def _tell(app: Journeyman, run_id: str, *, url: str, library: str | None) -> None:
    found = await needs(app, run_id, url=url)
    then = f"then: {resume_command(url, run_id, library=library)}"
    complain(f"run {run_id} waits for a person", *next_steps(found), then)
