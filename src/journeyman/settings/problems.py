"""What is wrong with a configuration, and where: all of it at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import TypeAlias

from journeyman.core.errors import ConfigurationError

Key: TypeAlias = tuple[str | int, ...]
"""The way to a value: names of keys, and numbers of items from 0 on."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong: where it stands, under which key, and what to write instead."""

    place: str
    """``FILE:LINE:COLUMN``, ``environment variable NAME`` or ``option NAME``."""
    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.place}: {self.key}: {self.message}" if self.key else f"{self.place}: {self.message}"


class SettingsError(ConfigurationError):
    """A configuration cannot be used; every problem is listed, in the order of the file."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(map(str, self.problems)))


def key_text(key: Key) -> str:
    """``tools.lookup_order.permissions[0]``; names with dots of their own are quoted."""
    text = ""
    for step in key:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += ("." if text else "") + (f'"{step}"' if "." in step else step)
    return text


def nearest(name: str, known: Iterable[str]) -> str:
    """``did you mean …?``, or what there is."""
    names = list(known)
    best = max(names, key=lambda item: _likeness(name, item), default="")
    if best and _likeness(name, best) >= _ALIKE:
        return f"did you mean {best!r}?"
    return f"there are {', '.join(names)}" if names else "nothing can stand here"


_ALIKE = 0.6
_SHORT = 2


def _likeness(name: str, known: str) -> float:
    """How alike two names are; one word of a longer name counts nearly as much as the whole."""
    name, known = name.lower().replace("-", "_"), known.lower().replace("-", "_")
    if len(name) > _SHORT and known.startswith(name):
        return 0.9
    words = max(SequenceMatcher(None, name, word).ratio() for word in known.split("_"))
    return max(SequenceMatcher(None, name, known).ratio(), 0.95 * words)
