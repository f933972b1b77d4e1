"""A calendar: meetings with people, places and days."""

from datetime import date
from typing import Literal

from journeyman import tool


@tool(examples=["Schedule lunch with Maria on Friday at noon", "Put the budget review in my calendar"])
def create_event(title: str, day: date, time: str | None = None, guest: str | None = None) -> None:
    """Put an event into the calendar.

    Args:
        title: What it is.
        day: On which day.
        time: At what time of the day, such as 14:30.
        guest: Who is invited.
    """


@tool(read_only=True, examples=["What is in my calendar tomorrow?", "Do I have meetings this week?"])
def list_events(start: date | None = None, end: date | None = None) -> list[str]:
    """Show the events of the calendar.

    Args:
        start: The first day.
        end: The last day.
    """
    raise NotImplementedError


@tool(examples=["Move the dentist to Thursday"])
def reschedule_event(event: str, day: date, time: str | None = None) -> None:
    """Move an event to another day or time.

    Args:
        event: Words of its title.
        day: The new day.
        time: The new time.
    """


@tool(examples=["Call off the lunch with Maria"])
def cancel_event(event: str) -> None:
    """Cancel an event.

    Args:
        event: Words of its title.
    """


@tool
def invite_guest(event: str, guest: str) -> None:
    """Invite somebody to an event.

    Args:
        event: Words of its title.
        guest: The person's name or address.
    """


@tool(read_only=True)
def find_free_time(day: date, minutes: int = 60) -> list[str]:
    """Find when there is time for something on a day.

    Args:
        day: The day.
        minutes: For how long.
    """
    raise NotImplementedError


@tool
def set_status(status: Literal["available", "busy", "away"]) -> None:
    """Set what others see of you: available, busy or away."""


TOOLS = (create_event, list_events, reschedule_event, cancel_event, invite_guest, find_free_time, set_status)
