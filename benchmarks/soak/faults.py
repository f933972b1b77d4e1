"""What goes wrong during a soak, at random and one thing after another; a stopped worker meanwhile stays stopped."""

from __future__ import annotations

import asyncio
import contextlib
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

import psycopg

from benchmarks.postgres import crash
from benchmarks.soak.processes import ServiceProcess, send
from benchmarks.soak.workload import FailingModel

LEASE_SECONDS = 30.0
"""Of the workers that a service starts."""


@dataclass
class Faults:
    service: ServiceProcess
    model: FailingModel
    postgres: Any
    chance: random.Random
    store: str
    pauses: tuple[float, float]
    """Seconds between two faults."""
    done: Counter[str] = field(default_factory=Counter)
    kills: list[float] = field(default_factory=list)
    """When a worker was killed, in seconds since the epoch."""
    leaving: asyncio.Event = field(default_factory=asyncio.Event)
    stopped: set[int] = field(default_factory=set)
    _waking: set[asyncio.Task[None]] = field(default_factory=set)

    async def keep(self) -> None:
        """All kinds in a random order, and again, until told to leave; then nothing is wrong any more."""
        kinds: dict[str, Callable[[], Awaitable[None]]] = {
            "worker killed": self._kill,
            "worker stopped past its lease": self._stop,
            "connections terminated": self._terminate,
            "model failing": self._model,
            "database restarted": self._restart,
            "database crashed": self._crash,
        }
        # Cheap ones come more often than those after which everybody waits for a while.
        bag = [name for name in kinds for _ in range(3 if name in ("worker killed", "connections terminated") else 1)]
        while not self.leaving.is_set():
            # The first time each once, so that a short soak has them all; a stop first, since it takes longest.
            order = list(kinds) if not self.done else self.chance.sample(bag, len(bag))
            if not self.done:
                order.insert(0, order.pop(1))
            for name in order:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(self.chance.uniform(*self.pauses)):
                        await self.leaving.wait()
                if self.leaving.is_set():
                    break
                await kinds[name]()
        for task in self._waking:
            task.cancel()
        for pid in self.stopped:
            send(pid, signal.SIGCONT)

    async def _kill(self) -> None:
        """The youngest, stopped or not: of the eldest we want to know whether it grows."""
        workers = self.service.workers()
        if len(workers) > 1 and send(workers[-1], signal.SIGKILL):
            self.kills.append(time.time())
            self.stopped.discard(workers[-1])
            self.done["worker killed"] += 1

    async def _stop(self) -> None:
        running = [pid for pid in self.service.workers() if pid not in self.stopped]
        if self.stopped or len(running) < 2:
            return
        pid = self.chance.choice(running)
        if send(pid, signal.SIGSTOP):
            self.stopped.add(pid)
            self.done["worker stopped past its lease"] += 1
            task = asyncio.create_task(self._wake(pid, LEASE_SECONDS + self.chance.uniform(2, 15)))
            self._waking.add(task)
            task.add_done_callback(self._waking.discard)

    async def _wake(self, pid: int, seconds: float) -> None:
        await asyncio.sleep(seconds)
        send(pid, signal.SIGCONT)
        self.stopped.discard(pid)

    async def _terminate(self) -> None:
        with contextlib.suppress(psycopg.Error):
            self.done["connections terminated"] += await asyncio.to_thread(self._terminated)

    def _terminated(self) -> int:
        sql = (
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE backend_type = 'client backend' AND pid <> pg_backend_pid() AND random() < 0.5"
        )
        with psycopg.connect(self.store, autocommit=True, connect_timeout=3) as connection:
            row = connection.execute(sql).fetchone()
        return 0 if row is None else int(row[0])

    async def _model(self) -> None:
        self.done["model failing"] += 1
        quiet, self.model.failing = self.model.failing, self.chance.choice([0.3, 0.6, 1.0])
        await asyncio.sleep(self.chance.uniform(2, 8))
        self.model.failing = quiet

    async def _restart(self) -> None:
        server = self.postgres
        command = [str(server.bin_path / "pg_ctl"), "-w", "-D", str(server.pgdata), "-m", "fast", "stop"]
        await asyncio.to_thread(subprocess.run, command, check=True, capture_output=True, user=server.system_user)
        await self._back("database restarted", seconds=0.0)

    async def _crash(self) -> None:
        await asyncio.to_thread(crash, self.postgres)
        await self._back("database crashed", seconds=self.chance.uniform(0.5, 10))

    async def _back(self, name: str, *, seconds: float) -> None:
        self.done[name] += 1
        await asyncio.sleep(seconds)
        await asyncio.to_thread(self.postgres.start)
