"""The language of a request: what is read in German is put into English words first; of others the embedder decides."""

from __future__ import annotations

import re
from functools import cache
from typing import Literal, NamedTuple

from journeyman.choosing.actions import actions
from journeyman.core.words import WORD, WordLists, packaged_text, words

_common = WordLists("journeyman.retrieval", "words.txt")
LONGEST_PHRASE = 4
"""In words."""
ENDINGS = ("", "e", "en", "n", "s", "es", "er", "em", "t", "st", "te", "ten")
IN_NAME = re.compile(r"[./@_]\w")
"""What goes on after a part of an address or of a file's name."""
UMLAUTS = frozenset("äöüß")
SHORTEST_PART = 4
"""Of a compound, in letters."""


class InEnglish(NamedTuple):
    """A request as far as it can be said in English."""

    text: str
    language: Literal["en", "de", "unknown"]


@cache
def _german() -> dict[str, str]:
    lines = (line.split("#")[0] for line in packaged_text("journeyman.choosing", "german.txt").splitlines())
    read = [line.split(":") for line in lines if ":" in line]
    return {
        " ".join(words(each)): english.strip().replace("_", " ") for english, those in read for each in those.split()
    }


def _said_in_english(german: str) -> str | None:
    """A word or a phrase in one of its forms; a compound of two words as both of them."""
    table = _german()
    for cut in ENDINGS:
        bare = german.removesuffix(cut)
        if (cut and len(bare) < SHORTEST_PART) or not german.endswith(cut):
            continue
        for form in (bare, *(f"{bare}{ending}" for ending in ("e", "en") if cut)):
            if form in table:
                return table[form]
    for at in range(len(german) - SHORTEST_PART, SHORTEST_PART - 1, -1):
        first, rest = german[:at], german[at:]
        for joined in (first, first.removesuffix("s"), first.removesuffix("n")):
            if len(joined) >= SHORTEST_PART and joined in table and rest in table:
                return f"{table[joined]} {table[rest]}"
    return None


@cache
def _english() -> frozenset[str]:
    verbs = (word for those in actions().values() for verb in those for word in verb.split("_"))
    return frozenset((*_common.common, *verbs, "the", "a", "my", "is", "it"))


def in_english(text: str) -> InEnglish:
    """A German request word by word; an English one as it is, and so one that is neither, which is told."""
    spans = list(WORD.finditer(text))
    said = [span[0].casefold() for span in spans]
    german = sum(word in _german() or not UMLAUTS.isdisjoint(word) for word in said)
    english = sum(word in _english() for word in said)
    if english >= german:
        return InEnglish(text, "en" if english or len(said) < LONGEST_PHRASE else "unknown")
    pieces, place, end = [], 0, 0
    while place < len(spans):
        for length in range(min(LONGEST_PHRASE, len(spans) - place), 0, -1):
            last = spans[place + length - 1]
            named = IN_NAME.match(text, last.end())
            known = None if named else _said_in_english(" ".join(said[place : place + length]))
            if known is not None or length == 1:
                pieces += [text[end : spans[place].start()], known if known is not None else last[0]]
                place, end = place + length, last.end()
                break
    return InEnglish("".join([*pieces, text[end:]]), "de")
