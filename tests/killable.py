"""Tools that run in a process of their own; here because another process must be able to import them."""

from __future__ import annotations

import time

from journeyman import ToolContext, tool


@tool(isolation="process", risk="reversible", timeout_seconds=1)
def sleep_in_c() -> None:
    """Sleep where no interrupt reaches."""
    time.sleep(3600)


@tool(isolation="process", risk="reversible", secrets=["TOKEN"])
def whoami(context: ToolContext) -> dict[str, object]:
    """Say who asks, and give a secret away."""
    principal = context.principal
    return {
        "id": principal.id if principal else None,
        "secret": context.secrets["TOKEN"],
        "key": context.idempotency_key,
    }
