"""A new request beside one that was served: where it is worded alike, which of its words stand in the place of values.

Both are compared word by word. A placeholder takes one word or more; a few words may differ, so that "the chair" also
fits "the lamp". A request that says *not* where the other does not is never alike.
"""

from __future__ import annotations

import re

from journeyman.core.playbook import PLACEHOLDER_CLOSE, PLACEHOLDER_OPEN

MOST_WORDS = 120
MOST_DIFFERENT = 0.2
"""Of the words that are no values, the share that may differ."""
LEAST_WORDS = 2
"""Words that must be the same: fewer say nothing."""
_WORD, _MARK = 10, 3
"""What it costs that a word differs, and that a full stop or a quotation mark is missing."""
_PART = re.compile(rf"{PLACEHOLDER_OPEN}([^{PLACEHOLDER_CLOSE}]*){PLACEHOLDER_CLOSE}|[^\W_]+|[^\w\s]|_")
_NO = "not no never without except unless don dont cannot nor none nobody nothing"
_NEGATIONS = frozenset(_NO.split())
_IMPOSSIBLE = 1_000_000


def aligned(template: str, request: str) -> dict[str, str] | None:
    """By placeholder, what stands in its place in a request that is worded like the template; None where it is not."""
    wanted = [(found[1], found[0].casefold()) for found in _PART.finditer(template)]
    given = [(found[0].casefold(), found.start(), found.end()) for found in _PART.finditer(request)]
    if not wanted or not given or len(wanted) > MOST_WORDS or len(given) > 2 * MOST_WORDS:
        return None
    literal = [word for name, word in wanted if name is None and word[0].isalnum()]
    if {word for word, *_ in given} & _NEGATIONS - set(literal):
        return None
    matches = _cheapest(wanted, [word for word, *_ in given])
    if matches is None:
        return None
    cost, spans = matches
    different = cost // _WORD
    if different > MOST_DIFFERENT * len(literal) or len(literal) - different < LEAST_WORDS:
        return None
    found: dict[str, str] = {}
    for name, first, last in spans:
        value = request[given[first][1] : given[last - 1][2]].strip()
        if found.setdefault(name, value).casefold() != value.casefold():
            return None
    return found


def _cheapest(wanted: list[tuple[str | None, str]], given: list[str]) -> tuple[int, list[tuple[str, int, int]]] | None:
    """What the best match costs, and which words then stand for each placeholder, as ranges."""
    last = len(given)
    costs = [[_IMPOSSIBLE] * (last + 1) for _ in range(len(wanted) + 1)]
    costs[0][0] = 0
    for row, (name, word) in enumerate(wanted, start=1):
        above, here = costs[row - 1], costs[row]
        for column in range(1, last + 1):
            if name is not None:
                here[column] = min(above[column - 1], here[column - 1])
            else:
                same = word == given[column - 1]
                here[column] = above[column - 1] + _difference(word, given[column - 1], same=same)
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
            same = word == given[column - 1] if column else False
            step = _difference(word, given[column - 1], same=same) if column else _IMPOSSIBLE
            if column and costs[row][column] == costs[row - 1][column - 1] + step:
                column -= 1
            continue
        stop = column
        while costs[row][column] != costs[row - 1][column - 1]:
            column -= 1
        column -= 1
        spans.append((name, column, stop))
    return costs[-1][end], spans[::-1]


def _difference(word: str, other: str, *, same: bool) -> int:
    if same:
        return 0
    return _WORD if word[0].isalnum() and other[0].isalnum() else _IMPOSSIBLE
