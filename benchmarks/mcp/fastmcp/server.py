"""A server written with FastMCP, with some of everything; its own packages stand before ours on the path."""

from fastmcp import Context, FastMCP

server = FastMCP("shop")
CHANGED: list[str] = []


@server.tool(annotations={"readOnlyHint": True})
def look_up(order: str) -> dict[str, str]:
    """Look up an order."""
    return {"order": order, "status": "shipped"}


@server.tool
def cancel(order: str) -> str:
    """Cancel an order."""
    CHANGED.append(order)
    return f"cancelled {CHANGED}"


@server.tool
async def order(item: str, context: Context) -> str:
    """Order an item."""
    await context.report_progress(1, 2)
    answer = await context.elicit("Which size?", response_type=str)
    return f"ordered {item}: {answer.action} {getattr(answer, 'data', None)}"


@server.resource("shop://terms")
def terms() -> str:
    """The terms."""
    return "Thirty days."


@server.resource("shop://orders/{order}")
def one_order(order: str) -> str:
    """One order."""
    return f"order {order}"


@server.prompt
def letter(to: str) -> str:
    """A letter."""
    return f"Dear {to}"


if __name__ == "__main__":
    server.run(show_banner=False)
