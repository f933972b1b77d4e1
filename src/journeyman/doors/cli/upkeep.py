"""``journeyman audit``, ``journeyman db`` and ``journeyman worker``: for whoever keeps the store and the workers."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from contextlib import redirect_stdout

import typer

from journeyman.app.durable import Journeyman
from journeyman.core.audit import AuditRow
from journeyman.core.errors import ConfigurationError
from journeyman.doors.cli import screen
from journeyman.doors.cli.faults import ExitCode, complain
from journeyman.doors.cli.loading import load_library
from journeyman.doors.cli.options import WrongUsageError
from journeyman.doors.cli.storage import as_it_is, command, desk, is_sqlite, must_exist, shown, store_at

# --- audit


def list_audit(*, url: str, after: int, limit: int, as_json: bool) -> None:
    async def found() -> Sequence[AuditRow]:
        async with desk(url) as app:
            return await app.store.audit.list(after=after, limit=limit)

    rows = asyncio.run(found())
    if as_json:
        return screen.print_json([row.model_dump(mode="json") for row in rows])
    if not rows:
        complain("the audit log is empty" if not after else f"no row after {after}")
        return None
    table = screen.listing("row", "time", "kind", "who", "about")
    for row in rows:
        details = ", ".join(f"{key}={value}" for key, value in row.details.items())
        who, about = screen.visible(row.actor or "–"), screen.visible(f"{row.subject} {details}".strip())
        table.add_row(str(row.seq), screen.moment(row.time), row.kind, who, about)
    screen.console().print(table)
    return None


def verify_audit(*, url: str) -> None:
    """AuditError, which names the first bad row, ends the command with exit code 1."""

    async def length() -> int:
        async with desk(url) as app:
            return await app.store.audit.verify()

    screen.show(screen.console(), f"{screen.counted(asyncio.run(length()), 'row')}, the chain holds")


# --- the schema


def schema_version(*, url: str) -> None:
    must_exist(url)

    async def found() -> tuple[int, int]:
        async with as_it_is(url) as store:
            return await store.schema_version(), store.latest_version

    have, latest = asyncio.run(found())
    told = f"schema version {have}"
    if have != latest:
        told += f"; this program works with {latest}"
    screen.show(screen.console(), told if have >= latest else f"{told}: {command(url, 'db upgrade')}")


def upgrade(*, url: str) -> None:
    async def whole() -> tuple[int, int]:
        async with as_it_is(url) as store:
            return await store.schema_version(), await store.upgrade()

    before, now = asyncio.run(whole())
    told = f"schema version {now}, as before" if before == now else f"schema version {now}, was {before}"
    screen.show(screen.console(), told)


def downgrade(to: int, *, url: str, yes: bool) -> ExitCode:
    must_exist(url)

    async def have() -> int:
        async with as_it_is(url) as store:
            return await store.schema_version()

    async def whole() -> int:
        async with as_it_is(url) as store:
            return await store.downgrade(to)

    before = asyncio.run(have())
    lost = f"going from schema version {before} to {to} forgets everything kept since version {to}, for good"
    if not yes and not screen.someone_is_there():
        raise WrongUsageError(f"{lost}; say --yes if that is meant")
    if not yes and not typer.confirm(f"{lost}. Do it?", err=True):
        complain("nothing was changed")
        return ExitCode.FAILED
    screen.show(screen.console(), f"schema version {asyncio.run(whole())}, was {before}")
    return ExitCode.DONE


# --- workers


def run_worker(*, url: str, library: str | None, model: str | None, concurrency: int, lease: float) -> None:
    """Work on runs until told to stop."""
    if is_sqlite(url):
        raise WrongUsageError(
            f"workers need PostgreSQL and {shown(url)!r} is SQLite: give --store postgresql://USER@HOST/DATABASE, "
            "or let one process take runs up with 'journeyman runs resume'"
        )
    try:
        from journeyman.app.worker import work
    except ImportError as error:
        raise ConfigurationError("workers need more packages: pip install 'journeyman[postgres]'") from error
    store = store_at(url)
    tools = load_library(library, store=store)

    def ready() -> None:
        told = f"ready: {screen.counted(len(tools), 'tool')}, up to {screen.counted(concurrency, 'run')} at once"
        print(f"journeyman worker: {told}, on {shown(url)}", file=sys.stderr, flush=True)

    async def whole() -> None:
        app = Journeyman(library=tools, store=store, model=model, concurrency=concurrency, lease_seconds=lease)
        async with app:
            await work(app, url, concurrency=concurrency, ready=ready)

    with redirect_stdout(sys.stderr):
        asyncio.run(whole())
    print("journeyman worker: stopped; what is unfinished is for the next one", file=sys.stderr)
