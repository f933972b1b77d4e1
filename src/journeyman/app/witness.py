"""Calls that another process had begun when its run was taken over: who can still say what became of them."""

from __future__ import annotations

import logging
from functools import partial

from journeyman.app.owners import fate
from journeyman.core.data import LOG_FIELDS
from journeyman.core.events import CallStarted
from journeyman.core.protocols import Clock, Testimony
from journeyman.core.storing import CallReport, FormerOwner, Store
from journeyman.stores.store_retry import retry_store_faults

logger = logging.getLogger("journeyman.app")

SILENT_LEASES = 20
"""A process that cannot be seen from here counts as dead when it was silent for so many leases."""
SILENT_LEASES_ALIVE = 200
"""One that can be seen to live is waited for so long: it was stopped, or its event loop is blocked."""


class StoreWitness:
    """Waits for the report of a process that may be alive, and for no other."""

    def __init__(self, store: Store, *, clock: Clock, lease_seconds: float, poll_seconds: float) -> None:
        self._store = store
        self._clock = clock
        self._lease_seconds = lease_seconds
        self._poll_seconds = poll_seconds

    async def outcome(self, started: CallStarted, *, wait: bool) -> Testimony | None:
        look = partial(self._store.runs.reported, started)
        waiting_for: list[str] = []
        while True:
            found: CallReport = await retry_store_faults(look, clock=self._clock, run_id=started.run_id)
            if found.reported:
                return Testimony(found.record)
            alive = [former.owner for former in found.at_work if not self._gone(former)]
            if not alive or not wait:
                return None
            if alive != waiting_for:
                waiting_for = alive
                fields = {"run_id": started.run_id, "call_id": started.call_id, "processes": ", ".join(alive)}
                logger.warning("a call may be under way in the process before us: waiting", extra={LOG_FIELDS: fields})
            await self._clock.sleep(self._poll_seconds)

    def _gone(self, former: FormerOwner) -> bool:
        known = fate(former.owner, one_machine=not self._store.shared_limits)
        leases = SILENT_LEASES_ALIVE if known == "alive" else SILENT_LEASES
        return known == "dead" or former.silent_seconds > leases * self._lease_seconds
