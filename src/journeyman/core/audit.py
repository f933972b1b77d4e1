"""The tamper-evident log of decisions, refusals and effects."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from journeyman.core.data import Entity, Moment

PURGED = "audit_purged"
"""The kind of the row that vouches for what was purged: its details hold the last purged row's number and hash."""
STORE_PURGED = "store_purged"
"""The kind of the row that says how much else was purged."""
CONFIGURATION_CHANGED = "configuration_changed"
"""The kind of the row that says from when on a configuration file holds as it is; its details have the digest."""
SETTINGS = frozenset({"split_changed", "tokens_changed", CONFIGURATION_CHANGED})
"""Kinds of rows that are in force until a later one about the same subject: the latest is never lost by a purge."""


class AuditRow(Entity):
    """Who decided, changed or was refused what. Each row's hash covers the row and the hash before it. No content."""

    seq: int
    time: Moment
    kind: str
    """E.g. approval_approved, approval_denied, call_refused, grant_given, resolved, task_created, session_deleted."""
    actor: str | None
    run_id: str | None
    subject: str
    """What it is about: an approval's, grant's, call's, task's or session's id."""
    details: dict[str, Any]
    previous: str
    hash: str
    entry_id: str | None = None
    """Of a row that may be written again after a fault: there is one of each id."""
    key_id: str | None = None
    """Which key ``mac`` was made with; None for a row without one."""
    mac: str | None = None
    """HMAC-SHA256 over the hash and the mac before it: only who has the key can make it."""


class AuditNote(Entity):
    """A row to be, for a change that is written in the same transaction."""

    kind: str
    actor: str | None
    subject: str = ""
    """Filled in by the store where it is the id of what is made."""
    details: dict[str, Any] = Field(default_factory=dict)
    now: float


class AuditAnchor(Entity):
    """Where the log ended at some time. Kept elsewhere, it shows whether anything up to there was cut or replaced."""

    format: Literal["journeyman-audit-anchor-1"] = "journeyman-audit-anchor-1"
    seq: int = Field(ge=0)
    count: int = Field(ge=0)
    """Rows that were there; fewer than ``seq`` where old ones were purged."""
    hash: str
    mac: str | None = None
    key_id: str | None = None
    time: Moment


class AuditReport(Entity):
    """What was found when the whole log was checked."""

    rows: int
    last: int
    """The number of the last row."""
    keyed_from: int | None
    """The first row with a mac that was checked, or None: then the log is a plain hash chain."""
    key_ids: tuple[str, ...]
    purged: int
    """Rows up to this number were purged, as the log itself says."""
    anchored: int | None
    """Up to which row an anchor was found to fit."""
    findings: tuple[str, ...]
    """What does not fit, each naming its rows; empty where all is well."""
