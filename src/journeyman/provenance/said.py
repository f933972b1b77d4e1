"""What a person's text asks for and forbids, and the figures, days and times in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import pairwise
from typing import TypeAlias

from journeyman.core.words import Patterns, WordLists, stem, words

lists = WordLists("journeyman.provenance", "flow.txt", "flow.de.txt")
_orders = Patterns("journeyman.provenance", "orders.txt")
LONGEST_READ = 200_000
"""Characters of one text that are looked at."""
FORBIDDEN_AFTER = 5
"""Words after "do not" that it holds for."""

Day: TypeAlias = tuple[int | None, int | None, int]
"""Year, month and day, as far as they were said."""

_sentences = re.compile(r"[^.!?;\n]+(?:[.!?;\n](?!\s|$)[^.!?;\n]+)*[.!?;\n]?").findall
_clauses = re.compile(r"[,;:()]|\s-+\s|\b(?:but|and|then|aber|und|dann|sondern)\b", re.IGNORECASE).split
LONGEST_NAME = 3
"""Words in quotation marks that may still be a name; more are somebody's words, and no order."""
_named = re.compile(r"(?:https?://|www\.)\S+|[\w.+-]+@[\w.-]+|\b[\w-]+\.[a-z][a-z0-9]{1,4}\b", re.IGNORECASE)
"""Addresses and files: their parts are no orders."""
_token = re.compile(r"[^\s\"'`(){}\[\]<>;=|“”‘’«»]+")
_SEPARATORS = str.maketrans(dict.fromkeys(",.’'"))
_iso = re.compile(r"(?<!\d)(\d{4})[-/.](\d{1,2})[-/.](\d{1,2})(?!\d)")
_short = re.compile(r"(?<![\d.])(\d{1,2})([-/.])(\d{1,2})\2(\d{4}|\d{2})(?!\d)")
_nth = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\b")


@dataclass(frozen=True, slots=True)
class Said:
    """One text of a person's, taken apart."""

    asked: frozenset[str]
    """Stems of what it orders, and of each two words side by side: not of its questions, nor of what it forbids."""
    named: frozenset[str]
    """Those of them that it only speaks of, e.g. "the mail"."""
    forbidden: frozenset[str]
    figures: frozenset[str]
    days: frozenset[Day]
    times: frozenset[tuple[int, int]]
    relative: bool
    """Whether it names a day by where it stands, e.g. tomorrow or Friday."""
    part: bool
    """Whether it asks for a part or a multiple of an amount, e.g. half of it."""


@lru_cache(maxsize=256)
def taken_apart(text: str) -> Said:
    text = text[:LONGEST_READ]
    asked, ordered, forbidden = set[str](), set[str](), set[str]()
    unquoted = _orders.quoted.sub(lambda found: " " if len(found[0].split()) > LONGEST_NAME else found[0], text)
    for sentence in _sentences(_named.sub(" ", unquoted if words(unquoted) else text)):
        question = (
            sentence.rstrip().endswith("?") and _orders.asks.match(sentence) and not _orders.politely.search(sentence)
        )
        for clause in _clauses(sentence):
            denied = _denied(clause)
            forbidden |= denied
            if not question:
                clause = _orders.reported.sub(" ", clause)
                order = [stem(word) for word in words(clause)]
                asked.update({*order, *map("_".join, pairwise(order))} - denied)
                ordered.update(_verbs(words(clause)))
    if _orders.consults.search(unquoted):
        forbidden |= asked  # until they say more: asking is what they want
    return Said(
        frozenset(asked),
        frozenset(stem(word) for word in lists.also_noun) & asked - ordered,
        frozenset(forbidden),
        figures_in(text),
        days_in(text),
        times_in(text),
        not lists.relative_day.isdisjoint(words(text)),
        _orders.part.search(text) is not None,
    )


def _verbs(order: list[str]) -> Iterator[str]:
    """The stems of words that do not follow an article, or one and an adjective."""
    for before, last, word in zip(["", "", *order], ["", *order], order, strict=False):
        if last not in lists.determiner and before not in lists.determiner:
            yield stem(word)


def _denied(clause: str) -> set[str]:
    """The stems of what a clause says is not to be done."""
    denied = set[str]()
    for match in _orders.forbids.finditer(clause):
        if match["who"]:
            continue
        if match["behind"]:
            denied.update(stem(word) for word in words(clause))
        else:
            denied.update(stem(word) for word in words(clause[match.end() :])[:FORBIDDEN_AFTER])
    return denied


@lru_cache(maxsize=4_096)
def plain(amount: str) -> str:
    """An amount as a number is written: ``$1,200.00`` and ``1.200,00 €`` are 1200."""
    bare = amount.strip("$€£ ~+").rstrip(".").replace("’", ",").replace("'", ",")
    if re.fullmatch(r"\d+,\d{1,2}|\d{1,3}(?:\.\d{3})+(?:,\d{1,2})?", bare):
        bare = bare.replace(".", "").replace(",", ".")
    try:
        number = float(bare.replace(",", ""))
    except ValueError:
        return bare
    return str(int(number)) if number.is_integer() else str(number)


def may_hold(text: str, figure: str) -> bool:
    """Whether a text could say a number at all: most do not, and to find all that are in one takes a hundred times."""
    bare, spelled = _bare(text)
    return spelled or figure.replace(".", "") in bare


@lru_cache(maxsize=256)
def figures_in(text: str) -> frozenset[str]:
    """The numbers in a text that are no part of a day, a time or a name."""
    return frozenset(_figures(text))


def _figures(text: str) -> Iterator[str]:
    order = [token.strip(".,:?!") for token in _token.findall(text)]
    months, numbers = _values("month"), _values("number")
    product = 0
    for before, token, after in zip(["", *order], order, [*order[1:], ""], strict=False):
        value = numbers.get(token.casefold())
        product = 0 if value is None else product * value if product and value >= 100 else product + value
        if value is not None and after.casefold() not in numbers:
            yield str(product)
        if before.casefold() in months or after.casefold() in months:
            continue
        if (match := _orders.figure.fullmatch(token)) is not None:
            yield plain(match[1])


@lru_cache(maxsize=256)
def _bare(text: str) -> tuple[str, bool]:
    """A text without what separates digits, and whether it has numbers in words."""
    lowered = text.lower()
    spelled = any(word in lowered for word in _values("number")) and _number_words().search(lowered) is not None
    return text.translate(_SEPARATORS), spelled


@cache
def _number_words() -> re.Pattern[str]:
    return re.compile(rf"\b(?:{'|'.join(sorted(_values('number')))})\b")


@lru_cache(maxsize=8)
def _values(section: str) -> dict[str, int]:
    entries: frozenset[str] = getattr(lists, section)
    return {name: int(value) for name, _, value in (entry.partition("=") for entry in entries)}


def days_in(text: str) -> frozenset[Day]:
    """The days that a text names. One that can be read in two ways is both."""
    days: set[Day] = {(int(y), int(m), int(d)) for y, m, d in _iso.findall(text)}
    for one, _, two, year in _short.findall(text):
        full = int(year) + 2_000 if len(year) == 2 else int(year)
        days |= {(full, int(month), int(day)) for day, month in ((one, two), (two, one)) if int(month) <= 12}
    months, order = _values("month"), words(text)
    for at, word in enumerate(order):
        if (month := months.get(word)) is None:
            continue
        year = next((int(each) for each in order[at + 1 : at + 4] if len(each) == 4 and each.isdigit()), None)
        near = [*order[max(0, at - 2) : at], *order[at + 1 : at + 2]]
        days |= {(year, month, int(each)) for each in near if each.isdigit() and 0 < int(each) <= 31}
    return frozenset(days or {(None, None, int(day)) for day in _nth.findall(text)})


def times_in(text: str) -> frozenset[tuple[int, int]]:
    """The times of a day that a text names."""
    times = set[tuple[int, int]]()
    for hour, minute, half, alone, its_half, at, oclock in _orders.clock.findall(text):
        given, which = int(hour or alone or at or oclock), (half or its_half).casefold()
        if which:
            given = given % 12 + (12 if which == "p" else 0)
        times.add((given, int(minute or 0)))
    return frozenset(time for time in times if time[0] <= 24)


def same_day(one: Day, other: Day) -> bool:
    return all(a is None or b is None or a == b for a, b in zip(one, other, strict=True))


def spelled(text: str) -> str:
    """A text with its spelled digits as digits, and the words that spell letters as these."""
    digits = {word: str(value) for word, value in _values("digit").items()}
    said = digits | {word: letter for word, _, letter in (entry.partition("=") for entry in lists.letter)}
    return " ".join(said.get(word, word) for word in words(text))
