"""Playbooks that live as long as their process; for programs without a store, and for measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from journeyman.core.errors import ConfigurationError, PlaybookConflictError
from journeyman.core.playbook import PlaybookBullet, PlaybookChange, PlaybookState, PlaybookVersion
from journeyman.core.storing import CursorBatch

_Change = tuple[PlaybookVersion, dict[str, PlaybookBullet | None]]


class MemoryPlaybooks:
    """Every change in a list. Keeps the same promises as a database, except surviving."""

    def __init__(self) -> None:
        self._changes: dict[str, list[_Change]] = {}

    async def read(self, domain: str, *, after: int = 0) -> PlaybookState:
        return self._folded(domain, self._changes.get(domain, [])[after:])

    async def commit(
        self, changes: Sequence[PlaybookChange], *, now: float, batch: CursorBatch | None = None
    ) -> Mapping[str, int]:
        for change in changes:
            if (have := len(self._changes.get(change.domain, ()))) != change.expected:
                raise PlaybookConflictError(
                    f"playbook {change.domain!r} is at version {have}, not {change.expected}: read it again"
                )
        for change in changes:
            kept = self._changes.setdefault(change.domain, [])
            version = PlaybookVersion(
                version=len(kept) + 1,
                at=now,
                reason=change.reason,
                changed=len(change.bullets),
                removed=len(change.removed),
            )
            kept.append((version, {**{b.id: b for b in change.bullets}, **dict.fromkeys(change.removed)}))
        return {change.domain: change.expected + 1 for change in changes}

    async def at(self, domain: str, version: int) -> PlaybookState:
        kept = self._changes.get(domain, [])
        if not 0 <= version <= len(kept):
            raise ConfigurationError(f"playbook {domain!r} has no version {version}: it is at version {len(kept)}")
        return self._folded(domain, kept[:version], version)

    async def history(self, domain: str, *, limit: int = 50) -> Sequence[PlaybookVersion]:
        return [version for version, _ in reversed(self._changes.get(domain, []))][:limit]

    async def domains(self) -> Sequence[str]:
        return sorted(self._changes)

    def _folded(self, domain: str, changes: Sequence[_Change], version: int | None = None) -> PlaybookState:
        found: dict[str, PlaybookBullet | None] = {}
        for _, changed in changes:
            found.update(changed)
        return PlaybookState.unchecked(
            version=len(self._changes.get(domain, ())) if version is None else version,
            bullets=tuple(bullet for bullet in found.values() if bullet is not None),
            removed=tuple(key for key, bullet in found.items() if bullet is None),
        )
