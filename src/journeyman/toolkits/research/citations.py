"""Do the citations of a text hold? Each is compared with what was really read, and what does not hold is marked.

A citation is a number in brackets, ``[2]`` or ``[1, 3]``, in the sentence it supports or right behind it. It holds when
there is such a source, and what the sentence quotes and every number in it are found there. What this cannot see is
whether a sentence says the same as its source in other words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from journeyman.core.words import Patterns
from journeyman.toolkits.research.sources import Source, age

_written = Patterns("journeyman.toolkits.research", "citations.txt")

NO_SOURCE = "[no source]"
LEAST_WORDS = 4
"""Of a sentence that counts as a claim."""
MOST_CHARS = 200_000
"""Of a text that is checked; models write less."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A sentence, and what it cites."""

    start: int
    stop: int
    text: str
    cited: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CheckedText:
    """A text whose citations were compared with the sources."""

    text: str
    """With what does not hold marked, and what comes from memory said with its age."""
    problems: tuple[str, ...] = ()
    """One line for each mark, for whoever is to mend it."""
    cited: tuple[Source, ...] = field(default=())
    """The sources that are cited and exist, in the order of their numbers."""


def check_citations(text: str, sources: Mapping[int, Source], *, now: datetime | None = None) -> CheckedText:
    """Compare every citation with what was read.

    >>> check_citations("It has 3 wheels [1].", {1: Source(1, "web", "", "", "It has four wheels.")}).problems
    ("'It has 3 wheels [1].': 3 is not in source 1",)
    """
    text = _without_own_list(text[:MOST_CHARS])
    marks: list[tuple[int, str]] = []
    problems: list[str] = []
    used: dict[int, Source] = {}
    aged: set[int] = set()
    read = {number: _Read(source) for number, source in sources.items()}
    for claim in claims(text):
        problem = _problem(claim, read)
        if problem is not None:
            marks.append((claim.stop, f" {problem[0]}"))
            problems.append(f"{_shortened(claim.text)!r}: {problem[1]}")
        for number in claim.cited:
            source = sources.get(number)
            if source is None:
                continue
            used[number] = source
            if source.stored_at is not None and number not in aged:
                aged.add(number)
                marks.append((claim.stop, f" (from memory, stored {age(source.stored_at, now)} ago)"))
    shown = text
    for place, mark in sorted(marks, key=lambda item: item[0], reverse=True):
        shown = shown[:place] + mark + shown[place:]
    return CheckedText(shown.strip(), tuple(problems), tuple(used[number] for number in sorted(used)))


def source_list(sources: tuple[Source, ...], *, now: datetime | None = None) -> str:
    """What was cited, a line each, as Markdown."""
    return "\n".join(f"- [{source.number}] {_described(source, now)}" for source in sources)


def claims(text: str) -> Iterator[Claim]:
    """The sentences of a text that cite or claim something. Headings, code and questions are none."""
    at, fenced = 0, False
    for line in text.splitlines(keepends=True):
        start, at = at, at + len(line)
        bare = line.strip()
        if bare.startswith(("```", "~~~")):
            fenced = not fenced
        elif bare and not fenced and not bare.startswith("#") and not set(bare) <= set("|-: =*_"):
            yield from _sentences(line, start)


def _sentences(line: str, offset: int) -> Iterator[Claim]:
    lead = _written.lead.match(line)
    at = lead.end() if lead else 0
    stop = len(line.rstrip())
    while at < stop:
        end = _sentence_end(line, at, stop)
        # Citations behind the full stop belong to the sentence before it.
        while (behind := _written.behind.match(line, end, stop)) is not None:
            end = behind.end()
        sentence = line[at:end].strip()
        cited = tuple(dict.fromkeys(int(n) for match in _written.cited.finditer(sentence) for n in match[1].split(",")))
        if cited or _claims(sentence):
            yield Claim(offset + at, offset + end, sentence, cited)
        at = end


def _sentence_end(line: str, at: int, stop: int) -> int:
    for match in _written.end.finditer(line, at, stop):
        following = line[match.end() : match.end() + 2].strip()
        if (
            not _written.abbreviation.search(line, max(at, match.start() - 8), match.start() + 1)
            and not following.islower()
        ):
            return match.end()
    return stop


def _claims(sentence: str) -> bool:
    bare = sentence.strip("*_ ")
    return (
        len(_written.word.findall(bare)) >= LEAST_WORDS
        and not bare.endswith(("?", ":"))
        and not _written.not_a_claim.match(bare)
        and not bare.startswith("|")
    )


class _Read:
    """A source, made ready for being looked into."""

    def __init__(self, source: Source) -> None:
        self._text = f"{source.title}\n{source.text}"
        self._plain: str | None = None
        self._numbers: frozenset[str] | None = None

    def has_quote(self, quoted: str) -> bool:
        if self._plain is None:
            self._plain = _plain(self._text)
        return _plain(quoted) in self._plain

    def has_number(self, number: str) -> bool:
        if self._numbers is None:
            numbers = _written.number.findall(self._text)
            self._numbers = frozenset(form for each in numbers for forms in _values(each) for form in forms)
        return all(not forms.isdisjoint(self._numbers) for forms in _values(number))


def _problem(claim: Claim, read: Mapping[int, _Read]) -> tuple[str, str] | None:
    """The mark for a claim that does not hold, and why."""
    if not claim.cited:
        return NO_SOURCE, "cites no source"
    unknown = [number for number in claim.cited if number not in read]
    if unknown:
        which = ", ".join(map(str, unknown))
        return f"[source {which} was not read]", f"cites {which}, and no such source was read"
    cited = [read[number] for number in claim.cited]
    which = ", ".join(map(str, claim.cited))
    bare = _written.cited.sub(" ", _written.target.sub("]", claim.text))
    for groups in _written.quoted.findall(bare):
        quoted = next(filter(None, groups))
        if _written.word.search(quoted) and not any(source.has_quote(quoted) for source in cited):
            return f"[quotation not in source {which}]", f"{_shortened(quoted)!r} is not in source {which}"
    for number in _written.number.findall(_written.quoted.sub(" ", bare)):
        if not any(source.has_number(number) for source in cited):
            return f"[{number} not in source {which}]", f"{number} is not in source {which}"
    return None


def _values(written: str) -> list[set[str]]:
    """The numbers in what looks like one, each with the ways it can be read: "1.234" may be a thousand, or little.

    >>> sorted(map(sorted, _values("1,234.50"))), sorted(map(sorted, _values("12.03.2024")))
    ([['1234.5']], [['12'], ['2024'], ['3']])
    """
    blanks = re.split(r"[ \u00a0\u202f]", written)
    if len(blanks) > 1:
        grouped = len(blanks[0]) <= 3 and all(re.match(r"\d{3}(?!\d)", part) for part in blanks[1:])
        return _values("".join(blanks)) if grouped else [value for part in blanks for value in _values(part)]
    readings: set[str] = set()
    if re.fullmatch(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?", written):
        readings.add(written.replace(",", ""))
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+(?:,\d+)?", written):
        readings.add(written.replace(".", "").replace(",", "."))
    if re.fullmatch(r"\d+(?:[.,]\d+)?", written):
        readings.add(written.replace(",", "."))
    if readings:
        return [{_canonical(reading) for reading in readings}]
    return [{_canonical(part)} for part in re.split(r"\D+", written) if part]


def _canonical(number: str) -> str:
    whole, _, fraction = number.partition(".")
    fraction = fraction.rstrip("0")
    return (whole.lstrip("0") or "0") + (f".{fraction}" if fraction else "")


_QUOTES = dict.fromkeys(map(ord, '“”"«»…'), "")


def _plain(text: str) -> str:
    folded = text.casefold().translate(
        {ord("’"): "'", ord("‘"): "'", ord("–"): "-", ord("—"): "-", 0xA0: " "} | _QUOTES
    )
    return " ".join(folded.split()).strip(" .,;:!?")


def _without_own_list(text: str) -> str:
    """A list of sources that the model wrote itself is left out: the true one is added."""
    lines = text.splitlines()
    for at in range(len(lines) - 1, -1, -1):
        if lines[at].strip() and _written.sources.fullmatch(lines[at].strip()):
            return "\n".join(lines[:at]).rstrip()
    return text


def _described(source: Source, now: datetime | None) -> str:
    if source.stored_at is not None:
        first = _shortened(source.title or source.text)
        return f"From memory, stored {age(source.stored_at, now)} ago ({source.stored_at:%Y-%m-%d}): {first}"
    if source.kind == "tool":
        return f"What `{source.address}` returned"
    if source.kind == "file":
        return f"File `{source.address}`"
    return f"{_shortened(source.title)} – <{source.address}>" if source.title else f"<{source.address}>"


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:99]}…"
