"""Which words of a request speak for an argument.

The engine finds the right value of a parameter that was mentioned, and invents one for a parameter that was not. So
an optional value counts only where the request shows it: the value itself stands there, or a word of the parameter's
name or description does. A word speaks for one argument only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from journeyman.core.specification import ToolSpecification
from journeyman.core.words import WORD, stem, words
from journeyman.models.embedded.tools import DATES, as_iso, first_paragraph

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*(?:\.\d+)?(?![\w]|[.,]\d)")
NUMBERS = {
    word: number
    for number, word in enumerate(
        ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve")
    )
}
# fmt: off
SAY_NOTHING = frozenset((
    "a", "an", "and", "any", "all", "are", "as", "at", "be", "can", "could", "do", "does", "e", "for", "g", "give",
    "given", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its", "least", "me", "mine", "more", "most",
    "must", "my", "name", "named", "names", "new", "no", "not", "of", "on", "one", "only", "or", "our", "per",
    "please", "pls", "say", "says", "so", "some", "tell", "that", "the", "their", "them", "these", "they", "this",
    "those", "to", "up", "us", "use", "used", "user", "users", "want", "was", "we", "what", "whats", "when", "where",
    "which", "who", "whose", "will", "with", "without", "word", "words", "would", "you", "your", "s", "t",
))
# fmt: on
"""Words that any request and any description has."""

LONGEST_DATE = 6
"""In words: "by the day after tomorrow"."""

Places = frozenset[int]


def telling(text: str) -> set[str]:
    """The stems of a text without those that any text has."""
    return {stem(word) for word in words(text) if word not in SAY_NOTHING}


@dataclass(frozen=True, slots=True)
class Claim:
    """A value that the engine found for a parameter, and the words that speak for it."""

    name: str
    value: Any
    places: Places
    strength: float
    weak: bool = False
    """Nothing but words that nobody else wanted."""
    announced: bool = False
    """A free text of a parameter that the request mentions."""


class Request:
    """The words of a request, by their places."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.words = words(text)
        self._stems = [stem(word) for word in self.words]

    def of(self, value: Any) -> Places:
        """Where a value stands, copied word by word; nowhere if it does not."""
        wanted = words(str(value))
        for start in range(len(self.words) - len(wanted) + 1):
            if wanted and self.words[start : start + len(wanted)] == wanted:
                return frozenset(range(start, start + len(wanted)))
        return frozenset()

    def of_number(self, value: Any) -> Places:
        """Where a number stands, in digits or as a word."""
        spans = [match.span() for match in WORD.finditer(self.text)]
        found = {place for place, word in enumerate(self.words) if NUMBERS.get(word) == value}
        for match in NUMBER.finditer(self.text):
            if float(match[0].replace(",", "")) == value:
                found |= {
                    place for place, (begin, end) in enumerate(spans) if match.start() < end and begin < match.end()
                }
        return frozenset(found)

    def of_stems(self, stems: Iterable[str]) -> Places:
        wanted = set(stems)
        return frozenset(place for place, stemmed in enumerate(self._stems) if stemmed in wanted)

    def stretches(self, most: int) -> Iterator[str]:
        """Every piece of the text of so many words at most."""
        spans = [match.span() for match in WORD.finditer(self.text)]
        for start, (begin, _) in enumerate(spans):
            for _, end in spans[start : start + most]:
                yield self.text[begin:end]

    def without(self, places: Iterable[int]) -> str:
        """The text with words cut out, and what stands between two of them."""
        gone = set(places)
        spans = [match.span() for match in WORD.finditer(self.text)]
        kept, begin = list[str](), 0
        for place in sorted(gone):
            if place - 1 not in gone:
                kept.append(self.text[begin : spans[place][0]])
            begin = spans[place][1]
        return " ".join(" ".join([*kept, self.text[begin:]]).split())


class Vocabulary:
    """The words by which a request can speak of a tool and of each of its parameters."""

    def __init__(self, tool: ToolSpecification, properties: Mapping[str, Mapping[str, Any]]) -> None:
        of_tool = telling(tool.name.replace("_", " "))
        named = {name: telling(name.replace("_", " ")) for name in properties}
        described = {
            name: (named[name] | telling(str(schema.get("description", "")))) - of_tool
            for name, schema in properties.items()
        }
        names, shared = Counter(_all(named)), Counter(_all(described))
        self._of_parameter = {
            name: {one for one in described[name] if shared[one] == 1} | {one for one in named[name] if names[one] == 1}
            for name in properties
        }
        introduced = telling(f"{first_paragraph(tool.description)} {' '.join(tool.tags)}")
        self.names = of_tool | set(_all(named))
        self.of_tool = self.names | introduced
        self._all = self.of_tool | set(_all(described))

    def mentions(self, name: str, request: Request) -> Places:
        """The words of a request that only this parameter of the tool has."""
        return request.of_stems(self._of_parameter[name])

    def unexplained(self, value: Any, request: Request) -> Places:
        """The words of a value that stand in the request and that nothing in the tool's declaration accounts for."""
        return request.of_stems(telling(str(value)) - self._all)


def claim(
    name: str,
    schema: Mapping[str, Any],
    value: Any,
    request: Request,
    vocabulary: Vocabulary,
    *,
    taken: Places,
    confidence: float,
    alone: bool,
    today: date,
) -> Claim | None:
    """What speaks for a value, or None if nothing does.

    ``taken``: the words that the same answer used for required arguments. ``alone``: there is no other free text
    among the tool's optional parameters, so words that nothing accounts for can only be this one's.
    """
    mentions = vocabulary.mentions(name, request) - taken
    if "enum" in schema:
        parts = {stem(word) for word in words(str(value))}
        said = request.of_stems(parts) - taken
        share = len({stem(request.words[place]) for place in said}) / max(1, len(parts))
        if share == 1:
            return Claim(name, value, said, 4 + confidence)
        return Claim(name, value, said | mentions, 3 + share + confidence / 2) if mentions else None
    if schema.get("format") in DATES:
        day, places = as_iso(value, today), request.of(value)
        if not places or not _is_date(day):
            return None
        return Claim(name, day, places | mentions, 4 + bool(mentions) / 2 + confidence)
    if schema.get("type") in ("integer", "number"):
        places = request.of_number(value) - taken
        return Claim(name, value, places, 2.5 + confidence) if places else None
    if schema.get("type") == "boolean":
        named = request.of_stems(telling(name.replace("_", " "))) & mentions
        return Claim(name, value, named, 3 + confidence) if named else None
    if isinstance(value, list):
        each = [request.of(item) for item in value]
        if not (mentions and each and all(each)):
            return None
        places = frozenset[int]().union(*each)
        return Claim(name, value, places - taken or places, 3 + confidence)
    places = request.of(value)
    if places and mentions and not places & taken:
        return Claim(name, value, places, 2 + confidence, announced=True)
    places = vocabulary.unexplained(value, request)
    if alone and places and not places & taken:
        return Claim(name, value, places | request.of(value), 1 + confidence, weak=True)
    return None


def has_date(request: Request, today: date) -> bool:
    """Whether any piece of a request is a day."""
    return any(_is_date(as_iso(piece, today)) for piece in request.stretches(LONGEST_DATE))


def could_be_said(schema: Mapping[str, Any], mentions: Places, request: Request, *, alone: bool, dated: bool) -> bool:
    """Whether any value of this parameter would be believed: if not, the engine need not be asked for one."""
    if schema.get("format") in DATES:
        return dated
    if mentions:
        return True
    if "enum" in schema:
        return any(request.of(str(value).replace("_", " ")) or _all_said(value, request) for value in schema["enum"])
    if schema.get("type") in ("integer", "number"):
        return any(word.isdigit() or word in NUMBERS for word in request.words)
    return alone and schema.get("type") == "string"


def _all_said(value: Any, request: Request) -> bool:
    return all(request.of_stems([stem(word)]) for word in words(str(value)))


def _all(sets: Mapping[str, set[str]]) -> list[str]:
    return [one for each in sets.values() for one in each]


def _is_date(value: Any) -> bool:
    try:
        date.fromisoformat(str(value)[:10])
    except ValueError:
        return False
    return True
