"""``journeyman audit`` and ``journeyman db``: the audit log of a store, and its schema."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Annotated, TypeVar

import typer

from journeyman.app import SqlStore
from journeyman.doors.cli import screen
from journeyman.doors.cli.loading import command, in_store, must_exist, open_at, opened
from journeyman.doors.cli.options import DEFAULT_STORE, ExitCode, Json, Limit, Store, WrongUsageError

T = TypeVar("T")

RETRY_SECONDS = 5.0

audit = typer.Typer(no_args_is_help=True)
db = typer.Typer(no_args_is_help=True)


@audit.command("list")
def list_audit(
    after: Annotated[int, typer.Option(min=0, metavar="ROW", help="Only rows after this one.")] = 0,
    limit: Limit = 100,
    store: Store = DEFAULT_STORE,
    as_json: Json = False,
) -> None:
    """The rows, oldest first."""
    rows = in_store(store, lambda app: app.store.audit.list(after=after, limit=limit))
    if as_json:
        screen.print_json(screen.dumped(rows))
    elif not rows:
        screen.note("the audit log is empty" if not after else f"no row after {after}")
    else:
        table = screen.listing("row", "time", "kind", "who", "about")
        for row in rows:
            details = ", ".join(f"{key}={value}" for key, value in row.details.items())
            who, about = screen.escaped(row.actor or "–"), screen.escaped(f"{row.subject} {details}".strip())
            table.add_row(str(row.seq), screen.local_time(row.time), row.kind, who, about)
        screen.console().print(table)


@audit.command("verify")
def verify_audit(store: Store = DEFAULT_STORE) -> None:
    """Check that no row was changed, cut or forged; else exit code 1 and the first that does not fit."""
    length = in_store(store, lambda app: app.store.audit.verify())  # raises AuditError
    screen.say(f"{screen.counted(length, 'row')}, the chain holds")


# --- the schema


def _on_schema(url: str, work: Callable[[SqlStore], Awaitable[T]]) -> T:
    async def whole() -> T:
        async with opened(open_at(url, retry_seconds=RETRY_SECONDS), upgrade=False) as store:
            return await work(store)

    return asyncio.run(whole())


@db.command("version")
def schema_version(store: Store = DEFAULT_STORE) -> None:
    """Which version of the schema the store has."""
    must_exist(store)

    async def versions(database: SqlStore) -> tuple[int, int]:
        return await database.schema_version(), database.latest_version

    have, latest = _on_schema(store, versions)
    other = f"; this program works with {latest}" if have != latest else ""
    screen.say(f"schema version {have}{other}" + (f": {command(store, 'db upgrade')}" if have < latest else ""))


@db.command("upgrade")
def upgrade(store: Store = DEFAULT_STORE) -> None:
    """Make the store if it is not there, and bring its schema up to date."""

    async def versions(database: SqlStore) -> tuple[int, int]:
        return await database.schema_version(), await database.upgrade()

    before, now = _on_schema(store, versions)
    screen.say(f"schema version {now}, " + ("as before" if before == now else f"was {before}"))


@db.command("downgrade")
def downgrade(
    version: Annotated[int, typer.Argument(min=0, metavar="VERSION", help="The version to go back to.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: Store = DEFAULT_STORE,
) -> None:
    """Go back to an older schema, and lose for good what only the newer one can hold."""
    must_exist(store)
    before = _on_schema(store, lambda database: database.schema_version())
    lost = f"going from schema version {before} to {version} forgets everything kept since version {version}, for good"
    if not yes and not screen.interactive():
        raise WrongUsageError(f"{lost}; say --yes if that is meant")
    if not yes and not typer.confirm(f"{lost}. Do it?", err=True):
        screen.note("nothing was changed")
        raise typer.Exit(ExitCode.FAILED)
    now = _on_schema(store, lambda database: database.downgrade(version))
    screen.say(f"schema version {now}, was {before}")
