"""The journals that live as long as their process."""

from __future__ import annotations

from collections.abc import Sequence

from journeyman.core.audit import AuditStore
from journeyman.core.calls import CallStatus
from journeyman.core.errors import JournalConflictError
from journeyman.core.events import CallFinished, CallStarted, Fact


class MemoryJournal:
    """Facts in lists. Keeps the same promises as a database, except surviving."""

    def __init__(self) -> None:
        self._runs: dict[str, list[Fact]] = {}

    async def append(self, run_id: str, facts: Sequence[Fact], *, sync: bool = False) -> None:
        kept = self._runs.setdefault(run_id, [])
        for fact in facts:
            if fact.seq != len(kept) + 1:
                raise JournalConflictError(
                    f"run {run_id!r}: fact {fact.seq} cannot be written, the next is {len(kept) + 1}; "
                    "another process is working on this run"
                )
            kept.append(fact)

    async def read(self, run_id: str, *, after: int = 0) -> Sequence[Fact]:
        return tuple(self._runs.get(run_id, ())[after:])

    def runs(self) -> list[str]:
        """Ids of all runs, oldest first."""
        return list(self._runs)


class AuditedJournal(MemoryJournal):
    """Of runs that no store keeps, but whose tools work on one: its audit has their effects and refusals all the same.

    The rows are those that ``projections`` writes for a run that is kept.
    """

    def __init__(self, audit: AuditStore, *, actor: str | None) -> None:
        super().__init__()
        self._audit = audit
        self._actor = actor

    async def append(self, run_id: str, facts: Sequence[Fact], *, sync: bool = False) -> None:
        await super().append(run_id, facts, sync=sync)
        for fact in facts:
            match fact:
                case CallStarted() if sync:  # nobody else waits for a start to be synced than a call with effects
                    details = {"tool": fact.tool_name, "execution_id": fact.execution_id, "attempt": fact.attempt}
                    await self._note("call_started", run_id, fact.call_id, details, fact)
                case CallFinished(record=record) if record.status is CallStatus.DENIED:
                    details = {"tool": record.tool_name, "execution_id": record.execution_id}
                    if record.error is not None:
                        details["code"] = record.error.code
                    await self._note("call_refused", run_id, record.call_id, details, fact)
                case _:
                    pass

    async def _note(self, kind: str, run_id: str, subject: str, details: dict[str, object], fact: Fact) -> None:
        await self._audit.append(
            kind, actor=self._actor, run_id=run_id, subject=subject, details=details, now=fact.time
        )
