"""What a run waits for, and what to type about it: for ``run``, ``runs resume`` and ``runs show``."""

from __future__ import annotations

from dataclasses import dataclass

from journeyman.app.durable import Journeyman, dead
from journeyman.core.errors import ConfigurationError
from journeyman.core.runs import RunStatus
from journeyman.core.storing import RunRow
from journeyman.doors.cli import screen
from journeyman.doors.cli.storage import command

UNFINISHED = frozenset(status for status in RunStatus if not status.ended)
MOST_NAMED = 10
CALL_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Need:
    """One thing a person must do before a run can go on."""

    what: str
    command: str


async def needs(app: Journeyman, run_id: str, *, url: str) -> list[Need]:
    """Everything a person must do, in the order it was asked."""
    approvals = [
        Need(
            f"{screen.called(item.tool_name, item.arguments, width=CALL_WIDTH)} needs approval ({item.risk.value})",
            command(url, f"approvals approve {item.id}"),
        )
        for item in await app.approvals.pending(run_id=run_id)
    ]
    unknown = [
        Need(
            f"{screen.called(item.tool_name, item.arguments, width=CALL_WIDTH)} was under way when its process died; "
            "nobody knows whether it happened",
            command(url, f"runs resolve {run_id} {item.call_id} rerun|done|skip"),
        )
        for item in await (await app.handle(run_id)).unknown()
    ]
    return approvals + unknown


def next_steps(found: list[Need]) -> list[str]:
    """As lines for a person."""
    lines = [line for need in found[:MOST_NAMED] for line in (f"{need.what}:", f"  {need.command}")]
    if len(found) > MOST_NAMED:
        lines.append(f"… and {len(found) - MOST_NAMED} more: journeyman approvals list")
    return lines


def resume_command(url: str, run_id: str, *, library: str | None = None) -> str:
    named = f" --library {library}" if library else ""
    return command(url, f"runs resume {run_id}{named}")


async def row_of(app: Journeyman, run_id: str) -> RunRow:
    row = await app.store.runs.get(run_id)
    if row is None:
        raise ConfigurationError(f"there is no run {run_id!r}; 'journeyman runs list' shows what there is")
    return row


def worked_on(app: Journeyman, row: RunRow) -> bool:
    """Whether a living process holds the run."""
    return row.owner is not None and row.lease_until > app.clock.time() and not dead([row.owner])


def holder(row: RunRow) -> str:
    """Who holds the run, as far as a person wants to know."""
    host, pid, *_ = *(row.owner or "").split("/"), ""
    return f"process {pid} on {host}"


async def in_front_of(app: Journeyman, row: RunRow) -> RunRow | None:
    """The earlier run of the same session that keeps this one from beginning and that nobody works on."""
    if row.session_id is None or row.status is not RunStatus.QUEUED:
        return None
    rows = await app.store.runs.list(statuses=UNFINISHED, session_id=row.session_id, limit=1_000)
    earlier = [item for item in rows if (item.created_at, item.id) < (row.created_at, row.id)]
    first = min(earlier, key=lambda item: (item.created_at, item.id), default=None)
    return None if first is None or worked_on(app, first) else first
