"""The journal that lives as long as its process."""

from __future__ import annotations

from collections.abc import Sequence

from journeyman.core.errors import JournalConflictError
from journeyman.core.events import Fact


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
