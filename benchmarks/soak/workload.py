"""The agent of the soak and its tools, as the service and its workers import them; and the model, which can fail.

What a run is to do stands in its message: ``Order 17: look note pay``. Each order is asked for once.
"""

from __future__ import annotations

import itertools
import os
import random
import re
from typing import Any

from benchmarks.crash.workload import ONCE_ONLY, Ledger, clerk, tools
from journeyman.testing import ScriptedServer, call, cut, http, say
from journeyman.testing.scripted import Said
from journeyman.testing.server import Served

LEDGER = "JOURNEYMAN_SOAK_LEDGER"
ONCE = frozenset(ONCE_ONLY)
WORK_SECONDS = 0.05
"""Twice in each call, so that faults fall into calls."""
KINDS = ("look", "stamp", "note", "note", "pay")
_MESSAGE = re.compile(r"Order (\d+): ([a-z ]+)")

library = tools(Ledger(os.environ.get(LEDGER, os.devnull)), work_seconds=WORK_SECONDS)
agent = clerk(library)


class Orders:
    """New messages, none twice: what one client asks for begins with that client's own thousands."""

    def __init__(self, chance: random.Random, *, first: int) -> None:
        self._chance = chance
        self._numbers = itertools.count(first)

    def next(self) -> str:
        steps = [self._chance.choice(KINDS) for _ in range(self._chance.randint(1, 5))]
        return f"Order {next(self._numbers)}: {' '.join(steps)}"


class FailingModel(ScriptedServer):
    """Does what the last message says, one call a turn; and fails as often as it is told to."""

    def __init__(self, chance: random.Random) -> None:
        super().__init__(())
        self.failing = 0.0
        """The share of requests that fail."""
        self.failed = 0
        self.answered = 0
        self._chance = chance

    def _next(self, body: dict[str, Any]) -> Served:
        # What was sent is of no use here, and would be kept for as long as the soak lasts.
        self.requests.clear()
        self.headers.clear()
        self.connections.clear()
        said = self._said(body["messages"])
        if self._chance.random() < self.failing:
            self.failed += 1
            faults: list[Served] = [http(500), http(429, retry_after=0.2), cut(said, after_bytes=40)]
            return self._chance.choice(faults)
        self.answered += 1
        return said

    def _said(self, messages: list[dict[str, Any]]) -> Said:
        asked = max(at for at, message in enumerate(messages) if message["role"] == "user")
        found = _MESSAGE.search(str(messages[asked]["content"]))
        if found is None:
            return say("Nothing to do.")
        order, steps = int(found[1]), found[2].split()
        turn = sum(message["role"] == "assistant" for message in messages[asked:])
        if turn < len(steps):
            return call(steps[turn], order=order * 10 + turn)
        return say(f"Order {order} is done, " + "and it was done with care, " * 20 + "as always.")
