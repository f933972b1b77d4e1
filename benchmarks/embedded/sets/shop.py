"""A shop's service desk: orders, refunds, addresses, stock. No tool has examples."""

from typing import Literal

from journeyman import tool


@tool(read_only=True)
def get_order(order_id: str) -> str:
    """Look up an order: what was bought, when, and where it is.

    Args:
        order_id: The number of the order, e.g. A1042.
    """
    raise NotImplementedError


@tool(read_only=True)
def list_orders(customer: str, status: Literal["open", "shipped", "delivered", "cancelled"] | None = None) -> list[str]:
    """List the orders of a customer.

    Args:
        customer: The customer's name or email.
        status: Only orders in this state.
    """
    raise NotImplementedError


@tool
def cancel_order(order_id: str) -> None:
    """Cancel an order that has not been shipped.

    Args:
        order_id: The number of the order.
    """


@tool
def refund_order(order_id: str, amount: float | None = None) -> None:
    """Give a customer money back.

    Args:
        order_id: The number of the order.
        amount: How much; everything when left out.
    """


@tool
def change_address(order_id: str, address: str) -> None:
    """Change where an order is delivered.

    Args:
        order_id: The number of the order.
        address: The new address.
    """


@tool(read_only=True)
def check_stock(product: str) -> int:
    """How many pieces of a product are in the warehouse.

    Args:
        product: The product's name.
    """
    raise NotImplementedError


@tool
def set_price(product: str, price: float) -> None:
    """Set the price of a product.

    Args:
        product: The product's name.
        price: The new price in euros.
    """


@tool
def send_coupon(customer: str, percent: int) -> None:
    """Send a customer a coupon for a discount.

    Args:
        customer: The customer's name or email.
        percent: How many percent they save.
    """


TOOLS = (
    get_order,
    list_orders,
    cancel_order,
    refund_order,
    change_address,
    check_stock,
    set_price,
    send_coupon,
)
