"""A service with something of everything to look at: a scripted model that goes by what it is asked, and a few tools.

Used by the browser tests and by the pictures in the documentation.
"""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import dataclass, field
from typing import Any

from journeyman import Agent, RiskLevel, ToolContext, ToolError, ToolLibrary, tool
from journeyman.core.protocols import Deltas, ModelRequest, ModelResponse
from journeyman.core.runs import Usage
from journeyman.testing import ScriptedModel, call, say, together

ANSWER = """Here is how things stand:

| order | status |
|---|---|
| W-17 | **shipped** |
| W-18 | waiting |

1. W-17 left *yesterday*
2. W-18 needs `approval`
"""
ACCOUNT = 9_007_199_254_740_993
"""JavaScript has no such number: it would read the one before."""
NOTE = "rent\u202eTNER\u202c\u200b\u0007 \U000e0041x\u00a0y\u3164<b>"
BOOK = "\n\n".join(f"Line {number} of it says **much** and `more`." for number in range(1, 125_001))
HUGE_CHARS = 5_000_000
"""So many characters at least."""
ATTACK = """<img src=x onerror="document.title='broken into'"> [a bad link](javascript:alert(1)) and
[a good one](https://example.org/)"""


@dataclass
class Shop:
    """Tools with every kind of behaviour a card must show. Events let a test decide when things go on."""

    go: asyncio.Event = field(default_factory=asyncio.Event)
    deleted: list[str] = field(default_factory=list)
    flaky: int = 0
    posted: int = 0
    transferred: list[tuple[int, str, list[float]]] = field(default_factory=list)
    packed: list[dict[str, Any] | None] = field(default_factory=list)
    dies: bool = False
    """Whether the process dies while a letter is under way."""

    def library(self) -> ToolLibrary:
        shop = self

        @tool(risk=RiskLevel.REVERSIBLE, read_only=True, category="orders", cache_seconds=60)
        def lookup_order(order_id: str) -> dict[str, str]:
            """Look up an order. Use when the user names one.

            Args:
                order_id: The order's number, e.g. "W-17".
            """
            if order_id == "W-404":
                raise ToolError("ORDER_NOT_FOUND", f"No order {order_id!r}", recover_action="Ask for the number")
            return {"order_id": order_id, "status": "shipped"}

        @tool(risk=RiskLevel.IRREVERSIBLE, category="orders")
        def delete_order(order_id: str, reason: str = "asked for") -> dict[str, str]:
            """Delete an order for good. Use when the user asks for exactly that."""
            shop.deleted.append(order_id)
            return {"deleted": order_id, "reason": reason}

        @tool(risk=RiskLevel.REVERSIBLE, category="stock", timeout_seconds=60)
        async def count_stock(context: ToolContext) -> dict[str, int]:
            """Count everything in the warehouse, which takes a while. Use when stock is asked for."""
            context.progress("shelf 3 of 4", 0.75)
            await shop.go.wait()
            return {"apples": 41, "pears": 7}

        @tool(risk=RiskLevel.REVERSIBLE, category="stock", retries=2, idempotent=True)
        def weigh(item: str) -> float:
            """Weigh an item on the old scales. Use when a weight is asked for."""
            shop.flaky += 1
            if shop.flaky % 2:
                raise ToolError("SCALES_BUSY", "The scales are busy", retryable=True)
            return 1.25

        @tool(risk=RiskLevel.REVERSIBLE, category="post")
        def post_letter(to: str) -> str:
            """Post a letter. Use when somebody is to be written to."""
            if shop.dies:
                os.kill(os.getpid(), signal.SIGKILL)
            shop.posted += 1
            return "posted"

        @tool(risk=RiskLevel.IRREVERSIBLE, category="money")
        def transfer(account: int, note: str, limits: list[float]) -> str:
            """Transfer money. Use when the user asks for exactly that."""
            shop.transferred.append((account, note, limits))
            return "transferred"

        @tool(risk=RiskLevel.REVERSIBLE, category="post")
        async def pack(context: ToolContext) -> str:
            """Pack a parcel. Use when something is to be packed."""
            fields = {"box": {"type": "string", "enum": ["small", "large"]}, "gift": {"type": "boolean"}}
            wish = await context.ask("Which <b>box</b>?", {"type": "object", "properties": fields, "required": ["box"]})
            shop.packed.append(wish)
            return "packed"

        return ToolLibrary([lookup_order, delete_order, count_stock, weigh, post_letter, transfer, pack])


class Clerk:
    """A scripted model that chooses its script by what was said last."""

    name = "scripted"

    def __init__(self, shop: Shop) -> None:
        self._shop = shop
        self._scripts: dict[str, list[Any]] = {
            "look, then": [
                call("lookup_order", order_id="W-17"),
                call("delete_order", order_id="W-17"),
                say("It is **deleted**."),
            ],
            "book": [say(BOOK)],
            "delete": [call("delete_order", order_id="W-17"), lambda request: say(_after_delete(request))],
            "count": [call("count_stock"), say("There are **41** apples and 7 pears.")],
            "attack": [say(ATTACK)],
            "pack": [call("pack"), say("It is **packed**.")],
            "transfer": [
                call("transfer", account=ACCOUNT, note=NOTE, limits=[1.5, 2.0]),
                say("It is **transferred**."),
            ],
            "letter": [
                call("post_letter", to="Grace"),
                lambda request: say(f"It says: {request.messages[-1].content}"),
            ],
            "weigh": [
                together(call("weigh", item="apple"), call("lookup_order", order_id="W-404")),
                together(call("lookup_order", order_id="W-17"), call("lookup_order", order_id="W-18")),
                call("lookup_order", order_id="W-17"),
                say(ANSWER),
            ],
        }

    async def respond(self, request: ModelRequest, deltas: Deltas | None = None) -> ModelResponse:
        said = [message.content for message in request.messages if message.role == "user"][-1].lower()
        if "story" in said and deltas is not None:
            deltas.text("Once **upon** a")
            await self._shop.go.wait()
            deltas.text(" time.")
            return say("Once **upon** a time.")
        if "costs" in said:
            return say("This much.").model_copy(update={"usage": Usage(input_tokens=1_234, output_tokens=56)})
        script = next((turns for word, turns in self._scripts.items() if word in said), [say("Hello.")])
        return await ScriptedModel(script).respond(request, deltas)


def _after_delete(request: ModelRequest) -> str:
    seen = request.messages[-1].content
    return "Order W-17 is **deleted**." if '"deleted"' in seen else "As you wish: nothing was deleted."


def clerk(library: ToolLibrary) -> Agent:
    return Agent(
        name="clerk",
        description="The clerk looks after orders and stock.",
        instruction="Help with orders.",
        tools=library.specifications(),
    )
