"""English words of a text, and the stem that the forms of a word share: the one way to compare texts by their words.
Also how the lists of words and the regular expressions are read that rooms keep as data.

Rough on purpose: a stem is only ever compared with another stem, and is the beginning of each word that has it (a final
``y`` apart), so a database can look for it too.
"""

from __future__ import annotations

import json
import re
from functools import cache, lru_cache
from typing import Any, ClassVar, Generic, TypeVar

T = TypeVar("T")

WORD = re.compile(r"[A-ZÀ-ÖØ-Þ]+(?![^\W\d_A-ZÀ-ÖØ-Þ])|[A-ZÀ-ÖØ-Þ]?[^\W\d_A-ZÀ-ÖØ-Þ]+|\d+")
"""A word, a number, or a part of an identifier: ``lookupOrder``, ``lookup_order`` and "look up order" are alike."""

ENDINGS = ("ing", "ed", "es", "s")
NO_PLURALS = ("ss", "us", "is")
_SECTION = re.compile(r"\[(\w+)\]")
_PART = re.compile(r"\{\{(\w+)\}\}")
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


def packaged_text(package: str, file: str) -> str:
    """A data file of a package, also where the package is read from a zip."""
    from importlib.resources import files  # slow to import, and not everybody needs it

    return files(package).joinpath(file).read_text(encoding="utf-8")


@cache
def packaged_json(package: str, file: str) -> Any:
    """The value in a data file; nobody changes it."""
    return json.loads(packaged_text(package, file))


@cache
def _sections(package: str, file: str) -> dict[str, list[str]]:
    """The parts of a data file: ``[verbs]`` begins one, ``#`` a line that says something about it."""
    sections: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in packaged_text(package, file).splitlines():
        if name := _SECTION.fullmatch(line):
            lines = sections[name[1]] = []
        elif not line.startswith("#"):
            lines.append(line)
    return sections


@cache
def word_lists(package: str, *files: str) -> dict[str, frozenset[str]]:
    """The lists of words in data files; what has the same name in several, e.g. of several languages, is one list."""
    lists: dict[str, frozenset[str]] = {}
    for file in files:
        for name, lines in _sections(package, file).items():
            lists[name] = lists.get(name, frozenset()).union(" ".join(lines).split())
    return lists


@cache
def patterns(package: str, file: str) -> dict[str, re.Pattern[str]]:
    """The regular expressions in a data file, each on as many lines as it likes.

    ``{{name}}`` is one before it, which is then only a part of others.
    """
    written, parts = dict[str, str](), set[str]()
    for name, lines in _sections(package, file).items():
        text = "".join(lines)
        parts.update(_PART.findall(text))
        written[name] = _PART.sub(lambda found: written[found[1]], text)
    return {name: re.compile(text) for name, text in written.items() if name not in parts}


class _Attributes(Generic[T]):
    _read: ClassVar[Any]

    def __init__(self, package: str, *files: str) -> None:
        self._place = package, *files

    def __getattr__(self, name: str) -> T:
        lists: dict[str, T] = self._read(*self._place)
        if name not in lists:
            raise AttributeError(f"{self._place[1]} of {self._place[0]} has no list {name!r}")
        vars(self).update(lists)
        return lists[name]


class WordLists(_Attributes[frozenset[str]]):
    """The lists of words as attributes, read when the first one is used: ``lists.verbs``."""

    _read = staticmethod(word_lists)


class Patterns(_Attributes[re.Pattern[str]]):
    """The same for regular expressions."""

    _read = staticmethod(patterns)
