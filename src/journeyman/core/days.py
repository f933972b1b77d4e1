"""Days in words as dates: a small model copies "Friday" well and reckons badly which day that is."""

from __future__ import annotations

import re
from calendar import monthrange
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any, Literal, NamedTuple, TypeAlias

from journeyman.core.words import WORD

WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
NEAR = {"today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1, "day after tomorrow": 2}
WRITTEN = ("%Y-%m-%d", "%d %B %Y", "%B %d %Y", "%d %b %Y", "%b %d %Y")
COUNTS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "ten": 10}
LEADING = re.compile(r"^(?:(?:by|on|due|until|before|after|from|the)\s+)+")
TIME_OF_DAY = re.compile(r"\s+(?:at\s.*|in the (?:morning|afternoon|evening)|morning|noon|afternoon|evening|night)$")
WEEKDAY = re.compile(rf"(?:(?:this|next|coming) )*({'|'.join(WEEKDAYS)})")
COUNTED = re.compile(rf"(in|within|next) (\d{{1,3}}|{'|'.join(COUNTS)}) (day|week)s?")
RELATIVE = re.compile(r"(?:(this|next|last) )?(week|weekend|month)")
END_OF = re.compile(r"(?:end|last day) of (?:the |this )?(week|month)")
WEEKDAY_BEFORE = re.compile(rf"^(?:{'|'.join(WEEKDAYS)})\s+(?=.*\d)")
LONGEST = 6
"""In words: "the last day of this month"."""

Side: TypeAlias = Literal["before", "after", "on"]
LEAD = re.compile(
    r"(?:\b(?:(?:is|are) )?due:?\s+|\bdeadline:?\s+)?"
    r"(?:\b(?:(?P<before>by|before|until|till|no later than)|(?P<after>after|from|since|starting|between)"
    r"|on|for|to|and|in|over|during)\s+)?$",
    re.IGNORECASE,
)
"""What stands before a day and belongs to it."""
REPEATED = re.compile(r"\b(?:every|each|except|not|about|called|named)\s+$", re.IGNORECASE)
QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|(?<!\w)'[^']*'(?!\w)")
GOES_ON = re.compile(
    r"(?P<owns>['’]s\b)?(?:\s+(?:morning|noon|afternoon|evening|night)\b)?"
    r"(?=\s*$|\s*[,.;:!?)](?!\w)|\s+(?:to|at|and|or|with|that|as|in|of|for|by|from|until|tagged|please|then)\b|(?(owns)\s|(?!)))",
    re.IGNORECASE,
)
"""What may follow a day: "the Friday meeting" and "Friday-night beers" speak of something else."""


class Period(NamedTuple):
    first: date
    last: date


@dataclass(frozen=True, slots=True)
class Mention:
    """A day or more as a request speaks of them."""

    start: int
    end: int
    """In the request, with the words that lead to it."""
    period: Period
    side: Side
    owns: bool
    """"Today's tasks"."""


def as_iso(value: Any, today: date) -> Any:
    """``tomorrow``, ``Friday``, ``in 3 days``, ``3 December`` as ISO 8601; a weekday is the next one, never today."""
    if not isinstance(value, str):
        return value
    spoken = " ".join(value.casefold().replace(",", " ").split())
    found = period(TIME_OF_DAY.sub("", LEADING.sub("", spoken)), today)
    return value if found is None else one_day(found, today).isoformat()


def one_day(meant: Period, today: date) -> date:
    """The day by which something is to be done: a period begins with its first day, or has begun and ends."""
    return meant.first if meant.first > today else meant.last


def mentions(text: str, today: date) -> list[Mention]:
    """The days of which a request speaks, outside of quotes and of names."""
    quoted = [match.span() for match in QUOTED.finditer(text)]
    spans = [match.span() for match in WORD.finditer(text)]
    found, place = list[Mention](), 0
    while place < len(spans):
        begin = spans[place][0]
        pieces = ((end, period(_plain(text[begin:end]), today)) for _, end in reversed(spans[place : place + LONGEST]))
        end, meant = next(((end, meant) for end, meant in pieces if meant), (begin, None))
        lead, rest = LEAD.search(text, 0, begin), GOES_ON.match(text, end)
        inside = any(start <= begin < stop for start, stop in quoted)
        if meant and lead and rest and not inside and not REPEATED.search(text, 0, begin):
            side: Side = "before" if lead["before"] else "after" if lead["after"] else "on"
            found.append(Mention(lead.start(), rest.end(), meant, side, bool(rest["owns"])))
        place += max(1, sum(begin <= start < end for start, _ in spans[place : place + LONGEST]))
    return found


def without(text: str, told: Mention) -> str:
    """The request without the words of a day."""
    before, after = text[: told.start].rstrip(" ,"), text[told.end :]
    return f"{before}{after}" if before else after.lstrip(" ,")


def period(text: str, today: date) -> Period | None:
    """The days that words mean, which are in lower case and with single spaces; None if they mean none."""
    text = text.removeprefix("the ")
    week = today - timedelta(days=today.weekday())
    if text in NEAR:
        return _day(today + timedelta(days=NEAR[text]))
    if weekday := WEEKDAY.fullmatch(text):
        return _day(today + timedelta(days=(WEEKDAYS.index(weekday[1]) - today.weekday() - 1) % 7 + 1))
    if counted := COUNTED.fullmatch(text):
        count = COUNTS.get(counted[2]) or int(counted[2])
        last = today + timedelta(days=count * (7 if counted[3] == "week" else 1))
        return Period(last if counted[1] == "in" else today, last)
    if ending := END_OF.fullmatch(text):
        return _day(week + timedelta(days=6) if ending[1] == "week" else _month(today).last)
    if (relative := RELATIVE.fullmatch(text)) and (relative[1] or relative[2] == "weekend"):
        ahead = {"next": 1, "last": -1}.get(relative[1], 0)
        if relative[2] == "month":
            first = today.replace(day=1)
            return _month(first + timedelta(days={1: 31, 0: 0, -1: -1}[ahead]))
        begins = week + timedelta(days=7 * ahead + (5 if relative[2] == "weekend" else 0))
        return Period(begins, week + timedelta(days=7 * ahead + 6))
    written = _written(WEEKDAY_BEFORE.sub("", text), today)
    return _day(written) if written else None


def _day(day: date) -> Period:
    return Period(day, day)


def _month(day: date) -> Period:
    return Period(day.replace(day=1), day.replace(day=monthrange(day.year, day.month)[1]))


def _plain(text: str) -> str:
    return " ".join(text.casefold().replace(",", " ").split())


def _written(text: str, today: date) -> date | None:
    plain = re.sub(r"(\d)(?:st|nd|rd|th)\b", r"\1", text).replace(" of ", " ").replace(".", "")
    plain = re.sub(r"\bsept\b", "sep", plain)
    for year in ("", f" {today.year}"):
        for form in WRITTEN:
            try:
                day = datetime.strptime(plain + year, form).date()
                # Without a year the next such day is meant.
                return day if day >= today or not year else day.replace(year=day.year + 1)
            except ValueError:
                continue
    return None
