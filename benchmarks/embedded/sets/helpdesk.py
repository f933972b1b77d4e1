"""A helpdesk of a company: tickets, accounts, devices, leave. Held out."""

from datetime import date
from typing import Literal

from journeyman import tool


@tool
def open_ticket(subject: str, priority: Literal["low", "normal", "urgent"] = "normal") -> None:
    """Open a ticket for a problem.

    Args:
        subject: What is broken or needed.
        priority: How soon it must be solved.
    """


@tool(read_only=True)
def get_ticket(ticket_id: int) -> str:
    """Show a ticket and what was done about it.

    Args:
        ticket_id: The ticket's number.
    """
    raise NotImplementedError


@tool(read_only=True)
def list_tickets(status: Literal["open", "waiting", "closed"] | None = None, assignee: str | None = None) -> list[str]:
    """List tickets.

    Args:
        status: Only those in this state.
        assignee: Only those of this colleague.
    """
    raise NotImplementedError


@tool
def assign_ticket(ticket_id: int, assignee: str) -> None:
    """Give a ticket to a colleague.

    Args:
        ticket_id: The ticket's number.
        assignee: Who takes care of it.
    """


@tool
def close_ticket(ticket_id: int, reason: str | None = None) -> None:
    """Close a ticket that is solved.

    Args:
        ticket_id: The ticket's number.
        reason: Why.
    """


@tool
def reset_password(user: str) -> None:
    """Reset the password of a user who cannot log in.

    Args:
        user: The user's name.
    """


@tool
def request_leave(first_day: date, last_day: date) -> None:
    """Request days off.

    Args:
        first_day: The first day away.
        last_day: The last day away.
    """


@tool(read_only=True)
def remaining_leave() -> int:
    """How many days off are left this year."""
    raise NotImplementedError


TOOLS = (
    open_ticket,
    get_ticket,
    list_tickets,
    assign_ticket,
    close_ticket,
    reset_password,
    request_leave,
    remaining_leave,
)
