"""The processes of the soak: the service with its workers, and the library's program. And what they take."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import IO, Any

import psycopg

PROJECT = Path(__file__).parents[2]
SERVE = "from journeyman.doors.cli import main; main()"
WORKERS = 2
READY_SECONDS = 120.0
GOODBYE_SECONDS = 90.0
SAMPLE_SECONDS = 5.0
WARM_SECONDS = 60.0
"""Of a process's life that say nothing about how it grows."""
PLATEAU_SECONDS = 300.0
TOKENS = {
    "soak-token-of-the-page-000001": {"id": "page", "permissions": ["money", "approvals:decide"]},
    "soak-token-of-a-reader-000001": {"id": "reader", "permissions": ["money"]},
    "soak-token-of-the-sdk-0000001": {"id": "sdk", "permissions": ["money"]},
    "soak-token-of-a-person-000001": {"id": "person", "permissions": ["approvals:decide", "runs:read", "runs:write"]},
    "soak-token-of-the-program-0001": {"id": "program", "permissions": ["money"]},
}
TOKEN_OF = {who["id"]: token for token, who in TOKENS.items()}


class Process:
    """One that was started, and what it says."""

    def __init__(self, process: asyncio.subprocess.Process, log: IO[bytes]) -> None:
        self._process = process
        self._log = log
        self.pid = process.pid

    @classmethod
    async def start(cls, command: list[str], log: Path, **environment: str) -> Process:
        # Its own file: a pipe that nobody reads would stop it.
        file = log.open("wb")
        path = os.pathsep.join([str(PROJECT / "src"), str(PROJECT)])
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, *command),
            stdin=asyncio.subprocess.PIPE,
            stdout=file,
            stderr=file,
            cwd=PROJECT,
            env={**os.environ, "PYTHONPATH": path, **environment},
        )
        return cls(process, file)

    async def leave(self, *, close: bool = False) -> None:
        """By SIGTERM, or by the end of its standard input."""
        if self._process.returncode is None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            if not close:
                with contextlib.suppress(ProcessLookupError):
                    self._process.terminate()
        try:
            async with asyncio.timeout(GOODBYE_SECONDS):
                await self._process.wait()
        except TimeoutError:
            self._process.kill()
            await self._process.wait()
        self._log.close()

    @property
    def alive(self) -> bool:
        return self._process.returncode is None


class ServiceProcess:
    """``journeyman serve --workers 2``."""

    def __init__(self, process: Process, url: str) -> None:
        self.process = process
        self.url = url

    @classmethod
    async def start(cls, folder: Path, *, store: str, model: str, **environment: str) -> ServiceProcess:
        tokens, log = folder / "tokens.json", folder / "service.log"
        tokens.write_text(json.dumps(TOKENS))
        command = ["-c", SERVE, "serve", "--port", "0", "--workers", str(WORKERS), "--store", store]
        settings = folder / "service.yaml"
        settings.write_text("version: 1\ndoors: {http: {requests_per_minute: 1000000}}\n")
        command += ["--model", model, "--tokens", str(tokens), "--config", str(settings)]
        command += ["--agent", "benchmarks.soak.workload:agent", "--library", "benchmarks.soak.workload:library"]
        process = await Process.start([*command, "--log-level", "warning"], log, **environment)
        found = None
        async with asyncio.timeout(READY_SECONDS):
            while found is None or log.read_text().count("ready:") < WORKERS:
                if not process.alive:
                    raise RuntimeError(f"the service did not start: {log.read_text()[-2000:]}")
                found = re.search(r"listening on (http://[\d.:]+)", log.read_text())
                await asyncio.sleep(0.2)
        assert found is not None
        return cls(process, found[1])

    def workers(self) -> list[int]:
        """The processes of its workers, the eldest first."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return sorted((int(pid) for pid in children if _is_worker(pid)), key=_began)


def _is_worker(pid: str) -> bool:
    with contextlib.suppress(OSError):
        return b"\0worker\0" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


def _began(pid: int) -> int:
    with contextlib.suppress(OSError):
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    return sys.maxsize


def send(pid: int, number: signal.Signals) -> bool:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)
        return True
    return False


@dataclass(frozen=True, slots=True)
class Sample:
    age: float
    """Seconds since this process was seen first."""
    rss_mib: float
    files: int


class Samples:
    """What every process takes, over time."""

    def __init__(self, service: ServiceProcess, program: Process, store: str) -> None:
        self._service = service
        self._program = program
        self._store = store
        self._first: dict[int, float] = {}
        self.taken: defaultdict[str, list[Sample]] = defaultdict(list)
        self.connections: list[int] = []

    async def keep(self) -> None:
        while True:
            self._take("service", self._service.process.pid)
            self._take("program", self._program.pid)
            for pid in self._service.workers():
                self._take(f"worker {pid}", pid)
            with contextlib.suppress(psycopg.Error):
                self.connections.append(await asyncio.to_thread(_connections, self._store))
            await asyncio.sleep(SAMPLE_SECONDS)

    def _take(self, name: str, pid: int) -> None:
        age = time.monotonic() - self._first.setdefault(pid, time.monotonic())
        with contextlib.suppress(OSError, StopIteration):
            text = Path(f"/proc/{pid}/status").read_text()
            kib = int(next(line.split()[1] for line in text.splitlines() if line.startswith("VmRSS:")))
            self.taken[name].append(Sample(age, kib / 1024, len(os.listdir(f"/proc/{pid}/fd"))))

    def latest(self) -> str:
        now = [f"{name} {taken[-1].rss_mib:.0f} MiB" for name, taken in self.taken.items() if self._lives(name)]
        return ", ".join(now) + f", {self.connections[-1] if self.connections else '?'} connections"

    def _lives(self, name: str) -> bool:
        return not name.startswith("worker") or int(name.split()[1]) in self._service.workers()

    def document(self) -> dict[str, Any]:
        # Of workers those that lived longest: the others were killed.
        workers = sorted(
            (name for name in self.taken if name.startswith("worker")), key=lambda n: -self.taken[n][-1].age
        )
        shown = ["service", "program", *workers[:WORKERS]]
        return {name: growth(self.taken[name]) for name in shown if self.taken[name]}


def growth(taken: list[Sample]) -> dict[str, float]:
    whole = taken[-1].age
    warm = min(WARM_SECONDS, whole / 4)
    early = [item for item in taken if warm <= item.age <= min(PLATEAU_SECONDS, whole / 2)] or taken
    late = [item for item in taken if item.age >= whole - min(PLATEAU_SECONDS / 2, whole / 4)]
    before, after = median(item.rss_mib for item in early), median(item.rss_mib for item in late)
    return {
        "seconds": round(whole),
        "rss_mib_early": round(before, 1),
        "rss_mib_late": round(after, 1),
        "rss_growth": round(after / before, 3),
        "rss_mib_most": round(max(item.rss_mib for item in taken), 1),
        "files_early": median(item.files for item in early),
        "files_late": median(item.files for item in late),
        "files_most": max(item.files for item in taken),
    }


def _connections(store: str) -> int:
    with psycopg.connect(store, autocommit=True, connect_timeout=3) as connection:
        sql = "SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
        row = connection.execute(sql).fetchone()
    return 0 if row is None else int(row[0])
