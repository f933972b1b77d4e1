"""``journeyman audit`` and ``journeyman db``: the audit log of a store, its schema, backups and retention."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Annotated, Any

import typer

from journeyman.app import SqlStore
from journeyman.app.loading import open_at
from journeyman.app.operations import approvals as operations
from journeyman.app.operations.service import purge_store
from journeyman.core.audit import AuditAnchor, AuditReport, AuditRow
from journeyman.core.storing import Purged
from journeyman.doors.cli import screen
from journeyman.doors.cli.loading import command, must_exist, opened
from journeyman.doors.cli.operated import Call, Listing, Typed, operated
from journeyman.doors.cli.options import DEFAULT_STORE, By, ExitCode, Output, Store, WrongUsageError

RETRY_SECONDS = 5.0

audit = typer.Typer(no_args_is_help=True)
db = typer.Typer(no_args_is_help=True)


BEHIND = ("call_id", "digest", "edited_digest", "execution_id", "tool", "tool_digest")
"""What --json alone tells of a row, and the tool, which comes first."""


def _about(row: AuditRow) -> str:
    details = ", ".join(f"{key}={value}" for key, value in row.details.items() if key not in BEHIND)
    return " ".join(text for text in (row.details.get("tool"), row.subject, details) if text)


ROWS = {"after": Typed(metavar="ROW"), "actor": Typed("--principal", metavar="ID"), "kind": Typed(metavar="KIND")}
operated(audit, "audit list", operations.list_audit, typed=ROWS)(
    Listing(
        "rows",
        {
            "row": "seq",
            "time": lambda row: screen.local_time(row.time),
            "kind": "kind",
            "who": lambda row: row.actor or "–",
            "about": _about,
        },
        empty="the audit log is empty",
    )
)


def _read_anchor(path: Path, *, option: str) -> AuditAnchor:
    try:
        return AuditAnchor.model_validate_json(path.read_bytes())
    except OSError as error:
        raise WrongUsageError(f"{option} {str(path)!r} cannot be read: {error.strerror}") from None
    except ValueError:
        raise WrongUsageError(f"{option} {str(path)!r} is no anchor; 'journeyman audit anchor' writes one") from None


BEFORE = Typed(
    metavar="FILE", help="Where the log ended before: see 'audit anchor'.", kind=Path | None, read=_read_anchor
)


@operated(
    audit, "audit verify", operations.verify_audit, typed={"anchor": BEFORE}, fails=lambda report: report.findings
)
def say_verified(report: AuditReport, call: Call) -> None:
    """Else exit code 1 and what does not fit."""
    if report.findings:
        return screen.note(*report.findings)
    screen.say(f"{screen.counted(report.rows, 'row')}, the chain holds")
    for line in _assurances(report, url=call.store):
        screen.say(line)
    return None


def _assurances(report: AuditReport, *, url: str) -> Iterator[str]:
    """What it means that nothing was found."""
    if report.purged:
        yield f"rows up to {report.purged} were purged; the log vouches for them"
    if report.keyed_from is not None:
        keys = ", ".join(report.key_ids)
        plain = f", those before are a plain hash chain that row {report.keyed_from} vouches for"
        yield f"keyed from row {report.keyed_from} ({keys})" + (plain if report.keyed_from > report.purged + 1 else "")
    elif report.rows:
        yield "no row is keyed: a plain hash chain, which whoever can write to the database could make anew"
    if report.anchored is not None:
        yield f"the anchor fits: rows up to {report.anchored} are those that were there then"
    elif report.rows:
        yield f"without an anchor ({command(url, 'audit anchor')}) it cannot be told whether the end was cut"


@operated(audit, "audit anchor", operations.anchor_audit)
def say_anchored(made: AuditAnchor, call: Call, output: Output = None) -> None:
    screen.put_out(screen.json_text(made.model_dump(mode="json")), output)
    if output is not None:
        screen.say(f"row {made.seq} is anchored; later: {call.command('audit verify --anchor', str(output))}")


@operated(audit, "audit purge", operations.purge_audit, by=By)
def say_purged(gone: int, call: Call) -> None:
    """One that vouches for them is added, so that the rest can still be verified."""
    done = f"{screen.counted(gone, 'row')} forgotten; keep a new anchor: {call.command('audit anchor')}"
    screen.say(done if gone else f"no row is older than {call.given['older_than']}")


# --- the schema


def _on_schema(url: str, *works: Callable[[SqlStore], Awaitable[Any]], create: bool = False) -> list[Any]:
    """What comes of doing one thing after another with a store, whatever schema it has."""
    if not create:
        must_exist(url)

    async def whole() -> list[Any]:
        async with opened(open_at(url, retry_seconds=RETRY_SECONDS), upgrade=False) as store:
            return [await work(store) for work in works]

    return asyncio.run(whole())


@db.command("version")
def schema_version(store: Store = DEFAULT_STORE) -> None:
    """Which version of the schema the store has."""
    [have], latest = _on_schema(store, SqlStore.schema_version), open_at(store).latest_version
    other = f"; this program works with {latest}" if have != latest else ""
    screen.say(f"schema version {have}{other}" + (f": {command(store, 'db upgrade')}" if have < latest else ""))


@db.command("upgrade")
def upgrade(store: Store = DEFAULT_STORE) -> None:
    """Make the store if it is not there, and bring its schema up to date."""
    before, now = _on_schema(store, SqlStore.schema_version, SqlStore.upgrade, create=True)
    screen.say(f"schema version {now}, " + ("as before" if before == now else f"was {before}"))


@db.command("downgrade", context_settings={"ignore_unknown_options": True})  # or -1 would be taken for one
def downgrade(
    wanted: Annotated[str, typer.Argument(metavar="VERSION", help="The version to go back to.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    store: Store = DEFAULT_STORE,
) -> None:
    """Go back to an older schema, and lose for good what only the newer one can hold."""
    [before] = _on_schema(store, SqlStore.schema_version)
    version = int(wanted) if re.fullmatch(r"\d{1,6}", wanted, re.ASCII) else before + 1
    if version > before:
        raise WrongUsageError(
            f"the store has schema version {before} and cannot go back to {wanted!r}; give a number from 0 to {before}"
        )
    if version == before:
        screen.say(f"schema version {before}, as before")
        return
    lost = f"going from schema version {before} to {version} forgets everything kept since version {version}, for good"
    if not yes and not screen.interactive():
        raise WrongUsageError(f"{lost}; say --yes if that is meant")
    if not yes and not typer.confirm(f"{lost}. Do it?", err=True):
        screen.note("nothing was changed")
        raise typer.Exit(ExitCode.FAILED)
    [now] = _on_schema(store, lambda database: database.downgrade(version))
    screen.say(f"schema version {now}, was {before}")


# --- looking after a store


@db.command("backup")
def backup(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A new file.")],
    store: Store = DEFAULT_STORE,
) -> None:
    """Copy the whole store, as it is at one moment, into a file. Whoever works on it goes on."""
    _on_schema(store, lambda database: database.backup(file))
    screen.say(f"{file} holds the whole store ({screen.bytes_text(file.stat().st_size)})")
    screen.say(f"to look at it: {command(f'sqlite:///{file.resolve()}', 'runs list')}")


@db.command("check")
def check(store: Store = DEFAULT_STORE) -> None:
    """Look for damaged pages in a store that is a file. Exit code 1 where there are some."""
    must_exist(store)
    damage = asyncio.run(open_at(store).check())
    if not damage:
        screen.say("no damage was found")
        return
    for line in damage:
        screen.say(screen.escaped(line))
    screen.note("the file is damaged: keep a copy of it", f"then {command(store, 'db restore BACKUP --replace')}")
    raise typer.Exit(ExitCode.FAILED)


@db.command("restore")
def restore(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="What 'db backup' has made.")],
    replace: Annotated[bool, typer.Option("--replace", help="Forget what the store holds now.")] = False,
    store: Store = DEFAULT_STORE,
) -> None:
    """Put everything from a backup into a store, on either kind of database. Refuses one that holds something."""
    if not file.is_file():
        raise WrongUsageError(f"there is no file {str(file)!r}")
    count, missing = _on_schema(
        store, lambda it: it.restore(file, replace=replace), lambda it: it.audit.missing_keys(), create=True
    )
    screen.say(f"{screen.counted(count, 'row')} restored; unfinished runs: {command(store, 'runs resume')}")
    for key in missing:
        screen.note(
            f"the audit log needs the key {key}, which is not here: without it nobody can tell a row from a forged one",
            "it is in JOURNEYMAN_AUDIT_KEY where the backup was made, or in ~/.local/state/journeyman/audit.key; "
            "give it in JOURNEYMAN_AUDIT_KEY here, after your own and a comma",
        )


@operated(db, "db purge", purge_store, by=By)
def say_freed(done: Purged, call: Call) -> None:
    """Ended runs with all that belongs to them, sessions nobody used, the call log, gaps, rate limits, audit rows.
    Unfinished runs, tasks and experiments stay."""
    gone = ", ".join(f"{count:,} {kind}" for kind, count in done.counts.items())
    room = f"{screen.bytes_text(done.bytes_before)} before, {screen.bytes_text(done.bytes_after)} now"
    screen.say(f"{gone} forgotten; {room}" if gone else f"nothing is older than {call.given['older_than']}; {room}")
