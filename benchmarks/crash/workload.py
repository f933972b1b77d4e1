"""What is killed: runs of eight calls of every kind, whose effects go to a ledger that no crash can take back."""

from __future__ import annotations

import os
import time
from pathlib import Path

from journeyman import Agent, Policy, Principal, RiskLevel, ToolContext, ToolLibrary, tool
from journeyman.testing import ScriptedModel, call, say, together

ADA = Principal("ada", permissions={"money"})
ONCE_ONLY = ("note", "pay")
"""Tools that may not be repeated."""
CALLS = {
    "call_1_1": "look",
    "call_2_1": "stamp",
    "call_3_1": "note",
    "call_4_1": "pay",
    "call_4_2": "note",
    "call_5_1": "stamp",
    "call_6_1": "pay",
    "call_7_1": "look",
}
"""The calls of every run by their ids."""
WORK_SECONDS = 0.01
"""How long a tool works before its effect, and after it, so that kills fall on both sides of it."""


class Ledger:
    """An append-only file, one line an effect: the tool and the idempotency key."""

    def __init__(self, path: str) -> None:
        self._path = path

    def write(self, tool_name: str, key: str) -> None:
        file = os.open(self._path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        try:
            os.write(file, f"{tool_name} {key}\n".encode())
            os.fsync(file)
        finally:
            os.close(file)

    def lines(self) -> list[tuple[str, str]]:
        path = Path(self._path)
        text = path.read_text() if path.exists() else ""
        return [(name, key) for name, key in (line.split() for line in text.splitlines())]

    def holds(self, key: str) -> bool:
        return any(found == key for _, found in self.lines())


def tools(ledger: Ledger, *, work_seconds: float = WORK_SECONDS) -> ToolLibrary:
    def effect(tool_name: str, context: ToolContext) -> str:
        time.sleep(work_seconds)
        ledger.write(tool_name, context.idempotency_key)
        time.sleep(work_seconds)
        return f"{tool_name} is done"

    @tool(read_only=True)
    def look(order: int, context: ToolContext) -> str:
        """Look at an order. Use when its state matters."""
        return effect("look", context)

    @tool(risk=RiskLevel.REVERSIBLE, idempotent=True)
    def stamp(order: int, context: ToolContext) -> str:
        """Stamp an order. Use when it was checked."""
        return effect("stamp", context)

    @tool(risk=RiskLevel.REVERSIBLE)
    def note(order: int, context: ToolContext) -> str:
        """Add a note to an order. Use when something must be remembered."""
        return effect("note", context)

    @tool(permissions={"money"})
    def pay(order: int, context: ToolContext) -> str:
        """Pay an order. Use when it is due."""
        return effect("pay", context)

    return ToolLibrary([look, stamp, note, pay])


def script() -> ScriptedModel:
    return ScriptedModel(
        [
            call("look", order=1),
            call("stamp", order=1),
            call("note", order=1),
            together(call("pay", order=1), call("note", order=2)),
            call("stamp", order=2),
            call("pay", order=2),
            call("look", order=2),
            say("All done."),
        ]
    )


def clerk(library: ToolLibrary) -> Agent:
    return Agent(name="clerk", instruction="Do the books.", tools=library.specifications())


def patient() -> Policy:
    """Nobody is to run out of time because a process was killed once more, or its clock is an hour ahead."""
    return Policy(stored_approval_seconds=7 * 24 * 3600)
