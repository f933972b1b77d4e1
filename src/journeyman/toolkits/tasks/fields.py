"""What people and models write into a task's fields, read or refused with the code that this toolkit promises."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from datetime import UTC, date, datetime, time
from enum import StrEnum
from typing import TypeVar

from journeyman.core.errors import ErrorCategory, ToolError
from journeyman.core.tasks import TaskPriority, TaskSort, TaskStatus

E = TypeVar("E", bound=StrEnum)

LONGEST_TITLE = 255
LONGEST_TAG = 64
MOST_TAGS = 50

_OTHER_WORDS = {
    "done": "completed",
    "complete": "completed",
    "finished": "completed",
    "todo": "pending",
    "open": "pending",
    "doing": "in_progress",
    "started": "in_progress",
}
"""What people call a status."""


def invalid(code: str, message: str, recover: str) -> ToolError:
    """A value that cannot be taken."""
    return ToolError(code, message, category=ErrorCategory.INVALID_INPUT, recover_action=recover)


def read_title(text: str) -> str:
    """A title in one line. Raises INVALID_TITLE."""
    title = " ".join(text.split())
    if not title:
        raise invalid("INVALID_TITLE", f"the title {text!r} is empty", "Give a title of 1 to 255 characters")
    if len(title) > LONGEST_TITLE:
        raise invalid(
            "INVALID_TITLE",
            f"the title has {len(title)} characters, at most {LONGEST_TITLE} are allowed: {title[:60]!r}…",
            "Shorten the title and put the rest into the description",
        )
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in title):
        raise invalid(
            "INVALID_TITLE", f"the title {title!r} has control characters in it", "Use letters, digits and punctuation"
        )
    return title


def read_priority(text: str) -> TaskPriority:
    """Raises INVALID_PRIORITY."""
    return _one_of(TaskPriority, text, "INVALID_PRIORITY", "priority")


def read_status(text: str) -> TaskStatus:
    """Raises INVALID_STATUS."""
    return _one_of(TaskStatus, _OTHER_WORDS.get(_folded(text), text), "INVALID_STATUS", "status")


def read_sort(text: str) -> TaskSort:
    """Raises INVALID_SORT."""
    return _one_of(TaskSort, text, "INVALID_SORT", "sort order")


def _one_of(kind: type[E], text: str, code: str, what: str) -> E:
    try:
        return kind(_folded(text))
    except ValueError:
        known = ", ".join(kind)
        raise invalid(code, f"{text!r} is no {what}", f"Use one of: {known}") from None


def _folded(text: str) -> str:
    return "_".join(text.strip().lower().replace("-", " ").split())


def read_eta(text: str, *, end_of_day: bool = False) -> datetime:
    """A date and time in ISO 8601, its time zone kept, UTC where it has none. Raises INVALID_ETA.

    A plain date is the beginning of that day, or with ``end_of_day`` its end.
    """
    written = text.strip()
    try:
        when = datetime.fromisoformat(written)
        if end_of_day and _is_plain_date(written):
            when = datetime.combine(when.date(), time.max)
        offset = when.utcoffset()
        if offset is not None and offset.total_seconds() % 60:
            raise ValueError("no time zone is off by seconds")
    except ValueError:
        raise invalid(
            "INVALID_ETA",
            f"{text!r} is no date or time in ISO 8601",
            "Write a date as 2027-01-31 or a time as 2027-01-31T17:00:00+01:00; work out 'tomorrow' first",
        ) from None
    return when if when.tzinfo is not None else when.replace(tzinfo=UTC)


def _is_plain_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def read_tags(tags: Iterable[str]) -> tuple[str, ...]:
    """Tags without spaces around them, each once whatever its case. Raises INVALID_TAGS."""
    found: dict[str, str] = {}
    for tag in tags:
        tidy = " ".join(tag.split()).removeprefix("#")
        if not 1 <= len(tidy) <= LONGEST_TAG:
            raise invalid("INVALID_TAGS", f"{tag!r} is no tag", f"Use tags of 1 to {LONGEST_TAG} characters")
        found.setdefault(tidy.casefold(), tidy)
    if len(found) > MOST_TAGS:
        raise invalid("INVALID_TAGS", f"there are {len(found)} tags", f"Use at most {MOST_TAGS} tags")
    return tuple(found.values())
