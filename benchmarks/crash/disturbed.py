"""Processes that live on: stopped past their lease, cut off from their database, with wrong clocks, in PID namespaces.

Two at a time work on the same runs. No call may run twice, and none be called unknown whose process lived and could
report it: only what a kill has left open may be. Meanwhile clients with wrong clocks cancel runs of their own: none may
ask a person after that, and go on.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Protocol

from benchmarks.crash.children import attend
from benchmarks.crash.findings import Findings, Start, open_starts, taken_up_open
from benchmarks.crash.helper import LEASE_SECONDS, OFFSET, WORK_SECONDS, SkewedClock
from benchmarks.crash.workload import ADA, Ledger, clerk, patient, script, tools
from benchmarks.postgres import crash
from journeyman.app.journeyman import Journeyman
from journeyman.core.errors import StoreError
from journeyman.core.events import Fact
from journeyman.core.runs import RunStatus, TaskInput
from journeyman.core.storing import RunOrder
from journeyman.stores.store import open_store

IN_FLIGHT = 6
LONGEST_CANCELLED = 3.0
"""Seconds before a client cancels what it has asked for: a run takes about as long."""
POLL_SECONDS = 0.1
DISTURBED_SECONDS = 3 * LEASE_SECONDS
PAUSE_SECONDS = 2.0
PATIENCE_SECONDS = 180.0
OFFSETS = (0.0, 45.0, 3600.0, -3600.0)
"""Of the clocks of the processes, one after another: seconds ahead."""


class Place(Protocol):
    """The database of a campaign, and how it goes away."""

    name: str
    url: str

    def away(self) -> None: ...

    def back(self) -> None: ...


class OnSqlite:
    """Locked by somebody else."""

    name = "sqlite"

    def __init__(self, path: Path) -> None:
        self.url = f"sqlite:///{path}"
        self._path = path
        self._lock: sqlite3.Connection | None = None

    def away(self) -> None:
        self._lock = sqlite3.connect(self._path, isolation_level=None, timeout=60, check_same_thread=False)
        self._lock.execute("BEGIN IMMEDIATE")

    def back(self) -> None:
        if self._lock is not None:
            self._lock.close()


class OnPostgres:
    """Crashed, and started again later."""

    name = "postgresql"

    def __init__(self, server: Any) -> None:
        self.url: str = server.get_uri()
        self._server = server

    def away(self) -> None:
        crash(self._server)

    def back(self) -> None:
        self._server.start()


class Helper:
    """A process at work; in a PID namespace of its own, if that is wanted and can be had."""

    def __init__(self, place: Place, ledger_path: str, *, offset: float, apart: bool) -> None:
        command = [sys.executable, "-m", "benchmarks.crash.helper", place.url, ledger_path]
        if apart:
            command = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", *command]
        self._process = subprocess.Popen(command, env={**os.environ, OFFSET: str(offset)})
        self.pid = _child_of(self._process.pid) if apart else self._process.pid
        self.namespace = os.readlink(f"/proc/{self.pid}/ns/pid").strip("pid:[]")
        self.inner_pid = _inner_pid(self.pid)

    def holds(self, owner: str | None) -> bool:
        parts = (owner or "").split("/")
        return len(parts) > 5 and parts[1] == self.inner_pid and parts[5] == self.namespace

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def leave(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self.send(signal.SIGCONT)
            self.send(signal.SIGTERM)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()

    def killed(self) -> None:
        self.send(signal.SIGKILL)
        self._process.wait(30)


class DisturbedCampaign:
    def __init__(self, folder: Path, place: Place) -> None:
        self.findings = Findings(f"{place.name}, disturbed")
        self._place = place
        self._ledger_path = str(folder / "ledger-disturbed")
        self._ledger = Ledger(self._ledger_path)
        self._run_ids: list[str] = []
        self._expected: set[Start] = set()
        self._cancelled: dict[str, int] = {}
        """Runs that were cancelled from outside, each with its latest fact then."""
        self._helpers: list[Helper] = []
        self._hired = 0

    def run(self, *, rounds: int) -> Findings:
        began = time.monotonic()
        try:
            asyncio.run(self._campaign(rounds))
        finally:
            for helper in self._helpers:
                helper.leave()
        journals = asyncio.run(self._journals())
        self.findings.open_at_takeovers = len(set().union(*(taken_up_open(facts) for facts in journals.values())))
        self.findings.conclude(journals, self._ledger, self._expected)
        self.findings.conclude_cancels(asyncio.run(self._journals(self._cancelled)), self._ledger, self._cancelled)
        self.findings.open_but_not_unknown = 0  # another may have had the outcome by the time of the kill
        self.findings.seconds = time.monotonic() - began
        return self.findings

    async def _campaign(self, rounds: int) -> None:
        library = tools(self._ledger, work_seconds=WORK_SECONDS)
        # It starts runs and decides, and works on none.
        queued = self._place.name == "postgresql"
        app = Journeyman(library=library, store=self._place.url, model=script(), policy=patient(), workers=queued)
        async with app:
            busy = asyncio.create_task(self._keep_busy(app))
            cancelling = [asyncio.create_task(self._keep_cancelling(offset)) for offset in OFFSETS]
            for number in range(rounds):
                for apart in (False, True) if _namespaces() else (False,):
                    self._show(f"round {number + 1} of {rounds}" + (", in PID namespaces" if apart else ""))
                    await self._round(app, apart=apart)
            for task in (busy, *cancelling):
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task  # raises what has ended it before
            await self._wind_up(app)

    async def _round(self, app: Journeyman, *, apart: bool) -> None:
        """Every kind of disturbance once, with two processes whose clocks differ."""
        kind = " in a namespace" if apart else ""
        first, second = (self._hire(apart=apart) for _ in range(2))
        await asyncio.sleep(PAUSE_SECONDS)
        for helper in (first, second):
            helper.send(signal.SIGSTOP)
            await asyncio.sleep(DISTURBED_SECONDS)
            helper.send(signal.SIGCONT)
            self.findings.disturbances[f"stop{kind}"] += 1
            await asyncio.sleep(PAUSE_SECONDS)
        await asyncio.to_thread(self._place.away)
        await asyncio.sleep(DISTURBED_SECONDS)
        await asyncio.to_thread(self._place.back)
        self.findings.disturbances[f"outage{kind}"] += 1
        await asyncio.sleep(PAUSE_SECONDS)
        await self._kill(app, first)
        await asyncio.sleep(PAUSE_SECONDS)
        await asyncio.to_thread(self._dismiss, second)

    async def _kill(self, app: Journeyman, helper: Helper) -> None:
        helper.send(signal.SIGSTOP)  # so that nobody takes over before we have seen what the kill leaves open
        self.findings.kills_at_random += 1
        rows = await _patiently(lambda: app.store.runs.list(statuses=[RunStatus.RUNNING, RunStatus.QUEUED], limit=1000))
        for row in rows:
            if helper.holds(row.owner):
                facts = await app.store.runs.facts(row.id)
                self._expected |= open_starts(facts)
                self.findings.killed_after[facts[-1].type if facts else "nothing"] += 1
        helper.killed()
        self._helpers.remove(helper)

    def _hire(self, *, apart: bool) -> Helper:
        offset = OFFSETS[self._hired % len(OFFSETS)]
        self._hired += 1
        if offset:
            self.findings.disturbances["wrong clock"] += 1
        helper = Helper(self._place, self._ledger_path, offset=offset, apart=apart)
        self._helpers.append(helper)
        return helper

    def _dismiss(self, helper: Helper) -> None:
        helper.leave()
        self._helpers.remove(helper)

    async def _keep_busy(self, app: Journeyman) -> None:
        """New runs all the time, and the person."""
        while True:
            with contextlib.suppress(StoreError):
                open_runs = await self._attend(app)
                for _ in range(IN_FLIGHT - open_runs):
                    await self._order(app)
            await asyncio.sleep(POLL_SECONDS)

    async def _keep_cancelling(self, offset: float) -> None:
        """A client whose clock is wrong: it cancels what it has asked for, sooner or later."""
        library, chance = tools(self._ledger, work_seconds=WORK_SECONDS), random.Random(offset)
        queued = self._place.name == "postgresql"
        clock = SkewedClock(offset)
        async with Journeyman(
            library=library, store=self._place.url, model=script(), policy=patient(), workers=queued, clock=clock
        ) as app:
            for number in itertools.count():
                name = f"cancelled_{offset:.0f}_{number:04}"
                await self._order(app, name)
                await asyncio.sleep(chance.uniform(0.0, LONGEST_CANCELLED))
                with contextlib.suppress(StoreError):  # who is told so has cancelled nothing
                    await app.cancel(name)
                    row = await _patiently(partial(app.store.runs.get, name))
                    self._cancelled[name] = row.last_seq

    async def _order(self, app: Journeyman, name: str | None = None) -> None:
        if name is None:
            name = f"run_{len(self._run_ids):04}"
            self._run_ids.append(name)
        agent = clerk(app.library)
        await _patiently(
            lambda: app.store.runs.create(
                RunOrder(
                    run_id=name,
                    agent=agent.snapshot,
                    task=TaskInput(description="Do it"),
                    principal=ADA,
                    created_at=time.time(),
                )
            )
        )

    async def _attend(self, app: Journeyman) -> int:
        """Decide what is to be decided; returns how many runs have not ended."""
        rows = await app.store.runs.list(statuses=[status for status in RunStatus if not status.ended], limit=1000)
        for row in rows:
            if row.status.waiting:
                await attend(app, await app.handle(row.id), self._ledger, row.status)
        return len(rows)

    async def _wind_up(self, app: Journeyman) -> None:
        """Let two processes that nobody disturbs finish what is left."""
        last = [self._hire(apart=False) for _ in range(2)]
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while await self._attend(app):  # noqa: ASYNC110 - the ends are those of other processes
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            self._show("runs did not end in time")
        for helper in last:
            await asyncio.to_thread(self._dismiss, helper)

    async def _journals(self, names: Iterable[str] | None = None) -> dict[str, Sequence[Fact]]:
        store = open_store(self._place.url)
        await store.open()
        try:
            return {name: await store.runs.facts(name) for name in (self._run_ids if names is None else names)}
        finally:
            await store.close()

    def _show(self, text: str) -> None:
        print(f"{self.findings.database}: {text}", file=sys.stderr)


async def _patiently(work: Callable[[], Any]) -> Any:
    while True:
        try:
            return await work()
        except StoreError:
            await asyncio.sleep(POLL_SECONDS)


def _namespaces() -> bool:
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    tried = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", "true"], capture_output=True)
    return tried.returncode == 0


def _child_of(pid: int) -> int:
    while not (children := Path(f"/proc/{pid}/task/{pid}/children").read_text().split()):
        time.sleep(0.01)
    return int(children[0])


def _inner_pid(pid: int) -> str:
    """Its number in its own namespace."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return line.split()[-1]
    return str(pid)
