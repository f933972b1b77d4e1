"""A worker in a process of its own, to be killed, stopped and woken by tests."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import time
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

from journeyman import RiskLevel, ToolContext, ToolLibrary, tool
from journeyman.app.journeyman import Journeyman
from journeyman.app.worker import work
from journeyman.core.errors import JournalConflictError
from journeyman.stores import journal
from journeyman.testing import ScriptedModel, call, say
from tests.app.shop import Ledger
from tests.waiting import WAIT_SECONDS

FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["tests.app.worker_program"])
LEASE_SECONDS = 2.0


def workshop(ledger: Ledger) -> ToolLibrary:
    """Tools that say who runs them. The slow ones wait for a file named like their order."""

    def open_gate(order_id: str) -> None:
        while not (ledger.path.parent / f"open-{order_id}").exists():
            time.sleep(0.01)

    @tool(risk=RiskLevel.REVERSIBLE, idempotent=True, timeout_seconds=WAIT_SECONDS)
    def slow(order_id: str, context: ToolContext) -> str:
        """Do something slow. Use when there is time."""
        ledger.write("slow", context.idempotency_key, str(os.getpid()))
        open_gate(order_id)
        return "slow is done"

    @tool(risk=RiskLevel.REVERSIBLE)
    def pay(order_id: str, context: ToolContext) -> str:
        """Pay an order. Use when it is due."""
        ledger.write("pay", context.idempotency_key, str(os.getpid()))
        return "paid"

    @tool(risk=RiskLevel.REVERSIBLE)
    def occupy(order_id: str, context: ToolContext) -> str:
        """Take some time. Use when nothing else is to be done."""
        ledger.write("in", context.idempotency_key, str(os.getpid()))
        time.sleep(0.2)
        ledger.write("out", context.idempotency_key, str(os.getpid()))
        return "was busy"

    return ToolLibrary([slow, pay, occupy])


SLOWLY = [call("slow", order_id="W-1"), call("pay", order_id="W-1"), say("Paid.")]
PAYING = [call("pay", order_id="W-1"), say("Paid.")]
BUSY = [call("occupy", order_id="W-1"), say("Rested.")]


def run_worker(url: str, ledger: Path, turns: list[Any], options: dict[str, Any]) -> None:
    if options.pop("unfenced", False):
        journal.write_facts = unfenced(journal.write_facts)
    concurrency = options.pop("concurrency", 4)

    async def main() -> None:
        app = Journeyman(
            library=workshop(Ledger(ledger)),
            store=url,
            model=ScriptedModel(turns),
            lease_seconds=LEASE_SECONDS,
            poll_seconds=0.1,
            **options,
        )
        async with app:
            await work(app, url, concurrency=concurrency, name=f"worker-{os.getpid()}")

    asyncio.run(main())


def unfenced(write: Any) -> Any:
    """The journal without its fence: whatever is refused is taken for written."""

    def write_anyway(*given: Any, **named: Any) -> None:
        try:
            write(*given, **named)
        except JournalConflictError:
            return

    return write_anyway


class Crew:
    """Workers on one database; whoever is left at the end is killed."""

    def __init__(self, url: str, ledger: Ledger) -> None:
        self.url = url
        self.ledger = ledger
        self._workers: list[BaseProcess] = []

    def hire(self, turns: list[Any], **options: Any) -> BaseProcess:
        worker = FORKS.Process(target=run_worker, args=(self.url, self.ledger.path, turns, options))
        worker.start()
        self._workers.append(worker)
        return worker

    def open_gate(self, order_id: str) -> None:
        (self.ledger.path.parent / f"open-{order_id}").touch()

    def dismiss(self) -> None:
        for worker in self._workers:
            if worker.is_alive() and worker.pid is not None:
                os.kill(worker.pid, signal.SIGKILL)
            worker.join(WAIT_SECONDS)
