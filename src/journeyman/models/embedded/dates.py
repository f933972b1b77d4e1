"""Which day the engine's copy of a date means. What is not understood is left as it is, for the tool to refuse."""

from __future__ import annotations

import re
from datetime import date, datetime, timedelta
from typing import Any

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
NEAR = {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1, "the day after tomorrow": 2}
WRITTEN = ("%d %B %Y", "%B %d %Y", "%d %b %Y", "%b %d %Y")
LEADING = re.compile(r"^(?:(?:by|on|due|until|before|after|from|this|next|coming)\s+)+")
IN_DAYS = re.compile(r"in (\d{1,3}) (day|week)s?")


def as_iso(value: Any, today: date) -> Any:
    """``tomorrow``, ``Friday``, ``in 3 days``, ``3 December`` as ISO 8601; a weekday is the next one, never today."""
    if not isinstance(value, str):
        return value
    text = LEADING.sub("", " ".join(value.casefold().replace(",", " ").split()))
    if text in NEAR:
        return (today + timedelta(days=NEAR[text])).isoformat()
    if text in WEEKDAYS:
        return (today + timedelta(days=(WEEKDAYS.index(text) - today.weekday() - 1) % 7 + 1)).isoformat()
    if counted := IN_DAYS.fullmatch(text):
        return (today + timedelta(days=int(counted[1]) * (7 if counted[2] == "week" else 1))).isoformat()
    return _written(text, today) or value


def _written(text: str, today: date) -> str | None:
    plain = re.sub(r"(\d)(?:st|nd|rd|th)\b", r"\1", text)
    for year in ("", f" {today.year}"):
        for form in WRITTEN:
            try:
                day = datetime.strptime(plain + year, form).date()
            except ValueError:
                continue
            # Without a year the next such day is meant.
            return (day if day >= today or not year else day.replace(year=day.year + 1)).isoformat()
    return None
