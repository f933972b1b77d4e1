"""``python -m benchmarks.mcp kills``: server, gateway and client are killed in turn, in the middle of calls.

Four kinds of tools are called: one that adds (``append``), one that may be repeated (``put``), one that reads, and one
that a person must approve (``destroy``). Two more ask the person first; a resource is read; and a call that takes long
and one that waits for approval are tasks, which the client looks after. After each kill the client makes the same call
again, or asks for its task, until it has an answer; what the gateway says a person must do is done with the command it
prints. At the end every line that was to be written is there once, and ``unknown`` was said exactly where a call had
begun, could not be repeated, and nobody had heard its end.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import secrets
import shlex
import signal
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from benchmarks.mcp import registry
from journeyman.core.events import CallFinished, CallStarted
from journeyman.core.runs import RunStatus
from journeyman.stores.store import open_store
from tests.doors.cli.driving import AT_A_TERMINAL

Victim = Literal["server", "gateway", "client"]
VICTIMS: tuple[Victim, ...] = ("server", "gateway", "client")
TOOLS = ("append", "put", "read", "destroy", "page", "ask", "ask_put", "slow", "destroy task")
"""What is done in turn; "page" is read as a resource, and of "slow" and the last the client makes tasks."""
REPEATABLE = frozenset({"put", "read", "page", "ask_put"})
EARLY, LATE, LONG = 0.5, 0.12, 3.0
"""Seconds: a kill comes within the first after a call was made, or within the second after it has reached the server,
which takes 0.08 for it; or within the third for one that becomes a task."""
MOST_ATTEMPTS = 40
UNKNOWN, WAITS, NOT_SENT = "nobody knows", "waits for a person's approval", "MCP_UNAVAILABLE"
CONFIGURATION = """version: 1
mcp:
  ledger: {{command: {command}, trust_annotations: true, start: 60s}}
"""


@dataclass(slots=True)
class Findings:
    """What has happened."""

    kills: dict[str, int] = field(default_factory=lambda: dict.fromkeys(VICTIMS, 0))
    calls: int = 0
    repeated: int = 0
    """Times that a call was made again."""
    unknown: int = 0
    approved: int = 0
    lost: list[str] = field(default_factory=list)
    doubled: list[str] = field(default_factory=list)
    misnamed: list[str] = field(default_factory=list)
    """Where ``unknown`` was said without need, or was not said."""

    @property
    def right(self) -> bool:
        return not (self.lost or self.doubled or self.misnamed)

    def told(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


class Campaign:
    """One gateway with one server, one client, and whoever kills them."""

    def __init__(self, folder: Path, *, seed: int = 1) -> None:
        self.found = Findings()
        self._folder = folder
        self._random = random.Random(seed)
        self._token = secrets.token_urlsafe(24)
        self._url = ""
        self._gateway: asyncio.subprocess.Process | None = None
        self._client: asyncio.subprocess.Process | None = None

    async def run(self, kills: int) -> Findings:
        command = [sys.executable, str(Path(__file__).with_name("ledger_server.py")), str(self._folder)]
        text = CONFIGURATION.format(command=json.dumps(command))
        (self._folder / "journeyman.yaml").write_text(text)
        try:
            for number in range(kills):
                tool = TOOLS[number // len(VICTIMS) % len(TOOLS)]
                await self._job(number, tool, VICTIMS[number % len(VICTIMS)])
        finally:
            for process in (self._client, self._gateway):
                if process is not None and process.returncode is None:
                    process.kill()
                    await process.wait()
        return self.found

    # --- one call and one kill

    async def _job(self, number: int, tool: str, victim: Victim) -> None:
        await self._start_gateway()
        await self._start_client()
        line, found = f"line-{number}", self.found
        # A client that was killed cannot know whether it was answered: it names its calls. Of the others every second.
        named = victim == "client" or number % 2 == 0
        how = "read" if tool == "page" else "task" if tool in ("slow", "destroy task") else "call"
        mode = "2026-07-28" if how == "task" else self._random.choice(["legacy", "2026-07-28"])
        job = {"tool": f"ledger_{tool.partition(' ')[0]}", "line": line, "mode": mode, "as": how, "task": None}
        found.calls += 1
        attempt, unknown, expected = 0, False, None
        kill = asyncio.ensure_future(self._kill(victim, tool, line))
        for _ in range(MOST_ATTEMPTS):
            told = await self._call({**job, "key": f"{line}.{attempt}" if named else None})
            if kill.done():
                expected = kill.result()
            text, job["task"] = told.get("text", ""), told.get("task") or job["task"]
            if "broken" in told:
                await asyncio.wait((kill,))
                await self._start_gateway()
                await self._start_client()
            elif UNKNOWN in text:
                unknown = True
                await self._settle(tool, line, text)
            elif WAITS in text:
                found.approved += 1
                await self._journeyman(["approvals", "approve", _named(text, r"'(appr_\w+)' waits")[0]])
            elif NOT_SENT in text:
                attempt, job["task"] = attempt + 1, None  # which is another call
                await asyncio.sleep(0.2)
            elif told.get("error"):
                found.lost.append(f"{line} ({tool}, {victim} killed): {text[:300]}")
                break
            else:
                break
            found.repeated += 1
        else:
            found.lost.append(f"{line} ({tool}, {victim} killed): no answer")
        expected = expected if expected is not None else await kill
        found.unknown += unknown
        if expected != "either" and unknown != (expected == "unknown"):
            said = "was said to be unknown" if unknown else "was not said to be unknown"
            found.misnamed.append(f"{line} ({tool}, {victim} killed) {said}")
        self._count(tool, line)

    def _count(self, tool: str, line: str) -> None:
        if tool in ("put", "ask_put") and not (self._folder / f"put-{line}").exists():
            self.found.lost.append(f"{line} ({tool}) is not there")
        if tool not in REPEATABLE:
            times = self._written(line)
            if times != 1:
                (self.found.lost if times == 0 else self.found.doubled).append(
                    f"{line} ({tool}) is there {times} times"
                )

    async def _call(self, job: dict[str, Any]) -> dict[str, Any]:
        client = self._client
        assert client is not None
        assert client.stdin is not None
        assert client.stdout is not None
        try:
            client.stdin.write(json.dumps(job).encode() + b"\n")
            await client.stdin.drain()
            said = await client.stdout.readline()
        except OSError:
            said = b""
        told: dict[str, Any] = json.loads(said) if said else {"broken": "the client is gone"}
        return told

    async def _settle(self, tool: str, line: str, text: str) -> None:
        """A person looks whether it has happened."""
        happened = self._written(line) > 0
        call_id, run_id = _named(text, r"call '(\w+)' of run '(\w+)'")
        command = ["runs", "resolve", run_id, call_id, "done" if happened else "rerun"]
        await self._journeyman([*command, "--result", json.dumps(f"{tool} {line}")] if happened else command)

    # --- kills

    async def _kill(self, victim: Victim, tool: str, line: str) -> Literal["unknown", "known", "either"]:
        """Kill it at some moment; returns what must be said of the call."""
        if self._random.random() < 0.25:
            await asyncio.sleep(self._random.uniform(0, EARLY))
        else:
            await self._reached(line)
            await asyncio.sleep(self._random.uniform(0, LATE if tool != "slow" else LONG))
        self.found.kills[victim] += 1
        if victim == "client":
            await _killed(self._client)
            return "known"
        if victim == "gateway":
            await _killed(self._gateway)
            return "known" if tool in REPEATABLE or not await self._begun(line) else "unknown"
        await self._kill_server()
        log = self._log()
        if tool in REPEATABLE or f"answered {line}\n" in log:
            return "known"
        # Whether it was sent, but not yet read, or answered, but not yet noted, the log cannot tell.
        return "unknown" if f"received {line}\n" in log and f"answering {line}\n" not in log else "either"

    async def _kill_server(self) -> None:
        """As soon as there is one: after an earlier kill the gateway may still be starting it."""
        assert self._gateway is not None
        place = self._folder / f"server-of-{self._gateway.pid}.pid"
        for _ in range(30_000):
            try:
                return os.kill(int(place.read_text()), signal.SIGKILL)
            except (OSError, ValueError):
                await asyncio.sleep(0.002)
        raise RuntimeError("the server was not started again")

    async def _begun(self, line: str) -> bool:
        """Whether the journal has the beginning of the call, and not its end."""
        store = open_store(f"sqlite:///{self._folder / 'journeyman.db'}")
        await store.open()
        try:
            for row in await store.runs.list(statuses=(RunStatus.RUNNING, RunStatus.QUEUED), limit=1000):
                order = await store.runs.order(row.id)
                if order is None or not order.chain or order.chain[0].args != {"line": line}:
                    continue
                facts = await store.runs.facts(row.id)
                started = sum(isinstance(fact, CallStarted) for fact in facts)
                return started > sum(isinstance(fact, CallFinished) for fact in facts)
        finally:
            await store.close()
        return False

    async def _reached(self, line: str) -> None:
        """Return as soon as the server has the call."""
        for _ in range(30_000):
            if f"received {line}\n" in self._log():
                return
            await asyncio.sleep(0.002)

    def _log(self) -> str:
        """What the server has done."""
        log = self._folder / "server.log"
        return log.read_text() if log.exists() else ""

    # --- processes

    async def _start_gateway(self) -> None:
        if self._gateway is not None and self._gateway.returncode is None:
            return
        port = re.search(r":(\d+)/", self._url)
        command = registry.gateway_command("--http", "--port", port[1] if port else "0")
        environment = {**registry.environment(), "JOURNEYMAN_TOKEN": self._token}
        with (self._folder / "gateway.log").open("a") as log:
            self._gateway = await asyncio.create_subprocess_exec(
                *command, cwd=self._folder, env=environment, stderr=asyncio.subprocess.PIPE, stdout=log
            )
        assert self._gateway.stderr is not None
        said = (await self._gateway.stderr.readline()).decode()
        if (found := re.search(r"http://\S+/mcp", said)) is None:
            raise RuntimeError(f"the gateway did not start: {said}")
        self._url = found[0]

    async def _start_client(self) -> None:
        if self._client is not None and self._client.returncode is None:
            return
        pipe = asyncio.subprocess.PIPE
        environment = {**registry.environment(), "TOKEN": self._token}
        self._client = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "benchmarks.mcp.ledger_client", self._url),
            env=environment,
            stdin=pipe,
            stdout=pipe,
            stderr=asyncio.subprocess.DEVNULL,
        )

    async def _journeyman(self, command: list[str]) -> None:
        # Only a person decides: at a terminal.
        words = [sys.executable, "-c", AT_A_TERMINAL, *registry.journeyman(*command, "--config", "journeyman.yaml")]
        process = await asyncio.create_subprocess_exec(
            *words, cwd=self._folder, env=registry.environment(), stdout=asyncio.subprocess.DEVNULL
        )
        if await process.wait() != 0:
            raise RuntimeError(f"{shlex.join(command)} ended with exit code {process.returncode}")

    def _written(self, line: str) -> int:
        ledger = self._folder / "ledger"
        return ledger.read_text().split("\n").count(line) if ledger.exists() else 0


async def _killed(process: asyncio.subprocess.Process | None) -> None:
    assert process is not None
    if process.returncode is None:
        process.kill()
    await process.wait()


def _named(text: str, pattern: str) -> tuple[str, ...]:
    """What an answer tells the user about."""
    found = re.search(pattern, text)
    if found is None:
        raise RuntimeError(f"nothing like {pattern!r} in: {text}")
    return found.groups()
