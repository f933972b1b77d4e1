"""A new request beside one that was served: where it is worded alike, which of its words stand in the place of values.

Both are compared word by word; a placeholder takes one word or more. *Exactly* alike is a request whose other words are
all the same, that asks for nothing besides and says *not* nowhere: what is done for it without anybody's thinking must
have been asked for. Where a word or two differ, values can still be told from the others, for a model that thinks. And
two demonstrations of one strategy become one, with a wording for both.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from journeyman.core.calls import Taken
from journeyman.core.playbook import PLACEHOLDER_CLOSE, PLACEHOLDER_OPEN, DemonstratedCall, Demonstration, placeholder
from journeyman.core.words import WordLists
from journeyman.learning.examples import MOST_EXAMPLES

MOST_WORDS = 120
MOST_DIFFERENT = 0.2
"""Of the words that are no values, the share that may differ."""
LEAST_WORDS = 2
"""Words that must be the same: fewer say nothing."""
LONGEST_VALUE = 6
"""Words of a value that stands without quotation marks."""
LONGEST_DATE = 24
"""Characters of what may have more parts: a date with its time."""
ANY = "any word"
"""The placeholder of a word that differed between requests which were served alike."""
_WORD, _MARK = 10, 3
"""What it costs that a word differs, and that a full stop or a quotation mark is missing."""
_PART = re.compile(rf"{PLACEHOLDER_OPEN}([^{PLACEHOLDER_CLOSE}]*){PLACEHOLDER_CLOSE}|[^\W_]+|[^\w\s]|_")
_IMPOSSIBLE = 1_000_000
_QUOTES = frozenset("'\"‘’“”«»")
_listed = WordLists("journeyman.learning", "alignment.txt")
MOST_WORDINGS = 6


@dataclass(frozen=True, slots=True)
class Alike:
    """What stands in a request in the place of values."""

    values: dict[str, str]
    exact: bool
    """Whether everything else is the same."""


def aligned(template: str, request: str) -> Alike | None:
    """By placeholder, what stands in its place in a request that is worded like the template; None where it is not."""
    wanted = [(part[1], part[0].casefold()) for part in _PART.finditer(template)]
    given = [(part[0].casefold(), part.start(), part.end()) for part in _PART.finditer(request)]
    if not wanted or not given or len(wanted) > MOST_WORDS or len(given) > 2 * MOST_WORDS:
        return None
    said = [word for word, *_ in given]
    literal = [word for name, word in wanted if name is None and word[0].isalnum()]
    if _negated(said) - _negated([word for _, word in wanted]) or ("?" in said and "?" not in template):
        return None
    if (matches := _cheapest(wanted, said)) is None:
        return None
    cost, spans = matches
    different = cost // _WORD
    if different > MOST_DIFFERENT * len(literal) or len(literal) - different < LEAST_WORDS:
        return None
    if wanted[0][0] is None and wanted[0][1] != said[0]:
        return None  # what a request begins with is mostly what it asks for
    values: dict[str, str] = {}
    exact = different == 0
    for name, first, last in spans:
        while last - first > 1 and not said[last - 1].isalnum():
            last -= 1
        while last - first > 1 and not said[first].isalnum():
            first += 1
        value = request[given[first][1] : given[last - 1][2]].strip()
        if values.setdefault(name, value).casefold() != value.casefold() and name != ANY:
            return None
        exact = exact and _is_value(given, first, last)
    return Alike({name: value for name, value in values.items() if name != ANY}, exact)


def generalised(template: str, other: str) -> str | None:
    """A template for both of two, in which numbers and single words within may differ; None where they are not alike.

    The first word stays what it is, and so do the words around it that say what to do with which one.
    """
    mine, theirs = list(_PART.finditer(template)), list(_PART.finditer(other))
    if len(mine) != len(theirs):
        return None
    pieces, end, differing = list[str](), 0, 0
    for place, (one, two) in enumerate(zip(mine, theirs, strict=True)):
        pieces.append(template[end : one.start()])
        end = one.end()
        if one[0].casefold() == two[0].casefold():
            pieces.append(one[0])
            continue
        both = one[0].isalnum() and two[0].isalnum()
        follows = place > 0 and _introduces(mine, place)
        if not both or not (follows or (one[0].isdigit() and two[0].isdigit())):
            return None
        pieces.append(f"{PLACEHOLDER_OPEN}{ANY}{PLACEHOLDER_CLOSE}")
        differing += 1
    return "".join([*pieces, template[end:]]) if 0 < differing <= 2 else None


def _introduces(parts: list[re.Match[str]], place: int) -> bool:
    """Whether a thing is named here: after *a*, *the* or somebody's *'s*, and not before another word of its own."""
    before, after = parts[place - 1][0].casefold(), parts[place + 1] if place + 1 < len(parts) else None
    named = before in ("a", "an", "the", "s") or before.startswith(PLACEHOLDER_OPEN)
    return named and (after is None or not after[0].isalnum() or after[0].casefold() in _listed.after)


def _negated(said: list[str]) -> set[str]:
    threes = zip(said, said[1:], said[2:], strict=False)
    return (set(said) & _listed.negations) | {before for before, mark, end in threes if mark in "'’" and end == "t"}


def _is_value(said: list[tuple[str, int, int]], first: int, last: int) -> bool:
    """Whether words look like one value, and not like one with something else behind it."""
    if first > 0 and said[first - 1][0] in _QUOTES and last < len(said) and said[last][0] in _QUOTES:
        return True
    words = [word for word, *_ in said[first:last] if word[0].isalnum()]
    long = len(words) > LONGEST_VALUE and said[last - 1][2] - said[first][1] > LONGEST_DATE
    if long or _listed.more & set(words):
        return False
    # Within 16:00 or 1/2 a mark belongs to the value; before a blank it ends a part of the sentence.
    marks = [at for at in range(first, last - 1) if said[at][0] in ",;:?!()"]
    return all(said[at + 1][1] == said[at][2] for at in marks)


def _cheapest(wanted: list[tuple[str | None, str]], given: list[str]) -> tuple[int, list[tuple[str, int, int]]] | None:
    """What the best match costs, and which words then stand for each placeholder, as ranges."""
    last = len(given)
    costs = [[_IMPOSSIBLE] * (last + 1) for _ in range(len(wanted) + 1)]
    costs[0][0] = 0
    for row, (name, word) in enumerate(wanted, start=1):
        above, here = costs[row - 1], costs[row]
        for column in range(1, last + 1):
            if name is not None:
                here[column] = min(above[column - 1], _IMPOSSIBLE if name == ANY else here[column - 1])
            else:
                here[column] = above[column - 1] + _difference(word, given[column - 1])
        if name is None and not word[0].isalnum():  # a full stop or a quotation mark may be left out
            for column in range(last + 1):
                here[column] = min(here[column], above[column] + _MARK)
    end = last
    while end and costs[-1][end] >= _IMPOSSIBLE and not given[end - 1][0].isalnum():
        end -= 1  # one that was added at the end
    if costs[-1][end] >= _IMPOSSIBLE:
        return None
    spans: list[tuple[str, int, int]] = []
    column = end
    for row in range(len(wanted), 0, -1):
        name, word = wanted[row - 1]
        if name is None:
            if column and costs[row][column] == costs[row - 1][column - 1] + _difference(word, given[column - 1]):
                column -= 1
            continue
        stop = column
        while costs[row][column] != costs[row - 1][column - 1]:
            column -= 1
        column -= 1
        spans.append((name, column, stop))
    return costs[-1][end], spans[::-1]


def _difference(word: str, other: str) -> int:
    if word == other:
        return 0
    return _WORD if word[0].isalnum() and other[0].isalnum() else _IMPOSSIBLE


def merged(kept: Demonstration, other: Demonstration) -> Demonstration:
    """A demonstration with what another run of the same strategy adds to it, or takes back.

    A constant that was another one there is none, and which row of a result a value came from is known only where they
    agree. Another way to ask for the same is kept beside the first, or one wording for both.
    """
    if [call.tool_name for call in kept.calls] != [call.tool_name for call in other.calls]:
        return kept
    calls = tuple(_both(mine, theirs) for mine, theirs in zip(kept.calls, other.calls, strict=True))
    examples = {example.request: example for example in (*kept.examples, *other.examples)}
    kept = kept.model_copy(update={"calls": calls, "examples": tuple(examples.values())[-MOST_EXAMPLES:]})
    same = all(
        mine.arguments.get(name) == value or mine.sources.get(name) is Taken.COMPOSED
        for mine, theirs in zip(calls, other.calls, strict=True)
        for name, value in theirs.arguments.items()
    )
    return _worded(kept, other.request) if same else kept


def _both(mine: DemonstratedCall, theirs: DemonstratedCall) -> DemonstratedCall:
    arguments, sources = dict(mine.arguments), dict(mine.sources)
    for name, source in mine.sources.items():
        if source is Taken.CONSTANT and theirs.arguments.get(name) != arguments.get(name):
            arguments[name], sources[name] = placeholder(name), Taken.COMPOSED
    places = dict(mine.places)
    for name, place in theirs.places.items():
        known = places.get(name, "only")
        places[name] = place if known == "only" else known if place in (known, "only") else "other"
    return mine.model_copy(update={"arguments": arguments, "sources": sources, "places": places})


def _worded(kept: Demonstration, request: str) -> Demonstration:
    wordings = [kept.request, *kept.wordings]
    if any((alike := aligned(text, request)) is not None and alike.exact for text in wordings):
        return kept
    for at, text in enumerate(wordings):
        if (both := generalised(text, request)) is not None:
            wordings[at] = both
            break
    else:
        wordings = [*wordings, request][:MOST_WORDINGS]
    return kept.model_copy(update={"request": wordings[0], "wordings": tuple(wordings[1:])})
