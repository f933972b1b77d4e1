"""Which runs are shown in their threads: of several processes on one store, one shows them all.

The others take messages and buttons, and carry runs out; when the one that shows falls silent, another goes on with
it. So nothing is written twice, and what an earlier process has not answered is answered by the next.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from itertools import count

import aiohttp
from slack_sdk.errors import SlackApiError

from journeyman.app.desk import LOCAL, Desk, NotFoundError
from journeyman.app.journeyman import Journeyman
from journeyman.app.owners import dead_owners, new_owner
from journeyman.core.data import Latest, digest
from journeyman.core.errors import JourneymanError, StoreError
from journeyman.core.runs import UNFINISHED
from journeyman.core.storing import Lease, NotedRequest, RunRow
from journeyman.doors.slack.client import PASSING, SECONDS, reason
from journeyman.doors.slack.following import Circle, follow
from journeyman.doors.slack.people import People, Workspace
from journeyman.doors.slack.threads import NotOursError, Place, Thread, say_why_not

logger = logging.getLogger("journeyman.slack")

DOOR = "slack"
LEASE_SECONDS = 20.0
"""After so long without a word of the process that shows runs, another one does. By the database's clock."""
LOOK_SECONDS = 2.0
"""How often the process that shows runs looks for those that others have taken."""
LONGEST_SLEEP = 60.0
"""Before a thread is tried again, ever more seldom, when Slack or the store cannot be reached."""
RECENT_SECONDS = 24 * 3_600.0
"""How long ago a run may have begun that an earlier process has not answered."""
MOST_RECENT = 2_000
OVERLAP_SECONDS = 30.0
"""How far back each look goes besides: clocks differ, and what was stored first may be seen last."""
MOST_UNFINISHED = 1_000
LOOKS_AT_ONCE = 4
"""Threads that are read at once for what an earlier process wrote there: Slack takes about fifty a minute."""
MOST_REMEMBERED = 10_000


class Showing:
    """Shows runs, as long as no other process does."""

    def __init__(
        self, app: Journeyman, workspaces: Mapping[str, Workspace], *, seconds: float, people: People | None = None
    ) -> None:
        self._app = app
        self._desk = Desk(app, LOCAL)  # the door itself looks after everybody's runs
        self._workspaces = workspaces
        self._people = people or People()
        self._seconds = seconds
        self._look_seconds = LOOK_SECONDS
        self._following: dict[str, asyncio.Task[None]] = {}
        self._answered: Latest[str, None] = Latest(MOST_REMEMBERED)
        """Runs that need not be looked at again."""
        self._looking = asyncio.Semaphore(LOOKS_AT_ONCE)
        self._name = new_owner()
        self._duty = digest("slack", "shows", *sorted(workspaces))
        self._looked = 0.0
        """Up to when runs were looked for."""
        self._lease: Lease | None = None
        """None while another process has it."""
        self._asked = (0.0, 0.0)
        """What this process's two clocks said when it asked for the lease last."""
        self._keeping: asyncio.Task[None] | None = None
        self._session: aiohttp.ClientSession | None = None

    async def open(self) -> None:
        """Begin to show runs, those first that an earlier process has not answered."""
        # One for all calls, or each of them would shake hands with Slack anew; of cookies none is kept.
        self._session = aiohttp.ClientSession(
            timeout=aiohttp.ClientTimeout(total=SECONDS), cookie_jar=aiohttp.DummyCookieJar()
        )
        for workspace in self._workspaces.values():
            workspace.client.session = self._session
        await self._lead()
        self._keeping = asyncio.create_task(self._keep())

    async def close(self) -> None:
        """Stop showing runs; they go on, and the next process shows them."""
        tasks = [*self._following.values(), *((self._keeping,) if self._keeping is not None else ())]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if self._lease is not None:
            epoch, self._lease = self._lease.epoch, None
            try:
                await self._desk.leases.release(self._duty, epoch=epoch)
            except StoreError as error:
                logger.warning("the next process must wait before it shows runs: %s", error)
        if self._session is not None:
            await self._session.close()

    # --- one of several processes

    async def _keep(self) -> None:
        led = self._app.clock.monotonic()
        while True:
            await asyncio.sleep(self._look_seconds)
            try:
                if self._lease is None or self._app.clock.monotonic() - led >= LEASE_SECONDS / 4:
                    led = self._app.clock.monotonic()
                    await self._lead()
                if self._lease is not None:
                    await self._catch_up()
            except JourneymanError as error:
                logger.warning("runs of Slack cannot be looked for: %s", error)

    async def _lead(self) -> None:
        """Take the lease, or renew it; on losing it, stop."""
        now = self._clocks()
        lease = await self._take()
        if dead := dead_owners([lease.owner]):  # it cannot come back, so nobody waits for it
            lease = await self._take(dead)
        held, self._asked = self._lease is not None, now
        self._lease = lease if lease.owner == self._name else None
        if self._lease is not None and not held:
            self._looked = self._app.clock.time() - RECENT_SECONDS
            await self._catch_up()
        elif self._lease is None and held:
            logger.warning("another process shows the runs of Slack now")
            for task in self._following.values():
                task.cancel()

    async def _take(self, dead: Sequence[str] = ()) -> Lease:
        return await self._desk.leases.take(self._duty, owner=self._name, lease_seconds=LEASE_SECONDS, dead=dead)

    def _clocks(self) -> tuple[float, float]:
        # The one stands still while a machine sleeps, the other may be set back.
        return self._app.clock.monotonic(), self._app.clock.time()

    def _holds(self) -> bool:
        """Whether no other process can have taken the lease: this one may have stood still for a while."""
        passed = max(now - then for now, then in zip(self._clocks(), self._asked, strict=True))
        return self._lease is not None and passed < LEASE_SECONDS

    async def _catch_up(self) -> None:
        """Show runs that others have taken, or that an earlier process has not answered."""
        now = self._app.clock.time()
        unfinished = await self._desk.runs(statuses=UNFINISHED, limit=MOST_UNFINISHED)
        latest = await self._desk.runs(since=self._looked - OVERLAP_SECONDS, limit=MOST_RECENT)
        ended = [row for row in latest if row.status.ended]
        for row in filter(self._is_new, ended):
            if await self._desk.requests.find(_answer_key(row.id)) is not None:
                self._answered[row.id] = None
        for row in filter(self._is_new, (*unfinished, *ended)):
            await self.follow(row.id, again=True)
        self._looked = now

    def _is_new(self, row: RunRow) -> bool:
        ours = (row.principal_id or "").startswith(f"{DOOR}:")
        return ours and row.id not in self._following and row.id not in self._answered

    # --- one run

    async def place(self, run_id: str) -> Place | None:
        """Where a run was asked for; None for one of another door, whatever its metadata says."""
        try:
            order = await self._desk.order(run_id)
        except NotFoundError:
            return None
        if order is None or not (order.principal_id or "").startswith(f"{DOOR}:"):
            return None
        return Place.read(order.task.metadata)

    async def follow(self, run_id: str, place: Place | None = None, *, again: bool) -> None:
        """Show a run in its thread, unless that is done already; with ``again``, its messages may be there."""
        # One that began here may have been found, and shown to its end, before its beginning comes back to us.
        if self._lease is None or run_id in self._following or (not again and run_id in self._answered):
            return
        place = place or await self.place(run_id)
        if place is None or place.team not in self._workspaces:
            self._answered[run_id] = None
            return
        if run_id not in self._following:
            task = asyncio.create_task(self._shown(run_id, place, again=again))
            self._following[run_id] = task
            task.add_done_callback(lambda _: self._following.pop(run_id, None))

    async def _shown(self, run_id: str, place: Place, *, again: bool) -> None:
        for attempt in count():
            try:
                if await self._show(run_id, place, again=again or attempt > 0):
                    note = NotedRequest(digest=_answer_key(run_id), run_id=run_id, asked_at=self._app.clock.time())
                    await self._desk.requests.note(note)
                break
            except SlackApiError as error:
                why = f"Slack: {reason(error)}"
            except (aiohttp.ClientError, TimeoutError) as error:
                why = f"Slack cannot be reached: {type(error).__name__}"
            except NotOursError:
                why = "this process has stood still"
            except StoreError as error:
                why = str(error)
            except JourneymanError:
                logger.exception("a run cannot be shown", extra={"run_id": run_id})
                break
            # For as long as it takes: nobody else tells whoever asked.
            logger.warning("a run is shown later: %s", why, extra={"run_id": run_id})
            await asyncio.sleep(min(LONGEST_SLEEP, 2.0**attempt))
        self._answered[run_id] = None

    async def _show(self, run_id: str, place: Place, *, again: bool) -> bool:
        """Whether whoever asked knows by now what came of a run, or why they cannot be told in its thread."""
        thread = Thread(self._workspaces[place.team], place, is_ours=self._holds)
        try:
            if again:
                async with self._looking:
                    await thread.look()
            # An answer without the end of the status was written by a process that died between the two.
            if thread.knows(f"end:{run_id}") and not thread.knows(f"cancel:{run_id}"):
                return True
            row = await self._desk.find_run(run_id)
            circle = Circle(thread, self._people.deciders(place.team), "" if row is None else row.request)
            return await follow(await self._app.handle(run_id), thread, circle, seconds=self._seconds)
        except SlackApiError as error:
            if reason(error) in PASSING:
                raise
            await say_why_not(self._workspaces[place.team], place, reason(error), run_id=run_id)
            return True


def _answer_key(run_id: str) -> str:
    return digest("slack", "answered", run_id)
