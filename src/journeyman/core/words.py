"""English words of a text, and the stem that the forms of a word share: the one way to compare texts by their words.

Rough on purpose: a stem is only ever compared with another stem, and is the beginning of each word that has it (a final
``y`` apart), so a database can look for it too.
"""

from __future__ import annotations

import re
from functools import lru_cache

WORD = re.compile(r"[A-ZÀ-ÖØ-Þ]+(?![^\W\d_A-ZÀ-ÖØ-Þ])|[A-ZÀ-ÖØ-Þ]?[^\W\d_A-ZÀ-ÖØ-Þ]+|\d+")
"""A word, a number, or a part of an identifier: ``lookupOrder``, ``lookup_order`` and "look up order" are alike."""

ENDINGS = ("ing", "ed", "es", "s")
NO_PLURALS = ("ss", "us", "is")
LONGEST_KEPT = 32
"""Characters. What is longer is hardly a word, and is not kept."""


def words(text: str) -> list[str]:
    """The words in lower case."""
    return [match[0].casefold() for match in WORD.finditer(text)]


def stem(word: str) -> str:
    """What orders, tagged, companies and renaming have in common with order, tag, company and rename."""
    return _kept_stem(word) if len(word) <= LONGEST_KEPT else _stem(word)


def _stem(word: str) -> str:
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    for ending in ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith(NO_PLURALS):
            word = word[: -len(ending)]
            if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiouls":
                word = word[:-1]
            break
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


_kept_stem = lru_cache(maxsize=20_000)(_stem)
"""Texts are made of few different words, and looking one up is far quicker."""


def stands_in(text: str, value: str) -> bool:
    """Whether a value stands in a text as a word or words of its own, however it is capitalised."""
    said, wanted = text.casefold(), value.casefold().strip()
    at = said.find(wanted) if wanted else -1
    while at >= 0:
        end = at + len(wanted)
        before, after = said[at - 1 : at], said[end : end + 1]
        if not (before.isalnum() and wanted[:1].isalnum()) and not (after.isalnum() and wanted[-1:].isalnum()):
            return True
        at = said.find(wanted, at + 1)
    return False
