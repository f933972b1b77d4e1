"""A shop whose tools leave a line in a ledger for every effect, where no crash can take it back."""

from __future__ import annotations

import os
import signal
from collections import Counter
from pathlib import Path

from journeyman import Agent, Principal, RiskLevel, ToolContext, ToolLibrary, tool
from journeyman.testing import ScriptedModel, call, say, together

ADA = Principal("ada", permissions={"orders:write"})
DIE_IN_TOOL = "SHOP_DIES_IN"
"""``note:before`` or ``note:after``: kill the process in that tool, before or after its effect."""


class Ledger:
    """One line for an effect: the tool, the idempotency key, what it was done to."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, tool_name: str, key: str, subject: str) -> None:
        _maybe_die(tool_name, "before")
        file = os.open(self.path, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        try:
            os.write(file, f"{tool_name} {key} {subject}\n".encode())
            os.fsync(file)
        finally:
            os.close(file)
        _maybe_die(tool_name, "after")

    def lines(self) -> list[tuple[str, str, str]]:
        text = self.path.read_text() if self.path.exists() else ""
        return [(name, key, subject) for name, key, subject in (line.split() for line in text.splitlines())]

    def effects(self) -> Counter[tuple[str, str]]:
        """How often which tool was at work on which subject."""
        return Counter((name, subject) for name, _, subject in self.lines())

    def holds(self, key: str) -> bool:
        return any(found == key for _, found, _ in self.lines())


def _maybe_die(tool_name: str, when: str) -> None:
    if os.environ.get(DIE_IN_TOOL) == f"{tool_name}:{when}":
        os.kill(os.getpid(), signal.SIGKILL)


def shop(ledger: Ledger) -> ToolLibrary:
    """Tools of every kind: one reads, one may be repeated, one may not, and one needs a person as well."""

    @tool(read_only=True)
    def look(order_id: str, context: ToolContext) -> str:
        """Look at an order. Use when its state matters."""
        ledger.write("look", context.idempotency_key, order_id)
        return f"{order_id} is open"

    @tool(risk=RiskLevel.REVERSIBLE, idempotent=True)
    def stamp(order_id: str, context: ToolContext) -> str:
        """Stamp an order. Use when it was checked."""
        ledger.write("stamp", context.idempotency_key, order_id)
        return f"{order_id} is stamped"

    @tool(risk=RiskLevel.REVERSIBLE)
    def note(order_id: str, context: ToolContext) -> str:
        """Add a note to an order. Use when something must be remembered."""
        ledger.write("note", context.idempotency_key, order_id)
        return f"{order_id} has a note"

    @tool(permissions={"orders:write"})
    def delete_order(order_id: str, context: ToolContext) -> str:
        """Delete an order. Use when the user asks for it."""
        ledger.write("delete_order", context.idempotency_key, order_id)
        return f"{order_id} is deleted"

    return ToolLibrary([look, stamp, note, delete_order])


def clerk(library: ToolLibrary) -> Agent:
    return Agent(name="clerk", instruction="Help with orders.", tools=library.specifications())


def whole_day() -> ScriptedModel:
    """Every kind of call, one of them twice side by side."""
    return ScriptedModel(
        [
            call("look", order_id="W-17"),
            call("stamp", order_id="W-17"),
            call("note", order_id="W-17"),
            together(call("delete_order", order_id="W-17"), call("delete_order", order_id="W-18")),
            say("Both are deleted."),
        ]
    )


def deletes(*orders: str) -> ScriptedModel:
    return ScriptedModel([together(*(call("delete_order", order_id=order) for order in orders)), say("Done.")])
