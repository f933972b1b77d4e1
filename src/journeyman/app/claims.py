"""The leases by which this process holds runs: taking, renewing, giving back, and who else holds one."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from functools import partial

from journeyman.app.owners import dead_owners
from journeyman.core.protocols import Clock
from journeyman.core.storing import RunRow, Store
from journeyman.stores.store_retry import retry_store_faults


class Claims:
    """Of one owner on one store. What the database is away for is asked again until it is back."""

    def __init__(self, store: Store, *, clock: Clock, owner: str, lease_seconds: float) -> None:
        self._store = store
        self._clock = clock
        self._owner = owner
        self._lease_seconds = lease_seconds

    async def take(self, run_id: str, *, principal_limit: int | None = None, in_turn: bool = True) -> int | None:
        """The epoch under which the run is held here now; None where somebody else has it, or it is not its turn."""

        async def claim(dead: Collection[str] = ()) -> int | None:
            return await self._store.runs.claim(
                run_id,
                owner=self._owner,
                lease_seconds=self._lease_seconds,
                dead=dead,
                principal_limit=principal_limit,
                in_turn=in_turn,
            )

        async def claim_from_anybody() -> int | None:
            if (epoch := await claim()) is not None:
                return epoch
            row = await self._store.runs.get(run_id)
            dead = () if row is None or row.owner is None else self.dead([row.owner])
            return await claim(dead) if dead else None

        return await retry_store_faults(claim_from_anybody, clock=self._clock, run_id=run_id)

    async def give_back(self, run_id: str, epoch: int) -> None:
        # As long as it takes: this process renews the leases it holds, and nobody else could have the run.
        release = partial(self._store.runs.release, run_id, owner=self._owner, epoch=epoch)
        await retry_store_faults(release, clock=self._clock, run_id=run_id)

    async def renew(self) -> Collection[str]:
        """Renew all leases; returns the runs among them that somebody elsewhere wants cancelled."""
        return await self._store.runs.renew(self._owner, lease_seconds=self._lease_seconds)

    def held(self, row: RunRow) -> bool:
        """Whether a living process works on a run, as far as its lease and its process id tell."""
        if row.owner is None or row.lease_until <= self._clock.time():
            return False
        return not self.dead([row.owner])

    def dead(self, owners: Iterable[str]) -> list[str]:
        """Those of the owners that are known to be gone."""
        return dead_owners(owners, one_machine=not self._store.shared_limits)

    async def gone(self, owner: str, *, silent_seconds: float) -> bool:
        """Whether a program that carries out runs is not there any more, as its process id or its silence tells."""
        if self.dead([owner]):
            return True
        return owner not in await self._store.programs.executing(silent_seconds=silent_seconds)
