"""Days in words as dates: the engine copies "Friday" well and reckons badly which day that is."""

from __future__ import annotations

import re
from calendar import monthrange
from datetime import date, datetime, timedelta
from typing import Any

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
NEAR = {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1, "day after tomorrow": 2}
WRITTEN = ("%d %B %Y", "%B %d %Y", "%d %b %Y", "%b %d %Y")
COUNTS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "ten": 10}
LEADING = re.compile(r"^(?:(?:by|on|due|until|before|after|from|this|next|coming|the)\s+)+")
TIME_OF_DAY = re.compile(r"\s+(?:at\s.*|in the (?:morning|afternoon|evening)|morning|noon|afternoon|evening|night)$")
IN_DAYS = re.compile(rf"in (\d{{1,3}}|{'|'.join(COUNTS)}) (day|week)s?")
END_OF_MONTH = re.compile(r"(?:end|last day) of (?:the |this )?month")
WEEKDAY_BEFORE = re.compile(rf"^(?:{'|'.join(WEEKDAYS)})\s+(?=.*\d)")


def as_iso(value: Any, today: date) -> Any:
    """``tomorrow``, ``Friday``, ``in 3 days``, ``3 December`` as ISO 8601; a weekday is the next one, never today."""
    if not isinstance(value, str):
        return value
    spoken = " ".join(value.casefold().replace(",", " ").split())
    text = TIME_OF_DAY.sub("", LEADING.sub("", spoken))
    if text in NEAR:
        return (today + timedelta(days=NEAR[text])).isoformat()
    if text in WEEKDAYS:
        return (today + timedelta(days=(WEEKDAYS.index(text) - today.weekday() - 1) % 7 + 1)).isoformat()
    if text == "week" and spoken.endswith("next week"):
        return (today + timedelta(days=7 - today.weekday())).isoformat()
    if counted := IN_DAYS.fullmatch(text):
        count = COUNTS.get(counted[1]) or int(counted[1])
        return (today + timedelta(days=count * (7 if counted[2] == "week" else 1))).isoformat()
    if END_OF_MONTH.fullmatch(text):
        return today.replace(day=monthrange(today.year, today.month)[1]).isoformat()
    return _written(WEEKDAY_BEFORE.sub("", text), today) or value


def _written(text: str, today: date) -> str | None:
    plain = re.sub(r"(\d)(?:st|nd|rd|th)\b", r"\1", text).replace(" of ", " ").replace(".", "")
    plain = re.sub(r"\bsept\b", "sep", plain)
    for year in ("", f" {today.year}"):
        for form in WRITTEN:
            try:
                day = datetime.strptime(plain + year, form).date()
                # Without a year the next such day is meant.
                return (day if day >= today or not year else day.replace(year=day.year + 1)).isoformat()
            except ValueError:
                continue
    return None
