"""Different words for the same thing: which of the concepts in ``concepts.txt`` a text speaks of.

People ask for "a day off" where a tool says "leave". Without a language model, a short list of such words goes further
than anything else that can be compared.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from journeyman.core.words import stem, words

LISTED = Path(__file__).with_suffix(".txt")
LONGEST = 5
"""In words."""


@cache
def _table() -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    lines = LISTED.read_text(encoding="utf-8").splitlines()
    for number, line in enumerate(line for line in lines if line.strip() and not line.startswith("#")):
        for phrase in line.split(","):
            found.setdefault(" ".join(map(stem, words(phrase))), set()).add(number)
    return {phrase: frozenset(numbers) for phrase, numbers in found.items()}


def concepts(text: str) -> frozenset[int]:
    """The numbers of the concepts for which a text has a word or a phrase; of what overlaps, the longest counts."""
    table, stems = _table(), [stem(word) for word in words(text)]
    found, place = set[int](), 0
    while place < len(stems):
        for length in range(min(LONGEST, len(stems) - place), 0, -1):
            if numbers := table.get(" ".join(stems[place : place + length])):
                found |= numbers
                place += length
                break
        else:
            place += 1
    return frozenset(found)
