"""A small shop: two tools, one agent. Run it, or give ``examples.shop:agent`` to the command line."""

from __future__ import annotations

from journeyman import Agent, RiskLevel, ToolError, ToolLibrary, run_sync, tool
from journeyman.testing import ScriptedModel, call, say

ORDERS = {"W-17": "shipped", "W-18": "packed"}


@tool(risk=RiskLevel.REVERSIBLE, read_only=True)
def lookup_order(order_id: str) -> dict[str, str]:
    """Look up an order. Use when the user names an order.

    Args:
        order_id: The order's number, e.g. "W-17".
    """
    if order_id not in ORDERS:
        raise ToolError(
            "ORDER_NOT_FOUND", f"there is no order {order_id!r}", recover_action="Ask the user for the number"
        )
    return {"order_id": order_id, "status": ORDERS[order_id]}


@tool(risk=RiskLevel.IRREVERSIBLE, permissions={"orders:write"})
def cancel_order(order_id: str) -> str:
    """Cancel an order for good. Use when the user asks for exactly that.

    Args:
        order_id: The order's number, e.g. "W-17".
    """
    ORDERS[order_id] = "cancelled"
    return f"{order_id} is cancelled"


library = ToolLibrary([lookup_order, cancel_order])
agent = Agent(name="support", instruction="Help with orders.", tools=(lookup_order, cancel_order))

if __name__ == "__main__":
    model = ScriptedModel([call("lookup_order", order_id="W-17"), say("W-17 is shipped.")])
    response = run_sync(agent, "Where is W-17?", library=library, model=model)
    print(response.answer)
    print(response.reasoning_trace)
