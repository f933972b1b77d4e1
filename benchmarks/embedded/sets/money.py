"""A bank account: balance, payments, exchange, cards."""

from datetime import date
from typing import Literal

from journeyman import tool

Account = Literal["checking", "savings"]
Category = Literal["groceries", "rent", "travel", "restaurants", "health", "other"]


@tool
def get_balance(account: Account = "checking") -> float:
    """How much money is on an account."""
    raise NotImplementedError


@tool
def transfer_money(recipient: str, amount: float, currency: str = "EUR", note: str | None = None) -> None:
    """Send money to a person or company.

    Args:
        recipient: Who gets it.
        amount: How much.
        currency: Three-letter code, such as EUR or USD.
        note: What it is for, shown to the recipient.
    """


@tool
def convert_currency(amount: float, source: str, target: str) -> float:
    """What an amount is worth in another currency.

    Args:
        amount: How much.
        source: The currency it is in, as a three-letter code.
        target: The currency to convert to, as a three-letter code.
    """
    raise NotImplementedError


@tool
def list_transactions(category: Category | None = None, since: date | None = None, limit: int = 20) -> list[str]:
    """Show past payments of the account.

    Args:
        category: Only payments of this kind.
        since: Only from this day on.
        limit: How many at most.
    """
    raise NotImplementedError


@tool
def block_card(card: Literal["debit", "credit"], reason: Literal["lost", "stolen", "damaged"] | None = None) -> None:
    """Block a bank card so that nobody can pay with it."""


@tool
def set_budget(category: Category, amount: float) -> None:
    """Set the most that may be spent on a category in a month."""


@tool
def split_bill(total: float, people: int) -> float:
    """What each person owes when a bill is shared equally."""
    raise NotImplementedError


@tool
def stock_price(symbol: str) -> float:
    """The price of a share now, by its ticker symbol, e.g. AAPL."""
    raise NotImplementedError


TOOLS = (
    get_balance,
    transfer_money,
    convert_currency,
    list_transactions,
    block_card,
    set_budget,
    split_bill,
    stock_price,
)
